//! What a channel has to do with other nodes: where its owner is, the nodes that have subscribers;
//! where its subscribers are, how far they have heard. On a relay that is alone it is nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Join, News, Position, What};
use crate::stream::Keep;

/// News that are kept for those who wait for the owner's answer, and their bytes: twice as much as one
/// message between nodes. Whoever waits for longer has to subscribe again.
const MEANWHILE_LEN_MAX: usize = 65_536;
const MEANWHILE_BYTES_MAX: usize = 64 << 20;

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
    meanwhile_bytes: usize,
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

    #[cfg(test)]
    pub(super) fn nodes(&self) -> Vec<u64> {
        self.0.iter().map(|(node, _)| *node).collect()
    }
}

impl Branched {
    /// Keeps what has come for those who wait.
    pub(super) fn note(&mut self, what: &What) {
        if self.waiting.is_empty() {
            return;
        }
        let payload = what.payload().map_or(0, |payload| payload.encoded_len());
        self.meanwhile_bytes += payload + what.encoded_len();
        self.meanwhile.push(what.clone());
    }

    /// Gives up those who have waited for too long; returns whether there were any.
    pub(super) fn keep_within(&mut self) -> bool {
        let is_too_much =
            self.meanwhile.len() > MEANWHILE_LEN_MAX || self.meanwhile_bytes > MEANWHILE_BYTES_MAX;
        if is_too_much {
            self.waiting.clear();
            self.forget_meanwhile();
        }
        is_too_much
    }

    /// What has come was of a former life of the owner: the answers of the next one know of it.
    pub(super) fn forget_meanwhile(&mut self) {
        (self.meanwhile, self.meanwhile_bytes) = (Vec::new(), 0);
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
            self.forget_meanwhile();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use folkmoot_protocol::frame::ClientInfo;

    use super::super::Heard;
    use super::super::tests::{connection, join};
    use super::*;
    use crate::payload::Payload;

    #[test]
    fn what_comes_while_somebody_waits_for_an_owner_is_bounded_in_number_and_in_bytes() {
        for (len, most) in [(32 << 20, 3), (0, MEANWHILE_LEN_MAX + 1)] {
            let (mut branched, data) = (Branched::default(), Bytes::from(vec![b'1'; len]));
            let join = join(&connection("one"), None);
            branched.waiting.push(Waiting { number: 1, join, from: 0 });
            let payload = Payload { data, tags: BTreeMap::new(), info: None, time: 0 };
            let heard = Heard { payload: Arc::new(payload), offset: 1, may_be_delta: false };
            assert!(noted(&mut branched, &What::Published(heard)) <= most, "of {len} bytes");
            assert!(branched.waiting.is_empty() && branched.meanwhile.is_empty());
            assert!(!branched.keep_within(), "what was given up counts no more");
        }
    }

    #[test]
    fn tags_and_who_comes_count_among_what_comes_while_somebody_waits() {
        let text = "x".repeat(32 << 20);
        let info = ClientInfo { conn_info: text.clone().into(), ..ClientInfo::default() };
        let tags = BTreeMap::from([("tag".to_owned(), text)]);
        let payload = Arc::new(Payload { tags, ..Payload::default() });
        let heard = Heard { payload, offset: 1, may_be_delta: false };
        for what in [What::Published(heard), What::Came(info)] {
            let mut branched = Branched::default();
            let join = join(&connection("one"), None);
            branched.waiting.push(Waiting { number: 1, join, from: 0 });
            assert!(noted(&mut branched, &what) <= 3);
        }
    }

    /// How often something is kept until it is too much.
    fn noted(branched: &mut Branched, what: &What) -> usize {
        let mut noted = 0;
        while !branched.keep_within() {
            branched.note(what);
            noted += 1;
            assert!(noted <= 2 * MEANWHILE_LEN_MAX, "there is no bound");
        }
        noted
    }
}
