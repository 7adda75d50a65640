//! Which way each message goes while buckets change hands, so that none is lost and none of one
//! sender overtakes another. A step function: no socket, no clock.
//!
//! When a bucket changes hands, what a node sent to the former owner may still be under way, so the
//! node holds what it sends from then on until it knows that all of that has arrived. How it knows
//! is in `markers`.
//!
//! When an owner dies, what was under way to it is lost with it, wherever it is: every parcel bears
//! the epoch in which it set out, and those of an epoch before the owner's death go no further. So
//! nobody has to wait after a death.
//!
//! While a bucket leaves this node, four queues keep what was sent earlier before what was sent
//! later: what waited in the mailboxes of its actors (`left`), what waited beside those that were
//! full (`beside`), what others have sent here since (`transit`), and what this node's own actors
//! have (`held`).

mod markers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::markers::Barrier;
use crate::bucket::{BUCKETS, buckets_of, pool_in};
use crate::record::{Holding, Record};

/// What travels about a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Load<P> {
    /// With the epoch of the bucket in which it set out.
    Parcel(u64, P),
    /// Behind what `origin` has sent in that epoch and before it.
    Marker { origin: u64, token: u64, epoch: u64 },
}

/// Who has handed something over, and the record that it knew then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) node: u64,
    pub(crate) view: u64,
}

/// Where something waited whose actor has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// In the actor's mailbox.
    Inside,
    /// For room in it.
    Beside,
}

/// What a step asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect<P> {
    /// Put it on the link to that node; before the next step.
    Transmit { to: u64, bucket: u32, load: Load<P> },
    /// It is for an actor of this node.
    Deliver { parcel: P },
    /// Tell the origin of a marker that it has arrived.
    Flushed { to: u64, bucket: u32, token: u64 },
    /// Stop what runs of these buckets, then call `departed` and say that they are released, each in
    /// its epoch.
    Depart { buckets: Vec<(u32, u64)> },
    /// Call `settle` for these until it returns nothing, delivering what it returns.
    Settle { buckets: Vec<u32> },
    /// It was under way to an owner that has died.
    Lose { parcel: P },
    /// Its bucket asks for labels that no node has. It did not run.
    Refuse { parcel: P },
    /// Tell a node that is about to leave that nothing comes that it would have to pass on.
    Closed { to: u64 },
    /// That node is no member any more.
    Gone { node: u64 },
}

/// A node's knowledge of who owns what, and what it holds until it knows better.
pub(crate) struct Router<P> {
    me: u64,
    record: Arc<Record>,
    /// Buckets that are not simply somebody's.
    unsettled: BTreeMap<u32, Unsettled<P>>,
    /// Buckets of which this node has sent something to another one, so that it may be under way.
    used: Vec<bool>,
    used_of_pools: BTreeSet<u32>,
    next_token: u64,
    /// Nodes that are about to leave and wait for markers of this node.
    closing: BTreeSet<u64>,
}

struct Unsettled<P> {
    barrier: Option<Barrier>,
    /// What waits for this node's own marker: others' markers, and all from those who did not know
    /// yet that the bucket is here.
    asked: Vec<Load<P>>,
    /// The last record before the bucket came here.
    before_view: u64,
    /// This node stops its actors. Never together with a barrier.
    is_leaving: bool,
    /// They have stopped, and the record does not say yet whose it is now.
    has_stopped: bool,
    left: VecDeque<Load<P>>,
    beside: VecDeque<Load<P>>,
    transit: VecDeque<Load<P>>,
    held: VecDeque<P>,
}

impl<P> Default for Unsettled<P> {
    fn default() -> Self {
        Self {
            barrier: None,
            asked: Vec::new(),
            before_view: 0,
            is_leaving: false,
            has_stopped: false,
            left: VecDeque::new(),
            beside: VecDeque::new(),
            transit: VecDeque::new(),
            held: VecDeque::new(),
        }
    }
}

impl<P> Unsettled<P> {
    fn len(&self) -> usize {
        let earlier = self.left.len() + self.beside.len() + self.transit.len();
        earlier + self.asked.len() + self.held.len()
    }

    /// What goes before `held`, in its order.
    fn take_earlier(&mut self) -> Vec<Load<P>> {
        let left = self.left.drain(..).chain(self.beside.drain(..));
        left.chain(self.transit.drain(..)).collect()
    }
}

/// Where a bucket is, as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Here(u64),
    Arriving(u64),
    Elsewhere,
}

