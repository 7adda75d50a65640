//! The authority's decisions, as a step function without clock, disk or network.
//!
//! Every request changes the record or leaves it alone; a changed record is stored before anybody
//! hears of it. Moments are the authority's own clock, which only has to go
//! forward. When the authority itself was held up, nobody is evicted for its own silence.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bucket::BUCKETS;
use crate::lease::Timing;
use crate::placement::Candidates;
use crate::protocol::{Answer, Refusal, Request};
use crate::record::{Holding, Member, Record, Stage};

/// Buckets on the move at one time: each move is a short pause for its actors, and the whole
/// cluster must not pause at once.
const MOVES_MAX: usize = 256;

/// The record, and when each member was heard of.
pub(crate) struct Ledger {
    timing: Timing,
    record: Record,
    heard: BTreeMap<u64, Heard>,
    /// When the authority looked at its clock last.
    looked: Duration,
}

struct Heard {
    counter: u64,
    at: Duration,
}

impl Ledger {
    /// Goes on from what was stored. Members get a whole lease from now on: when they renewed last
    /// is not known; and as long as a lead lasts, because a former leader may believe in its own.
    pub(crate) fn new(timing: Timing, record: Record, now: Duration) -> Self {
        let at = now + timing.leads();
        let heard = |member: &Member| (member.incarnation, Heard { counter: 0, at });
        let heard = record.members.iter().map(heard).collect();
        Self { timing, record, heard, looked: now }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The record as it is to be stored, and how often the one before was.
    pub(crate) fn store(&mut self) -> (u64, Record) {
        let expected = self.record.writes;
        self.record.writes += 1;
        (expected, self.record.clone())
    }

    /// Decides about a request. The record has a higher view afterwards if it has changed.
    pub(crate) fn request(&mut self, now: Duration, request: Request) -> Answer {
        self.look(now);
        match request {
            Request::Join { member, known } => self.join(now, member, known),
            Request::Renew { incarnation, counter, view } => {
                let Some(heard) = self.heard.get_mut(&incarnation) else {
                    return Answer::Refused { why: Refusal::Evicted };
                };
                if counter > heard.counter {
                    *heard = Heard { counter, at: heard.at.max(now) };
                }
                let record = (self.record.view > view).then(|| self.record.clone());
                Answer::Renewed { counter, record }
            }
            Request::Released { incarnation, buckets, epochs } => {
                self.change(|record| {
                    for (bucket, epoch) in buckets.into_iter().zip(epochs) {
                        release(record, incarnation, bucket, epoch);
                    }
                });
                Answer::Done
            }
            Request::Pin { incarnation: _, buckets, to } => {
                self.change(|record| {
                    for (bucket, to) in buckets.into_iter().zip(to) {
                        let is_member = record.member(to).is_some();
                        let holding = record.buckets.get_mut(usize::from(bucket));
                        if let Some(holding) = holding.filter(|_| is_member) {
                            holding.pinned = Some(to);
                        }
                    }
                });
                Answer::Done
            }
            Request::Leave { incarnation } => {
                self.change(|record| {
                    let member = |member: &&mut Member| member.incarnation == incarnation;
                    if let Some(member) = record.members.iter_mut().find(member) {
                        member.stage = Stage::Leaving;
                    }
                });
                Answer::Done
            }
            Request::Goodbye { incarnation } => {
                self.remove(&[incarnation]);
                Answer::Done
            }
        }
    }

    /// Evicts who has not renewed for too long.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.look(now);
        let patience = self.timing.evicts_after();
        let silent = |(_, heard): &(&u64, &Heard)| now.saturating_sub(heard.at) >= patience;
        let silent: Vec<_> = self.heard.iter().filter(silent).map(|(who, _)| *who).collect();
        if !silent.is_empty() {
            self.remove(&silent);
        }
    }

    /// Time in which the authority itself did not run counts for nobody: renewals may lie in its
    /// sockets.
    fn look(&mut self, now: Duration) {
        let away = now.saturating_sub(self.looked);
        if away > self.timing.renew_every() {
            for heard in self.heard.values_mut() {
                heard.at = heard.at.max(now);
            }
        }
        self.looked = now;
    }

    /// A request may come late and twice, and its node may have left in between. Whoever was taken
    /// out had become a member before, and had sent its requests before that: they know an older
    /// view than the one with which it was taken out.
    fn join(&mut self, now: Duration, member: Member, known: u64) -> Answer {
        let incarnation = member.incarnation;
        let is_known = self.record.member(incarnation).is_some();
        if !is_known && known < self.record.removed {
            return Answer::Outdated { view: self.record.view };
        }
        if !is_known && self.record.members.iter().any(|other| other.name == member.name) {
            return Answer::Refused { why: Refusal::NameTaken };
        }
        if !is_known {
            self.heard.insert(incarnation, Heard { counter: 0, at: now });
            self.change(|record| {
                let since = record.view + 1;
                record.members.push(Member { since, ..member });
            });
        }
        let lease_ms = u64::try_from(self.timing.lease.as_millis()).unwrap_or(u64::MAX);
        Answer::Joined { lease_ms, record: self.record.clone() }
    }

