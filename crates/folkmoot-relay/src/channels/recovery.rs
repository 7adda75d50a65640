//! What a client that comes back is told of what it missed, wherever the history is.

use std::collections::BTreeMap;

use folkmoot_protocol::frame::{Publication, SubscribeResult};

use super::{Found, Join, Missing, Position};
use crate::payload::Payload;
use crate::stream::{Query, Stream};

impl Join {
    /// Whether its filter lets something with these tags through.
    pub(super) fn wants(&self, tags: &BTreeMap<String, String>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(tags))
    }

    /// What is to be looked for where the filter is known.
    pub(super) fn missing_here(&self) -> Missing {
        match self.missing() {
            Missing::All => Missing::Newest,
            missing => missing,
        }
    }

    /// What is to be looked for in the history.
    pub(super) fn missing(&self) -> Missing {
        match &self.since {
            Some(_) if !self.result.recoverable => Missing::Nothing,
            None => Missing::Nothing,
            // Of what a filter lets through, the newest may be an old one.
            Some(_) if self.recovers_newest && self.filter.is_some() => Missing::All,
            Some(_) if self.recovers_newest => Missing::Newest,
            Some((offset, epoch)) => {
                let (offset, epoch) = (*offset, epoch.clone());
                Missing::Since { offset, epoch, len_max: self.recovery_limit }
            }
        }
    }
}

impl Stream {
    /// Looks for what was missed. Of the newest, the newest that fits counts.
    pub(super) fn find(&self, missing: &Missing, fits: impl Fn(&Payload) -> bool) -> Found {
        let position = Some(Position { offset: self.top(), epoch: self.epoch() });
        let found = |missed, is_all| Found { life: 0, position, missed, is_all };
        match missing {
            Missing::Nothing => found(Vec::new(), false),
            Missing::Since { offset, epoch, len_max } => {
                let missed = self.since(*offset, epoch, *len_max);
                found(missed.publications, missed.is_all)
            }
            Missing::Newest => found(self.newest(fits).into_iter().collect(), true),
            Missing::All => found(self.page(&Query::default()), true),
        }
    }
}

/// Completes what a client that subscribes to a channel with a history is told.
pub(super) fn recover(join: &Join, found: Found, result: &mut SubscribeResult) {
    let Some(position) = found.position else { return };
    if result.recoverable || result.positioned {
        (result.offset, result.epoch) = (position.offset, position.epoch.to_string());
    }
    let Some((offset, epoch)) = join.since.as_ref().filter(|_| result.recoverable) else { return };
    let wants = |one: &Publication| join.wants(&one.tags);
    result.was_recovering = true;
    if join.recovers_newest {
        let is_same = position.epoch.is(epoch);
        let newest = found.missed.into_iter().rev().find(wants);
        result.recovered = newest.is_some() || is_same && *offset == position.offset;
        let is_seen = |one: &Publication| is_same && one.offset <= *offset;
        result.publications.extend(newest.filter(|one| !is_seen(one)));
    } else {
        result.publications = found.missed.into_iter().filter(wants).collect();
        result.recovered = found.is_all;
    }
}
