//! Which faults come when, and how long each lasts: drawn from the seed alone.
//!
//! Rough and gentle stretches take turns. In gentle ones no node dies and none is kept from its lease,
//! so nothing that was accepted may be lost. No end of a way has two faults at a time that would undo
//! each other.

use std::time::Duration;

use crate::links::{ETCD, End};
use crate::random::Random;

/// Nodes of the cluster.
pub(crate) const NODES: usize = 3;

/// How long it takes at least from one fault to the next, and at most, in ms.
const GAP_MS: (u64, u64) = (300, 2_000);

/// How long a fault lasts; in a short run it is shorter, and in a gentle stretch much shorter.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(20);

/// So long a link flaps at least: a few rounds.
const FLAPS_MIN: Duration = Duration::from_millis(1_500);

const REDRAW: Duration = Duration::from_millis(50);

/// A stretch is so many leases long.
const STRETCH_LEASES: u32 = 4;

/// After a fault its places are left alone for so long: a node starts again.
const REST: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL; the node starts again when the fault ends.
    Kill(End),
    /// SIGSTOP until the fault ends.
    Stop(End),
    /// It leaves in order, and starts again when the fault ends.
    Leave(End),
    /// No packet comes from it or to it, those of etcd included.
    Isolate(End),
    /// Connections between the two break and are refused.
    Cut(End, End),
    /// No packet passes between the two.
    Silence(End, End),
    /// No packet passes from the first to the second.
    OneWay(End, End),
    /// Each packet is late.
    Slow(End, End),
    /// Connections between the two break again and again.
    Flap(End, End),
    /// A few bytes pass at a time between the two, then none, and then the connections break: again
    /// and again, so that what was begun is half there.
    Trickle(End, End),
    /// etcd is killed, and starts again when the fault ends.
    EtcdKill,
}

/// The names under which faults are counted.
pub(crate) const KINDS: [&str; 11] = [
    "kill -9",
    "SIGSTOP",
    "leave",
    "isolated",
    "link cut",
    "link silent",
    "link one way",
    "link slow",
    "link flapping",
    "etcd killed",
    "link trickling",
];

/// Each kind once, by its place among the names, and twice what takes a node from its lease.
const DECK: [usize; 14] = [0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10];

