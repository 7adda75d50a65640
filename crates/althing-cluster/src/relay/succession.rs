//! Whose events of one topic come from other nodes, and how one owner follows another.
//!
//! Events of a new owner are held until each other node has sent the last that it has of older
//! ones, so that none of those is lost. The first of each owner may leave a gap all the same: there
//! may have been owners in between whose nodes have died.

use std::collections::{BTreeSet, VecDeque};

use althing::remote::Continuity;

use super::{Effect, Key};
use crate::protocol::{Item, TopicEvent};

/// Events of a new owner that wait at most. The oldest go first, and leave a gap.
const HELD_MAX: usize = 8_192;

/// What comes for a topic.
pub(super) enum Arrival {
    Event(TopicEvent),
    /// The owner of this epoch is no more.
    Release(u64),
    /// Events are lost here.
    Doubt,
}

/// Who publishes on other nodes.
#[derive(Default)]
pub(super) struct Succession {
    owner: Option<Owner>,
    rising: Option<Rising>,
}

/// The owner whose events are taken.
struct Owner {
    epoch: u64,
    /// Its node, if that may publish more.
    at: Option<u64>,
}

/// A later owner.
struct Rising {
    epoch: u64,
    at: u64,
    waits_for: BTreeSet<u64>,
    held: VecDeque<(u64, Arrival)>,
}

impl Succession {
    /// An event; `others` are the members that may still publish.
    pub(super) fn arrive(
        &mut self,
        from: u64,
        key: &Key,
        event: TopicEvent,
        others: BTreeSet<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(epoch) = event.epoch else {
            return take(key, Arrival::Event(event), Continuity::Follows, effects);
        };
        let arrival = Arrival::Event(event);
        let owner = self.owner.as_ref().map(|owner| owner.epoch);
        match &mut self.rising {
            // What was before, nobody here has heard.
            None if owner.is_none() => {
                self.owner = Some(Owner { epoch, at: Some(from) });
                take(key, arrival, Continuity::MayLeaveAGap, effects);
            }
            None if owner < Some(epoch) => self.rise(from, key, (epoch, arrival), others, effects),
            Some(rising) if rising.epoch < epoch => {
                self.rise(from, key, (epoch, arrival), others, effects);
            }
            Some(rising) if owner < Some(epoch) => rising.hold(epoch, arrival),
            // One of before as well: its topic refuses it.
            _ => take(key, arrival, Continuity::Follows, effects),
        }
    }

    /// The owner of that epoch is no more.
    pub(super) fn release(&mut self, key: &Key, epoch: u64, effects: &mut Vec<Effect>) {
        match (&mut self.owner, &mut self.rising) {
            (Some(owner), _) if owner.epoch == epoch => {
                take(key, Arrival::Release(epoch), Continuity::Follows, effects);
            }
            (_, Some(rising)) => rising.hold(epoch, Arrival::Release(epoch)),
            // Nothing of it has come here.
            _ => {}
        }
    }

    /// This node publishes as the owner of that epoch.
    pub(super) fn own(&mut self, epoch: u64) {
        if self.owner.as_ref().is_none_or(|owner| owner.epoch < epoch) {
            self.owner = Some(Owner { epoch, at: None });
        }
    }

    /// A later owner than all that are known: asks the others whether they have sent all.
    fn rise(
        &mut self,
        from: u64,
        key: &Key,
        (epoch, arrival): (u64, Arrival),
        others: BTreeSet<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let mut waits_for = others;
        waits_for.remove(&from);
        for to in waits_for.iter().copied() {
            let Key { topic, event } = key.clone();
            effects.push(Effect::Send { to, item: Item::Drain { topic, event, epoch } });
        }
        let earlier = self.rising.take();
        let mut rising = Rising { epoch, at: from, waits_for, held: VecDeque::new() };
        if let Some(earlier) = earlier {
            rising.held = earlier.held;
        }
        rising.hold(epoch, arrival);
        self.rising = Some(rising);
        self.adopt_if_drained(key, effects);
    }

    pub(super) fn drained(&mut self, from: u64, key: &Key, epoch: u64, effects: &mut Vec<Effect>) {
        if let Some(rising) = self.rising.as_mut().filter(|rising| rising.epoch == epoch) {
            rising.waits_for.remove(&from);
            self.adopt_if_drained(key, effects);
        }
    }

    /// That node publishes nothing more, and all of it has come.
    pub(super) fn quiet(&mut self, node: u64, key: &Key, effects: &mut Vec<Effect>) {
        if let Some(rising) = &mut self.rising {
            rising.waits_for.remove(&node);
        }
        self.end(node, key, effects);
    }

    /// That node has died, and with it what it had published last.
    pub(super) fn lose(&mut self, node: u64, key: &Key, effects: &mut Vec<Effect>) {
        if let Some(rising) = &mut self.rising {
            rising.waits_for.remove(&node);
        }
        self.end(node, key, effects);
        effects.push(Effect::Doubt { key: key.clone() });
        if let Some(rising) = &mut self.rising {
            // What is held comes before what is lost.
            rising.hold(rising.epoch, Arrival::Doubt);
        }
    }

    /// Nothing comes any more from that node.
    fn end(&mut self, node: u64, key: &Key, effects: &mut Vec<Effect>) {
        self.adopt_if_drained(key, effects);
        if let Some(owner) = self.owner.as_mut().filter(|owner| owner.at == Some(node)) {
            owner.at = None;
            take(key, Arrival::Release(owner.epoch), Continuity::Follows, effects);
        }
        if let Some(rising) = self.rising.as_mut().filter(|rising| rising.at == node) {
            rising.hold(rising.epoch, Arrival::Release(rising.epoch));
        }
    }

    fn adopt_if_drained(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(mut rising) = self.rising.take_if(|rising| rising.waits_for.is_empty()) else {
            return;
        };
        self.owner = Some(Owner { epoch: rising.epoch, at: Some(rising.at) });
        // Of two owners in a row, the earlier one's first.
        rising.held.make_contiguous().sort_by_key(|(epoch, _)| *epoch);
        let mut last = None;
        for (epoch, arrival) in rising.held {
            // There may have been owners in between of whom nothing has come here. Where numbers are
            // without holes, that is no gap for anybody.
            let is_first = last != Some(epoch);
            if matches!(arrival, Arrival::Event(_)) {
                last = Some(epoch);
            }
            let continuity = if is_first { Continuity::MayLeaveAGap } else { Continuity::Follows };
            take(key, arrival, continuity, effects);
        }
    }
}

impl Rising {
    fn hold(&mut self, epoch: u64, arrival: Arrival) {
        if self.held.len() >= HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back((epoch, arrival));
    }
}

fn take(key: &Key, arrival: Arrival, continuity: Continuity, effects: &mut Vec<Effect>) {
    effects.push(match arrival {
        Arrival::Event(event) => {
            let continuity = if event.gap { Continuity::MayLeaveAGap } else { continuity };
            Effect::Take { event, continuity }
        }
        Arrival::Release(epoch) => Effect::Release { key: key.clone(), epoch },
        Arrival::Doubt => Effect::Doubt { key: key.clone() },
    });
}
