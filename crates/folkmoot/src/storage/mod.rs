//! The durable store: log segments in front of SQLite, one data directory, no actor in sight.
//!
//! Nothing is acknowledged before it is on disk. Two roads lead in: [`Store::append`] takes events
//! of rooms and users into the log, from where a mover applies them to SQLite in batches; control
//! transactions (accounts, rooms, invites) go to SQLite directly. Reads wait for the part of the
//! log they must see.
//!
//! ```text
//! append ─▶ log/queue ─▶ log/writer ─▶ log/NNNNNNNN.wal ─▶ sqlite/mover ─▶ folkmoot.sqlite ─▶ load/
//! control/ ────────────────────────────────────────────▶ sqlite/writer ─┘
//! ```
//!
//! In PostgreSQL's case (`postgres`) both roads end in the one session that writes to it, and there
//! is no log of our own. In Cassandra's (`cassandra`) the log is there, and SQLite an index of it.

mod address;
mod cassandra;
mod check;
pub mod contract;
mod control;
mod copy;
mod directory;
mod error;
pub mod ids;
mod load;
pub mod log;
mod lost;
mod moment;
mod postgres;
mod progress;
pub mod record;
pub(crate) mod sql;
mod sqlite;
mod store;
mod usage;
mod wire;

pub use address::StoreAddress;
pub use cassandra::address::CassandraAddress;
pub(crate) use check::{Findings, Looked, check, check_database, check_keyspace, shown_pictures};
pub use control::{
    Account, AccountDeletion, AccountDeletionBegun, Authority, Begun, Deletion, DeletionTarget,
    Device, DirectRoom, Invite, ModerationAction, ModerationEntry, NamePlaces, NamedUser,
    NewAccount, NewDevice, NewDirectRoom, NewInvite, NewMember, NewRoom, NewSaved, NewUpload,
    Redeemed, RoomKind, Saving, ScanPlace, SignedIn, StoredAttachment, Tie, TokenHash, Upload,
    UserChange,
};
pub use control::{Due, DuePage, Retention, RoomRetention, Unindexed};
pub(crate) use control::{Erased, is_deleted_name, retention};
pub use copy::{CopyError, Digest, Site};
pub(crate) use copy::{Source, Target, carry};
pub use directory::FORMAT_VERSION;
pub(crate) use directory::require as require_directory;
pub(crate) use directory::{
    DATABASE, DataDirectory, Keeps, LOCK, RESTORING, database, log as log_directory, write_keeps,
    write_version,
};
pub use error::{AppendError, ControlError, OpenError, ReadError};
pub use ids::{
    AttachmentId, DeviceId, Lsn, Offset, PictureId, RoomId, Seq, UnixMillis, UserId, WriteEpoch,
};
#[cfg(test)]
pub(crate) use load::snapshot_of;
pub use load::{
    ChangedMessage, HistoryPage, ListedPage, ListedPlace, Member, MessageChanges, NamedRoom,
    PageAnchor, Reaction, ReadableMessage, RecentKey, Rights, RoomHead, RoomRow, RoomSnapshot,
    RoomSummary, Standing, StoredMessage, StoredPin, StoredSaved, Totals, UserRoom, UserRow,
    UserSnapshot,
};
pub(crate) use load::{KEYS_KEPT, KEYS_KEPT_MAX, KEYS_KEPT_MS};
pub use log::append_times::AppendTimes;
pub use log::queue::{Append, Appended};
pub use lost::Lost;
pub(crate) use moment::{Moment, NamedFiles, SegmentPart, forget_pictures, named_files};
pub use postgres::address::{AddressError, DatabaseAddress};
pub(crate) use postgres::open::connect_beside;
pub use record::{
    Attachment, LeaveReason, Message, Notify, Picture, Quote, ReadCursor, Record, Role, RoomEvent,
    RoomRecord, UserEffect, UserRecord,
};
pub use sql::SqlError;
pub use sqlite::place::Restored;
pub use store::{NodeName, Store, StoreOptions, StoreStats};
pub use usage::{Part, Usage};
