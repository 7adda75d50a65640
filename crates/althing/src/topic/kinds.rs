//! The types of events that may leave their node, by type and by the name that other nodes use.
//!
//! What is not registered stays on its node, as it does without a cluster.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use crate::wire::codec::decoded;
use crate::wire::{Wire, WireError};

/// How events of a type become bytes, and events again.
pub(crate) struct EventCodec<T> {
    pub(crate) name: &'static str,
    pub(crate) encode: fn(&T, &mut Vec<u8>),
    pub(crate) decode: fn(&[u8]) -> Result<T, WireError>,
}

/// Two types of events are registered under one name, or one under two.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the event `{name}` is registered twice: for {first} and for {second}")]
pub struct EventTwice {
    /// The name, as registered last.
    pub name: &'static str,
    /// The type that was registered first.
    pub first: &'static str,
    /// The other one.
    pub second: &'static str,
}

/// The types of events of a node that may leave it.
#[derive(Default)]
pub(crate) struct EventKinds {
    by_name: HashMap<&'static str, (TypeId, &'static str)>,
    /// An `EventCodec<T>` for each type `T`.
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl EventKinds {
    /// Registers a type under a name of its own.
    pub(crate) fn add<T: Wire + Send + Sync + 'static>(
        &mut self,
        name: &'static str,
    ) -> Result<(), EventTwice> {
        let second = type_name::<T>();
        let type_id = TypeId::of::<T>();
        if let Some((_, first)) = self.by_name.get(name) {
            return Err(EventTwice { name, first, second });
        }
        if self.by_type.contains_key(&type_id) {
            return Err(EventTwice { name, first: second, second });
        }
        let codec = EventCodec::<T> { name, encode: T::encode, decode: decoded::<T> };
        self.by_name.insert(name, (type_id, second));
        self.by_type.insert(type_id, Box::new(codec));
        Ok(())
    }

    /// The type of that name.
    pub(crate) fn type_of(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).map(|(type_id, _)| *type_id)
    }

    /// How events of type `T` travel; `None` if they do not.
    pub(crate) fn codec<T: 'static>(&self) -> Option<EventCodec<T>> {
        let codec = self.by_type.get(&TypeId::of::<T>())?.downcast_ref::<EventCodec<T>>()?;
        Some(EventCodec { name: codec.name, encode: codec.encode, decode: codec.decode })
    }
}
