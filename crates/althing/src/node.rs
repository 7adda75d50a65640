//! A node: the owner of everything. Two nodes in one process share nothing.

pub(crate) mod blocking;
pub(crate) mod builder;
pub(crate) mod env;
pub(crate) mod foreign;
pub(crate) mod kinds;
pub(crate) mod shutdown;

use std::any::TypeId;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::activation::ending::drop_refused;
use crate::activation::run::Run;
use crate::actor::{Actor, StopReason};
use crate::address::actor_id::{ActorId, Incarnation, Key};
use crate::address::actor_ref::ActorRef;
use crate::address::child::Parent;
use crate::address::directory::Directory;
use crate::address::key::ActorKey;
use crate::address::kind::{Factory, Kind, Start, boxed_factory};
use crate::address::place::{AnyPlace, AsAnyPlace, Header, Place};
use crate::error::{ActorError, NameTaken};
use crate::mail::mailbox::Phase;
use crate::metrics::inspection::{self, Inspector};
use crate::metrics::trace::Tracing;
use crate::metrics::{Metrics, Snapshot};
use crate::node::blocking::Blocking;
use crate::node::env::{Env, Timestamp};
use crate::node::foreign::Foreign;
use crate::node::kinds::Kinds;
use crate::options::ActorOptions;
use crate::remote::Cluster;
use crate::shield::discard;
use crate::timer::Timers;
use crate::topic::{Topic, TopicOptions, Topics};

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

type Options = HashMap<TypeId, ActorOptions>;

pub(crate) struct NodeShared {
    name: String,
    pub(crate) incarnation: Incarnation,
    pub(crate) env: Env,
    pub(crate) directory: Directory,
    pub(crate) timers: Arc<Timers>,
    pub(crate) blocking: Blocking,
    pub(crate) metrics: Metrics,
    pub(crate) tracing: Tracing,
    pub(crate) kinds: Kinds,
    /// The way to other nodes, if there is one.
    pub(crate) cluster: Option<Arc<dyn Cluster>>,
    foreign: Foreign,
    /// Whether no handler may begin.
    is_frozen: AtomicBool,
    /// What replaces `Actor::options` on this node.
    options: Options,
    pub(crate) topics: Topics,
    serial: AtomicU64,
    coarse_s: AtomicU32,
    /// Whether a shutdown has come to its end.
    is_shut: AtomicBool,
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

    /// Address of the named actor; its first message activates it.
    pub fn get<A: Actor>(&self, key: impl ActorKey<A>) -> ActorRef<A> {
        let make = |key| {
            let place = Place::new(Header::new(self.shared.kind::<A>(), Some(key)), None, None);
            if !self.shared.close_if_shut(place.header()) {
                place.header().settle();
            }
            place
        };
        let place = key.with_text(|key| self.shared.directory.get_or_insert(key, make));
        ActorRef::from_place(place)
    }

    /// Starts an anonymous actor. It lives until it is stopped; without a factory it cannot restart.
    pub fn spawn<A: Actor>(&self, actor: A) -> ActorRef<A> {
        let header = Header::new(self.shared.kind::<A>(), None);
        self.start(Arc::new(Place::new(header, None, Some(actor))), None)
    }

    /// Starts an anonymous actor that `factory` builds, now and at each restart.
    pub fn spawn_with<A, F, B>(&self, factory: F) -> ActorRef<A>
    where
        A: Actor,
        F: Fn(Start<A>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<A, ActorError>> + Send + 'static,
    {
        self.spawn_child(boxed_factory(factory), None)
    }

    pub(crate) fn spawn_child<A: Actor>(
        &self,
        factory: Box<Factory<A>>,
        parent: Option<&Parent>,
    ) -> ActorRef<A> {
        let header = Header::new(self.shared.kind::<A>(), None);
        self.start(Arc::new(Place::new(header, Some(factory), None)), parent)
    }

    pub(crate) fn spawn_under<A: Actor>(&self, actor: A, parent: &Parent) -> ActorRef<A> {
        let header = Header::new(self.shared.kind::<A>(), None);
        self.start(Arc::new(Place::new(header, None, Some(actor))), Some(parent))
    }

    /// Starts an actor under a name of its own.
    ///
    /// # Errors
    /// `NameTaken` if an actor of that type and name has not stopped.
    pub fn spawn_named<A: Actor>(
        &self,
        key: impl Into<Key>,
        actor: A,
    ) -> Result<ActorRef<A>, NameTaken> {
        self.spawn_named_under(&key.into(), actor, None)
    }

    pub(crate) fn spawn_named_under<A: Actor>(
        &self,
        key: &Key,
        actor: A,
        parent: Option<&Parent>,
    ) -> Result<ActorRef<A>, NameTaken> {
        let header = Header::new(self.shared.kind::<A>(), Some(key.clone()));
        let place = Arc::new(Place::new(header, None, Some(actor)));
        if self.shared.close_if_shut(place.header()) {
            drop_refused(place.as_any_place());
            return Ok(ActorRef::from_place(place));
        }
        let child = place.as_any_place();
        // Before it can be found: it may run, and fail, at once.
        let is_late = parent.is_some_and(|parent| !parent.adopt(&child));
        // A new place's claim is ours: nobody else knows it. A shutdown that finds it waits for its
        // end.
        place.header().mailbox.lock().phase = Phase::Running;
        if self.shared.directory.insert(key, place.clone()).is_none() {
            if let Some(parent) = parent {
                parent.disown(&child);
            }
            return Err(NameTaken(place.header().id()));
        }
        if let Some(parent) = parent.filter(|_| is_late) {
            parent.end(&child);
        }
        if self.may_begin(&child) {
            Run::schedule(child);
        }
        Ok(ActorRef::from_place(place))
    }

    fn start<A: Actor>(&self, place: Arc<Place<A>>, parent: Option<&Parent>) -> ActorRef<A> {
        if self.shared.close_if_shut(place.header()) {
            drop_refused(place.as_any_place());
            return ActorRef::from_place(place);
        }
        let child = place.as_any_place();
        // Before the child runs: it may fail at once.
        let is_late = parent.is_some_and(|parent| !parent.adopt(&child));
        // As above.
        place.header().mailbox.lock().phase = Phase::Running;
        self.shared.directory.insert_anonymous(child.clone());
        if let Some(parent) = parent.filter(|_| is_late) {
            parent.end(&child);
        }
        if self.may_begin(&child) {
            Run::start_now(child);
        }
        ActorRef::from_place(place)
    }

    /// Whether an actor whose claim is ours may begin. If the node was shut down before the
    /// directory had it, nobody would stop it: it ends at once.
    fn may_begin(&self, place: &Arc<dyn AnyPlace>) -> bool {
        let may_begin = !self.shared.is_shut.load(Ordering::Acquire);
        if !may_begin {
            Run::new(place.clone()).end(&StopReason::Killed);
        }
        may_begin
    }

    /// The topic of that name and type, made if nobody holds one; `options` count only then.
    pub fn topic<T: Send + Sync + 'static>(
        &self,
        name: impl AsRef<str>,
        options: TopicOptions,
    ) -> Topic<T> {
        self.shared.topics.get_or_make(name.as_ref(), options, &self.shared)
    }

