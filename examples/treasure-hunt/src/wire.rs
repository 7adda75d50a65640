//! Frames between client and server: binary, little endian, several in one WebSocket message.
//!
//! `command` is what clients send, `notice` what they get. Each frame begins with a byte that names
//! its kind; none carries a length, so an unknown kind ends the reading of a message.
//! `page/wire.js` is the same in JavaScript.

mod command;
mod fields;
mod notice;

pub use command::{Command, NAME_LEN_MAX, NEAR_ANYWHERE};
pub use fields::Malformed;
pub use notice::{Change, Hints, Joined, Notice, Outcome, write_snapshot, write_view};
