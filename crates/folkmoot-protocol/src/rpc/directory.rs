//! Methods on the directory: which rooms there are for everybody on the server, and who may come in.
//! A hidden room is not in it; whoever is no member learns of one only by an invite.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::{ListedRoom, RoomAccess};
use crate::field::{self, Checked};
use crate::id::RoomId;
use crate::limits::{DISPLAY_NAME_CHARS_MAX, ROOM_NAME_CHARS_MAX, ROOMS_PAGE_MAX};

/// Asks for a page of the rooms that are listed for everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomsBrowse {
    /// Only those that have all these words in name or topic, without case and accents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ListedCursor>,
    /// Length of the page; absent: 100, the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for RoomsBrowse {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.search, |text| {
            field::chars("search", text, 1, DISPLAY_NAME_CHARS_MAX)
        })?;
        field::optional(&self.after, |after| {
            field::chars("after", &after.name, 0, ROOM_NAME_CHARS_MAX)
        })?;
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, ROOMS_PAGE_MAX))
    }
}

/// A place among the listed rooms. It stays one when the room it names is renamed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ListedCursor {
    /// The room's name.
    pub name: String,
    /// The room.
    pub id: RoomId,
}

/// Listed rooms, by name. A page of a search may be short, or empty, though there are more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct ListedRooms {
    /// The rooms.
    pub rooms: Vec<ListedRoom>,
    /// There may be more, after this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ListedCursor>,
}

/// Makes the caller a member of an open room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomJoin {
    /// The room.
    pub room: RoomId,
}

impl Checked for RoomJoin {}

/// Asks who may find a room and come in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomAccessGet {
    /// The room.
    pub room: RoomId,
}

impl Checked for RoomAccessGet {}

/// Says who may find a room and come in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomAccessSet {
    /// The room.
    pub room: RoomId,
    /// From now on.
    pub access: RoomAccess,
}

impl Checked for RoomAccessSet {}

/// Who may find a room and come in, as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomAccessView {
    /// How it is.
    pub access: RoomAccess,
}
