//! Which way each message goes while buckets change hands, so that none is lost and none of one
//! sender overtakes another. A step function: no socket, no clock.
//!
//! When a bucket changes hands, what a node sent to the former owner may still be under way, so the
//! node holds what it sends from then on and sends a **marker** after what it sent before. Whoever
//! gets a marker treats it like a message for the bucket: the owner answers it, everybody else
//! passes it on. Links keep their order, so the answer says that all before it has arrived. If the
//! bucket has moved on meanwhile, another marker follows to whoever answered.
//!
//! What others sent here and belongs elsewhere by now (`transit`) goes before what this node holds
//! of its own (`held`): it was sent earlier.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::record::Record;

/// What travels about a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Load<P> {
    Parcel(P),
    Marker { origin: u64, token: u64 },
}

/// What a step asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect<P> {
    /// Put it on the link to that node; before the next step.
    Transmit { to: u64, bucket: u16, load: Load<P> },
    /// It is for an actor of this node.
    Deliver { parcel: P },
    /// Tell the origin of a marker that it has arrived.
    Flushed { to: u64, bucket: u16, token: u64, epoch: u64 },
    /// Stop what runs of these buckets, then say that they are released, each in its epoch.
    Depart { buckets: Vec<(u16, u64)> },
    /// Call `settle` for these until it returns nothing, delivering what it returns.
    Settle { buckets: Vec<u16> },
    /// That node is no member any more.
    Gone { node: u64 },
}

/// A node's knowledge of who owns what, and what it holds until it knows better.
pub(crate) struct Router<P> {
    me: u64,
    record: Arc<Record>,
    /// Buckets that are not simply somebody's.
    unsettled: BTreeMap<u16, Unsettled<P>>,
    next_token: u64,
}

struct Unsettled<P> {
    /// To whom the marker went that has not been answered.
    barrier: Option<(u64, u64)>,
    /// The owner is this node and stops its actors. Never together with a barrier.
    is_leaving: bool,
    transit: VecDeque<Load<P>>,
    held: VecDeque<P>,
}

