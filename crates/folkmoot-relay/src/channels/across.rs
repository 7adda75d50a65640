//! What a channel has to do with other nodes: where its owner is, the nodes that have subscribers;
//! where its subscribers are, how far they have heard. On a relay that is alone it is nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Join, News, Position, What};
use crate::stream::Keep;

#[derive(Debug, Default)]
pub(super) enum Across {
    /// Its relay is alone.
    #[default]
    Nothing,
    /// It is owned here.
    Owned(Box<Hearers>),
    /// Its subscribers of this node are here.
    Branch(Box<Branched>),
}

/// Nodes with subscribers, each with the number of its last question about the channel: a few.
#[derive(Debug, Default)]
pub(super) struct Hearers(Vec<(u64, u64)>);

/// A channel where its subscribers are.
#[derive(Debug, Default)]
pub(super) struct Branched {
    /// Whether the owner knows that this node hears of the channel.
    pub(super) is_attached: bool,
    pub(super) keep: Option<Keep>,
    /// The last that was pushed here; `None`: nothing that has a position.
    pub(super) position: Option<Position>,
    /// Those whose question to the owner is under way.
    pub(super) waiting: Vec<Waiting>,
    /// What has come since the first of them asked.
    pub(super) meanwhile: Vec<What>,
}

/// Somebody who is about to be subscribed.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Of the question.
    pub(super) number: u64,
    pub(super) join: Join,
    /// Where in `meanwhile` its news begin.
    pub(super) from: usize,
}

/// News for nodes, in their order.
#[derive(Debug, Default)]
pub(super) struct Outgoing(HashMap<u64, Vec<News>>);

impl Across {
    pub(super) fn is_heard(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Owned(nodes) => !nodes.0.is_empty(),
            Self::Branch(branched) => !branched.waiting.is_empty(),
        }
    }

    /// The nodes that hear of the channel, which is owned here.
    pub(super) fn hearers(&mut self) -> &mut Hearers {
        if !matches!(self, Self::Owned(_)) {
            *self = Self::Owned(Box::default());
        }
        match self {
            Self::Owned(nodes) => nodes,
            _ => unreachable!("it was made so just now"),
        }
    }

    /// The channel, whose subscribers are here.
    pub(super) fn branched(&mut self) -> &mut Branched {
        if !matches!(self, Self::Branch(_)) {
            *self = Self::Branch(Box::default());
        }
        match self {
            Self::Branch(branched) => branched,
            _ => unreachable!("it was made so just now"),
        }
    }
}

impl Hearers {
    pub(super) fn insert(&mut self, node: u64, number: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == node) {
            Some(known) => known.1 = known.1.max(number),
            None => self.0.push((node, number)),
        }
    }

    /// A node hears of the channel no more, unless it has asked again since.
    pub(super) fn remove(&mut self, node: u64, number: u64) {
        self.0.retain(|(known, last)| *known != node || *last > number);
    }

    pub(super) fn retain(&mut self, mut is_there: impl FnMut(u64) -> bool) {
        self.0.retain(|(node, _)| is_there(*node));
    }
}

impl Branched {
    /// Keeps what has come for those who wait.
    pub(super) fn note(&mut self, what: &What) {
        if !self.waiting.is_empty() {
            self.meanwhile.push(what.clone());
        }
    }

    /// What has come was of a former life of the owner: the answers of the next one know of it.
    pub(super) fn forget_meanwhile(&mut self) {
        self.meanwhile = Vec::new();
        self.waiting.iter_mut().for_each(|one| one.from = 0);
    }

    /// The one with this question, if it waits still; what has come since it asked.
    pub(super) fn take(&mut self, number: u64) -> Option<(Join, Vec<What>)> {
        let place = self.waiting.iter().position(|one| one.number == number)?;
        let Waiting { join, from, .. } = self.waiting.swap_remove(place);
        let since = self.meanwhile[from..].to_vec();
        self.settle();
        Some((join, since))
    }

    /// Somebody does not want it any more.
    pub(super) fn give_up(&mut self, client: &str) {
        self.waiting.retain(|one| *one.join.connection.id != *client);
        self.settle();
    }

    fn settle(&mut self) {
        if self.waiting.is_empty() {
            self.meanwhile = Vec::new();
        }
    }
}

impl Outgoing {
    pub(super) fn add(&mut self, to: &Hearers, channel: &Arc<str>, what: impl Fn() -> What) {
        for (node, _) in &to.0 {
            self.add_for(*node, channel, what());
        }
    }

    pub(super) fn add_for(&mut self, node: u64, channel: &Arc<str>, what: What) {
        self.0.entry(node).or_default().push(News { channel: channel.clone(), what });
    }

    pub(super) fn take(&mut self) -> HashMap<u64, Vec<News>> {
        std::mem::take(&mut self.0)
    }
}
