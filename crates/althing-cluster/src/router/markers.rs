//! Markers: how a node knows that what it sent for a bucket has arrived, whoever owns that by then.
//!
//! When a bucket changes hands, a node sends a **marker** after what it sent to the former owner.
//! Whoever gets a marker treats it like a message for the bucket: the owner answers it, everybody
//! else passes it on. Links keep their order, so the answer says that all before it has arrived. A
//! newer owner makes older markers void.
//!
//! An owner that had the bucket before may have passed on what others sent it then, and that may
//! still be on its way back. So it answers a marker for that time, if it comes straight from its
//! origin, only when its own marker has come back. One that was passed on is answered at once: who
//! passed it on has waited already, and may be waited for.
//!
//! A node that was stopped for a while may know of none of that: it goes on sending to an owner of
//! before, who has the bucket again. What it sent earlier may be on its way back as well. So what
//! comes from a node that did not know yet waits for this node's own marker, markers too. That
//! closes no circle: a marker is passed on by nodes that know at least the record that made its
//! origin send it, so one that waits so belongs to an older record than what it waits for.
//!
//! A node that leaves stays until the markers that went to it have been answered: what it passed on
//! may still be with another former owner, and only its markers say when it no longer is.

use std::collections::BTreeSet;

use super::{Effect, Hop, Load, Router, arrive};
use crate::record::Holding;

/// A marker without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// The former owner to which it went.
    at: u64,
    token: u64,
    /// The last epoch in which this node has sent something there.
    epoch: u64,
}

impl<P> Router<P> {
    /// Whether something for a bucket that is arriving here is to come behind what this node has
    /// passed on, which may be on its way back.
    pub(super) fn waits_for_my_marker(&self, from: Hop, bucket: u32, load: &Load<P>) -> bool {
        let Holding { owner, arrived, .. } = self.record.holding(bucket);
        let Some(route) = self.unsettled.get(&bucket) else { return false };
        let Some(barrier) = route.barrier.filter(|_| owner == Some(self.me)) else { return false };
        // What comes from where the marker went comes back.
        let does_not_know = from.view <= route.before_view && from.node != barrier.at;
        let was_sent_before = match load {
            Load::Marker { origin, epoch, .. } => from.node == *origin && *epoch < arrived,
            Load::Parcel(..) => false,
        };
        does_not_know || was_sent_before
    }

    /// A marker of this node has arrived. One of an older owner's time means nothing any more.
    pub(crate) fn flushed(&mut self, bucket: u32, token: u64) -> Vec<Effect<P>> {
        let Some(route) = self.unsettled.get_mut(&bucket) else { return Vec::new() };
        if route.barrier.is_none_or(|barrier| barrier.token != token) {
            return Vec::new();
        }
        route.barrier = None;
        let mut asked = std::mem::take(&mut route.asked);
        if !route.transit.is_empty() {
            route.transit.extend(asked.drain(..));
        }
        let mut effects: Vec<_> = asked.into_iter().map(|load| arrive(bucket, load)).collect();
        effects.extend(self.release(&[bucket]));
        effects.extend(self.close());
        effects
    }

    /// A node that owns nothing any more is about to leave. It is told to go behind all that this
    /// node has sent there, once all of that has reached its owners.
    pub(crate) fn closing(&mut self, node: u64) -> Vec<Effect<P>> {
        self.closing.insert(node);
        self.close()
    }

    pub(super) fn close(&mut self) -> Vec<Effect<P>> {
        if self.closing.is_empty() {
            return Vec::new();
        }
        let markers = self.unsettled.values().filter_map(|route| route.barrier);
        let awaited: BTreeSet<u64> = markers.map(|barrier| barrier.at).collect();
        let (stay, go) = self.closing.iter().partition(|node| awaited.contains(node));
        self.closing = stay;
        let go: BTreeSet<u64> = go;
        go.into_iter().map(|to| Effect::Closed { to }).collect()
    }

    /// A bucket has changed hands: a marker goes behind what this node sent to its former owner, or
    /// to one before that for whose marker it still `waited`.
    pub(super) fn mark_former(
        &mut self,
        bucket: u32,
        before: Holding,
        waited: Option<Barrier>,
        effects: &mut Vec<Effect<P>>,
    ) {
        let after = self.record.holding(bucket);
        // What a node that is gone has passed on may be with the owner after it.
        let has_moved = before.owner != after.owner || after.arrived > before.epoch;
        let is_used = has_moved && self.is_used(bucket);
        let former = before.owner.filter(|_| is_used);
        let former = former.map(|at| (at, before.epoch));
        let waited = waited.map(|barrier| (barrier.at, barrier.epoch));
        let waited = waited.filter(|(at, _)| self.record.member(*at).is_some());
        self.mark(bucket, waited.or(former), effects);
        self.ask_no_more(bucket);
    }

    /// Nodes are gone, and the marker for the bucket may have ended with one of them: it is sent
    /// once more. Returns whether there was one.
    pub(super) fn mark_again(&mut self, bucket: u32, effects: &mut Vec<Effect<P>>) -> bool {
        let barrier = self.unsettled.get_mut(&bucket).and_then(|route| route.barrier.take());
        let Some(Barrier { at, epoch, .. }) = barrier else { return false };
        self.mark(bucket, Some((at, epoch)), effects);
        self.ask_no_more(bucket);
        true
    }

    /// Where this node waits for no marker of its own, or owns the bucket no longer, what waited
    /// for that goes with all else.
    fn ask_no_more(&mut self, bucket: u32) {
        let is_mine = self.record.holding(bucket).owner == Some(self.me);
        if let Some(route) = self.unsettled.get_mut(&bucket)
            && (!is_mine || route.barrier.is_none())
        {
            route.transit.extend(route.asked.drain(..));
        }
    }

    /// Sends a marker to a node; not to one that is gone, from which nothing comes any more.
    fn mark(&mut self, bucket: u32, to: Option<(u64, u64)>, effects: &mut Vec<Effect<P>>) {
        let is_there = |(to, _): &(u64, u64)| *to != self.me && self.record.member(*to).is_some();
        let Some((to, epoch)) = to.filter(is_there) else { return };
        let token = self.next_token;
        self.next_token += 1;
        self.unsettled.entry(bucket).or_default().barrier = Some(Barrier { at: to, token, epoch });
        let load = Load::Marker { origin: self.me, token, epoch };
        effects.push(Effect::Transmit { to, bucket, load });
    }
}
