//! Users: `state` is pure and decides, `actor` owns the user's stream and devices.

mod actor;
mod cursors;
mod idle;
pub(crate) mod load;
mod mentions;
mod news;
mod settle;
pub(crate) mod state;
mod view;

pub(crate) use actor::{Attachment, User, UserCalls, user_messages};
pub(crate) use view::{room_view, room_view_of};

use crate::storage::{AppendError, ControlError, ReadError};
use althing::Wire;

/// Publications kept in memory for devices that reconnect.
const TAIL_LEN: usize = 64;

/// Looks whether the user is still needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckIdle;

/// Why a user's actor did not do what it was asked.
#[derive(Debug, thiserror::Error, Wire)]
pub(crate) enum UserError {
    #[error("no such user")]
    NoSuchUser,
    #[error("you are not a member of this room")]
    NotMember,
    /// So many are the most; nothing changed.
    #[error("you have {0} connections, and no more are taken; close one")]
    TooManyConnections(usize),
    /// Nothing was acknowledged; a retry is safe.
    #[error("{0}")]
    Append(#[source] AppendError),
    #[error("{0}")]
    Read(#[source] ReadError),
    #[error("{0}")]
    Control(#[source] ControlError),
    /// A retry is safe.
    #[error("the room does not answer")]
    RoomAway,
}
