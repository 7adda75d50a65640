//! Bodies of the HTTP interface that the socket does not know: accounts, sessions, problem
//! documents.

use serde::{Deserialize, Serialize};

use super::view::UserView;
use crate::field::{self, Checked};
use crate::id::{DeviceId, RoomId};
use crate::rpc::RpcError;

/// Body of `POST /api/v1/accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AccountCreate {
    /// Name for signing in and mentions.
    pub name: String,
    /// The password.
    pub password: String,
    /// Name to show; absent: the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What to call this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Invite of a room, of which one use is taken: needed where only the invited may sign up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invite: Option<String>,
}

impl Checked for AccountCreate {
    fn check(&self) -> Result<(), RpcError> {
        field::name("name", &self.name)?;
        field::password("password", &self.password)?;
        field::optional(&self.display_name, |text| field::display_name("display_name", text))?;
        field::optional(&self.device, |text| field::device_label("device", text))?;
        field::optional(&self.invite, |code| field::invite_code("invite", code))
    }
}

/// Body of `POST /api/v1/me/password`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PasswordChange {
    /// The password until now.
    pub old: String,
    /// The one from now on.
    pub new: String,
    /// Whether all other devices are signed out.
    pub sign_out_others: bool,
}

impl Checked for PasswordChange {
    fn check(&self) -> Result<(), RpcError> {
        field::chars("old", &self.old, 0, crate::limits::PASSWORD_CHARS_MAX)?;
        field::password("new", &self.new)
    }
}

/// What becomes of the messages of a deleted account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum MessagesFate {
    /// They stay, without a name.
    Keep,
    /// Each of them is deleted.
    Erase,
}

/// What becomes of rooms that have no other owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum OwnedRooms {
    /// The deletion is refused, and the refusal names them.
    #[default]
    Refuse,
    /// Each gets the moderator who has been there longest as its owner, else the member.
    HandOver,
}

/// Body of `POST /api/v1/me/deletion`: deletes one's own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AccountDelete {
    /// The password, asked for again.
    pub password: String,
    /// What becomes of the messages.
    pub messages: MessagesFate,
    /// What becomes of rooms that have no other owner; absent: the deletion is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rooms: Option<OwnedRooms>,
}

impl Checked for AccountDelete {
    fn check(&self) -> Result<(), RpcError> {
        field::chars("password", &self.password, 0, crate::limits::PASSWORD_CHARS_MAX)
    }
}

/// Body of `POST /api/v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionCreate {
    /// Name of the account.
    pub name: String,
    /// The password.
    pub password: String,
    /// What to call this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Checked for SessionCreate {
    fn check(&self) -> Result<(), RpcError> {
        // Only the upper limit: which names and passwords could exist is nobody's business here.
        field::chars("name", &self.name, 0, crate::limits::NAME_CHARS_MAX)?;
        field::chars("password", &self.password, 0, crate::limits::PASSWORD_CHARS_MAX)?;
        field::optional(&self.device, |text| field::device_label("device", text))
    }
}

/// Answer of both: the session's token is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SignedIn {
    /// The account.
    pub user: UserView,
    /// The device's session token, `fm_` and 43 characters of base64url.
    pub token: String,
    /// The device.
    pub device: DeviceId,
    /// The room in which a new account begins; only a server that lets newcomers into rooms names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_in: Option<RoomId>,
}

/// An error of the HTTP interface, `application/problem+json` (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Problem {
    /// Kind of problem, a URI reference.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The field that broke its rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The limit that was exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub limit: Option<u64>,
    /// When to try again, in milliseconds; the header `Retry-After` says it in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub retry_after_ms: Option<u64>,
}
