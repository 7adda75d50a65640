//! What names an actor: its type's wire name, its key if it has one, and which life of it is meant.

use std::fmt;
use std::sync::Arc;

/// The key of a named actor; cheap to clone.
pub type Key = Arc<str>;

/// Identity of one actor: type name, key and a serial number that is unique within the node.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ActorId {
    /// `Actor::NAME` of its type.
    pub name: &'static str,
    /// Key for named actors; `None` for anonymous ones.
    pub key: Option<Key>,
    /// Unique within the node; two lives of one name differ in it only if the first had been forgotten.
    pub serial: u64,
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}/{key}", self.name),
            None => write!(f, "{}#{}", self.name, self.serial),
        }
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
