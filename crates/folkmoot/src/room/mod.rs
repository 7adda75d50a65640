//! Rooms: `state` and `rules` are pure and decide, `actor` puts commands in order, `settle`
//! completes them once they are durable.

mod actor;
mod asked;
pub(crate) mod command;
#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod disk_tests;
pub(crate) mod idempotency;
mod idle;
pub(crate) mod load;
pub(crate) mod mentions;
mod online;
pub(crate) mod people;
mod presence;
mod recent;
mod rules;
mod settle;
mod shown;
pub(crate) mod state;
mod uploads;
pub(crate) mod view;
mod waiting;
mod watchers;

pub(crate) use actor::{Room, RoomCalls};
pub(crate) use asked::{Answer, AskedRoom};
pub(crate) use command::{Archivist, Command, Refusal, Request};
pub(crate) use online::OnlineClient;
pub(crate) use presence::Screen;
pub(crate) use state::Kind;

use althing::Wire;
use folkmoot_protocol::limits::PRESENCE_CLIENTS_MAX;

use crate::storage::{AppendError, ControlError, ReadError};

/// Publications kept in memory for clients that reconnect; a minute of a busy room.
const TAIL_LEN: usize = 256;
/// Publications that are loaded with a room, so that loading costs little; a screen full.
const TAIL_LOADED: usize = 32;

/// Looks whether the room is still needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckIdle;

/// Why a room did not do what it was asked.
#[derive(Debug, thiserror::Error, Wire)]
pub(crate) enum RoomError {
    #[error("no such room")]
    NoSuchRoom,
    /// The rules forbid it; nothing changed.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// Too much is under way to the disk, or just this; nothing changed, retry.
    #[error("the room has too much on its way to the disk; try again in a moment")]
    Busy,
    /// Only a connection that is subscribed to the room is told who is there.
    #[error("not subscribed to this room")]
    NotSubscribed,
    /// Too many connections look at the room to be named in one answer.
    #[error(
        "more than {PRESENCE_CLIENTS_MAX} connections look at this room; `presence_stats` counts \
         them, and `room.members` tells page by page who is online"
    )]
    Crowded,
    /// Nothing was acknowledged; a retry is safe under the same key.
    #[error("{0}")]
    Append(#[source] AppendError),
    /// Nothing changed.
    #[error("{0}")]
    Control(#[source] ControlError),
    #[error("{0}")]
    Read(#[source] ReadError),
}
