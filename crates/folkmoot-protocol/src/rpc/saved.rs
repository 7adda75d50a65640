//! Methods on the messages that a user has saved for later. Nobody else sees them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::MessageView;
use crate::field::{self, Checked};
use crate::id::{RoomId, Seq, UnixMillis};
use crate::limits::HISTORY_PAGE_MAX;

/// Saves a message for later, or takes it off the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageSave {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Whether it is saved.
    pub on: bool,
}

impl Checked for MessageSave {}

/// Asks for the caller's saved messages, those saved last first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SavedList {
    /// Only those behind this place of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Length of the page; absent: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for SavedList {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, HISTORY_PAGE_MAX))
    }
}

/// A page of saved messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SavedPage {
    /// The messages, the one saved last first.
    pub saved: Vec<SavedMessage>,
    /// `after` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// A saved message as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SavedMessage {
    /// The message.
    pub message: MessageView,
    /// When it was saved.
    pub at: UnixMillis,
}

/// Asks which messages the caller has saved, without what they say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SavedMarks {}

impl Checked for SavedMarks {}

/// The numbers of the caller's saved messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SavedNumbers {
    /// By room.
    pub rooms: BTreeMap<RoomId, Vec<Seq>>,
}
