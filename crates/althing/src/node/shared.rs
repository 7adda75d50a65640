//! A node as every layer sees it: its name, its time and tasks, its serial numbers, the way to
//! other nodes.
//!
//! It knows no actor. What the node holds of actors, timers and topics lies in `holdings`, whose
//! type only the layers above know (`node/holdings`): actors keep their node, so the node's own
//! type must not name them.

use std::any::Any;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::address::actor_id::Incarnation;
use crate::metrics::{Metrics, Tracing};
use crate::node::blocking::Blocking;
use crate::node::env::Env;
use crate::node::timestamp::Timestamp;
use crate::remote::cluster::Cluster;

/// A node; cheap to clone. It lives until `shutdown`, whoever holds it.
///
/// ```
/// use althing::{Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Named actors are built when their first message comes; two nodes share nothing.
/// let node = Node::builder("shop").actor(async |_| Ok(Counter::default())).build();
/// assert_eq!(node.get::<Counter>("alice").add(2).await?, 2);
/// let report = node.shutdown(std::time::Duration::from_secs(5)).await;
/// assert_eq!((report.stopped, report.killed.len()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Node {
    shared: Arc<NodeShared>,
}

/// A node that is not kept in memory by this.
#[derive(Clone)]
pub struct WeakNode {
    shared: Weak<NodeShared>,
}

/// What all handles of a node share.
pub(crate) struct NodeShared {
    pub(super) name: String,
    pub(crate) incarnation: Incarnation,
    pub(crate) env: Env,
    /// `Holdings`.
    pub(super) holdings: Box<dyn Any + Send + Sync>,
    pub(crate) blocking: Blocking,
    pub(crate) metrics: Metrics,
    pub(crate) tracing: Tracing,
    /// The way to other nodes, if there is one.
    pub(crate) cluster: Option<Arc<dyn Cluster>>,
    /// Whether no handler may begin.
    pub(super) is_frozen: AtomicBool,
    /// How often it was looked anew where actors live.
    pub(super) relocations: AtomicU64,
    pub(super) serial: AtomicU64,
    pub(super) coarse_s: AtomicU32,
    /// Whether a shutdown has come to its end.
    pub(super) is_shut: AtomicBool,
}

impl Node {
    pub(crate) fn from_shared(shared: Arc<NodeShared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<NodeShared> {
        &self.shared
    }

    /// An address of the node that does not keep it in memory.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode { shared: Arc::downgrade(&self.shared) }
    }

    /// Name of the node.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// This life of the node.
    pub fn incarnation(&self) -> Incarnation {
        self.shared.incarnation
    }

    /// Wall-clock time of the node; it steps forward with the machine's clock and never goes back.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Time since the node started.
    pub fn elapsed(&self) -> Duration {
        self.shared.env.elapsed()
    }

    /// Resolves once `delay` has passed in the node's time, or that has ended with the node's
    /// runtime.
    pub fn sleep(&self, delay: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.shared.env.sleep_anywhere(delay)
    }

    /// Runs CPU-heavy work on the node's bounded pool.
    ///
    /// # Panics
    /// Passes on a panic of `work`. Awaited elsewhere, it also panics if the node's runtime ends
    /// before the work was begun.
    pub fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.shared.blocking.run(work)
    }
}

impl NodeShared {
    /// A number that no other node of this process gives out either: actors of several nodes meet
    /// in lists of watchers and in chains of asks. Later ones are higher.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Seconds since the node started, as of the last pass of passivation.
    #[inline]
    pub(crate) fn coarse_s(&self) -> u32 {
        self.coarse_s.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the node started, for timing handlers.
    pub(crate) fn clock_ns(&self) -> u64 {
        u64::try_from(self.env.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// From now on nobody starts any more.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::Release);
    }

    /// Whether nobody starts any more.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    /// Brings the coarse clock up to date and returns it.
    pub(crate) fn tick_coarse(&self) -> u32 {
        let now_s = u32::try_from(self.env.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.coarse_s.store(now_s, Ordering::Relaxed);
        now_s
    }

    /// Whether no handler may begin.
    pub(crate) fn note_relocation(&self) {
        self.relocations.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn relocations(&self) -> u64 {
        self.relocations.load(Ordering::Acquire)
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Acquire)
    }

    /// Returns whether that was a change.
    pub(crate) fn set_frozen(&self, is_frozen: bool) -> bool {
        self.is_frozen.swap(is_frozen, Ordering::AcqRel) != is_frozen
    }
}

impl WeakNode {
    /// The node, if it is still in memory.
    pub fn upgrade(&self) -> Option<Node> {
        self.shared.upgrade().map(Node::from_shared)
    }
}

impl PartialEq for Node {
    /// Whether both are the same node, not merely of the same name.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Node {}

impl std::fmt::Debug for WeakNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WeakNode").field(&self.upgrade()).finish()
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(&self.shared.name).finish()
    }
}
