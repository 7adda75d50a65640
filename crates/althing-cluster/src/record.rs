//! What the authority keeps and every node follows: who is a member, and who owns which bucket.
//!
//! A record is one version of it, numbered by `view`. The assignment is stored, never computed by
//! nodes, so two nodes with the same view agree. An epoch rises with each change of a bucket's
//! owner, and never falls.

use std::collections::BTreeMap;

use althing::{Wire, WireError, wire::Depth};

use crate::bucket::{BUCKETS, POOL_BUCKETS, buckets_of, is_pool, pool_in};
use crate::label::Labels;

/// Bytes of a member's name: as many as a name in a certificate has.
const NAME_LEN_MAX: usize = 253;
/// Bytes of a member's address: those of a name and a port, and some more. All members are in every
/// record, which has to fit into a frame and into a store: so no member may be long.
const ADDRESS_LEN_MAX: usize = 512;

/// One version of the membership and the ownership of all buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Rises with each change.
    pub(crate) view: u64,
    pub(crate) members: Vec<Member>,
    /// By bucket, of those that ask for no labels.
    pub(crate) buckets: Vec<Holding>,
    /// By bucket, of each set of labels that a member knows a kind to ask for.
    pub(crate) pools: BTreeMap<u32, Vec<Holding>>,
    /// The longest lease that a member may believe in.
    pub(crate) lease_ms: u64,
    /// The view with which somebody was last taken out. A request to join that names an older view
    /// was sent before that, perhaps by a node that has gone since.
    pub(crate) removed: u64,
    /// How often it was stored. A new leader stores it once before it changes anything: that is no
    /// new view, and members hear nothing of it.
    pub(crate) writes: u64,
}

/// A node that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) struct Member {
    pub(crate) incarnation: u64,
    pub(crate) name: String,
    /// Where other nodes reach it.
    pub(crate) address: String,
    pub(crate) stage: Stage,
    /// The view with which it came; the authority sets it. A request to join that was on its way
    /// for long may bring back a member that was evicted: by this its node notices.
    pub(crate) since: u64,
    /// The longest frame that it reads; what is longer is not sent to it.
    pub(crate) frame_len_max: u64,
    /// Empty of a member of a version without labels.
    pub(crate) labels: Labels,
}

/// # Errors
/// Says what of a member is too long for the record.
pub(crate) fn check_len(name: &str, address: &str) -> Result<(), String> {
    let parts = [("name", name, NAME_LEN_MAX), ("address", address, ADDRESS_LEN_MAX)];
    match parts.into_iter().find(|(_, text, len_max)| text.len() > *len_max) {
        None => Ok(()),
        Some((what, text, len_max)) => {
            let len = text.len();
            Err(format!("a node's {what} has {len_max} bytes at most, and this one has {len}"))
        }
    }
}

/// Whether a member takes buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Stage {
    /// It takes buckets.
    Active,
    /// It gives its buckets away.
    Leaving,
    /// It never had any and gets none.
    Guest,
}

/// Who owns a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    /// A member; `None` before the first one came.
    pub(crate) owner: Option<u64>,
    /// The fencing token under which the owner owns it.
    pub(crate) epoch: u64,
    /// The epoch in which it came to the owner; a move that came to nothing is a new epoch as well.
    pub(crate) arrived: u64,
    /// To whom the owner is to hand it over.
    pub(crate) going_to: Option<u64>,
    /// What was sent in an epoch before this one is lost, with an owner that died.
    pub(crate) lost_before: u64,
    /// The member that it was moved to by hand; it stays there until that one leaves or dies.
    pub(crate) pinned: Option<u64>,
}

/// As it travels and lies on the disk. Owners are positions in `members` plus one; 0 is nobody.
#[derive(Wire)]
struct OnWire {
    view: u64,
    members: Vec<Member>,
    owners: Vec<u32>,
    epochs: Vec<u64>,
    going_to: Vec<u32>,
    lost_before: Vec<u64>,
    lease_ms: u64,
    removed: u64,
    /// Empty in records of before.
    arrived: Vec<u64>,
    /// 0 in records of before.
    writes: u64,
    /// Empty in records of before.
    pinned: Vec<u32>,
    /// Empty in records of before. Versions without labels skip them, and send nothing there.
    pools: Vec<PoolOnWire>,
}

#[derive(Wire)]
struct PoolOnWire {
    pool: u32,
    owners: Vec<u32>,
    epochs: Vec<u64>,
    going_to: Vec<u32>,
    lost_before: Vec<u64>,
    arrived: Vec<u64>,
    pinned: Vec<u32>,
}

