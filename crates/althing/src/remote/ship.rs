//! The way out: a message for an actor that lives elsewhere becomes a parcel.
//!
//! Nothing is encoded before there is room on the way, so a refused message goes back to its sender
//! as it was.

use std::any::type_name;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::activation::turn::{self, Effect};
use crate::actor::Actor;
use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, AsAnyPlace};
use crate::address::typed::Place;
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;
use crate::mail::priority::Priority;
use crate::mail::reply::ReplyTo;
use crate::node::shared::NodeShared;
use crate::remote::parcel::{Cargo, Message, Parcel, Reply};
use crate::remote::told::{Taken, Told};
use crate::remote::{ancestors, decoding};
use crate::shield::shielded;
use crate::wire::WireError;

/// What became of a message for another node.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shipped {
    /// It is on its way.
    Sent,
    /// The way is crowded. If there is a waker, it is called when it is worth another look.
    NoRoom,
    /// Messages of its type do not travel.
    LocalOnly,
    /// This one is too long; of tells only.
    TooLong,
}

/// How a message is sent.
#[derive(Clone, Copy)]
struct Manner<'a> {
    priority: Priority,
    waker: &'a Waker,
    is_tell: bool,
}

/// Tells an actor that lives elsewhere; unless it is sent, the message stays where it is.
pub(crate) fn ship_tell<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: &mut Option<M>,
    priority: Priority,
    waker: &Waker,
) -> Shipped {
    if turn::is_held() {
        if turn::is_full() {
            return Shipped::NoRoom;
        }
    } else if priority == Priority::Normal
        && let Some(shipped) = ship_shortly::<A, M, D>(place, message, waker)
    {
        return shipped;
    }
    let manner = Manner { priority, waker, is_tell: true };
    ship::<A, M, D>(place, message, manner, |_| (None, Vec::new()))
}

/// Tells by the cluster's short way; `None` if the message has to become a parcel.
fn ship_shortly<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: &mut Option<M>,
    waker: &Waker,
) -> Option<Shipped> {
    let header = place.header();
    let kind = &header.kind;
    let codec = kind.codecs()?.of::<M, D::Reply>()?;
    let cluster = kind.node.cluster.as_ref()?;
    let encode = |body: &mut Vec<u8>| {
        (codec.encode)(message.as_ref().expect("a message is shipped once"), body);
    };
    let to = || header.id();
    let taken = Told::with((header.serial(), &to), codec.name, encode, |told| {
        cluster.tell(told, &mut Context::from_waker(waker))
    })?;
    match taken {
        Taken::Sent => {
            *message = None;
            Some(Shipped::Sent)
        }
        Taken::NoRoom => Some(Shipped::NoRoom),
        Taken::AsParcelOnly => None,
    }
}

/// Asks an actor that lives elsewhere; unless it is sent, message and reply stay where they are.
pub(crate) fn ship_ask<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: &mut Option<M>,
    reply: &mut Option<ReplyTo<D::Reply>>,
    priority: Priority,
    waker: &Waker,
) -> Shipped {
    let manner = Manner { priority, waker, is_tell: false };
    ship::<A, M, D>(place, message, manner, |decode| {
        let reply = reply.take().expect("an ask is shipped once");
        reply.begin();
        let header = place.header();
        (Some(way_back(&header.kind.node, header.id(), reply, decode)), ancestors::of_current())
    })
}

type DecodeReply<R> = fn(&[u8]) -> Result<R, WireError>;

fn ship<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: &mut Option<M>,
    Manner { priority, waker, is_tell }: Manner<'_>,
    answer: impl FnOnce(DecodeReply<D::Reply>) -> (Option<Reply>, Vec<ActorId>),
) -> Shipped {
    let header = place.header();
    let kind = &header.kind;
    let Some(codec) = kind.codecs().and_then(|codecs| codecs.of::<M, D::Reply>()) else {
        return Shipped::LocalOnly;
    };
    let Some(cluster) = &kind.node.cluster else { return Shipped::LocalOnly };
    let to = header.id();
    if cluster.poll_room(&to, &mut Context::from_waker(waker)).is_pending() {
        return Shipped::NoRoom;
    }
    let mut body = Vec::new();
    (codec.encode)(message.as_ref().expect("a message is shipped once"), &mut body);
    if is_tell && body.len() > cluster.longest(&to) {
        return Shipped::TooLong;
    }
    drop(message.take());
    let (reply, chain) = answer(codec.decode_reply);
    let message = Message { name: codec.name.to_owned(), body, priority, chain, reply };
    let parcel = Parcel { to, node: None, cargo: Cargo::Message(message) };
    if is_tell && turn::is_held() {
        turn::keep(Effect::Ship(place.as_any_place(), parcel));
    } else {
        cluster.send(parcel);
    }
    Shipped::Sent
}

/// Takes the encoded reply back to the asker's slot. Addresses in it are found on the asker's node.
pub(crate) fn way_back<R: Send + 'static>(
    node: &Arc<NodeShared>,
    from: ActorId,
    mut reply: ReplyTo<R>,
    decode: DecodeReply<R>,
) -> Reply {
    // The way to other nodes, which the node keeps, keeps this.
    let node = Arc::downgrade(node);
    let decode = move |bytes: Vec<u8>| match node.upgrade() {
        Some(node) => decoding::on(&node, || decode(&bytes)),
        None => decode(&bytes),
    };
    Box::new(move |outcome| match outcome.map(decode) {
        // If nobody waits any more, it is dropped.
        Ok(Ok(value)) => _ = shielded("a reply", || reply.complete(value)),
        Ok(Err(error)) => reply.fail(AskError::NotUnderstood(from, format!("the reply: {error}"))),
        Err(why) => reply.fail(why),
    })
}

/// The error of an ask whose message does not travel.
pub(crate) fn local_only<M>(id: ActorId) -> AskError {
    AskError::LocalOnly(id, type_name::<M>().to_owned())
}
