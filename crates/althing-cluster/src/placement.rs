//! Which node a bucket belongs to when nothing else has been decided: rendezvous hashing (Thaler,
//! Ravishankar 1996).
//!
//! Only the authority asks, and stores the answer; nodes never compute an owner. A node that joins
//! or leaves changes the winner of its own share of the buckets and of no other.

use althing::stable_hash::{fnv1a, mix};

use crate::record::Member;

/// Members that take buckets.
pub(crate) struct Candidates(Vec<(u64, u64)>);

impl Candidates {
    pub(crate) fn new<'a>(members: impl Iterator<Item = &'a Member>) -> Self {
        let hashed = |member: &Member| (fnv1a(member.name.bytes()), member.incarnation);
        Self(members.map(hashed).collect())
    }

    /// The member that has the highest weight for a bucket. Weights follow from names, so that a
    /// node that comes back gets the buckets it had.
    pub(crate) fn winner(&self, bucket: u16) -> Option<u64> {
        let salt = mix(u64::from(bucket) + 1);
        let weight = |(name, incarnation): &(u64, u64)| (mix(name ^ salt), *incarnation);
        self.0.iter().map(weight).max().map(|best| best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Candidates;
    use crate::bucket::BUCKETS;
    use crate::record::{Member, Stage};

    fn members(names: &[&str]) -> Vec<Member> {
        let member = |(n, name): (usize, &&str)| Member {
            incarnation: n as u64 + 1,
            name: (*name).to_owned(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
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

    #[test]
    fn owners_of_buckets_are_frozen() {
        let members = members(&["a", "b", "c"]);
        let candidates = Candidates::new(members.iter());
        let owners: Vec<_> = (0..12).filter_map(|bucket| candidates.winner(bucket)).collect();
        assert_eq!(owners, FROZEN);
    }

    const FROZEN: [u64; 12] = [3, 1, 1, 1, 3, 3, 2, 1, 1, 2, 2, 3];
}
