//! Chat payloads: what the data of publications, rpc replies and HTTP bodies says. Fields are named
//! as in `docs/protocol.md`; absent and empty optional fields are left out. Clients must skip
//! fields they do not know.

mod account;
mod admin;
mod branding;
mod event;
mod limits;
mod retention;
mod view;

pub use account::{
    AccountCreate, AccountDelete, MessagesFate, OwnedRooms, PasswordChange, Problem, SessionCreate,
    SignedIn,
};
pub use admin::{
    ActorCount, AdminRoom, AdminRoomUpdate, AdminRooms, AdminSettings, AdminSettingsUpdate,
    AdminUser, AdminUserDelete, AdminUserUpdate, AdminUsers, ConnectData, LiveSecond, LiveView,
    ModerationAction, ModerationEntry, ModerationPage, NamedRoom, PasswordReset, Registration,
    ResetLink, SetupCreate, SetupState, StoragePart, StorageView,
};
pub use branding::{Branding, BrandingUpdate};
pub use event::{Excerpt, MessageEvent, RoomEvent, UserEvent};
pub use limits::{AttachmentLimits, ServerLimits};
pub use retention::{RetentionRule, RetentionRules, RoomRetentionRule};
pub use view::{
    Attachment, ConnInfo, DeviceView, InviteView, LeaveReason, ListedRoom, MemberView, MessageView,
    Notify, Reaction, ReplyRef, Role, RoomAccess, RoomKind, RoomView, Status, UploadProgress,
    UserView,
};

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
