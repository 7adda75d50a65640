//! A message and its reply slot, as an envelope holds them; and how they are unpacked again to go
//! to another node after all, encoded as a message that travels.

use std::any::type_name;

use crate::actor::Actor;
use crate::address::place::Header;
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::{HeaderPtr, Payload, load};
use crate::mail::priority::Priority;
use crate::mail::reply::ReplyTo;
use crate::metrics::Counter;
use crate::remote::parcel::Message;
use crate::remote::ship::way_back;
use crate::shield::discard;
use crate::wire::codec::encoded;

/// A message and where its reply goes.
pub(super) struct Packed<M, R> {
    pub(super) reply: ReplyTo<R>,
    pub(super) message: M,
}

/// # Safety
/// `payload` is a `Packed<M, D::Reply>` and is not used again; `header` points to the header of the
/// actor's place.
pub(super) unsafe fn repack<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    payload: Payload,
    header: HeaderPtr,
) -> Option<Message> {
    // SAFETY: the caller's promise.
    let header = unsafe { &*header.cast::<Header>() };
    // SAFETY: the caller's promise.
    let Packed { mut reply, message } = unsafe { load::<Packed<M, D::Reply>>(payload) };
    if !reply.begin() {
        discard("dropping an abandoned message", message);
        return None;
    }
    let Some(codec) = header.kind.codecs().and_then(|codecs| codecs.of::<M, D::Reply>()) else {
        header.kind.metrics.count(Counter::Refused);
        discard("dropping a message that does not travel", message);
        reply.fail(AskError::LocalOnly(header.id(), type_name::<M>().to_owned()));
        return None;
    };
    let body = encoded(|body| (codec.encode)(&message, body));
    discard("dropping a message that was encoded", message);
    let Some(body) = body else {
        header.kind.metrics.count(Counter::Refused);
        let why = format!("the message `{}`: its own encoding panicked", codec.name);
        reply.fail(AskError::NotUnderstood(header.id(), why));
        return None;
    };
    let reply = reply
        .is_somewhere()
        .then(|| way_back(&header.kind.node, header.id(), reply, codec.decode_reply));
    let name = codec.name.to_owned();
    Some(Message { name, body, priority: Priority::Normal, chain: Vec::new(), reply })
}
