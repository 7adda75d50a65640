//! Methods on invites: links by which strangers become members.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::InviteView;
use crate::field::{self, Checked};
use crate::id::{RoomId, UnixMillis};
use crate::limits::{INVITE_EXPIRES_IN_S_MAX, INVITES_PAGE_MAX};

/// Makes an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct InviteCreate {
    /// The room.
    pub room: RoomId,
    /// Seconds until it ends; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u32>,
    /// How often it may be accepted; absent: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
}

impl Checked for InviteCreate {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.expires_in_s, |seconds| {
            field::between("expires_in_s", *seconds, 1, INVITE_EXPIRES_IN_S_MAX)
        })?;
        field::optional(&self.uses_max, |uses| field::between("uses_max", *uses, 1, u32::MAX))
    }
}

/// The invite that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct InviteCreated {
    /// What to put into the link.
    pub code: String,
    /// The room.
    pub room: RoomId,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// How often it may be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
}

/// Asks for a page of a room's invites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct InviteList {
    /// The room.
    pub room: RoomId,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<InviteCursor>,
    /// Length of the page; absent: 100, the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for InviteList {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, INVITES_PAGE_MAX))?;
        field::optional(&self.after, |after| field::invite_code("after", &after.code))
    }
}

/// A place among a room's invites. It stays one when the invite it names is revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct InviteCursor {
    /// When the invite was made.
    pub created_at: UnixMillis,
    /// Its code.
    pub code: String,
}

/// Invites of a room, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct InvitesPage {
    /// The invites.
    pub invites: Vec<InviteView>,
    /// There are more, after this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<InviteCursor>,
}

macro_rules! by_code {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
        pub struct $name {
            /// The invite's code.
            pub code: String,
        }

        impl Checked for $name {
            fn check(&self) -> Result<(), RpcError> {
                field::invite_code("code", &self.code)
            }
        }
    )*};
}

by_code! {
    /// Ends an invite.
    InviteRevoke;
    /// Asks where an invite leads.
    InviteGet;
    /// Makes the caller a member.
    InviteAccept;
}

/// Where an invite leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct InvitePreview {
    /// The invite's code.
    pub code: String,
    /// The room.
    pub room: InvitedRoom,
}

/// A room as someone invited sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct InvitedRoom {
    /// The room.
    pub id: RoomId,
    /// Its name.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// Number of members.
    pub members: u32,
}
