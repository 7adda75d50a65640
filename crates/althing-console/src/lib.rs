//! A live view of an Althing node: which actor types there are, who is busy, who is behind, what is
//! slow, who does not come back, which topics there are, and who supervises whom.
//!
//! [`cluster_router`] shows the nodes of a cluster, as a client of it sees them. [`router`] serves
//! a page and its JSON under `/console`; the command `althing-console` shows the same JSON in a
//! terminal. Looking happens only while somebody asks, at most once a second however many ask.
//! There is no authentication here: mount it where only operators get.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let node = althing::Node::builder("shop").build();
//! let app: axum::Router = axum::Router::new().merge(althing_console::router(&node));
//! # drop(app);
//! # });
//! ```

#[cfg(feature = "cluster")]
mod cluster;
mod lines;
mod observer;
mod page;
#[cfg(feature = "terminal")]
pub mod terminal;
mod view;
mod windows;

#[cfg(feature = "cluster")]
pub use cluster::{CLUSTER_PATH, ClusterView, NodeLine, cluster_router};
pub use lines::{ActorLine, KindLine, LongLine, MessageLine, Times, TopicLine, TreeLine};
pub use page::{PATH, router};
pub use view::{TopicsView, TreeView, View};