impl<P> Router<P> {
    pub(crate) fn new(me: u64) -> Self {
        let record = Arc::new(Record::empty());
        let used = vec![false; BUCKETS as usize];
        let (unsettled, closing, used_of_pools) = Default::default();
        Self { me, record, unsettled, used, used_of_pools, next_token: 1, closing }
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    pub(crate) fn standing(&self, bucket: u32) -> Standing {
        let holding = self.record.holding(bucket);
        if holding.owner != Some(self.me) {
            return Standing::Elsewhere;
        }
        match self.unsettled.get(&bucket) {
            Some(route) if route.is_leaving => Standing::Elsewhere,
            Some(_) => Standing::Arriving(holding.epoch),
            None => Standing::Here(holding.epoch),
        }
    }

    /// Whether the bucket is on its way here or away.
    pub(crate) fn is_unsettled(&self, bucket: u32) -> bool {
        self.unsettled.contains_key(&bucket)
    }

    /// How much is held for a bucket.
    pub(crate) fn held(&self, bucket: u32) -> usize {
        self.unsettled.get(&bucket).map_or(0, Unsettled::len)
    }

    /// Whether nothing waits here for its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.unsettled.values().all(|route| route.len() == 0)
    }

    /// Where parcels for the bucket go now, if it is to another node.
    pub(crate) fn next_hop(&self, bucket: u32) -> Option<u64> {
        let owner = self.record.holding(bucket).owner?;
        (owner != self.me && !self.unsettled.contains_key(&bucket)).then_some(owner)
    }

    /// As `next_hop`, for something that is sent there now, and the epoch in which it sets out.
    #[inline]
    pub(crate) fn hop(&mut self, bucket: u32) -> Option<(u64, u64)> {
        let to = self.next_hop(bucket)?;
        self.uses(bucket);
        Some((to, self.record.holding(bucket).epoch))
    }

    /// Something that an actor of this node sends.
    pub(crate) fn send(&mut self, bucket: u32, parcel: P) -> Option<Effect<P>> {
        let Holding { owner, epoch, .. } = self.record.holding(bucket);
        if owner.is_none() && self.is_nowhere(bucket) {
            return Some(Effect::Refuse { parcel });
        }
        match (self.unsettled.get_mut(&bucket), owner) {
            (Some(route), _) => {
                route.held.push_back(parcel);
                None
            }
            (None, Some(owner)) if owner == self.me => Some(Effect::Deliver { parcel }),
            (None, Some(to)) => Some(self.transmit(to, bucket, Load::Parcel(epoch, parcel))),
            (None, None) => {
                self.unsettled.entry(bucket).or_default().held.push_back(parcel);
                None
            }
        }
    }

    /// Something that waited for an actor that has left.
    pub(crate) fn send_on(&mut self, bucket: u32, parcel: P, waited: Waited) -> Option<Effect<P>> {
        let epoch = self.record.holding(bucket).epoch;
        match self.unsettled.get_mut(&bucket) {
            Some(route) if route.is_leaving => {
                let load = Load::Parcel(epoch, parcel);
                match waited {
                    Waited::Inside => route.left.push_back(load),
                    Waited::Beside => route.beside.push_back(load),
                }
                None
            }
            _ => self.send(bucket, parcel),
        }
    }

    #[inline]
    fn uses(&mut self, bucket: u32) {
        match self.used.get_mut(bucket as usize) {
            Some(used) => *used = true,
            None => _ = self.used_of_pools.insert(bucket),
        }
    }

    fn is_used(&self, bucket: u32) -> bool {
        match self.used.get(bucket as usize) {
            Some(used) => *used,
            None => self.used_of_pools.contains(&bucket),
        }
    }

    /// Whether it asks for labels that no node has, or none that takes buckets. What is sent there
    /// waits for nobody, unlike what is sent before this node knows anything.
    fn is_nowhere(&self, bucket: u32) -> bool {
        let is_known = pool_in(bucket).is_some() && self.record.view > 0;
        is_known && self.record.holding(bucket).owner.is_none()
    }

    fn transmit(&mut self, to: u64, bucket: u32, load: Load<P>) -> Effect<P> {
        self.uses(bucket);
        Effect::Transmit { to, bucket, load }
    }

    /// Whether a parcel of that epoch, from whichever node, goes to its actor here at once.
    pub(crate) fn is_for_here(&self, bucket: u32, epoch: u64) -> bool {
        let Holding { owner, lost_before, .. } = self.record.holding(bucket);
        owner == Some(self.me) && epoch >= lost_before && !self.unsettled.contains_key(&bucket)
    }

