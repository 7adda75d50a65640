//! Althing: stateful actors that run at memory speed.
//!
//! This crate is the local runtime: typed actors with bounded mailboxes, supervision, timers, passivation and topics. It owns no
//! socket and no disk. Everything hangs off a [`Node`]; two nodes in one process share nothing.
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

mod actor;
mod actor_id;
mod actor_ref;
mod attach;
mod batch;
mod blocked;
mod blocking;
mod body;
mod buffers;
mod call;
mod cell;
mod child;
mod claim;
mod codecs;
mod context;
mod current;
mod deadline;
mod directory;
mod dispatch;
mod ending;
mod env;
mod envelope;
mod epoch;
mod error;
mod extras;
mod fault;
mod flatten;
mod forward;
mod group;
mod guard;
#[cfg(doctest)]
mod guide;
mod in_place;
mod inspection;
mod key;
mod kind;
mod lane;
mod line;
mod mailbox;
mod metrics;
mod node;
mod observe;
mod options;
mod outbox;
mod passivation;
mod pending;
mod quick;
mod rate;
mod recipient;
mod rejection;
mod reply;
mod run;
mod serve;
mod shield;
mod shutdown;
mod stopped;
mod supervise;
mod supervision;
mod sync;
mod system;
mod timer;
mod topic;
mod trace;
mod waits;
mod wheel;
pub mod wire;

pub use actor::{
    Actor, Admission, DelayedHandler, EventHandler, Handler, ReadHandler, Receives, StopReason,
    Terminated,
};
pub use actor_id::{ActorId, Key};
pub use actor_ref::{ActorRef, WeakRef};
pub use althing_macros::{Wire, actor};
pub use blocked::Blocked;
pub use call::{Call, Tell};
pub use child::{Child, NamedChild};
pub use codecs::{Codecs, NameTwice, Remote};
pub use context::Context;
pub use dispatch::{Access, Delayed, Dispatch, Read, Write};
pub use env::{Fault, Simulation, Task, Timestamp};
pub use epoch::Epoch;
pub use error::{ActorError, AskError, ChildFailed, NameTaken, SendError};
pub use flatten::{CallError, Flatten};
pub use group::Group;
pub use inspection::{ActorView, Inspection, Inspector};
pub use key::{ActorKey, KeyError};
pub use kind::Start;
pub use mailbox::Priority;
pub use metrics::{Histogram, KindSnapshot, MessageSnapshot, Metrics, Snapshot};
pub use node::{Node, NodeBuilder, WeakNode};
pub use observe::{Step, Way};
pub use options::{
    ActorOptions, BATCH_BUDGET_DEFAULT, DEADLINE_DEFAULT, MAILBOX_LEN_MAX_DEFAULT, MailboxKind,
};
pub use rate::Rate;
pub use recipient::Recipient;
pub use rejection::Rejection;
pub use reply::ReplyTo;
pub use shutdown::ShutdownReport;
pub use stopped::Stopped;
pub use supervision::{
    ChildStrategy, RESTART_WINDOW_DEFAULT, RESTARTS_MAX_DEFAULT, RestartPolicy, Supervision,
};
pub use timer::TimerId;
pub use topic::{
    EventStream, Fenced, Gap, PublishError, Published, Publisher, Sequence, Subscription, Topic,
    TopicName, TopicOptions,
};
pub use trace::Tracing;
pub use wire::{Wire, WireError};
