//! What a kind of actor takes from other nodes: its messages by name, and how they and their
//! replies become bytes.
//!
//! Made once per kind, and only where a cluster is built: actors that stay on their node register
//! nothing. Two messages of one name are a mistake of the program, found here when the kind is
//! registered and not when a message arrives.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::marker::PhantomData;

use crate::actor::Actor;
use crate::address::kind::TypeHasher;
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::reply::ReplyTo;
use crate::wire::codec::{AnyCodecs, Codec, Incoming, WireReply, decoded, encoded};
use crate::wire::{Wire, WireError};

/// An actor that messages from other nodes can reach.
///
/// `#[actor(name = "shop.cart", wire)]` implements it; by hand:
///
/// ```
/// use althing::{Actor, Codecs, Context, Handler, Remote, Wire, Write};
///
/// struct Counter(u64);
///
/// impl Actor for Counter {
///     const NAME: &'static str = "example.counter";
///     const CODECS: Option<fn(&mut Codecs<Self>)> = Some(Self::codecs);
/// }
///
/// #[derive(Wire)]
/// struct Add(u64);
///
/// impl Handler<Add> for Counter {
///     type Reply = u64;
///     async fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// impl Remote for Counter {
///     fn codecs(codecs: &mut Codecs<Self>) {
///         codecs.message::<Add, Write>("add");
///     }
/// }
///
/// let codecs = Codecs::<Counter>::new()?;
/// assert_eq!(codecs.names().collect::<Vec<_>>(), ["add"]);
/// # Ok::<(), althing::NameTwice>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "messages from other nodes cannot reach `{Self}`",
    label = "this actor has no `Remote`",
    note = "add `wire` to its attribute: `#[actor(name = \"…\", wire)]`"
)]
pub trait Remote: Actor {
    /// Registers the messages that other nodes may send.
    fn codecs(codecs: &mut Codecs<Self>);
}

/// The messages of a kind that travel between nodes.
pub struct Codecs<A: Actor> {
    by_name: HashMap<&'static str, Incoming>,
    actor: PhantomData<fn() -> A>,
    /// A `Codec<M, R>` for each message type `M`.
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>, BuildHasherDefault<TypeHasher>>,
    twice: Option<NameTwice>,
}

/// Two messages of one kind that have the same name, or one message that has two.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{actor} registers `{message}` twice")]
pub struct NameTwice {
    /// The actor's name.
    pub actor: &'static str,
    /// The message's name.
    pub message: &'static str,
}

impl<A: Actor> Codecs<A> {
    /// What `A` registers.
    ///
    /// # Errors
    /// It registers a name or a message twice.
    pub fn new() -> Result<Self, NameTwice>
    where
        A: Remote,
    {
        Self::registered(A::codecs)
    }

    /// What `register` registers.
    pub(crate) fn registered(register: fn(&mut Self)) -> Result<Self, NameTwice> {
        let mut codecs = Self {
            by_name: HashMap::new(),
            by_type: HashMap::default(),
            actor: PhantomData,
            twice: None,
        };
        register(&mut codecs);
        codecs.twice.take().map_or(Ok(codecs), Err)
    }

    /// Lets messages of type `M`, which reach their handler by `D`, come from other nodes under
    /// this name.
    pub fn message<M, D>(&mut self, name: &'static str) -> &mut Self
    where
        M: Wire + Send + 'static,
        D: Dispatch<A, M>,
        D::Reply: Wire,
    {
        let by_name = self.by_name.entry(name);
        let by_type = self.by_type.entry(TypeId::of::<M>());
        match (by_name, by_type) {
            (Entry::Vacant(by_name), Entry::Vacant(by_type)) => {
                by_name.insert(incoming::<A, M, D>);
                by_type.insert(Box::new(Codec::<M, D::Reply> {
                    name,
                    encode: M::encode,
                    decode_reply: decoded::<D::Reply>,
                }));
            }
            _ => self.twice = Some(NameTwice { actor: A::NAME, message: name }),
        }
        self
    }

    /// The names of the messages, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }
}

impl<A: Actor> AnyCodecs for Codecs<A> {
    fn decode(
        &self,
        name: &str,
        bytes: &[u8],
        reply: &mut Option<WireReply>,
    ) -> Option<Result<Envelope, WireError>> {
        self.by_name.get(name).map(|incoming| incoming(bytes, reply))
    }

    fn incoming(&self, name: &str) -> Option<Incoming> {
        self.by_name.get(name).copied()
    }

    fn codec(&self, message: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.by_type.get(&message).map(AsRef::as_ref)
    }
}

impl<A: Actor> std::fmt::Debug for Codecs<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

fn incoming<A, M, D>(bytes: &[u8], reply: &mut Option<WireReply>) -> Result<Envelope, WireError>
where
    A: Actor,
    M: Wire + Send + 'static,
    D: Dispatch<A, M>,
    D::Reply: Wire,
{
    let message = decoded::<M>(bytes)?;
    let reply = reply.take().map_or_else(ReplyTo::nowhere, |reply| {
        ReplyTo::forwarding(move |outcome: Result<D::Reply, _>| match outcome {
            Ok(value) => reply(encoded(|bytes| value.encode(bytes)).ok_or(None)),
            Err(why) => reply(Err(why)),
        })
    });
    Ok(Envelope::new::<A, M, D>(message, reply))
}

#[cfg(test)]
mod tests;