    /// Something that the node `from` sent here.
    pub(crate) fn receive(&mut self, from: Hop, bucket: u32, load: Load<P>) -> Vec<Effect<P>> {
        let Holding { owner, lost_before, .. } = self.record.holding(bucket);
        let load = match load {
            Load::Parcel(epoch, parcel) if epoch < lost_before => {
                return vec![Effect::Lose { parcel }];
            }
            // All that went before it has come back, and is in `transit` or delivered.
            Load::Marker { origin, token, .. } if origin == self.me => {
                return self.flushed(bucket, token);
            }
            Load::Parcel(_, parcel) if self.is_nowhere(bucket) => {
                return vec![Effect::Refuse { parcel }];
            }
            // Its origin, too, learns that nobody has the bucket.
            Load::Marker { .. } if self.is_nowhere(bucket) => return Vec::new(),
            load => load,
        };
        if self.waits_for_my_marker(from, bucket, &load) {
            self.unsettled.entry(bucket).or_default().asked.push(load);
            return Vec::new();
        }
        let is_mine = owner == Some(self.me);
        match (self.unsettled.get_mut(&bucket), owner) {
            (None, Some(_)) if is_mine => vec![arrive(bucket, load)],
            (None, Some(to)) => vec![self.transmit(to, bucket, load)],
            // A bucket that is arriving takes from others what they send; only its own senders
            // wait.
            (Some(route), _)
                if is_mine
                    && route.barrier.is_some()
                    && (route.transit.is_empty() || matches!(load, Load::Marker { .. })) =>
            {
                vec![arrive(bucket, load)]
            }
            _ => {
                self.unsettled.entry(bucket).or_default().transit.push_back(load);
                Vec::new()
            }
        }
    }

    /// What ran of these buckets has stopped. Where this node is to keep one, in a new epoch, it
    /// settles.
    pub(crate) fn departed(&mut self, buckets: &[(u32, u64)]) -> Vec<Effect<P>> {
        let mut kept = Vec::new();
        for (bucket, epoch) in buckets {
            let Some(route) = self.unsettled.get_mut(bucket) else { continue };
            if self.record.holding(*bucket).epoch == *epoch {
                route.has_stopped = true;
            } else {
                route.is_leaving = false;
                kept.push(*bucket);
            }
        }
        self.release(&kept)
    }

    /// The next part of what is to be delivered here before the bucket is settled; nothing once it
    /// is. One that is to leave does so then.
    pub(crate) fn settle(&mut self, bucket: u32) -> Vec<Effect<P>> {
        let holding = self.record.holding(bucket);
        let Some(route) = self.unsettled.get_mut(&bucket) else { return Vec::new() };
        if holding.owner != Some(self.me) || route.is_leaving || route.barrier.is_some() {
            return Vec::new();
        }
        let mut loads = route.take_earlier();
        if loads.is_empty() {
            let set_out = |parcel| Load::Parcel(holding.epoch, parcel);
            loads.extend(route.held.drain(..).map(set_out));
        }
        if !loads.is_empty() {
            return loads.into_iter().map(|load| arrive(bucket, load)).collect();
        }
        if holding.going_to.is_some() {
            route.is_leaving = true;
            return vec![Effect::Depart { buckets: vec![(bucket, holding.epoch)] }];
        }
        self.unsettled.remove(&bucket);
        Vec::new()
    }

    /// Takes a newer record.
    pub(crate) fn follow(&mut self, record: Arc<Record>) -> Vec<Effect<P>> {
        if record.view <= self.record.view {
            return Vec::new();
        }
        let old = std::mem::replace(&mut self.record, record);
        let record = self.record.clone();
        let members = old.members.iter().map(|member| member.incarnation);
        let gone: Vec<u64> = members.filter(|who| record.member(*who).is_none()).collect();
        let mut effects: Vec<_> = gone.iter().map(|node| Effect::Gone { node: *node }).collect();
        let (mut departing, mut changed) = (Vec::new(), Vec::new());
        let pools: BTreeSet<u32> = old.pools.keys().chain(record.pools.keys()).copied().collect();
        for bucket in (0..BUCKETS).chain(pools.into_iter().flat_map(buckets_of)) {
            let (before, after) = (old.holding(bucket), record.holding(bucket));
            let leaves = after.owner == Some(self.me) && after.going_to.is_some();
            if self.is_nowhere(bucket) {
                // Nothing waits for it; see `refuse`.
            } else if before.epoch != after.epoch || before.owner != after.owner {
                if self.change(bucket, before, old.view, &mut effects) {
                    changed.push(bucket);
                }
            } else if leaves && !self.unsettled.contains_key(&bucket) {
                // One that is not settled yet leaves once it is.
                self.unsettled.entry(bucket).or_default().is_leaving = true;
                departing.push((bucket, after.epoch));
            } else if !gone.is_empty() && self.mark_again(bucket, &mut effects) {
                changed.push(bucket);
            }
        }
        effects.extend(self.release(&changed));
        self.refuse(&mut effects);
        self.closing.retain(|node| record.member(*node).is_some());
        effects.extend(self.close());
        if !departing.is_empty() {
            effects.push(Effect::Depart { buckets: departing });
        }
        effects
    }

