//! Which node a bucket belongs to when nothing else has been decided: rendezvous hashing (Thaler,
//! Ravishankar 1996), among the nodes that may have it.
//!
//! Only the authority asks for the winner, and stores it; nodes never compute an owner. A node that joins
//! or leaves changes the winner of its own share of the buckets and of no other.

use std::collections::BTreeMap;

use althing::stable_hash::{fnv1a, mix};

use crate::bucket::{pool_in, pool_of};
use crate::record::{Member, Record, Stage};

/// Which members may have which buckets.
pub(crate) struct Placement {
    all: Candidates,
    pools: BTreeMap<u32, Candidates>,
}

impl Placement {
    pub(crate) fn new(members: &[Member]) -> Self {
        let active = || members.iter().filter(|member| member.stage == Stage::Active);
        let mut asked: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for set in members.iter().flat_map(|member| &member.labels.asked) {
            asked.entry(pool_of(set)).or_default().push(set);
        }
        // Should two sets meet in one pool, its nodes have the labels of both.
        let pools = asked.into_iter().map(|(pool, sets)| {
            let has_all = |member: &&Member| sets.iter().all(|set| member.labels.hold(set));
            (pool, Candidates::new(active().filter(has_all)))
        });
        Self { all: Candidates::new(active()), pools: pools.collect() }
    }

    /// The pools that there have to be.
    pub(crate) fn pools(&self) -> impl Iterator<Item = u32> {
        self.pools.keys().copied()
    }

    /// Those for a bucket.
    pub(crate) fn candidates(&self, bucket: u32) -> &Candidates {
        const NOBODY: &Candidates = &Candidates(Vec::new());
        match pool_in(bucket) {
            None => &self.all,
            Some(pool) => self.pools.get(&pool).unwrap_or(NOBODY),
        }
    }
}

/// Whether a member that leaves has given all away that any other may have, and gets no more: the
/// authority knows that it leaves, and sends it nothing since.
pub(crate) fn has_given_all(record: &Record, incarnation: u64) -> bool {
    let leaves = |member: &Member| member.stage == Stage::Leaving;
    let placement = Placement::new(&record.members);
    let mut own = record.holdings().filter(|(_, holding)| holding.owner == Some(incarnation));
    record.member(incarnation).is_some_and(leaves)
        // What asks for nothing waits for somebody who takes it.
        && own.all(|(bucket, _)| {
            pool_in(bucket).is_some() && placement.candidates(bucket).is_empty()
        })
}

/// Members that may have a bucket.
pub(crate) struct Candidates(Vec<(u64, u64)>);

impl Candidates {
    fn new<'a>(members: impl Iterator<Item = &'a Member>) -> Self {
        let hashed = |member: &Member| (fnv1a(member.name.bytes()), member.incarnation);
        Self(members.map(hashed).collect())
    }

    pub(crate) fn has(&self, incarnation: u64) -> bool {
        self.0.iter().any(|candidate| candidate.1 == incarnation)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The member that has the highest weight for a bucket. Weights follow from names, so that a
    /// node that comes back gets the buckets it had.
    pub(crate) fn winner(&self, bucket: u32) -> Option<u64> {
        let salt = mix(u64::from(bucket) + 1);
        let weight = |(name, incarnation): &(u64, u64)| (mix(name ^ salt), *incarnation);
        self.0.iter().map(weight).max().map(|best| best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidates, Placement};
    use crate::bucket::{BUCKETS, buckets_of, pool_of};
    use crate::label::Labels;
    use crate::record::{Member, Stage};

    fn members(names: &[&str]) -> Vec<Member> {
        let member = |(n, name): (usize, &&str)| Member {
            incarnation: n as u64 + 1,
            name: (*name).to_owned(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
            labels: Labels::default(),
        };
        names.iter().enumerate().map(member).collect()
    }

    #[test]
    fn a_node_that_joins_takes_its_share_and_moves_nothing_else() {
        let (two, three) = (members(&["a", "b"]), members(&["a", "b", "c"]));
        let (two, three) = (Candidates::new(two.iter()), Candidates::new(three.iter()));
        let mut taken = 0;
        for bucket in 0..BUCKETS {
            let (before, after) = (two.winner(bucket), three.winner(bucket));
            assert!(after == before || after == Some(3));
            taken += u32::from(after == Some(3));
        }
        assert!((1_200..1_530).contains(&taken), "a third of 4,096, not {taken}");
    }

    /// Members with these labels each, of which the first knows kinds that ask for these sets.
    fn labelled(own: &[&[&str]], asked: &[&str]) -> Vec<Member> {
        let names: Vec<String> = (1..=own.len()).map(|n| n.to_string()).collect();
        let mut members = members(&names.iter().map(|name| &**name).collect::<Vec<_>>());
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        for (member, own) in members.iter_mut().zip(own) {
            member.labels.own = texts(own);
        }
        members[0].labels.asked = texts(asked);
        members
    }

    #[test]
    fn a_bucket_that_asks_for_labels_goes_to_nodes_that_have_all_of_them() {
        let own: [&[&str]; 4] = [&["disk=ssd"], &["region=eu"], &["disk=ssd", "region=eu"], &[]];
        let mut members = labelled(&own, &["disk=ssd", "disk=ssd,region=eu", "gpu=yes"]);
        let winners = |members: &[Member], set: &str| {
            let placement = Placement::new(members);
            let buckets = buckets_of(pool_of(set));
            let winners = buckets.map(|bucket| placement.candidates(bucket).winner(bucket));
            winners.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(winners(&members, "disk=ssd"), [Some(1), Some(3)].into());
        assert_eq!(winners(&members, "disk=ssd,region=eu"), [Some(3)].into());
        assert_eq!(winners(&members, "gpu=yes"), [None].into());
        // Nobody asks for it, so there are no such buckets.
        assert_eq!(winners(&members, "region=eu"), [None].into());
        members[2].stage = Stage::Leaving;
        assert_eq!(winners(&members, "disk=ssd"), [Some(1)].into());
        assert_eq!(winners(&members, "disk=ssd,region=eu"), [None].into());
    }

    #[test]
    fn owners_of_buckets_are_frozen() {
        let members = members(&["a", "b", "c"]);
        let candidates = Candidates::new(members.iter());
        let owners: Vec<_> = (0..12).filter_map(|bucket| candidates.winner(bucket)).collect();
        assert_eq!(owners, FROZEN);
    }

    const FROZEN: [u64; 12] = [3, 1, 1, 1, 3, 3, 2, 1, 1, 2, 2, 3];
}
