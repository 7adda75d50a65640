//! State that survives its actor: what a turn has changed is committed as one, fenced by epoch and
//! version.
//!
//! A [`Store`] keeps a row per named actor. Whoever activates the actor opens the row for its
//! epoch, which fences every older activation; each commit names that epoch and the next version,
//! and is refused otherwise. So an actor that was moved, or that a slow node still runs, cannot
//! overwrite what its successor wrote.
//!
//! Adapters: [`Embedded`], the default, for one process; `Postgres` (feature `postgres`) and
//! `Cassandra` (feature `cassandra`) for nodes that share a server or a cluster; [`Memory`] for
//! tests.
//!
//! [`Saved`] is the usual way to use it: a field of the actor that holds its state, and commits
//! what a turn has changed. What a turn leaves for others is committed with it: letters and
//! reminders, which a [`Courier`] delivers, and replies that are given again to requests that come
//! again.
//!
//! ```
//! use std::sync::Arc;
//!
//! use althing::{ActorError, Node, Start, Wire, actor};
//! use althing_store::{Memory, Saved, State, Store};
//!
//! #[derive(Default, Wire)]
//! struct Balance {
//!     cents: u64,
//! }
//!
//! impl State for Balance {}
//!
//! struct Account {
//!     saved: Saved<Balance>,
//! }
//!
//! #[actor(name = "example.account", durable = saved)] // replies wait for the commit
//! impl Account {
//!     async fn deposit(&mut self, cents: u64) -> u64 {
//!         self.saved.cents += cents;
//!         self.saved.cents
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let bank = || {
//!     let store = store.clone();
//!     let open = move |start: Start<Account>| {
//!         let store = store.clone();
//!         async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
//!     };
//!     Node::builder("bank").actor(open).build()
//! };
//! assert_eq!(bank().get::<Account>("alice").deposit(5).await?, 5);
//! assert_eq!(bank().get::<Account>("alice").deposit(2).await?, 7, "another node, the same store");
//! # Ok(())
//! # }
//! ```

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/durable.md")]
mod guide {}

mod behind;
#[cfg(feature = "cassandra")]
mod cassandra;
pub mod conformance;
mod courier;
mod delivery;
mod embedded;
mod journaled;
mod memory;
mod post;
#[cfg(feature = "postgres")]
mod postgres;
mod request;
mod row;
mod saved;
mod schema_lock;
mod store;

pub use behind::Writes;
#[cfg(feature = "cassandra")]
pub use cassandra::{Cassandra, CassandraError, CassandraOptions};
pub use courier::{Courier, CourierOptions};
pub use delivery::{Delivery, Mark, Posting, Reply, Settled};
pub use embedded::{Embedded, OpenError};
pub use journaled::{Fold, Journaled};
pub use memory::Memory;
pub use post::{Post, PostError, Retention, When};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError, PostgresOptions};
pub use request::{Reminder, RequestId};
pub use saved::{LoadError, Saved, State};
pub use schema_lock::SchemaLock;
pub use store::{Answer, Event, Kept, Snapshot, Store, StoreError, Turn};
