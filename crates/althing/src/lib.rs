//! Althing: stateful actors that run at memory speed.
//!
//! This crate is the local runtime: typed actors with bounded mailboxes, supervision, timers,
//! passivation and topics. It owns no socket and no disk. Everything hangs off a [`Node`]; two
//! nodes in one process share nothing.
//!
//! ```
//! use althing::{Actor, Context, Handler, Node};
//!
//! struct Counter(u64);
//! struct Add(u64);
//!
//! impl Actor for Counter {
//!     const NAME: &'static str = "example.counter";
//! }
//!
//! impl Handler<Add> for Counter {
//!     type Reply = u64;
//!     async fn handle(&mut self, Add(n): Add, _ctx: &mut Context<Self>) -> u64 {
//!         self.0 += n;
//!         self.0
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let node = Node::builder("example").build();
//! let counter = node.spawn(Counter(0));
//! counter.send(Add(2)).tell().await.unwrap();
//! assert_eq!(counter.send(Add(3)).await, Ok(5));
//! # });
//! ```

mod activation;
mod actor;
mod address;
mod epoch;
mod error;
#[cfg(doctest)]
mod guide;
mod mail;
mod metrics;
mod node;
mod options;
mod rejection;
pub mod remote;
mod shield;
pub mod stable_hash;
mod stop_reason;
mod sync;
mod timer;
mod topic;
pub mod wire;

pub use activation::commit::{Commit, Turns};
pub use activation::context::Context;
pub use activation::rate::Rate;
pub use activation::stopped::Stopped;
pub use activation::supervision::{
    ChildStrategy, Failure, RESTART_WINDOW_DEFAULT, RESTARTS_MAX_DEFAULT, RestartPolicy,
    Supervision,
};
pub use actor::{Actor, Admission, DelayedHandler, EventHandler, Handler, ReadHandler, Receives};
pub use address::actor_id::{Activation, ActorId, Incarnation, Key, KindName};
pub use address::actor_ref::ActorRef;
pub use address::call::Call;
pub use address::child::{Child, NamedChild};
pub use address::flatten::{CallError, Flatten};
pub use address::group::Group;
pub use address::key::{ActorKey, KeyError};
pub use address::kind::KindTwice;
pub use address::recipient::Recipient;
pub use address::start::Start;
pub use address::tell::Tell;
pub use address::weak_ref::WeakRef;
pub use althing_macros::{Wire, actor};
pub use epoch::Epoch;
pub use error::{ActorError, AskError, ChildFailed, NameTaken, SendError};
pub use mail::access::Access;
pub use mail::dispatch::{Delayed, Dispatch, Read, Write};
pub use mail::priority::Priority;
pub use mail::reply::ReplyTo;
pub use metrics::blocked::Blocked;
pub use metrics::doing::Activity;
pub use metrics::inspection::{ActorView, Inspection, Inspector};
pub use metrics::listing::Listing;
pub use metrics::long_running::LongRunning;
pub use metrics::step::{Step, Way};
pub use metrics::tree::{Supervised, Tree};
pub use metrics::{Histogram, KindSnapshot, MessageSnapshot, Metrics, Snapshot, Tracing};
pub use node::builder::{BuildError, NodeBuilder};
pub use node::env::{Fault, Simulation, Task};
pub use node::shared::{Node, WeakNode};
pub use node::shutdown::ShutdownReport;
pub use node::timestamp::Timestamp;
pub use options::{
    ActorOptions, BATCH_BUDGET_DEFAULT, DEADLINE_DEFAULT, MAILBOX_LEN_MAX_DEFAULT, MailboxKind,
};
pub use rejection::Rejection;
pub use stop_reason::{StopReason, Terminated};
pub use timer::id::TimerId;
pub use topic::{
    EventStream, EventTwice, Fenced, Gap, Outlet, PublishError, Published, Publisher, Sequence,
    Subscription, Topic, TopicName, TopicOptions, TopicView,
};
pub use wire::codecs::{Codecs, NameTwice, Remote};
pub use wire::{Wire, WireError};
