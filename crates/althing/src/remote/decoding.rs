//! Addresses in messages: an address travels as its actor's identity, and is found again on the
//! node that decodes it.
//!
//! Which node that is stands in a thread-local for as long as a message is decoded.

use std::cell::RefCell;
use std::sync::Arc;

use crate::actor::Actor;
use crate::address::actor_id::ActorId;
use crate::address::actor_ref::ActorRef;
use crate::node::shared::{Node, NodeShared};
use crate::wire::{Depth, Wire, WireError, WireField};

thread_local! {
    static NODE: RefCell<Option<Arc<NodeShared>>> = const { RefCell::new(None) };
}

/// Decodes on behalf of `node`.
pub(super) fn on<R>(node: &Arc<NodeShared>, decode: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<NodeShared>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NODE.set(self.0.take());
        }
    }
    let _restore = Restore(NODE.replace(Some(node.clone())));
    decode()
}

/// As the identity of the actor. It decodes within a message that a node takes, or within
/// [`Node::decode`].
impl<A: Actor> Wire for ActorRef<A> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.id().encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let id = ActorId::decode_within(bytes, depth)?;
        let Some(node) = NODE.with_borrow(Clone::clone) else {
            return Err(WireError::new("an address outside of any node: use `Node::decode`"));
        };
        Node::from_shared(node).resolve(&id).ok_or_else(|| {
            WireError::new(
                "the address of an actor of another kind, or that this node cannot reach",
            )
        })
    }
}

impl<A: Actor> WireField for ActorRef<A> {}

impl Node {
    /// Decodes a value that may hold addresses, which then lead from this node to their actors.
    ///
    /// # Errors
    /// The bytes are no `T`, or an address in it cannot be one of this node.
    pub fn decode<T: Wire>(&self, bytes: &[u8]) -> Result<T, WireError> {
        on(self.shared(), || T::decode(bytes))
    }
}
