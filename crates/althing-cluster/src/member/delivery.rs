//! The last step of a parcel: into the mailbox of an actor of this node, or beside it while that is
//! full.
//!
//! Parcels for an actor whose mailbox is full wait here in their order, and later ones behind them;
//! everybody else's go on. How many wait is bounded by what senders may have under way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use althing::remote::{Cargo, Parcel, Undelivered};
use althing::{ActorId, AskError};

use super::Shared;
use crate::bucket::bucket_of;
use crate::link::accept::Ticket;
use crate::router::{Effect, Waited};

/// What waits for one actor.
pub(super) type Parked = VecDeque<(Parcel, Option<Ticket>)>;

/// Parcels that are taken from there in one turn.
const UNPARKED_LEN: usize = 64;

/// How far a turn has come with what waits for one actor.
enum Unparked {
    All,
    Some,
    UntilFull,
}

impl Shared {
    /// Gives a parcel of this node to its actor. It never waits beside the mailbox: what its sender
    /// sends next may go straight there.
    pub(super) fn deliver_own(self: &Arc<Self>, parcel: Parcel) {
        let Some(node) = self.node() else { return fail(parcel) };
        if let Err(Undelivered::Elsewhere(parcel)) = node.deliver_own(parcel) {
            self.send_on(*parcel, Waited::Beside);
        }
    }

    /// Sends a parcel after its actor, which has left.
    pub(super) fn send_on(self: &Arc<Self>, parcel: Parcel, waited: Waited) {
        let Some(bucket) = bucket_of(&parcel.to) else { return fail(parcel) };
        let effect = self.core.lock().router.send_on(bucket, (parcel, None), waited);
        match effect {
            // It came back meanwhile.
            Some(Effect::Deliver { parcel: (parcel, _) }) => self.deliver_own(parcel),
            effect => self.step(|_| effect.into_iter().collect()),
        }
    }

    /// Gives a parcel to its actor.
    pub(super) fn deliver(self: &Arc<Self>, parcel: Parcel, ticket: Option<Ticket>) {
        // What concerns a life does not wait behind messages.
        let is_message = matches!(parcel.cargo, Cargo::Message(_));
        if is_message {
            let mut all = self.parked.lock();
            // Most of the time nothing is, and to look for one costs a hash of its name.
            if !all.is_empty()
                && let Some(parked) = all.get_mut(&parcel.to)
            {
                parked.push_back((parcel, ticket));
                return;
            }
        }
        if let Some(parcel) = self.try_deliver(parcel) {
            let id = parcel.to.clone();
            let mut parked = self.parked.lock();
            let queue = parked.entry(id.clone()).or_default();
            queue.push_back((parcel, ticket));
            if queue.len() == 1 {
                self.handle.spawn(unpark(self.clone(), id));
            }
        }
    }

    /// Returns the parcel if the mailbox is full.
    fn try_deliver(self: &Arc<Self>, parcel: Parcel) -> Option<Parcel> {
        let Some(node) = self.node() else {
            fail(parcel);
            return None;
        };
        match node.deliver(parcel) {
            Ok(()) => None,
            Err(Undelivered::Full(parcel)) => Some(*parcel),
            Err(Undelivered::Elsewhere(parcel)) => {
                self.send_on(*parcel, Waited::Beside);
                None
            }
            Err(_) => None,
        }
    }

    /// Delivers what was held for buckets that have come here, before anything that is sent later.
    pub(super) fn settle(self: &Arc<Self>, buckets: &[u32]) {
        for bucket in buckets.iter().copied() {
            while !self.is_parked(bucket) {
                let effects = self.core.lock().router.settle(bucket);
                if effects.is_empty() {
                    break;
                }
                let is_leaving = matches!(effects[..], [Effect::Depart { .. }]);
                self.step(|_| effects);
                if is_leaving {
                    break;
                }
            }
        }
        self.relocate_soon();
    }

    /// Has addresses lead straight to actors that have come here; once for many buckets. Until then
    /// what is sent to them comes by the router, which delivers it.
    fn relocate_soon(self: &Arc<Self>) {
        if self.will_relocate.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = self.clone();
        self.handle.spawn(async move {
            tokio::task::yield_now().await;
            let _turn = shared.turn.lock();
            shared.will_relocate.store(false, Ordering::Release);
            if let Some(node) = shared.node() {
                node.relocate();
            }
        });
    }

    /// Delivers the next of what waits for an actor. The caller has the turn: what comes meanwhile
    /// for the same actor comes behind.
    fn unpark_some(self: &Arc<Self>, id: &ActorId) -> Unparked {
        let mut next: Parked = {
            let mut all = self.parked.lock();
            let queue = all.get_mut(id);
            let next = queue.map(|queue| queue.drain(..queue.len().min(UNPARKED_LEN)).collect());
            next.unwrap_or_default()
        };
        if next.is_empty() {
            self.parked.lock().remove(id);
            let is_unsettled = |bucket: &u32| self.core.lock().router.is_unsettled(*bucket);
            if let Some(bucket) = bucket_of(id).filter(is_unsettled) {
                self.settle(&[bucket]);
            }
            return Unparked::All;
        }
        while let Some((parcel, ticket)) = next.pop_front() {
            if let Some(parcel) = self.try_deliver(parcel) {
                next.push_front((parcel, ticket));
                if let Some(queue) = self.parked.lock().get_mut(id) {
                    next.append(queue);
                    *queue = next;
                }
                return Unparked::UntilFull;
            }
        }
        Unparked::Some
    }

    /// Whether something waits for a full mailbox of that bucket.
    pub(super) fn is_parked(&self, bucket: u32) -> bool {
        self.parked.lock().keys().any(|id| bucket_of(id) == Some(bucket))
    }
}

/// Delivers what waits for one actor, in order.
async fn unpark(shared: Arc<Shared>, id: ActorId) {
    loop {
        let Some(node) = shared.node() else { break };
        node.room_for(&id).await;
        drop(node);
        loop {
            let _turn = shared.turn.lock();
            match shared.unpark_some(&id) {
                Unparked::All => return,
                Unparked::Some => {}
                Unparked::UntilFull => break,
            }
        }
    }
    let _turn = shared.turn.lock();
    let rest = shared.parked.lock().remove(&id);
    rest.into_iter().flatten().for_each(|(parcel, _)| fail(parcel));
}

fn fail(parcel: Parcel) {
    if let Cargo::Message(message) = parcel.cargo
        && let Some(reply) = message.reply
    {
        reply(Err(AskError::Stopped(parcel.to)));
    }
}
