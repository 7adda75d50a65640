//! How an actor is found and sent to: identity, addresses, the directory of a node, and calls on
//! their way.
//!
//! An address is an `Arc` of the actor's place. Nothing here runs a handler.

pub(crate) mod actor_id;
pub(crate) mod actor_ref;
pub(crate) mod call;
pub(crate) mod child;
pub(crate) mod directory;
pub(crate) mod flatten;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod kind;
mod named;
pub(crate) mod parent;
pub(crate) mod place;
pub(crate) mod recipient;
pub(crate) mod refusal;
pub(crate) mod signal;
mod slots;
pub(crate) mod start;
pub(crate) mod storage;
pub(crate) mod tell;
pub(crate) mod tie;
pub(crate) mod typed;
pub(crate) mod watching;
pub(crate) mod weak_ref;
