//! Read states: how far each user has read in each room, and how often they were mentioned since.
//!
//! Chat clients ask for all of a user's read states when they connect, and change one with nearly
//! every message that somebody reads: far more often than a store likes. So they live in memory, 22
//! bytes each, and the store has them within half a minute. The shape follows what Discord has
//! written of its own service ("Why Discord is switching from Go to Rust", 2020).
//!
//! ```
//! use std::sync::Arc;
//!
//! use folkmoot_read_states::{Change, Options, ReadStates, SqliteRows};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let store = Arc::new(SqliteRows::open(&directory.join("read-states.db"))?);
//! let options = Options { log: Some(directory.join("log")), ..Options::default() };
//! let states = ReadStates::open(store, options).await?;
//! let (user, room) = (7, 42);
//! let changed = states.change(user, room, Change::Mention { message: 1_000 })?;
//! states.durable(changed).await?;
//! assert_eq!(states.one(user, room).await?.mentions, 1);
//! let read = Change::Acknowledge { message: 1_000, mentions_left: 0 };
//! let changed = states.change(user, room, read)?;
//! states.durable(changed).await?;
//! assert_eq!(states.all(user).await?[0].mentions, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Data path
//! A change goes into the user's block in memory and into the log; `ReadStates::durable` waits for the
//! log. Every fifteen seconds all changed users go to the store in batches, and the log forgets
//! them. Users who are not in memory are not loaded for a change: it is kept beside and merged when
//! they are. When memory is full a clock picks who goes; who goes with changes stays readable until
//! the store has them.

mod block;
mod change;
mod error;
mod flush;
mod log;
mod replay;
mod server;
mod shard;
mod sizes;
mod states;
mod store;
mod storing;
mod table;
pub mod wire;

pub use block::{ROOMS_MAX, ReadState};
pub use change::Change;
pub use error::ReadStatesError;
pub use log::LogError;
pub use server::serve;
pub use sizes::Sizes;
pub use states::{Changed, Options, ReadStates};
#[cfg(feature = "cassandra")]
pub use store::CassandraRows;
#[cfg(feature = "postgres")]
pub use store::PostgresRows;
pub use store::{Answer, Retry, Row, RowStore, SqliteRows, StoreError};
