//! Methods on rooms and their members.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::{MemberView, Notify, Role, RoomView};
use crate::field::{self, Checked};
use crate::id::{Offset, RoomId, UnixMillis, UserId};
use crate::limits::{MEMBERS_PAGE_MAX, ROOMS_PAGE_MAX};

/// Asks for a page of the caller's rooms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomsList {
    /// After this room: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RoomId>,
    /// Length of the page; absent: 100, the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Archived rooms instead of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

impl Checked for RoomsList {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, ROOMS_PAGE_MAX))
    }
}

/// A page of the caller's rooms, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Rooms {
    /// The rooms.
    pub rooms: Vec<RoomView>,
    /// There are more, after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RoomId>,
}

/// Asks which rooms have changed since the offsets the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Sync {
    /// The last offset known of each room.
    #[cfg_attr(feature = "typescript", ts(type = "Record<RoomId, Offset>"))]
    pub rooms: BTreeMap<RoomId, Offset>,
    /// Only rooms after this one: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RoomId>,
}

impl Checked for Sync {
    fn check(&self) -> Result<(), RpcError> {
        field::sync_rooms("rooms", self.rooms.len())
    }
}

/// Makes a room; the caller owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomCreate {
    /// Its name.
    pub name: String,
    /// Its topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

impl Checked for RoomCreate {
    fn check(&self) -> Result<(), RpcError> {
        field::room_name("name", &self.name)?;
        field::optional(&self.topic, |text| field::topic("topic", text))
    }
}

/// Asks for one room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomGet {
    /// The room.
    pub room: RoomId,
}

impl Checked for RoomGet {}

/// Changes a room's name or topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomUpdate {
    /// The room.
    pub room: RoomId,
    /// Its new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its new topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

impl Checked for RoomUpdate {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.name, |text| field::room_name("name", text))?;
        field::optional(&self.topic, |text| field::topic("topic", text))
    }
}

/// Deletes a room with everything that was said in it, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomDelete {
    /// The room.
    pub room: RoomId,
}

impl Checked for RoomDelete {}

/// Makes a room read-only and takes it off the lists, or opens it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomArchive {
    /// The room.
    pub room: RoomId,
    /// Whether it is read-only.
    pub on: bool,
}

impl Checked for RoomArchive {}

/// Names those whom the caller has on screen in a room that the connection is subscribed to. It is
/// told at once who of them is there, in an event, and whenever one of them comes or goes. Replaces
/// what it named before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PresenceWatch {
    /// The room.
    pub room: RoomId,
    /// Those on screen; none: nothing is told any more.
    pub users: Vec<UserId>,
}

impl Checked for PresenceWatch {
    fn check(&self) -> Result<(), RpcError> {
        field::watched("users", self.users.len())
    }
}

/// Ends the caller's membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomLeave {
    /// The room.
    pub room: RoomId,
}

impl Checked for RoomLeave {}

/// Asks for the members of a room, in pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomMembers {
    /// The room.
    pub room: RoomId,
    /// Continues after this member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<UserId>,
    /// Only those whose name, or a word of whose name to show, begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Length of the page; absent: the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for RoomMembers {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.prefix, |prefix| field::prefix("prefix", prefix))?;
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, MEMBERS_PAGE_MAX))
    }
}

/// A page of members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MembersPage {
    /// The members.
    pub members: Vec<MemberView>,
    /// Where the next page continues; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<UserId>,
}

/// Makes another user a member, without an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomAdd {
    /// The room.
    pub room: RoomId,
    /// The user.
    pub user: UserId,
}

impl Checked for RoomAdd {}

/// Gives a member a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomSetRole {
    /// The room.
    pub room: RoomId,
    /// The member.
    pub user: UserId,
    /// The new role.
    pub role: Role,
}

impl Checked for RoomSetRole {}

/// Ends another's membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomKick {
    /// The room.
    pub room: RoomId,
    /// The member.
    pub user: UserId,
}

impl Checked for RoomKick {}

/// Bars a user from a room, or lets the user return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomBan {
    /// The room.
    pub room: RoomId,
    /// The user.
    pub user: UserId,
    /// Whether the user is barred.
    pub on: bool,
}

impl Checked for RoomBan {}

/// Silences a member for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomMute {
    /// The room.
    pub room: RoomId,
    /// The member.
    pub user: UserId,
    /// Until when; absent: the member may write again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

impl Checked for RoomMute {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.until, |at| field::moment("until", *at))
    }
}

/// Sets what the caller wants to hear about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RoomNotify {
    /// The room.
    pub room: RoomId,
    /// The wish.
    pub notify: Notify,
}

impl Checked for RoomNotify {}

/// Opens the conversation with another user; the same one each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DirectOpen {
    /// The other user.
    pub user: UserId,
}

impl Checked for DirectOpen {}

/// Takes a direct conversation off the caller's list until somebody writes there again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DirectHide {
    /// The conversation.
    pub room: RoomId,
}

impl Checked for DirectHide {}
