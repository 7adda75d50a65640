//! Searching messages. What a query may say is in `docs/protocol.md`; the server reads it.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::field::{self, Checked};
use crate::id::{RoomId, Seq, UnixMillis, UserId};
use crate::limits::{HISTORY_PAGE_MAX, SEARCH_CURSOR_CHARS_MAX};

/// Searches the messages of the caller's rooms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Search {
    /// Words to find, and filters.
    pub query: String,
    /// Only in this room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomId>,
    /// Where the page before ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Length of the page; absent: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for Search {
    fn check(&self) -> Result<(), RpcError> {
        field::query("query", &self.query)?;
        field::optional(&self.cursor, |cursor| {
            field::chars("cursor", cursor, 1, SEARCH_CURSOR_CHARS_MAX)
        })?;
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, HISTORY_PAGE_MAX))
    }
}

/// A page of what was found, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SearchHits {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// The cursor of the next page; absent: this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many of the newest changes the index has not looked at yet, so that hits may be missing;
    /// absent: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub behind: u32,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SearchHit {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Its author.
    pub user: UserId,
    /// The author's name to show.
    pub name: String,
    /// The part of its text around the first match.
    pub excerpt: String,
    /// What matched: from and to (not included), in characters (Unicode code points) of `excerpt`,
    /// rising.
    pub highlights: Vec<(u32, u32)>,
    /// When it was sent.
    pub at: UnixMillis,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
