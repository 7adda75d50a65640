//! Control transactions: accounts, devices, rooms, invites, uploads. Rare, and durable before the answer.
//!
//! Each is one SQLite transaction on the writer's thread. What it must see of the log's tail it
//! waits for first.

mod accounts;
mod attachments;
mod invites;
mod rooms;

pub(crate) use accounts::account;
pub use accounts::{Account, Device, NewAccount, NewDevice, SignedIn, TokenHash};
pub(crate) use attachments::unsent;
pub use attachments::{Begun, NewUpload, StoredAttachment, Upload};
pub use invites::{Invite, NewInvite, Redeemed};
pub use rooms::{DirectRoom, NewDirectRoom, NewRoom, RoomKind};
