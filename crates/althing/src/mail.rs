//! What an actor is sent, and in which order it gets it: envelopes, the mailbox with its claim,
//! lanes, the line for room, replies.

pub(crate) mod access;
pub(crate) mod awaited;
pub(crate) mod batch;
pub(crate) mod buffers;
pub(crate) mod claim;
pub(crate) mod deadline;
pub(crate) mod dispatch;
pub(crate) mod envelope;
pub(crate) mod extras;
pub(crate) mod forward;
pub(crate) mod in_place;
pub(crate) mod lane;
pub(crate) mod line;
pub(crate) mod mailbox;
pub(crate) mod outbox;
pub(crate) mod priority;
mod queue;
pub(crate) mod quick;
pub(crate) mod reply;