impl Fault {
    pub(crate) fn kind(self) -> &'static str {
        let at = match self {
            Self::Kill(_) => 0,
            Self::Stop(_) => 1,
            Self::Leave(_) => 2,
            Self::Isolate(_) => 3,
            Self::Cut(..) => 4,
            Self::Silence(..) => 5,
            Self::OneWay(..) => 6,
            Self::Slow(..) => 7,
            Self::Flap(..) => 8,
            Self::EtcdKill => 9,
            Self::Trickle(..) => 10,
        };
        KINDS[at]
    }

    /// Whether it is about one node as a whole.
    fn is_of_a_node(self) -> bool {
        matches!(self, Self::Kill(_) | Self::Stop(_) | Self::Leave(_) | Self::Isolate(_))
    }

    /// The ends it is about.
    pub(crate) fn ends(self) -> Vec<End> {
        match self {
            Self::Kill(one) | Self::Stop(one) | Self::Leave(one) | Self::Isolate(one) => vec![one],
            Self::Cut(one, other)
            | Self::Silence(one, other)
            | Self::OneWay(one, other)
            | Self::Slow(one, other)
            | Self::Flap(one, other)
            | Self::Trickle(one, other) => vec![one, other],
            Self::EtcdKill => vec![ETCD],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
    pub(crate) lasts: Duration,
}

/// After most kills of etcd it is not killed for so many leases more: a new leader waits for up to
/// two before it gives the buckets of the dead to others, and until then little runs that a fault
/// could meet.
const ETCD_RESTS_LEASES: u32 = 3;

/// Draws a plan: faults until that time, in the order of their beginnings.
pub(crate) fn draw(seed: u64, time: Duration, lease: Duration) -> Vec<Planned> {
    let longest = LONGEST.min(time / 3);
    let mut random = Random::new(seed);
    let mut busy = [Duration::ZERO; NODES + 1];
    let mut plan: Vec<Planned> = Vec::new();
    let mut alone_until = Duration::ZERO;
    let mut etcd_rests_until = Duration::ZERO;
    let mut deck = Vec::new();
    let mut at = Duration::from_millis(500);
    while at < time {
        let is_rough = (at.as_millis() / (lease * STRETCH_LEASES).as_millis()).is_multiple_of(2);
        // Dealt like cards, so that each kind has its turn also in a short run.
        if deck.is_empty() {
            deck = shuffled(&mut random);
        }
        let kind = deck.pop().expect("it was filled");
        let drawn = choose(kind, if is_rough { longest } else { lease / 3 }, is_rough, &mut random);
        if let Some((fault, mut lasts)) = drawn {
            // Most of those that can take a node from its lease do so, and leave the others alone, so
            // that they replace it. The rest may come together, and then there may be no authority.
            let is_heavy = fault.is_of_a_node() && is_rough && random.below(4) > 0;
            if is_heavy {
                lasts = (lease * u32::try_from(random.between(13, 28)).expect("small") / 10)
                    .min(LONGEST);
            }
            let lasts = lasts.min(time.saturating_sub(at).max(Duration::from_millis(200)));
            let is_free = if is_heavy { busy.iter().all(|until| *until <= at) } else { true };
            let is_let = match fault {
                Fault::EtcdKill => alone_until.max(etcd_rests_until) <= at,
                fault => !fault.is_of_a_node() || alone_until <= at,
            };
            if is_free && is_let && fault.ends().iter().all(|end| busy[*end] <= at) {
                if is_heavy {
                    alone_until = at + lasts + REST;
                }
                for end in fault.ends() {
                    busy[end] = at + lasts + REST;
                }
                if fault == Fault::EtcdKill && random.below(4) > 0 {
                    etcd_rests_until = at + lasts + lease * ETCD_RESTS_LEASES;
                }
                plan.push(Planned { at, fault, lasts });
                at += Duration::from_millis(random.between(GAP_MS.0, GAP_MS.1));
            }
        }
        // One that cannot be now makes way for the next one soon.
        at += REDRAW;
    }
    plan
}

fn shuffled(random: &mut Random) -> Vec<usize> {
    let mut deck = DECK.to_vec();
    for at in (1..deck.len()).rev() {
        let with = usize::try_from(random.below(at as u64 + 1)).expect("it is small");
        deck.swap(at, with);
    }
    deck
}

/// A fault of that kind; none where the stretch allows none.
fn choose(
    kind: usize,
    longest: Duration,
    is_rough: bool,
    random: &mut Random,
) -> Option<(Fault, Duration)> {
    let below = |random: &mut Random, end: usize| {
        usize::try_from(random.below(end as u64)).expect("it is small")
    };
    let one = below(random, NODES);
    // A node has a way to each other one, and a rough one to etcd.
    let others = if is_rough { NODES } else { NODES - 1 };
    let other = (0..=ETCD).filter(|end| *end != one).nth(below(random, others)).expect("one");
    let shortest = if matches!(kind, 8 | 10) { FLAPS_MIN.min(longest) } else { SHORTEST };
    let lasts = random.log_between(shortest.as_secs_f64(), longest.as_secs_f64());
    let fault = match kind {
        0 if is_rough => Fault::Kill(one),
        1 => Fault::Stop(one),
        2 => Fault::Leave(one),
        3 if is_rough => Fault::Isolate(one),
        4 => Fault::Cut(one, other),
        5 => Fault::Silence(one, other),
        6 if random.below(2) == 0 => Fault::OneWay(one, other),
        6 => Fault::OneWay(other, one),
        7 => Fault::Slow(one, other),
        8 => Fault::Flap(one, other),
        9 => Fault::EtcdKill,
        10 => Fault::Trickle(one, other),
        _ => return None,
    };
    Some((fault, Duration::from_secs_f64(lasts)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LEASE: Duration = Duration::from_secs(6);

    #[test]
    fn a_seed_gives_one_plan_and_each_kind_has_its_turn() {
        let plan = draw(7, Duration::from_secs(600), LEASE);
        assert_eq!(plan, draw(7, Duration::from_secs(600), LEASE));
        assert_ne!(plan, draw(8, Duration::from_secs(600), LEASE));
        let kinds: BTreeSet<_> = plan.iter().map(|planned| planned.fault.kind()).collect();
        assert_eq!(kinds.len(), KINDS.len(), "{kinds:?}");
    }

    #[test]
    fn after_most_kills_of_etcd_a_new_leader_has_the_time_to_begin() {
        for seed in 0..20 {
            let plan = draw(seed, Duration::from_secs(600), LEASE);
            let kills = plan.iter().filter(|planned| planned.fault == Fault::EtcdKill);
            let kills: Vec<_> =
                kills.map(|planned| (planned.at, planned.at + planned.lasts)).collect();
            let rests = kills.windows(2).map(|pair| pair[1].0 - pair[0].1);
            let long = rests.filter(|rest| *rest >= LEASE * 2).count();
            assert!(long * 2 > kills.len(), "{long} of {}, seed {seed}", kills.len());
        }
    }

    #[test]
    fn no_end_has_two_faults_at_a_time() {
        for seed in 0..50 {
            let plan = draw(seed, Duration::from_secs(120), LEASE);
            for (at, first) in plan.iter().enumerate() {
                for second in &plan[at + 1..] {
                    let apart = second.at >= first.at + first.lasts;
                    let shares = |end| second.fault.ends().contains(end);
                    assert!(
                        apart || !first.fault.ends().iter().any(shares),
                        "{first:?} {second:?}"
                    );
                }
            }
        }
    }
}