impl Record {
    /// Before any node came.
    pub(crate) fn empty() -> Self {
        let buckets = vec![Holding::default(); BUCKETS as usize];
        let (members, pools) = (Vec::new(), BTreeMap::new());
        Self { view: 0, members, buckets, pools, lease_ms: 0, removed: 0, writes: 0 }
    }

    pub(crate) fn member(&self, incarnation: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.incarnation == incarnation)
    }

    pub(crate) fn member_mut(&mut self, incarnation: u64) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.incarnation == incarnation)
    }

    /// Who owns a bucket; nobody where there is none of that number.
    pub(crate) fn holding(&self, bucket: u32) -> Holding {
        let (among, at) = match pool_in(bucket) {
            None => (Some(&self.buckets), bucket),
            Some(pool) => (self.pools.get(&pool), bucket % POOL_BUCKETS),
        };
        among.and_then(|among| among.get(at as usize)).copied().unwrap_or_default()
    }

    pub(crate) fn holding_mut(&mut self, bucket: u32) -> Option<&mut Holding> {
        match pool_in(bucket) {
            None => self.buckets.get_mut(bucket as usize),
            Some(pool) => self.pools.get_mut(&pool)?.get_mut((bucket % POOL_BUCKETS) as usize),
        }
    }

    /// All buckets.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (u32, &Holding)> {
        let pools = self.pools.iter().flat_map(|(pool, all)| buckets_of(*pool).zip(all));
        (0..BUCKETS).zip(&self.buckets).chain(pools)
    }

    pub(crate) fn holdings_mut(&mut self) -> impl Iterator<Item = (u32, &mut Holding)> {
        let pools = self.pools.iter_mut().flat_map(|(pool, all)| buckets_of(*pool).zip(all));
        (0..BUCKETS).zip(&mut self.buckets).chain(pools)
    }

    /// Whether anybody has labels or asks for some: versions without them would drop that.
    pub(crate) fn has_labels(&self) -> bool {
        let has = |member: &Member| member.labels != Labels::default();
        !self.pools.is_empty() || self.members.iter().any(has)
    }

    /// How many buckets a member owns.
    pub(crate) fn owned_by(&self, incarnation: u64) -> usize {
        self.holdings().filter(|(_, holding)| holding.owner == Some(incarnation)).count()
    }
}

impl Wire for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = |who: Option<u64>| {
            let position = |who| self.members.iter().position(|at| at.incarnation == who);
            who.and_then(position).map_or(0, |at| u32::try_from(at + 1).unwrap_or(0))
        };
        let pool = |(pool, all): (&u32, &Vec<Holding>)| PoolOnWire {
            pool: *pool,
            owners: all.iter().map(|holding| at(holding.owner)).collect(),
            epochs: all.iter().map(|holding| holding.epoch).collect(),
            going_to: all.iter().map(|holding| at(holding.going_to)).collect(),
            lost_before: all.iter().map(|holding| holding.lost_before).collect(),
            arrived: all.iter().map(|holding| holding.arrived).collect(),
            pinned: all.iter().map(|holding| at(holding.pinned)).collect(),
        };
        let plain = pool((&0, &self.buckets));
        let PoolOnWire { owners, epochs, going_to, lost_before, arrived, pinned, .. } = plain;
        OnWire {
            view: self.view,
            members: self.members.clone(),
            owners,
            epochs,
            going_to,
            lost_before,
            lease_ms: self.lease_ms,
            removed: self.removed,
            arrived,
            writes: self.writes,
            pinned,
            pools: self.pools.iter().map(pool).collect(),
        }
        .encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let on_wire = OnWire::decode_within(bytes, depth)?;
        let OnWire { view, members, owners, epochs, going_to, lost_before, .. } = on_wire;
        let OnWire { lease_ms, removed, mut arrived, writes, mut pinned, pools, .. } = on_wire;
        if arrived.is_empty() {
            arrived.clone_from(&epochs);
        }
        if pinned.is_empty() {
            pinned.resize(BUCKETS as usize, 0);
        }
        let plain = PoolOnWire { pool: 0, owners, epochs, going_to, lost_before, arrived, pinned };
        let buckets = plain.read(BUCKETS, &members)?;
        let read = |pool: PoolOnWire| match is_pool(pool.pool) {
            true => Ok((pool.pool, pool.read(POOL_BUCKETS, &members)?)),
            false => Err(WireError::new("a pool that no labels lead to")),
        };
        let pools = pools.into_iter().map(read).collect::<Result<_, WireError>>()?;
        Ok(Self { view, members, buckets, pools, lease_ms, removed, writes })
    }
}

