//! Reading back: what an actor needs to come alive, and pages for those who scroll.
//!
//! Every read here waits for the log's tail of the streams it looks at, and reads one snapshot of
//! SQLite.

mod administration;
mod changes;
mod events;
mod facts;
mod heads;
mod history;
mod listed;
mod members;
mod pins;
mod reactions;
mod room;
mod saved;
mod thread;
mod user;

pub use administration::{RoomRow, Totals, UserRow};
pub use changes::{ChangedMessage, MessageChanges, NamedRoom, ReadableMessage};
pub(crate) use facts::{KEYS_KEPT, KEYS_KEPT_MAX, KEYS_KEPT_MS};
pub use facts::{RecentKey, Rights, Standing};
pub use heads::RoomHead;
pub use history::{HistoryPage, PageAnchor, StoredMessage};
pub use listed::{ListedPage, ListedPlace};
pub use members::Member;
pub use pins::StoredPin;
pub use reactions::Reaction;
#[cfg(test)]
pub(crate) use room::snapshot_of;
pub use room::{RoomSnapshot, RoomSummary};
pub use saved::StoredSaved;
pub use user::{UserRoom, UserSnapshot};
