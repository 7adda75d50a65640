//! Methods on users, profiles and devices.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::{DeviceView, UserView};
use crate::field::{self, Checked};
use crate::id::{DeviceId, UnixMillis, UserId};
use crate::limits::USERS_FOUND_MAX;

/// Finds users whose name or display name begins so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct UsersFind {
    /// The beginning.
    pub prefix: String,
    /// How many at most; absent: the largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for UsersFind {
    fn check(&self) -> Result<(), RpcError> {
        field::prefix("prefix", &self.prefix)?;
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, USERS_FOUND_MAX))
    }
}

/// Users found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct UsersFound {
    /// The users.
    pub users: Vec<UserView>,
}

/// Asks for one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct UserGet {
    /// The user.
    pub user: UserId,
}

impl Checked for UserGet {}

/// Keeps another user from writing to the caller alone and from mentioning them, or allows it
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct UserBlock {
    /// The other user.
    pub user: UserId,
    /// Whether they are kept away.
    pub on: bool,
}

impl Checked for UserBlock {}

/// Asks whom the caller has blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Record<string, never>"))]
pub struct UsersBlocked {}

impl Checked for UsersBlocked {}

/// Changes the caller's profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ProfileUpdate {
    /// The new name to show.
    pub display_name: String,
}

impl Checked for ProfileUpdate {
    fn check(&self) -> Result<(), RpcError> {
        field::display_name("display_name", &self.display_name)
    }
}

/// Says what the caller is up to; without emoji and text nothing is said any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct StatusSet {
    /// An emoji that stands beside the name; may be empty.
    pub emoji: String,
    /// A few words; may be empty.
    pub text: String,
    /// From then on it is not shown any more; absent: until it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

impl Checked for StatusSet {
    fn check(&self) -> Result<(), RpcError> {
        field::status_emoji("emoji", &self.emoji)?;
        field::status_text("text", &self.text)?;
        field::optional(&self.until, |at| field::moment("until", *at))
    }
}

/// Asks for the caller's devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Record<string, never>"))]
pub struct DevicesList {}

impl Checked for DevicesList {}

/// Devices of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DevicesPage {
    /// The devices.
    pub devices: Vec<DeviceView>,
}

/// Signs a device of the caller out; its connections end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DevicesRevoke {
    /// The device.
    pub id: DeviceId,
}

impl Checked for DevicesRevoke {}
