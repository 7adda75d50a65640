//! What names an actor in a cluster: its kind, and its key or, for an anonymous one, where it was
//! started.
//!
//! An identity outlives each life of its actor and means the same on every node, so it can be
//! stored and sent. Which life of it runs, where, and in which epoch, is an [`Activation`].

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::epoch::Epoch;
use crate::wire::{Depth, Wire, WireError, WireField};

/// The key of a named actor; cheap to clone.
pub type Key = Arc<str>;

/// The name of a kind of actors, [`Actor::NAME`](crate::Actor::NAME); cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindName(Arc<str>);

/// One life of a node: a number drawn when it was built. A node that starts again is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// Identity of an actor in the whole cluster.
///
/// Named actors are equal by kind and key, whichever life or node is meant. Anonymous ones are
/// named by the node that started them.
///
/// ```
/// use althing::{ActorId, Wire};
///
/// let id = ActorId::named("shop.cart", "alice");
/// assert_eq!(id.to_string(), "shop.cart/alice");
/// assert_eq!(*id.kind(), "shop.cart");
/// assert_eq!(id.key().map(|key| &**key), Some("alice"));
/// let mut bytes = Vec::new();
/// id.encode(&mut bytes);
/// assert_eq!(ActorId::decode(&bytes), Ok(id));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    kind: KindName,
    who: Who,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Who {
    Named(Key),
    Anonymous(Origin),
}

/// Where an anonymous actor was started, and which of that node's it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    pub(crate) node: Incarnation,
    pub(crate) serial: u64,
    /// Where that node's directory keeps it.
    pub(crate) slot: u32,
}

/// One life of an actor: who, on which node, and under which fencing token.
///
/// Storage that checks the epoch refuses what an older activation writes; see [`Epoch`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Activation {
    /// Who it is.
    pub id: ActorId,
    /// The node that runs it.
    pub node: Incarnation,
    /// The epoch in which that node owns the actor; 0 where there is no cluster.
    pub epoch: Epoch,
}

impl Incarnation {
    /// The first serial number that the node gives out. Random, like the incarnation, so that those
    /// of several nodes do not meet; with room above it for all that a node will ever give out.
    pub(crate) fn first_serial(self) -> u64 {
        (self.0 >> 1) + 1
    }
}

impl Origin {
    /// The place's own serial number on its node.
    pub(crate) fn absolute(self) -> u64 {
        self.node.first_serial().wrapping_add(self.serial).wrapping_sub(1)
    }

    /// What stands in for a key in the place of another node's anonymous actor.
    pub(crate) fn to_key(self) -> Key {
        format!("{}.{}", self.serial, self.slot).into()
    }

    /// Reads it back.
    pub(crate) fn of_key(key: &str, node: Incarnation) -> Self {
        let (serial, slot) = key.split_once('.').unwrap_or((key, "0"));
        Self { node, serial: serial.parse().unwrap_or(0), slot: slot.parse().unwrap_or(0) }
    }
}

impl KindName {
    /// A name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ActorId {
    /// Identity of a named actor.
    pub fn named(kind: &str, key: impl Into<Key>) -> Self {
        Self { kind: KindName::new(kind), who: Who::Named(key.into()) }
    }

    pub(crate) fn of_key(kind: KindName, key: Key) -> Self {
        Self { kind, who: Who::Named(key) }
    }

    pub(crate) fn anonymous(kind: KindName, origin: Origin) -> Self {
        Self { kind, who: Who::Anonymous(origin) }
    }

    /// Name of its kind, [`Actor::NAME`](crate::Actor::NAME).
    pub fn kind(&self) -> &KindName {
        &self.kind
    }

    /// Key of a named actor; `None` for an anonymous one.
    pub fn key(&self) -> Option<&Key> {
        match &self.who {
            Who::Named(key) => Some(key),
            Who::Anonymous(_) => None,
        }
    }

    /// The node that started an anonymous actor, and the number it has there.
    pub fn origin(&self) -> Option<(Incarnation, u64)> {
        self.place_of_birth().map(|origin| (origin.node, origin.serial))
    }

    pub(crate) fn place_of_birth(&self) -> Option<Origin> {
        match &self.who {
            Who::Named(_) => None,
            Who::Anonymous(origin) => Some(*origin),
        }
    }
}

/// No name; no kind of actors has it.
impl Default for KindName {
    fn default() -> Self {
        Self::new("")
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for KindName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for KindName {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for KindName {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Named(key) => write!(f, "{}/{key}", self.kind),
            Who::Anonymous(origin) => write!(f, "{}#{}", self.kind, origin.serial),
        }
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As it travels: `message ActorId { string kind = 1; optional string key = 2; uint64 node = 3;
/// uint64 serial = 4; uint32 slot = 5; }`. An identity without a key is an anonymous one.
#[derive(althing_macros::Wire)]
#[wire(crate = crate)]
struct OnWire {
    kind: Arc<str>,
    key: Option<Arc<str>>,
    node: u64,
    serial: u64,
    slot: u32,
}

impl Wire for ActorId {
    fn encode(&self, out: &mut Vec<u8>) {
        let origin = self.place_of_birth();
        OnWire {
            kind: self.kind.0.clone(),
            key: self.key().cloned(),
            node: origin.map_or(0, |origin| origin.node.0),
            serial: origin.map_or(0, |origin| origin.serial),
            slot: origin.map_or(0, |origin| origin.slot),
        }
        .encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let OnWire { kind, key, node, serial, slot } = OnWire::decode_within(bytes, depth)?;
        let who = key.map_or_else(
            || Who::Anonymous(Origin { node: Incarnation(node), serial, slot }),
            Who::Named,
        );
        Ok(Self { kind: KindName(kind), who })
    }
}

impl WireField for ActorId {}