impl PoolOnWire {
    fn read(&self, count: u32, members: &[Member]) -> Result<Vec<Holding>, WireError> {
        let Self { owners, epochs, going_to, lost_before, arrived, pinned, .. } = self;
        let known = [epochs.len(), going_to.len(), lost_before.len(), arrived.len(), pinned.len()];
        if owners.len() != count as usize || known != [owners.len(); 5] {
            return Err(WireError::new(format!("a record without exactly {count} buckets")));
        }
        let who = |at: u32| match at.checked_sub(1) {
            None => Ok(None),
            Some(at) => match members.get(at as usize) {
                Some(member) => Ok(Some(member.incarnation)),
                None => Err(WireError::new("a bucket that belongs to no member")),
            },
        };
        let read = |at: usize| {
            Ok(Holding {
                owner: who(owners[at])?,
                epoch: epochs[at],
                arrived: arrived[at],
                going_to: who(going_to[at])?,
                lost_before: lost_before[at],
                pinned: who(pinned[at])?,
            })
        };
        (0..owners.len()).map(read).collect()
    }
}

impl althing::wire::WireField for Record {}

#[cfg(test)]
mod tests {
    use althing::Wire;

    use super::{Holding, Member, Record, Stage};
    use crate::bucket::{POOL_BUCKETS, buckets_of, pool_of};
    use crate::label::Labels;

    /// A record as versions without labels know it.
    #[derive(Debug, PartialEq, Wire)]
    struct Former {
        view: u64,
        members: Vec<FormerMember>,
        owners: Vec<u32>,
        epochs: Vec<u64>,
        going_to: Vec<u32>,
        lost_before: Vec<u64>,
        lease_ms: u64,
        removed: u64,
        arrived: Vec<u64>,
        writes: u64,
        pinned: Vec<u32>,
    }

    #[derive(Debug, PartialEq, Wire)]
    struct FormerMember {
        incarnation: u64,
        name: String,
        address: String,
        stage: Stage,
        since: u64,
        frame_len_max: u64,
    }

    fn record() -> Record {
        let own = vec!["a=b".to_owned()];
        let member = |incarnation, labels| Member {
            incarnation,
            name: format!("node-{incarnation}"),
            address: String::new(),
            stage: Stage::Active,
            since: 3,
            frame_len_max: 9,
            labels,
        };
        let labels = Labels { own: own.clone(), asked: own };
        let members = vec![member(7, Labels::default()), member(8, labels)];
        let mut record = Record { view: 5, members, ..Record::empty() };
        record.pools.insert(pool_of("a=b"), vec![Holding::default(); POOL_BUCKETS as usize]);
        for (bucket, holding) in record.holdings_mut() {
            let epoch = u64::from(bucket % 77);
            *holding = Holding { owner: Some(8), epoch, arrived: epoch, ..Holding::default() };
        }
        record
    }

    fn encoded(value: &impl Wire) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_record_with_labels_comes_back_whole() {
        let record = record();
        let read = Record::decode(&encoded(&record)).expect("it is one");
        assert_eq!(read, record);
        let last = *buckets_of(pool_of("a=b")).end();
        assert_eq!(read.holding(last).owner, Some(8));
        assert_eq!(read.holding(*buckets_of(pool_of("c=d")).start()), Holding::default());
        assert_eq!(read.owned_by(8), 4_096 + 256);
    }

    #[test]
    fn a_version_without_labels_reads_the_rest_of_a_record() {
        let former = Former::decode(&encoded(&record())).expect("it skips what it does not know");
        assert_eq!((former.view, former.members.len(), former.owners.len()), (5, 2, 4_096));
        // And what it says is read by this one.
        let read = Record::decode(&encoded(&former)).expect("it is one");
        assert!(read.pools.is_empty() && read.members.iter().all(|one| one.labels.own.is_empty()));
        assert_eq!(read.buckets, record().buckets);
    }

    #[test]
    fn a_record_with_an_impossible_pool_is_refused() {
        let mut record = record();
        let all = record.pools.remove(&pool_of("a=b")).expect("it is there");
        for pool in [0, 1, u32::MAX] {
            let wrong = Record { pools: [(pool, all.clone())].into(), ..record.clone() };
            assert!(Record::decode(&encoded(&wrong)).is_err(), "{pool}");
        }
        record.pools.insert(pool_of("a=b"), all[1..].to_vec());
        assert!(Record::decode(&encoded(&record)).is_err(), "a bucket is missing");
    }
}