    fn remove(&mut self, gone: &[u64]) {
        self.heard.retain(|incarnation, _| !gone.contains(incarnation));
        self.change(|record| {
            let count = record.members.len();
            record.members.retain(|member| !gone.contains(&member.incarnation));
            if record.members.len() < count {
                record.removed = record.view + 1;
            }
        });
    }

    /// Changes the record and has every bucket belong to somebody; the view rises if anything is
    /// different afterwards.
    fn change(&mut self, change: impl FnOnce(&mut Record)) {
        let mut next = self.record.clone();
        change(&mut next);
        plan(&mut next);
        if next != self.record {
            next.view += 1;
            self.record = next;
        }
    }
}

/// The one commit point of a move: the owner runs nothing of the bucket any more.
fn release(record: &mut Record, incarnation: u64, bucket: u16, epoch: u64) {
    let Some(holding) = record.buckets.get_mut(usize::from(bucket)) else { return };
    if holding.owner == Some(incarnation)
        && holding.epoch == epoch
        && let Some(to) = holding.going_to
    {
        let (owner, epoch) = (Some(to), epoch + 1);
        *holding = Holding { owner, epoch, arrived: epoch, going_to: None, ..*holding };
    }
}

/// Gives buckets of nobody to somebody, and sends buckets to where they belong.
fn plan(record: &mut Record) {
    let members = record.members.clone();
    let is_member = |who: u64| members.iter().any(|member| member.incarnation == who);
    let active = || members.iter().filter(|member| member.stage == Stage::Active);
    let is_active = |who: u64| active().any(|member| member.incarnation == who);
    let candidates = Candidates::new(active());
    let mut moves = record.buckets.iter().filter(|holding| holding.going_to.is_some()).count();
    for bucket in 0..BUCKETS {
        let holding = &mut record.buckets[usize::from(bucket)];
        holding.pinned = holding.pinned.filter(|pinned| is_active(*pinned));
        let best = holding.pinned.or_else(|| candidates.winner(bucket));
        let Some(owner) = holding.owner.filter(|owner| is_member(*owner)) else {
            if holding.owner.is_some() || best.is_some() {
                let epoch = holding.epoch + u64::from(best.is_some());
                moves -= usize::from(holding.going_to.is_some());
                let (arrived, lost_before) = (epoch, epoch);
                *holding = Holding {
                    owner: best,
                    epoch,
                    arrived,
                    going_to: None,
                    lost_before,
                    ..*holding
                };
            }
            continue;
        };
        match holding.going_to {
            Some(to) if is_active(to) => {}
            // It may have stopped its actors for the move: only a new epoch starts them again.
            Some(_) if best.is_none_or(|best| best == owner) => {
                moves -= 1;
                *holding = Holding { epoch: holding.epoch + 1, going_to: None, ..*holding };
            }
            Some(_) => holding.going_to = best,
            None if best.is_some_and(|best| best != owner) && moves < MOVES_MAX => {
                moves += 1;
                holding.going_to = best;
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Ledger;
    use crate::lease::Timing;
    use crate::protocol::{Answer, Request};
    use crate::record::{Member, Record, Stage};

    const NOW: Duration = Duration::ZERO;

    fn join(incarnation: u64, known: u64) -> Request {
        let member = Member {
            incarnation,
            name: incarnation.to_string(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
        };
        Request::Join { member, known }
    }

    #[test]
    fn a_request_to_join_that_comes_late_does_not_bring_back_who_has_left() {
        let timing = Timing { lease: Duration::from_secs(6) };
        let mut ledger = Ledger::new(timing, Record::empty(), NOW);
        assert!(matches!(ledger.request(NOW, join(1, 0)), Answer::Joined { .. }));
        assert_eq!(ledger.request(NOW, Request::Goodbye { incarnation: 1 }), Answer::Done);
        let view = ledger.record().view;
        assert_eq!(ledger.request(NOW, join(1, 0)), Answer::Outdated { view });
        // Whoever is still there asks again.
        assert_eq!(ledger.request(NOW, join(2, 0)), Answer::Outdated { view });
        assert!(matches!(ledger.request(NOW, join(2, view)), Answer::Joined { .. }));
        // An authority that starts again remembers it.
        let mut ledger = Ledger::new(timing, ledger.record().clone(), NOW);
        assert!(matches!(ledger.request(NOW, join(1, 0)), Answer::Outdated { .. }));
    }

    #[test]
    fn a_new_leader_counts_leases_from_the_end_of_a_lead_that_a_former_one_may_believe_in() {
        let timing = Timing { lease: Duration::from_secs(6) };
        let mut ledger = Ledger::new(timing, Record::empty(), NOW);
        assert!(matches!(ledger.request(NOW, join(1, 0)), Answer::Joined { .. }));
        let mut ledger = Ledger::new(timing, ledger.record().clone(), NOW);
        // A former leader answered a renewal when its lead was about to end.
        let served = timing.believes() + timing.serves().mul_f64(1.01);
        let mut now = NOW;
        while now < served {
            ledger.tick(now);
            assert!(ledger.record().member(1).is_some(), "it may serve until {served:?}");
            now += timing.look_every();
        }
        while ledger.record().member(1).is_some() {
            assert!(now < timing.lease * 2, "a member that is gone is taken out");
            ledger.tick(now);
            now += timing.look_every();
        }
    }
}
