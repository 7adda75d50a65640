//! The way in: a parcel from another node becomes a message in a mailbox, or news of a life.
//!
//! Bytes from elsewhere are not trusted: what cannot be read is refused with its reason, and never
//! panics.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::ancestors::{self, Called};
use super::{control, decoding};
use crate::actor::Actor;
use crate::address::actor_id::{ActorId, Incarnation};
use crate::address::actor_ref::ActorRef;
use crate::address::place::{AnyPlace, AsAnyPlace, wake};
use crate::address::refusal::refuse_one;
use crate::error::AskError;
use crate::mail::envelope::Envelope;
use crate::mail::line::Line;
use crate::mail::mailbox::Pushed;
use crate::mail::priority::Priority;
use crate::metrics::Counter;
use crate::node::shared::Node;
use crate::remote::cluster::Location;
use crate::remote::following::ship_all;
use crate::remote::parcel::{CHAIN_LEN_MAX, Cargo, Control, Message, Parcel};
use crate::stop_reason::StopReason;
use crate::wire::codec::WireReply;

/// A parcel that could not be delivered now; it comes back whole.
#[derive(Debug)]
#[non_exhaustive]
pub enum Undelivered {
    /// The actor's mailbox is full: try again after [`Node::room_for`].
    Full(Box<Parcel>),
    /// The actor does not live on this node (any more).
    Elsewhere(Box<Parcel>),
}

/// Whether a mailbox that is full refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Counts,
    IsMet,
}

impl Node {
    /// Takes a parcel that another node's cluster sent to an actor of this one.
    ///
    /// A message that cannot be read, is for a kind this node does not have, or would close a cycle
    /// of asks is refused to its asker; of a tell that is counted as refused.
    ///
    /// # Errors
    /// `Full` and `Elsewhere` hand the parcel back.
    pub fn deliver(&self, parcel: Parcel) -> Result<(), Undelivered> {
        self.deliver_within(parcel, Bound::Counts)
    }

    /// Takes a parcel that an actor of this node sent when its cluster still had to find the way,
    /// whatever the bound of the mailbox: its sender has waited for room already, and what it sends
    /// next may come by the short way.
    ///
    /// # Errors
    /// `Elsewhere` hands the parcel back.
    pub fn deliver_own(&self, parcel: Parcel) -> Result<(), Undelivered> {
        self.deliver_within(parcel, Bound::IsMet)
    }

    fn deliver_within(&self, parcel: Parcel, bound: Bound) -> Result<(), Undelivered> {
        let Parcel { to, node, cargo } = parcel;
        let place = self.place_of(&to);
        match (cargo, place) {
            (Cargo::Control(control), Ok(place)) => {
                let concerns_us = matches!(control, Control::Ended { .. });
                if !concerns_us && lives_elsewhere(&place) {
                    let cargo = Cargo::Control(control);
                    return Err(Undelivered::Elsewhere(Box::new(Parcel { to, node, cargo })));
                }
                control::obey(&place, control);
                Ok(())
            }
            (Cargo::Control(Control::Watch { node, sleepers_too, number }), Err(_)) => {
                self.tell_of_no_life(to, (Incarnation(node), number), sleepers_too);
                Ok(())
            }
            (Cargo::Control(_), Err(_)) => Ok(()),
            (Cargo::Message(message), Ok(place)) => deliver_message(&place, message, bound)
                .map_err(|(why, message)| {
                    let parcel = Box::new(Parcel { to, node, cargo: Cargo::Message(message) });
                    match why {
                        Pushed::Elsewhere => Undelivered::Elsewhere(parcel),
                        Pushed::Full | Pushed::Closed | Pushed::Queued => Undelivered::Full(parcel),
                    }
                }),
            (Cargo::Message(message), Err(why)) => {
                refuse(message, why);
                Ok(())
            }
        }
    }

    /// Tells a node that an actor without a name, which lived here, had ended before it was
    /// watched: nobody remembers why. Or that one has no life, of a kind that this node does not have.
    fn tell_of_no_life(
        &self,
        id: ActorId,
        (watcher, number): (Incarnation, u64),
        sleepers_too: bool,
    ) {
        let reason = match id.origin() {
            Some((node, _)) if node == self.incarnation() => StopReason::Requested,
            None if sleepers_too => StopReason::Passivated,
            _ => return,
        };
        if let Some(cluster) = &self.shared().cluster {
            let cargo = Cargo::Control(Control::Ended { reason, number });
            cluster.send(Parcel { to: id, node: Some(watcher), cargo });
        }
    }

