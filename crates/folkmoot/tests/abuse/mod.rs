//! Accounts that act together against one: whatever they do within the limits, the one can still
//! sign in, read and write.

mod direct_messages;
mod silent_sockets;