impl<P> Default for Unsettled<P> {
    fn default() -> Self {
        Self { barrier: None, is_leaving: false, transit: VecDeque::new(), held: VecDeque::new() }
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
        Self { me, record, unsettled: BTreeMap::new(), next_token: 1 }
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    pub(crate) fn standing(&self, bucket: u16) -> Standing {
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
    pub(crate) fn is_unsettled(&self, bucket: u16) -> bool {
        self.unsettled.contains_key(&bucket)
    }

    /// How much is held for a bucket.
    pub(crate) fn held(&self, bucket: u16) -> usize {
        self.unsettled.get(&bucket).map_or(0, |route| route.held.len() + route.transit.len())
    }

    /// Where parcels for the bucket go now, if it is to another node.
    pub(crate) fn next_hop(&self, bucket: u16) -> Option<u64> {
        let owner = self.record.holding(bucket).owner?;
        (owner != self.me && !self.unsettled.contains_key(&bucket)).then_some(owner)
    }

    /// Something that an actor of this node sends.
    pub(crate) fn send(&mut self, bucket: u16, parcel: P) -> Option<Effect<P>> {
        let owner = self.record.holding(bucket).owner;
        match (self.unsettled.get_mut(&bucket), owner) {
            // What departs goes this way, too: one queue keeps its order with what comes behind it.
            (Some(route), _) if route.is_leaving => {
                route.transit.push_back(Load::Parcel(parcel));
                None
            }
            (Some(route), _) => {
                route.held.push_back(parcel);
                None
            }
            (None, Some(owner)) if owner == self.me => Some(Effect::Deliver { parcel }),
            (None, Some(to)) => Some(Effect::Transmit { to, bucket, load: Load::Parcel(parcel) }),
            (None, None) => {
                self.unsettled.entry(bucket).or_default().held.push_back(parcel);
                None
            }
        }
    }

    /// Something that another node sent here.
    pub(crate) fn receive(&mut self, bucket: u16, load: Load<P>) -> Vec<Effect<P>> {
        let holding = self.record.holding(bucket);
        let is_mine = holding.owner == Some(self.me);
        let Some(route) = self.unsettled.get_mut(&bucket) else {
            return match holding.owner {
                Some(_) if is_mine => {
                    self.arrive(bucket, holding.epoch, load).into_iter().collect()
                }
                Some(to) => vec![Effect::Transmit { to, bucket, load }],
                None => {
                    self.unsettled.entry(bucket).or_default().transit.push_back(load);
                    Vec::new()
                }
            };
        };
        if let Load::Marker { origin, token } = load
            && origin == self.me
            && route.barrier.is_some_and(|(_, expected)| expected == token)
        {
            // All that this node had sent has come back, and is in `transit` or delivered.
            route.barrier = None;
            return self.release(&[bucket]);
        }
        // A bucket that is arriving takes from others what they send; only its own senders wait.
        if is_mine && !route.is_leaving && route.barrier.is_some() && route.transit.is_empty() {
            return self.arrive(bucket, holding.epoch, load).into_iter().collect();
        }
        route.transit.push_back(load);
        Vec::new()
    }

    fn arrive(&self, bucket: u16, epoch: u64, load: Load<P>) -> Option<Effect<P>> {
        match load {
            Load::Parcel(parcel) => Some(Effect::Deliver { parcel }),
            // A marker of this node that nobody waits for any more.
            Load::Marker { origin, .. } if origin == self.me => None,
            Load::Marker { origin, token } => {
                Some(Effect::Flushed { to: origin, bucket, token, epoch })
            }
        }
    }

    /// A marker of this node has arrived at `by`, which owned the bucket in `epoch`.
    pub(crate) fn flushed(
        &mut self,
        by: u64,
        bucket: u16,
        token: u64,
        epoch: u64,
    ) -> Vec<Effect<P>> {
        let is_current = self.record.holding(bucket).epoch == epoch;
        let is_member = self.record.member(by).is_some();
        let Some(route) = self.unsettled.get_mut(&bucket) else { return Vec::new() };
        if route.barrier.is_none_or(|(_, expected)| expected != token) {
            return Vec::new();
        }
        route.barrier = None;
        if is_current || !is_member {
            return self.release(&[bucket]);
        }
        // It has moved on since, with what this node had sent before it.
        vec![self.mark(bucket, by)]
    }

    /// The next part of what is to be delivered here before the bucket is settled; nothing once it
    /// is. One that is to leave does so then.
    pub(crate) fn settle(&mut self, bucket: u16) -> Vec<Effect<P>> {
        let holding = self.record.holding(bucket);
        let Some(route) = self.unsettled.get_mut(&bucket) else { return Vec::new() };
        if holding.owner != Some(self.me) || route.is_leaving || route.barrier.is_some() {
            return Vec::new();
        }
        let transit = std::mem::take(&mut route.transit);
        let held =
            if transit.is_empty() { std::mem::take(&mut route.held) } else { VecDeque::new() };
        if transit.is_empty() && held.is_empty() {
            if holding.going_to.is_some() {
                route.is_leaving = true;
                return vec![Effect::Depart { buckets: vec![(bucket, holding.epoch)] }];
            }
            self.unsettled.remove(&bucket);
            return Vec::new();
        }
        let held = held.into_iter().map(Load::Parcel);
        let loads = transit.into_iter().chain(held);
        loads.filter_map(|load| self.arrive(bucket, holding.epoch, load)).collect()
    }

    /// Takes a newer record.
    pub(crate) fn follow(&mut self, record: Arc<Record>) -> Vec<Effect<P>> {
        if record.view <= self.record.view {
            return Vec::new();
        }
        let old = std::mem::replace(&mut self.record, record.clone());
        let gone: Vec<u64> = old
            .members
            .iter()
            .map(|member| member.incarnation)
            .filter(|who| record.member(*who).is_none())
            .collect();
        let mut effects: Vec<_> = gone.iter().map(|node| Effect::Gone { node: *node }).collect();
        let (mut departing, mut changed) = (Vec::new(), Vec::new());
        for bucket in 0..crate::bucket::BUCKETS {
            let (before, after) = (old.holding(bucket), record.holding(bucket));
            let leaves = after.owner == Some(self.me) && after.going_to.is_some();
            if before.epoch != after.epoch {
                let route = self.unsettled.entry(bucket).or_default();
                route.is_leaving = false;
                let former = before
                    .owner
                    .filter(|former| *former != self.me && record.member(*former).is_some());
                if route.barrier.is_none()
                    && let Some(former) = former
                {
                    effects.push(self.mark(bucket, former));
                }
                changed.push(bucket);
            } else if leaves && !self.unsettled.contains_key(&bucket) {
                // One that is not settled yet leaves once it is.
                self.unsettled.entry(bucket).or_default().is_leaving = true;
                departing.push((bucket, after.epoch));
            }
        }
        if !gone.is_empty() {
            changed.extend(self.mark_again(&gone, &mut effects));
        }
        effects.extend(self.release(&changed));
        if !departing.is_empty() {
            effects.push(Effect::Depart { buckets: departing });
        }
        effects
    }

    /// Markers may have ended with the nodes that are gone: those to others are sent again.
    fn mark_again(&mut self, gone: &[u64], effects: &mut Vec<Effect<P>>) -> Vec<u16> {
        let waiting: Vec<_> = self
            .unsettled
            .iter()
            .filter_map(|(bucket, route)| Some((*bucket, route.barrier?.0)))
            .collect();
        let mut free = Vec::new();
        for (bucket, at) in waiting {
            if gone.contains(&at) {
                self.unsettled.entry(bucket).or_default().barrier = None;
                free.push(bucket);
            } else {
                effects.push(self.mark(bucket, at));
            }
        }
        free
    }

    fn mark(&mut self, bucket: u16, to: u64) -> Effect<P> {
        let token = self.next_token;
        self.next_token += 1;
        self.unsettled.entry(bucket).or_default().barrier = Some((to, token));
        Effect::Transmit { to, bucket, load: Load::Marker { origin: self.me, token } }
    }

    /// Lets go what need not be held any more.
    fn release(&mut self, buckets: &[u16]) -> Vec<Effect<P>> {
        let (mut effects, mut settling) = (Vec::new(), Vec::new());
        for bucket in buckets.iter().copied() {
            let Some(owner) = self.record.holding(bucket).owner else { continue };
            let is_free = |route: &Unsettled<P>| route.barrier.is_none() && !route.is_leaving;
            if !self.unsettled.get(&bucket).is_some_and(is_free) {
                continue;
            }
            if owner == self.me {
                settling.push(bucket);
                continue;
            }
            let Some(route) = self.unsettled.remove(&bucket) else { continue };
            let held = route.held.into_iter().map(Load::Parcel);
            let transmit = |load| Effect::Transmit { to: owner, bucket, load };
            effects.extend(route.transit.into_iter().chain(held).map(transmit));
        }
        if !settling.is_empty() {
            effects.push(Effect::Settle { buckets: settling });
        }
        effects
    }
}
