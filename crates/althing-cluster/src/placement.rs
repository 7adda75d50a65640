//! Which node a bucket belongs to when nothing else has been decided: rendezvous hashing (Thaler,
//! Ravishankar 1996).
//!
//! Only the authority asks, and stores the answer; nodes never compute an owner. A node that joins
//! or leaves changes the winner of its own share of the buckets and of no other.

use crate::bucket::{fnv, mix};
use crate::record::Member;

/// The member that has the highest weight for a bucket. Weights follow from names, so that a node
/// that comes back gets the buckets it had.
pub(crate) fn winner<'a>(bucket: u16, members: impl Iterator<Item = &'a Member>) -> Option<u64> {
    members
        .map(|member| (weight(bucket, &member.name), member.incarnation))
        .max()
        .map(|best| best.1)
}

fn weight(bucket: u16, name: &str) -> u64 {
    mix(fnv(name.bytes()) ^ mix(u64::from(bucket) + 1))
}

#[cfg(test)]
mod tests {
    use super::winner;
    use crate::bucket::BUCKETS;
    use crate::record::{Member, Stage};

    fn members(names: &[&str]) -> Vec<Member> {
        let member = |(n, name): (usize, &&str)| Member {
            incarnation: n as u64 + 1,
            name: (*name).to_owned(),
            address: String::new(),
            stage: Stage::Active,
        };
        names.iter().enumerate().map(member).collect()
    }

    #[test]
    fn a_node_that_joins_takes_its_share_and_moves_nothing_else() {
        let (two, three) = (members(&["a", "b"]), members(&["a", "b", "c"]));
        let mut taken = 0;
        for bucket in 0..BUCKETS {
            let (before, after) = (winner(bucket, two.iter()), winner(bucket, three.iter()));
            assert!(after == before || after == Some(3));
            taken += u32::from(after == Some(3));
        }
        assert!((1_200..1_530).contains(&taken), "a third of 4,096, not {taken}");
    }

    #[test]
    fn owners_of_buckets_are_frozen() {
        let members = members(&["a", "b", "c"]);
        let owners: Vec<_> = (0..12).filter_map(|bucket| winner(bucket, members.iter())).collect();
        assert_eq!(owners, FROZEN);
    }

    const FROZEN: [u64; 12] = [0; 12];
}