    /// Waits until the mailbox of an actor of this node has room, or takes nothing any more.
    pub async fn room_for(&self, id: &ActorId) {
        let Ok(place) = self.place_of(id) else { return };
        let header = place.header();
        let mut line = Line::new(&header.mailbox);
        poll_fn(|cx| match line.wait_for_room(cx.waker(), header.kind.len_max) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// The address of an actor by its identity; `None` if it is of another kind than `A`, or an
    /// anonymous actor that has ended, or that lives on another node and there is no cluster to
    /// reach it by.
    pub fn resolve<A: Actor>(&self, id: &ActorId) -> Option<ActorRef<A>> {
        if *id.kind() != A::kind_name() {
            return None;
        }
        if let Some(key) = id.key() {
            return Some(self.get::<A>(&**key));
        }
        let place = match id.place_of_birth().filter(|origin| origin.node != self.incarnation()) {
            Some(_) => self.shared().foreign::<A>(id)?,
            None => self.shared().holdings().directory.anonymous(id.place_of_birth()?)?,
        };
        place.into_any().downcast().ok().map(ActorRef::from_place)
    }

    /// The place of an actor that another node means.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn place_of(&self, id: &ActorId) -> Result<Arc<dyn AnyPlace>, AskError> {
        let shared = self.shared();
        if let Some(origin) = id.place_of_birth() {
            let place = if origin.node == self.incarnation() {
                shared.holdings().directory.anonymous(origin)
            } else {
                shared.holdings().foreign.known(id)
            };
            return place.ok_or_else(|| AskError::Stopped(id.clone()));
        }
        let unknown = || {
            let why = format!("this node has no actors called `{}`", id.kind());
            AskError::NotUnderstood(id.clone(), why)
        };
        let kinds = &shared.holdings().kinds;
        let find = kinds.find_of_name(id.kind().as_str()).ok_or_else(unknown)?;
        let key = id.key().ok_or_else(unknown)?;
        Ok(find(self, key))
    }
}

fn deliver_message(
    place: &Arc<dyn AnyPlace>,
    mut message: Message,
    bound: Bound,
) -> Result<(), (Pushed, Message)> {
    // Those nearest to the actor count; what more a node may send is not kept.
    let excess = message.chain.len().saturating_sub(CHAIN_LEN_MAX);
    message.chain.drain(..excess);
    let header = place.header();
    let mut inner = header.mailbox.lock();
    let is_closed = inner.is_closed();
    let arrives = inner.is_elsewhere();
    let is_full = header.mailbox.is_full(&mut inner, header.kind.len_max);
    drop(inner);
    if is_closed {
        header.kind.metrics.count(Counter::Refused);
        refuse(message, AskError::Stopped(header.id()));
        return Ok(());
    }
    if lives_elsewhere(place) {
        return Err((Pushed::Elsewhere, message));
    }
    if is_full && bound == Bound::Counts {
        return Err((Pushed::Full, message));
    }
    if message.reply.is_some()
        && let Some(cycle) = ancestors::cycle(place, &message.chain)
    {
        refuse(message, AskError::Cycle(cycle));
        return Ok(());
    }
    let priority = message.priority;
    let Some(envelope) = open(place, message) else { return Ok(()) };
    let mut envelope = Some(envelope);
    let make = || envelope.take().expect("an envelope is queued once");
    // The bound was looked at: parcels that arrive at the same moment may exceed it by as many as
    // there are.
    let pushed = header.mailbox.push_arrival(arrives, priority, make, |what| wake(place, what));
    if priority != Priority::Normal {
        header.call_attention();
    }
    match (pushed, envelope) {
        (Pushed::Closed, Some(envelope)) => {
            refuse_one(place, envelope, AskError::Stopped(header.id()));
        }
        // It has left since it was looked at.
        (Pushed::Elsewhere, Some(envelope)) => ship_all(place, vec![envelope]),
        _ => {}
    }
    Ok(())
}

/// Whether the actor is neither here nor about to be.
pub(super) fn lives_elsewhere(place: &Arc<dyn AnyPlace>) -> bool {
    let header = place.header();
    if !header.mailbox.lock().is_elsewhere() {
        return false;
    }
    // Its address may have been made before it came here.
    !matches!(header.location(), Some(Location::Here(_) | Location::Arriving(_)))
}

/// Decodes a message; one that cannot be read is refused.
fn open(place: &Arc<dyn AnyPlace>, message: Message) -> Option<Envelope> {
    let header = place.header();
    let Message { name, body, chain, reply, .. } = message;
    let id = header.id();
    let mut wire_reply = reply.map(|reply| -> WireReply {
        let called = Called::from_elsewhere(place.as_any_place(), chain);
        let id = id.clone();
        Box::new(move |outcome| {
            drop(called);
            reply(outcome.map_err(|why| why.unwrap_or(AskError::NoReply(id))));
        })
    });
    let decoded = header.kind.codecs().and_then(|codecs| {
        decoding::on(&header.kind.node, || codecs.decode(&name, &body, &mut wire_reply))
    });
    let why = match decoded {
        Some(Ok(envelope)) => return Some(envelope),
        Some(Err(error)) => format!("the message `{name}`: {error}"),
        None => format!("{} takes no message `{name}` from other nodes", id.kind()),
    };
    header.kind.metrics.count(Counter::Refused);
    if let Some(reply) = wire_reply {
        reply(Err(Some(AskError::NotUnderstood(id, why))));
    } else {
        tracing::warn!(actor = %id, why, "a message from another node was dropped");
    }
    None
}

fn refuse(message: Message, why: AskError) {
    if let Some(reply) = message.reply {
        reply(Err(why));
    }
}
