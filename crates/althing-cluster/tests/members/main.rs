//! Nodes of this process, over real sockets of the loopback interface.

#[path = "../support/mod.rs"]
mod support;

mod candidates;
mod clients;
mod codecs;
mod ends;
mod groups;
mod guests;
mod hostile;
mod labels;
mod letters;
mod moves;
mod outcasts;
mod storm;
mod tls;
mod too_long;
mod topics;
