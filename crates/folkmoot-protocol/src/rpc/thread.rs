//! The method on what grew out of one message.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::MessageView;
use crate::field::{self, Checked};
use crate::id::{RoomId, Seq};
use crate::limits::HISTORY_PAGE_MAX;

/// Asks for a message and all that answers it, directly or by way of other answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageThread {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Only newer ones than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// Length of the page; absent: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for MessageThread {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, HISTORY_PAGE_MAX))
    }
}

/// A page of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct ThreadPage {
    /// The messages, oldest first; the first of the first page is the one that was asked for.
    pub messages: Vec<MessageView>,
    /// `after` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Seq>,
}
