//! Many tells for one actor at once: the actor, its mailbox and the message are found once for all
//! of them.
//!
//! What an inlet does not take is delivered one by one by [`Node::deliver`], which knows each reason
//! why something cannot be.

use std::sync::Arc;

use super::decoding;
use super::deliver::lives_elsewhere;
use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, wake};
use crate::mail::buffers::{give_buffer, take_buffer};
use crate::mail::mailbox::Pushed;
use crate::node::shared::Node;
use crate::shield::discard_all;
use crate::wire::codec::Incoming;

/// Where tells of one name go in at one actor of this node. It keeps the address alive, as a
/// reference does.
pub struct Inlet {
    place: Arc<dyn AnyPlace>,
    decode: Incoming,
}

impl Node {
    /// Where tells of that name go in; `None` if there is no such actor or message.
    pub fn inlet(&self, to: &ActorId, message: &str) -> Option<Inlet> {
        let place = self.place_of(to).ok()?;
        let decode = place.header().kind.codecs()?.incoming(message)?;
        Some(Inlet { place, decode })
    }
}

impl Inlet {
    /// Puts tells of normal priority into the mailbox, in their order, up to the first that cannot be
    /// read or has no room; returns how many those are.
    pub fn tell<'b>(&self, bodies: impl Iterator<Item = &'b [u8]>) -> usize {
        let header = self.place.header();
        let mut inner = header.mailbox.lock();
        let (is_closed, arrives) = (inner.is_closed(), inner.is_elsewhere());
        let room = header.mailbox.room(&mut inner, header.kind.len_max);
        drop(inner);
        if is_closed || room == 0 || (arrives && lives_elsewhere(&self.place)) {
            return 0;
        }
        // Decoded before the mailbox is locked: that is foreign code.
        let mut envelopes = take_buffer();
        decoding::on(&header.kind.node, || {
            for body in bodies.take(room) {
                let Ok(envelope) = (self.decode)(body, &mut None) else { break };
                envelopes.push(envelope);
            }
        });
        let count = envelopes.len();
        let pushed =
            header.mailbox.push_arrivals(arrives, &mut envelopes, |what| wake(&self.place, what));
        let taken = match pushed {
            Pushed::Queued => count,
            Pushed::Closed | Pushed::Elsewhere | Pushed::Full => 0,
        };
        discard_all("dropping tells that come one by one", envelopes.drain(..));
        give_buffer(envelopes);
        taken
    }
}

impl std::fmt::Debug for Inlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlet").field("to", &self.place.header().id()).finish_non_exhaustive()
    }
}
