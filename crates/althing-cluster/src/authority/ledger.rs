//! The authority's decisions, as a step function without clock, disk or network.
//!
//! Every request changes the record or leaves it alone; a changed record is stored before anybody
//! hears of it. Moments are the authority's own clock, which only has to go
//! forward. When the authority itself was held up, nobody is evicted for its own silence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::bucket::{POOL_BUCKETS, pool_of};
use crate::label::POOLS_MAX;
use crate::lease::Timing;
use crate::placement::Placement;
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
            Request::Renew { incarnation, counter, view, labels } => {
                let Some(heard) = self.heard.get_mut(&incarnation) else {
                    return Answer::Refused { why: Refusal::Evicted };
                };
                if counter > heard.counter {
                    *heard = Heard { counter, at: heard.at.max(now) };
                }
                if let Some(labels) = labels {
                    self.change(|record| {
                        if let Some(member) = record.member_mut(incarnation) {
                            member.labels = labels;
                        }
                    });
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
                        let holding = record.holding_mut(bucket);
                        if let Some(holding) = holding.filter(|_| is_member) {
                            holding.pinned = Some(to);
                        }
                    }
                });
                Answer::Done
            }
            Request::Leave { incarnation } => {
                self.change(|record| {
                    if let Some(member) = record.member_mut(incarnation) {
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
            for set in without_place(&next).difference(&without_place(&self.record)) {
                tracing::error!(
                    "kinds ask for more than {POOLS_MAX} sets of labels: there is no place for {set}"
                );
            }
            self.record = next;
        }
    }
}

/// The one commit point of a move: the owner runs nothing of the bucket any more.
fn release(record: &mut Record, incarnation: u64, bucket: u32, epoch: u64) {
    let Some(holding) = record.holding_mut(bucket) else { return };
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
    let placement = Placement::new(&members);
    found(record, &placement);
    let mut moves = record.holdings().filter(|(_, holding)| holding.going_to.is_some()).count();
    for (bucket, holding) in record.holdings_mut() {
        let candidates = placement.candidates(bucket);
        holding.pinned = holding.pinned.filter(|pinned| candidates.has(*pinned));
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
            Some(to) if candidates.has(to) => {}
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

/// Makes buckets for labels that kinds of a member ask for, and forgets those of which no member
/// knows any more. Epochs of buckets that come back are above those that they had: none has ever more
/// than two for each view.
fn found(record: &mut Record, placement: &Placement) {
    let asked: BTreeSet<u32> = placement.pools().collect();
    record.pools.retain(|pool, _| asked.contains(pool));
    let holding = Holding { epoch: 2 * (record.view + 1), ..Holding::default() };
    for pool in asked {
        if record.pools.len() < POOLS_MAX {
            let made = || vec![holding; POOL_BUCKETS as usize];
            record.pools.entry(pool).or_insert_with(made);
        }
    }
}

/// Sets of labels that kinds ask for and that have no buckets, because there are too many.
fn without_place(record: &Record) -> BTreeSet<&str> {
    let asked = record.members.iter().flat_map(|member| &member.labels.asked);
    asked.map(|set| &**set).filter(|set| !record.pools.contains_key(&pool_of(set))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use althing::ActorId;

    use super::{Ledger, without_place};
    use crate::bucket::{buckets_of, pool_of};
    use crate::label::{Labels, POOLS_MAX, nobody_has};
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
            labels: Labels::default(),
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
    fn what_asks_for_one_set_of_labels_too_many_is_told_and_has_a_place_when_another_goes() {
        let timing = Timing { lease: Duration::from_secs(6) };
        let mut ledger = Ledger::new(timing, Record::empty(), NOW);
        let mut knows = |incarnation: u64, sets: std::ops::RangeInclusive<usize>| {
            let known = ledger.record().view;
            let Request::Join { mut member, known } = join(incarnation, known) else { panic!() };
            let own = vec!["a=b".to_owned()];
            let asked = sets.map(|n| format!("a=b,n={n}")).collect();
            member.labels = Labels { own, asked };
            ledger.request(NOW, Request::Join { member, known });
            ledger.record().clone()
        };
        for node in 1..=4 {
            let last = usize::try_from(node).expect("small") * POOLS_MAX / 4;
            let record = knows(node, last - POOLS_MAX / 4 + 1..=last);
            assert!(without_place(&record).is_empty());
        }
        let record = knows(5, POOLS_MAX + 1..=POOLS_MAX + 1);
        let set = "a=b,n=65";
        assert_eq!(without_place(&record), [set].into());
        let id = || ActorId::named(&format!("shop.index@{set}"), "x");
        let why = nobody_has(id(), &record).to_string();
        assert!(why.contains("more than 64 sets of labels"), "{why}");
        ledger.request(NOW, Request::Goodbye { incarnation: 1 });
        assert!(without_place(ledger.record()).is_empty());
        let why = nobody_has(id(), ledger.record()).to_string();
        assert!(why.contains("no node has the labels"), "{why}");
    }

    #[test]
    fn buckets_for_labels_come_back_in_higher_epochs() {
        let timing = Timing { lease: Duration::from_secs(6) };
        let mut ledger = Ledger::new(timing, Record::empty(), NOW);
        let bucket = *buckets_of(pool_of("a=b")).start();
        let join = |incarnation: u64, known| {
            let Request::Join { mut member, known } = join(incarnation, known) else { panic!() };
            let labels = vec!["a=b".to_owned()];
            member.labels = Labels { own: labels.clone(), asked: labels };
            Request::Join { member, known }
        };
        let mut highest = 0;
        for life in 0..5 {
            let known = ledger.record().view;
            for node in [life * 2 + 1, life * 2 + 2] {
                ledger.request(NOW, join(node, known));
                let holding = ledger.record().holding(bucket);
                assert!(holding.owner.is_some() && holding.epoch >= highest, "{holding:?}");
                highest = holding.epoch;
                if let Some(incarnation) = holding.owner.filter(|_| holding.going_to.is_some()) {
                    let (buckets, epochs) = (vec![bucket], vec![holding.epoch]);
                    ledger.request(NOW, Request::Released { incarnation, buckets, epochs });
                }
            }
            for incarnation in [life * 2 + 1, life * 2 + 2] {
                highest = highest.max(ledger.record().holding(bucket).epoch);
                ledger.request(NOW, Request::Goodbye { incarnation });
            }
            // Nobody knows of it any more.
            assert!(ledger.record().pools.is_empty());
            highest += 1;
        }
    }

    #[test]
    fn a_kind_that_a_member_gets_to_know_later_has_buckets_from_then_on() {
        let timing = Timing { lease: Duration::from_secs(6) };
        let mut ledger = Ledger::new(timing, Record::empty(), NOW);
        ledger.request(NOW, join(1, 0));
        ledger.request(NOW, join(2, 0));
        let bucket = *buckets_of(pool_of("a=b")).start();
        let own = vec!["a=b".to_owned()];
        for (incarnation, labels, owner) in [
            (1, Labels { own: Vec::new(), asked: own.clone() }, None),
            (2, Labels { own, asked: Vec::new() }, Some(2)),
        ] {
            let labels = Some(labels);
            ledger.request(NOW, Request::Renew { incarnation, counter: 1, view: 0, labels });
            assert_eq!(ledger.record().holding(bucket).owner, owner);
        }
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
