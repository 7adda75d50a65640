//! Control transactions: accounts, devices, rooms, invites, uploads. Rare, and durable before the
//! answer.
//!
//! Each runs whole or not at all on the writer's thread; those that wait at the same time share a
//! commit. What it must see of the log's tail it waits for first.

mod access;
mod accounts;
mod administration;
mod attachments;
mod bulk;
mod deletion;
mod devices;
mod erased;
mod erasure;
mod invites;
pub(crate) mod moderation;
mod privacy;
mod profiles;
pub(crate) mod retention;
mod rooms;
mod saved;
mod settings;

pub(crate) use access::from_number as access_from_number;
pub(crate) use accounts::{
    ACCOUNT_COLUMNS, ACCOUNT_WIDTH, account, is_deleted_name, read_account, read_account_at,
};
pub use accounts::{Account, NewAccount};
pub use administration::UserChange;
pub(crate) use attachments::unsent;
pub use attachments::{Begun, NewUpload, StoredAttachment, Upload};
pub use bulk::NewMember;
pub use deletion::{
    AccountDeletion, AccountDeletionBegun, Authority, Deletion, DeletionTarget, Tie,
};
pub use devices::{Device, NewDevice, SignedIn, TokenHash};
pub(crate) use erased::Erased;
pub use erasure::{NamePlaces, ScanPlace};
pub use invites::{Invite, NewInvite, Redeemed};
pub use moderation::{ModerationAction, ModerationEntry, NamedUser};
pub(crate) use privacy::{blocked_ids, blockers_in};
pub(crate) use profiles::{read_picture, read_status};
pub use retention::{Due, DuePage, Retention, RoomRetention, Unindexed};
pub use rooms::{DirectRoom, NewDirectRoom, NewRoom, RoomKind};
pub use saved::{NewSaved, Saving};
