//! Bodies of the HTTP interface by which administrators say how long messages are kept.

use serde::{Deserialize, Serialize};

use crate::field::{self, Checked};
use crate::id::RoomId;
use crate::rpc::RpcError;

/// How long messages are kept, without a limit for ever: what is beyond either limit is deleted for
/// good. Body of `PUT /api/v1/admin/retention` and of `PUT /api/v1/admin/rooms/{id}/retention`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RetentionRule {
    /// Days after which a message goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// How many of the newest messages of a room stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u32>,
}

impl Checked for RetentionRule {
    fn check(&self) -> Result<(), RpcError> {
        let limits = [("days", &self.days), ("messages", &self.messages)];
        limits.into_iter().try_for_each(|(name, limit)| {
            field::optional(limit, |limit| field::between(name, *limit, 1, u32::MAX))
        })
    }
}

/// A room with a rule of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomRetentionRule {
    /// Which.
    pub room: RoomId,
    /// Its name; empty for a direct conversation.
    pub name: String,
    /// What holds there.
    pub rule: RetentionRule,
}

/// Answer of `GET /api/v1/admin/retention`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RetentionRules {
    /// What holds in every room that has no rule of its own.
    pub server: RetentionRule,
    /// Those that have one.
    pub rooms: Vec<RoomRetentionRule>,
}
