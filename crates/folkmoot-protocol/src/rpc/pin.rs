//! Methods on the messages that a room keeps in sight for everybody.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::{MessageView, UserView};
use crate::field::{self, Checked};
use crate::id::{Offset, RoomId, Seq, UnixMillis};
use crate::limits::PINS_PER_ROOM_MAX;

/// Pins a message for everybody in the room, or takes the pin away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessagePin {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Whether it is pinned.
    pub on: bool,
}

impl Checked for MessagePin {}

/// Asks for the pinned messages of a room, those pinned last first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomPins {
    /// The room.
    pub room: RoomId,
    /// Only those pinned before this event of the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Offset>,
    /// Length of the page; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for RoomPins {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, PINS_PER_ROOM_MAX))
    }
}

/// A page of pinned messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct PinsPage {
    /// The messages, the one pinned last first.
    pub pins: Vec<PinnedMessage>,
    /// `after` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Offset>,
}

/// A pinned message as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PinnedMessage {
    /// The message.
    pub message: MessageView,
    /// Who pinned it.
    pub by: UserView,
    /// When it was pinned.
    pub at: UnixMillis,
}
