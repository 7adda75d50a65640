//! Reading back: what an actor needs to come alive, and pages for those who scroll.
//!
//! Every read here waits for the log's tail of the streams it looks at, and reads one snapshot of SQLite.

mod administration;
mod changes;
mod events;
mod history;
mod members;
mod room;
mod user;

pub use administration::{RoomRow, Totals, UserRow};
pub use changes::{ChangedMessage, MessageChanges, NamedRoom, ReadableMessage};
pub use history::{HistoryPage, PageAnchor, Reaction, StoredMessage};
pub use members::Member;
pub use room::{RecentKey, RoomSnapshot, RoomSummary};
pub use user::{UserRoom, UserSnapshot};
