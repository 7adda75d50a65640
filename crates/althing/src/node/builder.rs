//! How a node is built: which actors it knows, what surrounds it, and what is refused before it
//! stands.

use std::any::TypeId;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Weak};

use crate::activation::passivation;
use crate::actor::Actor;
use crate::address::actor_id::Incarnation;
use crate::address::directory::Directory;
use crate::address::kind::KindTwice;
use crate::address::start::{Start, boxed_factory};
use crate::error::ActorError;
use crate::metrics::{Metrics, Tracing};
use crate::node::blocking::Blocking;
use crate::node::callers::Callers;
use crate::node::env::{Env, Simulation};
use crate::node::foreign::Foreign;
use crate::node::holdings::{Holdings, Options};
use crate::node::kinds::Kinds;
use crate::node::shared::{Node, NodeShared};
use crate::options::ActorOptions;
use crate::remote::cluster::Cluster;
use crate::timer::Timers;
use crate::topic::kinds::{EventKinds, EventTwice};
use crate::topic::registry::Topics;
use crate::wire::Wire;
use crate::wire::codecs::{Codecs, NameTwice};

type Register = Box<dyn FnOnce(&Arc<NodeShared>) + Send>;

/// Why a node cannot be built.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Two types of actors have one name.
    #[error(transparent)]
    Kind(#[from] KindTwice),
    /// Two messages of one kind have one name on the wire.
    #[error(transparent)]
    Message(#[from] NameTwice),
    /// Two types of events have one name on the wire, or one type has two.
    #[error(transparent)]
    Event(#[from] EventTwice),
}

/// Builds a node.
pub struct NodeBuilder {
    name: String,
    registrations: Vec<Register>,
    options: Options,
    simulation: Option<Arc<dyn Simulation>>,
    blocking_jobs_max: usize,
    metrics: Metrics,
    memory_budget_bytes: Option<u64>,
    tracing: Tracing,
    cluster: Option<Arc<dyn Cluster>>,
    events: EventKinds,
    mistake: Option<BuildError>,
}

impl NodeBuilder {
    /// Registers how actors of type `A` are built: at activation by name and at restart.
    #[must_use]
    pub fn actor<A, F, B>(mut self, factory: F) -> Self
    where
        A: Actor,
        F: Fn(Start<A>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<A, ActorError>> + Send + 'static,
    {
        if let Some(register) = A::CODECS
            && let Err(twice) = Codecs::<A>::registered(register)
        {
            self.mistake.get_or_insert(twice.into());
        }
        self.registrations.push(Box::new(move |shared| {
            shared.register::<A>(Some(boxed_factory(factory)));
        }));
        self
    }

    /// Lets events of type `T` leave the node, under this name: topics of such events are heard on
    /// all nodes of the cluster that register the type under the same name. Events of other types
    /// stay on their node.
    #[must_use]
    pub fn event<T: Wire + Send + Sync + 'static>(mut self, name: &'static str) -> Self {
        if let Err(twice) = self.events.add::<T>(name) {
            self.mistake.get_or_insert(twice.into());
        }
        self
    }

    /// Replaces `A::options()` on this node: deployments differ in how long an actor may idle or
    /// how many messages may wait.
    #[must_use]
    pub fn options<A: Actor>(mut self, options: ActorOptions) -> Self {
        self.options.insert(TypeId::of::<A>(), options);
        self
    }

    /// Runs the node in a simulated world.
    #[must_use]
    pub fn simulation(mut self, simulation: Arc<dyn Simulation>) -> Self {
        self.simulation = Some(simulation);
        self
    }

    /// Sets how many CPU-heavy jobs run at once; the default is the number of cores.
    #[must_use]
    pub fn blocking_jobs_max(mut self, jobs: usize) -> Self {
        self.blocking_jobs_max = jobs;
        self
    }

    /// Sets whether the node counts; `Off` is for measuring what that costs.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Keeps the process's resident memory below `bytes` as far as that goes by unloading the named
    /// actors that have been idle for longest. Read from the operating system once a second (Linux
    /// only; elsewhere there is no limit).
    #[must_use]
    pub fn memory_budget_bytes(mut self, bytes: u64) -> Self {
        self.memory_budget_bytes = Some(bytes);
        self
    }

    /// Sets whether each handled message runs in a `tracing` span whose parent is the sender's
    /// span.
    #[must_use]
    pub fn trace(mut self, tracing: Tracing) -> Self {
        self.tracing = tracing;
        self
    }

    /// Makes the node part of a cluster: named actors whose messages travel may then live on other
    /// nodes, and are reached by the same addresses. Actors of other kinds stay on their node and
    /// are reached from there only.
    #[must_use]
    pub fn cluster(mut self, cluster: Arc<dyn Cluster>) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Starts the node.
    ///
    /// # Panics
    /// Outside a tokio runtime with timers, unless simulated; and for a `BuildError`, which is a
    /// mistake in the program: `try_build` returns it.
    pub fn build(self) -> Node {
        self.try_build().unwrap_or_else(|mistake| panic!("a node cannot be built: {mistake}"))
    }

    /// Starts the node.
    ///
    /// # Errors
    /// Two registered kinds of actors, two messages of one, or two types of events have the same
    /// name.
    ///
    /// # Panics
    /// Outside a tokio runtime with timers, unless simulated.
    pub fn try_build(mut self) -> Result<Node, BuildError> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        let simulation = self.simulation.clone();
        let env = self.simulation.map_or_else(Env::tokio, Env::Simulated);
        let hash_keys = env.hash_keys();
        let incarnation = Incarnation(env.random_u64());
        let shared = Arc::new_cyclic(|node: &Weak<NodeShared>| NodeShared {
            name: self.name,
            incarnation,
            holdings: Box::new(Holdings {
                directory: Directory::new(hash_keys.clone()),
                timers: Timers::new(node.clone()),
                kinds: Kinds::new(hash_keys.clone()),
                foreign: Foreign::default(),
                options: self.options,
                topics: Topics::default(),
                shutdown_callers: Callers::default(),
                events: self.events,
            }),
            blocking: Blocking::new(self.blocking_jobs_max, env.handle()),
            env,
            metrics: self.metrics,
            tracing: self.tracing,
            cluster: self.cluster.clone(),
            is_frozen: AtomicBool::new(false),
            relocations: AtomicU64::new(0),
            serial: AtomicU64::new(incarnation.first_serial()),
            coarse_s: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
        });
        for register in self.registrations {
            register(&shared);
        }
        if let Some(twice) = shared.holdings().kinds.twice() {
            shared.forget_types();
            return Err(twice.into());
        }
        passivation::start(&shared, self.memory_budget_bytes);
        let node = Node::from_shared(shared);
        if let Some(simulation) = simulation {
            simulation.built(&node);
        }
        if let Some(cluster) = self.cluster {
            cluster.built(&node);
        }
        Ok(node)
    }
}

impl Node {
    /// Starts building a node.
    pub fn builder(name: impl Into<String>) -> NodeBuilder {
        NodeBuilder {
            name: name.into(),
            registrations: Vec::new(),
            options: Options::new(),
            simulation: None,
            blocking_jobs_max: std::thread::available_parallelism().map_or(1, Into::into),
            memory_budget_bytes: None,
            metrics: Metrics::On,
            tracing: Tracing::Off,
            cluster: None,
            events: EventKinds::default(),
            mistake: None,
        }
    }
}

impl std::fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NodeBuilder").field(&self.name).finish()
    }
}
