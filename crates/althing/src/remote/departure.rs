//! How an actor leaves a node: it is held at a message boundary, and then either goes on or goes
//! away, and what waits for it goes after it.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::activation::stopped::Stopped;
use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::address::signal::send_system;
use crate::mail::extras::System;
use crate::node::shared::Node;
use crate::remote::cluster::Location;
use crate::remote::following::watch_on;
use crate::shield::wake_all;

/// An actor that is held between two messages. Nothing of it runs, and its mailbox fills, until it
/// resumes or departs; dropping this resumes it.
#[must_use = "dropping it lets the actor go on"]
pub struct Sealed {
    place: Arc<dyn AnyPlace>,
    /// The life that is held, by the number of those that had ended before.
    life: u32,
    is_done: bool,
}

impl Sealed {
    /// A seal on the life that an actor is in.
    fn of(place: Arc<dyn AnyPlace>) -> Self {
        let life = place.header().mailbox.lock().lives();
        Self { place, life, is_done: false }
    }

    /// The actor.
    pub fn id(&self) -> ActorId {
        self.place.header().id()
    }

    /// Messages that wait.
    pub fn mailbox_depth(&self) -> usize {
        self.place.header().mailbox.depth()
    }

    /// Sends the actor away: its `stopping` hook runs with `StopReason::Moved`, its state is
    /// dropped, and what waits goes to where the cluster now says that it lives, in order and
    /// before whatever is sent later. Watches and links stay.
    ///
    /// The cluster must locate the actor elsewhere by now; if it does not, the actor is unloaded
    /// and comes back here with its next message.
    pub async fn depart(mut self) {
        self.is_done = true;
        let stopped = Stopped::of_life(self.place.clone(), self.life);
        send_system(&self.place, System::Depart);
        stopped.await;
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        if !self.is_done {
            send_system(&self.place, System::Resume(self.life));
        }
    }
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sealed").field(&self.id()).finish()
    }
}

impl Node {
    /// Holds an actor of this node once its running handlers have ended. `None` if it is not in
    /// memory; then its address sends elsewhere at once if the cluster says so.
    ///
    /// # Cancel safety
    /// Dropping the future lets the actor go on.
    pub async fn seal(&self, id: &ActorId) -> Option<Sealed> {
        let place = self.shared().known(id)?;
        let (sender, sealed) = oneshot::channel();
        let seal = |place| _ = sender.send(Sealed::of(place));
        send_system(&place, System::Seal(Box::new(seal)));
        if let Ok(sealed) = sealed.await {
            return Some(sealed);
        }
        relocate(&place);
        None
    }

    /// Asks the cluster anew where each named actor lives, after that has changed. Addresses of
    /// actors that sleep follow at once; the identities returned are of those that are in memory
    /// here and belong elsewhere: to be sealed, and to depart.
    pub fn relocate(&self) -> Vec<ActorId> {
        let mut misplaced = Vec::new();
        self.shared().holdings().directory.for_each(|place| {
            if place.header().key().is_some() && relocate(place) == Relocated::MustLeave {
                misplaced.push(place.header().id());
            }
        });
        self.shared().note_relocation();
        misplaced
    }

    /// How often [`Node::relocate`] was called. When that has changed, actors may live here that did
    /// not before, and the reverse. `None` on a node without a cluster, where all stay.
    pub fn relocations(&self) -> Option<u64> {
        self.shared().cluster.is_some().then(|| self.shared().relocations())
    }

    /// Holds every actor that is in memory, and those that are about to start, until `thaw`: a node
    /// that may have lost its lease runs nothing. Resolves once no handler runs any more.
    pub async fn freeze(&self) {
        self.shared().set_frozen(true);
        let mut frozen = Vec::new();
        self.shared().holdings().directory.for_each(|place| {
            let (sender, receiver) = oneshot::channel();
            send_system(place, System::Freeze(sender));
            frozen.push(receiver);
        });
        for frozen in frozen {
            // An error means that it was not in memory.
            _ = frozen.await;
        }
    }

    /// Lets actors go on after `freeze`.
    pub fn thaw(&self) {
        if !self.shared().set_frozen(false) {
            return;
        }
        self.shared().holdings().directory.for_each(|place| _ = send_system(place, System::Thaw));
    }

    /// Ends an actor's life at once, without a hook, if it runs in an older epoch than `epoch`:
    /// another node owns it now. A handler that waits is dropped, and what its turn held back never
    /// leaves; what waits in the mailbox is sent after the actor.
    pub fn fence(&self, id: &ActorId, epoch: crate::epoch::Epoch) {
        if let Some(place) = self.shared().known(id) {
            send_system(&place, System::Fence(epoch));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Relocated {
    Settled,
    MustLeave,
}

/// Takes nodes that are lost off the list of those that watch an actor.
pub(super) fn forget_lost(place: &Arc<dyn AnyPlace>) {
    let header = place.header();
    let Some(cluster) = &header.kind.node.cluster else { return };
    let nodes = header.mailbox.lock().extras.as_ref().map(|extras| extras.nodes_watching.clone());
    // Asked without the lock: the cluster is foreign.
    for (lost, _) in nodes.into_iter().flatten().filter(|(node, _)| !cluster.has(*node)) {
        if let Some(extras) = &mut header.mailbox.lock().extras {
            extras.nodes_watching.remove(&lost);
        }
    }
}

fn relocate(place: &Arc<dyn AnyPlace>) -> Relocated {
    let header = place.header();
    let Some(location) = header.location() else { return Relocated::Settled };
    forget_lost(place);
    let mut inner = header.mailbox.lock();
    let was_elsewhere = inner.is_elsewhere();
    match location {
        Location::Here(_) => inner.come_here(),
        Location::Arriving(_) if inner.is_elsewhere() || inner.has_ended() => {}
        // Nobody has sent anything here yet that something could overtake.
        Location::Arriving(_) if inner.is_asleep() => inner.send_elsewhere(),
        Location::Arriving(_) => {}
        Location::Elsewhere if inner.has_ended() => {}
        Location::Elsewhere if inner.is_asleep() => inner.send_elsewhere(),
        // A handler has a lane to it, whose messages would wake it: they are sent on then.
        Location::Elsewhere if inner.sleeps_now() => {}
        Location::Elsewhere => return Relocated::MustLeave,
    }
    // Who awaits the end of an actor that has come here looks whether it lives.
    let has_come = was_elsewhere && !inner.is_elsewhere();
    let waiters = if has_come { inner.take_stop_waiters() } else { Vec::new() };
    if inner.is_elsewhere()
        && let Some(extras) = &mut inner.extras
    {
        // Nodes ask anew where it lives now.
        extras.nodes_watching.clear();
    }
    drop(inner);
    wake_all(waiters);
    watch_on(place);
    Relocated::Settled
}
