//! Keys of named actors: any text, or a type of the user's that stands for one.
//!
//! An actor is found by text alone; a typed key is written by `Display` and read back by `FromStr`.
//! What was written for one kind of actor cannot be used for another by mistake: a key type belongs
//! to the kinds that say so.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::actor::Actor;
use crate::address::actor_id::Key;

/// What [`Node::get`](crate::Node::get) finds an actor of type `A` by.
///
/// Every text is a key of every actor. `#[actor(name = "chat.room", key = RoomId)]` makes `RoomId`
/// a key of that actor too:
///
/// ```
/// use std::fmt;
/// use std::num::ParseIntError;
/// use std::str::FromStr;
///
/// use althing::{ActorError, Node, Start, actor};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct RoomId(u64);
///
/// impl fmt::Display for RoomId {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         self.0.fmt(f)
///     }
/// }
///
/// impl FromStr for RoomId {
///     type Err = ParseIntError;
///     fn from_str(text: &str) -> Result<Self, ParseIntError> {
///         text.parse().map(Self)
///     }
/// }
///
/// struct Room(RoomId);
///
/// #[actor(name = "chat.room", key = RoomId)]
/// impl Room {
///     async fn open(start: Start<Self>) -> Result<Self, ActorError> {
///         Ok(Self(start.key_as()?))
///     }
///
///     async fn number(&self) -> u64 {
///         self.0.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("chat").actor(Room::open).build();
/// assert_eq!(node.get::<Room>(RoomId(7)).number().await?, 7);
/// let error = node.get::<Room>("lobby").number().await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "chat.room/lobby could not start: the key `lobby` of chat.room is no RoomId: invalid digit found in string"
/// );
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key of `{A}`",
    label = "not a key of this actor",
    note = "a text is; for a type of its own write `#[actor(name = \"…\", key = {Self})]`"
)]
pub trait ActorKey<A: Actor> {
    /// Lends the key as text.
    fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R;
}

impl<A: Actor, K: ActorKey<A> + ?Sized> ActorKey<A> for &K {
    fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R {
        (**self).with_text(look)
    }
}

macro_rules! text {
    ($($type:ty),*) => {$(
        impl<A: Actor> ActorKey<A> for $type {
            fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R {
                look(self)
            }
        }
    )*};
}

text!(str, String, Box<str>, Arc<str>, Cow<'_, str>);

/// The key that an actor has cannot be read as what it should be.
#[derive(Clone, Debug)]
pub struct KeyError {
    kind: &'static str,
    key: Key,
    wanted: &'static str,
    source: Arc<dyn Error + Send + Sync>,
}

impl KeyError {
    /// The actor's key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, wanted, source } = self;
        let wanted = wanted.rsplit("::").next().unwrap_or(wanted);
        write!(f, "the key `{key}` of {kind} is no {wanted}: {source}")
    }
}

impl Error for KeyError {
    /// Past the error of `FromStr`, whose text is shown already.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// Reads an actor's key as a `K`.
///
/// # Errors
/// It is none.
pub(crate) fn parse<K>(kind: &'static str, key: &str) -> Result<K, KeyError>
where
    K: FromStr<Err: Error + Send + Sync + 'static>,
{
    key.parse().map_err(|source| KeyError {
        kind,
        key: key.into(),
        wanted: std::any::type_name::<K>(),
        source: Arc::new(source),
    })
}
