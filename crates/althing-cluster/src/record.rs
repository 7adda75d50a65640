//! What the authority keeps and every node follows: who is a member, and who owns which bucket.
//!
//! A record is one version of it, numbered by `view`. The assignment is stored, never computed by
//! nodes, so two nodes with the same view agree. An epoch rises with each change of a bucket's
//! owner, and never falls.

use althing::{Wire, WireError, wire::Depth};

use crate::bucket::BUCKETS;

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
    /// By bucket.
    pub(crate) buckets: Vec<Holding>,
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
}

impl Record {
    /// Before any node came.
    pub(crate) fn empty() -> Self {
        let buckets = vec![Holding::default(); usize::from(BUCKETS)];
        Self { view: 0, members: Vec::new(), buckets, lease_ms: 0, removed: 0, writes: 0 }
    }

    pub(crate) fn member(&self, incarnation: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.incarnation == incarnation)
    }

    pub(crate) fn holding(&self, bucket: u16) -> Holding {
        self.buckets[usize::from(bucket)]
    }

    /// Whether a member that leaves has given all away and gets no more: the authority knows that
    /// it leaves, and sends it nothing since.
    pub(crate) fn has_nothing_left_for(&self, incarnation: u64) -> bool {
        let leaves = |member: &Member| member.stage == Stage::Leaving;
        self.member(incarnation).is_some_and(leaves) && self.owned_by(incarnation) == 0
    }

    /// How many buckets a member owns.
    pub(crate) fn owned_by(&self, incarnation: u64) -> usize {
        self.buckets.iter().filter(|holding| holding.owner == Some(incarnation)).count()
    }
}

impl Wire for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = |who: Option<u64>| {
            let position = |who| self.members.iter().position(|at| at.incarnation == who);
            who.and_then(position).map_or(0, |at| u32::try_from(at + 1).unwrap_or(0))
        };
        OnWire {
            view: self.view,
            members: self.members.clone(),
            owners: self.buckets.iter().map(|holding| at(holding.owner)).collect(),
            epochs: self.buckets.iter().map(|holding| holding.epoch).collect(),
            going_to: self.buckets.iter().map(|holding| at(holding.going_to)).collect(),
            lost_before: self.buckets.iter().map(|holding| holding.lost_before).collect(),
            lease_ms: self.lease_ms,
            removed: self.removed,
            arrived: self.buckets.iter().map(|holding| holding.arrived).collect(),
            writes: self.writes,
            pinned: self.buckets.iter().map(|holding| at(holding.pinned)).collect(),
        }
        .encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let on_wire = OnWire::decode_within(bytes, depth)?;
        let OnWire { view, members, owners, epochs, going_to, lost_before, .. } = on_wire;
        let OnWire { lease_ms, removed, mut arrived, writes, mut pinned, .. } = on_wire;
        if arrived.is_empty() {
            arrived.clone_from(&epochs);
        }
        let count = usize::from(BUCKETS);
        if pinned.is_empty() {
            pinned.resize(count, 0);
        }
        let known = [epochs.len(), going_to.len(), lost_before.len(), arrived.len(), pinned.len()];
        if owners.len() != count || known != [count; 5] {
            return Err(WireError::new("a record without exactly 4,096 buckets"));
        }
        let who = |at: u32| match at.checked_sub(1) {
            None => Ok(None),
            Some(at) => match members.get(at as usize) {
                Some(member) => Ok(Some(member.incarnation)),
                None => Err(WireError::new("a bucket that belongs to no member")),
            },
        };
        let mut buckets = Vec::with_capacity(count);
        for (bucket, owner) in owners.into_iter().enumerate() {
            buckets.push(Holding {
                owner: who(owner)?,
                epoch: epochs[bucket],
                arrived: arrived[bucket],
                going_to: who(going_to[bucket])?,
                lost_before: lost_before[bucket],
                pinned: who(pinned[bucket])?,
            });
        }
        Ok(Self { view, members, buckets, lease_ms, removed, writes })
    }
}

impl althing::wire::WireField for Record {}
