//! What can go wrong, in the caller's words.

use crate::block::ROOMS_MAX;
use crate::log::LogError;
use crate::store::StoreError;

/// Why a read state could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadStatesError {
    /// One user is in too many rooms.
    #[error("user {user} has read states of {ROOMS_MAX} rooms, which is the limit")]
    TooManyRooms {
        /// Who.
        user: u64,
    },
    /// More waits for the store than may be kept in memory; nothing was changed. Try again.
    #[error("{waiting} changes wait for the store, which is the limit")]
    Busy {
        /// How many.
        waiting: usize,
    },
    /// The store did not answer, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has taken the rows over; this one answers for them no more.
    #[error("another process has taken the read states over")]
    TakenOver,
    /// The log cannot be written: what was changed is in memory, and may be lost in a crash before it
    /// is stored. It is tried again every second.
    #[error(transparent)]
    Log(#[from] LogError),
}
