//! A queued message that has to go to another node after all: unpacked, and encoded as a message
//! that travels.

use std::any::type_name;
use std::mem::ManuallyDrop;

use super::{Envelope, Packed, Payload, load};
use crate::actor::Actor;
use crate::address::place::Header;
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;
use crate::mail::mailbox::Priority;
use crate::metrics::Counter;
use crate::remote::{Message, way_back};
use crate::shield::discard;

impl Envelope {
    /// The message as it travels. `None` if nobody waits for it any more, if it is an event or a
    /// tick, or if its type does not travel, which its asker hears.
    pub(crate) fn repack(self, header: &Header) -> Option<Message> {
        let envelope = self.into_innermost();
        let repack = envelope.table.repack?;
        let envelope = ManuallyDrop::new(envelope);
        // SAFETY: the payload is of the table's type and is handed over once.
        unsafe { repack(envelope.payload, header) }
    }
}

/// # Safety
/// `payload` is a `Packed<M, D::Reply>` and is not used again.
pub(super) unsafe fn repack<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    payload: Payload,
    header: &Header,
) -> Option<Message> {
    // SAFETY: the caller's promise.
    let Packed { mut reply, message } = unsafe { load::<Packed<M, D::Reply>>(payload) };
    if reply.is_over() {
        discard("dropping an abandoned message", message);
        return None;
    }
    let Some(codec) = header.kind.codecs::<A>().and_then(|codecs| codecs.of::<M, D::Reply>())
    else {
        header.kind.metrics.count(Counter::Refused);
        discard("dropping a message that does not travel", message);
        reply.fail(AskError::LocalOnly(header.id(), type_name::<M>().to_owned()));
        return None;
    };
    let mut body = Vec::new();
    (codec.encode)(&message, &mut body);
    discard("dropping a message that was encoded", message);
    let reply = reply.is_somewhere().then(|| way_back(header.id(), reply, codec.decode_reply));
    let name = codec.name.to_owned();
    Some(Message { name, body, priority: Priority::Normal, chain: Vec::new(), reply })
}