    /// A bucket has a new owner, or its owner a new epoch. Returns whether it may be released.
    fn change(
        &mut self,
        bucket: u32,
        before: Holding,
        before_view: u64,
        effects: &mut Vec<Effect<P>>,
    ) -> bool {
        let after = self.record.holding(bucket);
        let route = self.unsettled.entry(bucket).or_default();
        if before.owner != after.owner || before.arrived != after.arrived {
            route.before_view = before_view;
        }
        if route.is_leaving && !route.has_stopped && after.owner == Some(self.me) {
            // The move came to nothing; its actors still stop.
            return false;
        }
        let waited = route.barrier.take();
        (route.is_leaving, route.has_stopped) = (false, false);
        if after.lost_before > before.epoch {
            route.transit.extend(route.asked.drain(..));
            let is_lost = |load: &Load<P>| matches!(load, Load::Parcel(..));
            let (lost, rest): (Vec<_>, Vec<_>) =
                route.take_earlier().into_iter().partition(is_lost);
            route.transit = VecDeque::from(rest);
            effects.extend(lost.into_iter().filter_map(lose));
        } else {
            self.mark_former(bucket, before, waited, effects);
        }
        true
    }

    /// Nobody has some buckets any more: what is held for them does not wait for a next owner.
    fn refuse(&mut self, effects: &mut Vec<Effect<P>>) {
        let nowhere = self.unsettled.keys().copied().filter(|bucket| self.is_nowhere(*bucket));
        for bucket in nowhere.collect::<Vec<_>>() {
            let Some(mut route) = self.unsettled.remove(&bucket) else { continue };
            let earlier = route.take_earlier().into_iter().chain(route.asked.drain(..));
            let earlier = earlier.filter_map(|load| match load {
                Load::Parcel(_, parcel) => Some(parcel),
                Load::Marker { .. } => None,
            });
            let all: Vec<P> = earlier.chain(route.held.drain(..)).collect();
            effects.extend(all.into_iter().map(|parcel| Effect::Refuse { parcel }));
        }
    }

    /// Lets go what need not be held any more.
    fn release(&mut self, buckets: &[u32]) -> Vec<Effect<P>> {
        let (mut effects, mut settling) = (Vec::new(), Vec::new());
        for bucket in buckets.iter().copied() {
            let Holding { owner: Some(owner), epoch, .. } = self.record.holding(bucket) else {
                continue;
            };
            let is_free = |route: &Unsettled<P>| route.barrier.is_none() && !route.is_leaving;
            if !self.unsettled.get(&bucket).is_some_and(is_free) {
                continue;
            }
            if owner == self.me {
                settling.push(bucket);
                continue;
            }
            let Some(mut route) = self.unsettled.remove(&bucket) else { continue };
            let set_out = |parcel| Load::Parcel(epoch, parcel);
            let held = std::mem::take(&mut route.held).into_iter().map(set_out);
            let loads = route.take_earlier().into_iter().chain(held);
            effects.extend(loads.map(|load| self.transmit(owner, bucket, load)));
        }
        if !settling.is_empty() {
            effects.push(Effect::Settle { buckets: settling });
        }
        effects
    }
}

/// What the owner of a bucket does with what comes for it.
fn arrive<P>(bucket: u32, load: Load<P>) -> Effect<P> {
    match load {
        Load::Parcel(_, parcel) => Effect::Deliver { parcel },
        Load::Marker { origin, token, .. } => Effect::Flushed { to: origin, bucket, token },
    }
}

fn lose<P>(load: Load<P>) -> Option<Effect<P>> {
    match load {
        Load::Parcel(_, parcel) => Some(Effect::Lose { parcel }),
        Load::Marker { .. } => None,
    }
}

#[cfg(test)]
mod tests;
