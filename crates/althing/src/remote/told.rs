//! A tell on its way out, encoded and not yet a parcel.
//!
//! Most of what travels are tells, and most of them go to an actor that was told something a moment
//! ago. A cluster that remembers the way needs no identity, no name and no memory of their own for
//! each of them; it looks at what is lent here.

use std::cell::Cell;

use crate::address::actor_id::ActorId;

/// Longest body that goes the short way: what is longer is not made faster by it.
const BODY_LEN_MAX: usize = 16 << 10;

thread_local! {
    /// What was encoded last on this thread; its memory is used again.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Makes the identity of the actor, for those that need it.
type ToActor<'a> = &'a (dyn Fn() -> ActorId + 'a);

/// A tell of normal priority on its way to another node.
pub struct Told<'a> {
    address: u64,
    to: ToActor<'a>,
    /// Its name among the messages of the actor's kind.
    pub message: &'static str,
    /// The message, by its `Wire`.
    pub body: &'a [u8],
}

/// What became of a tell that was given to [`Cluster::tell`](super::Cluster::tell).
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is on its way.
    Sent,
    /// The way is crowded; the caller is woken when it is worth another look.
    NoRoom,
    /// It goes as a parcel.
    AsParcelOnly,
}

impl<'a> Told<'a> {
    /// Encodes a message and lends it to `look`; `None` if it is too long for the short way.
    pub(super) fn with<R>(
        (address, to): (u64, ToActor<'a>),
        message: &'static str,
        encode: impl FnOnce(&mut Vec<u8>),
        look: impl FnOnce(&Told<'_>) -> R,
    ) -> Option<R> {
        let mut scratch = SCRATCH.take();
        scratch.clear();
        encode(&mut scratch);
        let is_short = scratch.len() <= BODY_LEN_MAX;
        let seen = is_short.then(|| look(&Told { address, to, message, body: &scratch }));
        if scratch.capacity() <= 2 * BODY_LEN_MAX {
            SCRATCH.set(scratch);
        }
        seen
    }

    /// Stands for the address that is told, for as long as its node lives; no other address of the
    /// node has the same, though several may lead to one actor.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The actor.
    pub fn to(&self) -> ActorId {
        (self.to)()
    }
}

impl std::fmt::Debug for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told")
            .field("to", &self.to())
            .field("message", &self.message)
            .field("bytes", &self.body.len())
            .finish()
    }
}
