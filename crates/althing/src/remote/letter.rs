//! A message that is kept as bytes and sent later: what a durable actor has stored for others.
//!
//! A letter is on its way to nowhere yet. Whoever keeps it decides when it is sent, and how often;
//! to its actor it is an ask like any other.

use std::future::poll_fn;

use super::Undelivered;
use super::cluster::Location;
use super::parcel::{Cargo, Message, Parcel, Reply};
use crate::actor::Actor;
use crate::address::actor_id::ActorId;
use crate::address::call::Call;
use crate::address::place::AnyPlace;
use crate::error::{AskError, SendError};
use crate::mail::dispatch::Dispatch;
use crate::mail::priority::Priority;
use crate::mail::reply::channel;
use crate::node::shared::Node;

/// A message to a named actor, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The actor.
    pub to: ActorId,
    /// The message's name among those of the actor's kind.
    pub message: String,
    /// The message, by its `Wire`.
    pub body: Vec<u8>,
}

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Call<'_, A, M, D> {
    /// Writes the message down instead of sending it; [`Node::ask_letter`] sends it.
    ///
    /// # Errors
    /// `LocalOnly` hands the message back: messages of its type do not travel, or the actor has no
    /// key by which it could be found later.
    pub fn into_letter(self) -> Result<Letter, SendError<M>> {
        let (target, message, _) = self.into_unsent();
        let (kind, to) = (&target.place().header().kind, target.id());
        let codec = kind.codecs().and_then(|codecs| codecs.of::<M, D::Reply>());
        let Some(codec) = codec.filter(|_| to.key().is_some()) else {
            return Err(SendError::LocalOnly(message));
        };
        let mut body = Vec::new();
        (codec.encode)(&message, &mut body);
        Ok(Letter { to, message: codec.name.to_owned(), body })
    }
}

impl Node {
    /// Whether the actor lives on this node, as far as its cluster knows; without a cluster, all
    /// do.
    pub fn is_home_of(&self, id: &ActorId) -> bool {
        let Some(cluster) = &self.shared().cluster else { return true };
        matches!(cluster.locate(id), Location::Here(_) | Location::Arriving(_))
    }

    /// Bytes of the longest letter that goes to that actor now: without a limit on this node, and
    /// otherwise as long as its node reads.
    pub fn longest_letter_now(&self, to: &ActorId) -> usize {
        match &self.shared().cluster {
            Some(cluster) if !self.is_home_of(to) => cluster.longest(to),
            _ => usize::MAX,
        }
    }

    /// Bytes of the longest letter that goes to that actor wherever it comes to live, as far as is
    /// known now. Who keeps letters keeps none that is longer.
    pub fn longest_letter(&self, to: &ActorId) -> usize {
        self.shared().cluster.as_ref().map_or(usize::MAX, |cluster| cluster.longest_anywhere(to))
    }

    /// Sends a letter to its actor, wherever that lives, and waits for the encoded reply. It waits
    /// for room in the mailbox, and has no deadline of its own.
    ///
    /// # Errors
    /// As of an ask. `NotUnderstood` if the kind or the message is not known there.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not take the message back.
    pub async fn ask_letter(&self, letter: Letter) -> Result<Vec<u8>, AskError> {
        let Letter { to, message: name, body } = letter;
        let (mut slot, receiver) = channel::<Vec<u8>>();
        let reply: Reply = Box::new(move |outcome| match outcome {
            Ok(bytes) => slot.complete(bytes),
            Err(why) => slot.fail(why),
        });
        let (priority, chain) = (Priority::Normal, Vec::new());
        let message = Message { name, body, priority, chain, reply: Some(reply) };
        let mut parcel = Parcel { to: to.clone(), node: None, cargo: Cargo::Message(message) };
        loop {
            let elsewhere = if self.is_home_of(&to) {
                match self.deliver(parcel) {
                    Ok(()) => break,
                    Err(Undelivered::Full(back)) => {
                        parcel = *back;
                        self.room_for(&to).await;
                        continue;
                    }
                    Err(Undelivered::Elsewhere(back)) => *back,
                }
            } else {
                parcel
            };
            let Some(cluster) = &self.shared().cluster else {
                return Err(AskError::Stopped(to));
            };
            poll_fn(|cx| cluster.poll_room(&to, cx)).await;
            cluster.send(elsewhere);
            break;
        }
        let settled = poll_fn(|cx| receiver.poll(cx.waker())).await;
        settled.map_err(|why| why.unwrap_or(AskError::NoReply(to)))
    }
}