    /// Wall-clock time of the node.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Time since the node started.
    pub fn elapsed(&self) -> Duration {
        self.shared.env.elapsed()
    }

    /// Resolves once `delay` has passed in the node's time.
    pub fn sleep(&self, delay: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.shared.env.sleep(delay)
    }

    /// Runs CPU-heavy work on the node's bounded pool.
    pub fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.shared.blocking.run(work)
    }

    /// Counters of each actor type, and what waits in the mailboxes.
    pub fn metrics(&self) -> Snapshot {
        let mut kinds: Vec<_> = self
            .shared
            .kinds
            .all()
            .iter()
            .map(|kind| kind.metrics.totals().into_snapshot(kind.id.clone()))
            .collect();
        kinds.sort_by(|one, other| one.name.cmp(&other.name));
        // Two types of one name, of which the second is refused, are one to whoever reads this.
        kinds.dedup_by(|later, earlier| {
            let is_same = later.name == earlier.name;
            if is_same {
                earlier.absorb(std::mem::take(later));
            }
            is_same
        });
        let visited = inspection::measure_mailboxes(&self.shared, &mut kinds);
        Snapshot { kinds, visited }
    }

    /// An onlooker that finds hot actors and deep mailboxes.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.shared.clone())
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

    /// Ends the streams of topics, and forgets actor types, which hold the node in turn.
    pub(crate) fn forget_types(&self) {
        self.topics.close();
        // Dropped after the lock: factories keep what they captured, which is foreign.
        let kinds = (self.foreign.take(), self.kinds.take());
        discard("dropping actor types", kinds);
    }

    /// From now on nobody starts any more.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::Release);
    }

    /// Makes a new actor's address refuse if the node has shut down; returns whether it has.
    fn close_if_shut(&self, header: &Header) -> bool {
        let is_shut = self.is_shut.load(Ordering::Acquire);
        if is_shut {
            let mut inner = header.mailbox.lock();
            inner.shut();
            inner.count_end();
        }
        is_shut
    }

    /// Brings the coarse clock up to date and returns it.
    pub(crate) fn tick_coarse(&self) -> u32 {
        let now_s = u32::try_from(self.env.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.coarse_s.store(now_s, Ordering::Relaxed);
        now_s
    }

    /// The options of an actor type on this node.
    pub(crate) fn options_of<A: Actor>(&self) -> ActorOptions {
        self.options.get(&TypeId::of::<A>()).cloned().unwrap_or_else(A::options)
    }

    fn register<A: Actor>(self: &Arc<Self>, factory: Option<Box<Factory<A>>>) {
        // Only this one counts: an actor type that is registered twice is built by the later
        // factory.
        self.kinds.replace(Kind::new::<A>(self.clone(), factory));
    }

    fn kind<A: Actor>(self: &Arc<Self>) -> Arc<Kind> {
        self.kinds.of_type(TypeId::of::<A>()).unwrap_or_else(|| {
            let kind = Kind::new::<A>(self.clone(), None);
            if self.is_shut.load(Ordering::Acquire) {
                // Kept by nobody: kinds keep their node.
                return Arc::new(kind);
            }
            self.kinds.add(kind)
        })
    }

    /// The place of a named actor, if somebody knows it.
    pub(crate) fn known(&self, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        match id.place_of_birth() {
            Some(origin) if origin.node == self.incarnation => self.directory.anonymous(origin),
            Some(_) => self.known_foreign(id),
            None => {
                let kind = self.kinds.of_name(id.kind().as_str())?;
                self.directory.find(&kind, id.key()?)
            }
        }
    }

    /// Whether no handler may begin.
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
