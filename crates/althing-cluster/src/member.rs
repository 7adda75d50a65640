//! One node's side of a cluster: its lease, what it knows of the others, and the ways there.
//!
//! Everything here runs on a thread of its own, so a handler that blocks its runtime costs nobody
//! the lease. What decides is in `lease`, `router` and `link`; this folder executes it.

pub(crate) mod clients;
mod config;
mod delivery;
mod groups;
pub(crate) mod inward;
mod keeper;
mod moves;
pub(crate) mod pack;
mod routes;
pub(crate) mod seeds;
pub(crate) mod short;
mod topics;
mod view;
mod ways;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use althing::remote::Cluster;
use althing::{ActorId, Incarnation, KindName, Node, ShutdownReport, Topic, WeakNode};
use parking_lot::{Mutex, ReentrantMutex};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

pub(crate) use self::config::FRAME_LEN_MAX_DEFAULT;
pub use self::config::{MemberConfig, Role};
use self::delivery::Parked;
pub use self::groups::{GroupError, SharedGroup};
use self::keeper::Wants;
pub use self::moves::MoveError;
use self::routes::Core;
pub use self::topics::TopicError;
pub use self::view::{Neighbour, View};
use crate::bucket::bucket_of;
use crate::capability::is_of_client;
use crate::clock;
use crate::farewell::Farewell;
use crate::label::{Labels, check_labels};
use crate::link::accept::{self, Peer};
use crate::record::check_len;
use crate::tls::{self, Guard, Refusals};
use crate::transport;
use crate::waiters;
use crate::worker::Worker;

/// What a node may do at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It is no member yet.
    Joining,
    /// It has its lease.
    Serving,
    /// Its lease has run out, and it runs nothing until the authority renews it.
    Frozen,
    /// Others have its buckets; the node was killed. A new node has to be built.
    Evicted,
    /// It left.
    Left,
}

impl State {
    fn has_ended(self) -> bool {
        matches!(self, Self::Evicted | Self::Left)
    }
}

/// Why a node did not become a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Another member has the name, for as long as `join` waited. A node that was killed keeps its
    /// name until its lease has run out.
    #[error("a member is called `{0}` already")]
    NameTaken(String),
    /// No authority answered in time at these addresses.
    #[error("no authority answers at {0}")]
    Unreachable(String),
    /// An authority answered, and one side does not trust the other: it says why.
    #[error("no authority that is trusted: {0}")]
    Untrusted(String),
    /// No node was built with this member's `way`.
    #[error("no node was built with this member's way")]
    NoNode,
}

/// One node's membership of a cluster. When it is dropped, the node is killed, and the others miss it
/// like one that crashed; [`Member::leave`] first.
pub struct Member {
    shared: Arc<Shared>,
    address: SocketAddr,
    worker: Worker,
    listener: Mutex<Option<TcpListener>>,
}

/// What the tasks of a member share.
pub(crate) struct Shared {
    pub(crate) config: MemberConfig,
    pub(crate) guard: Arc<Guard>,
    address: String,
    node: OnceLock<WeakNode>,
    me: AtomicU64,
    /// The view with which this node became a member.
    since: AtomicU64,
    core: Mutex<Core>,
    /// Whose turn it is to change what is under way: an item is handled to its end, its delivery
    /// included, before the next one or a record is. Each task takes it before any other lock.
    pub(super) turn: ReentrantMutex<()>,
    /// The runtime of the node, where its actors run: what comes is read there.
    runtime: OnceLock<tokio::runtime::Handle>,
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    parked: Mutex<HashMap<ActorId, Parked>>,
    /// Asks that came from other nodes and are not answered.
    owed: Arc<AtomicUsize>,
    /// End of the lease by `clock`, in nanoseconds; 0 without one.
    lease_until: AtomicU64,
    state: watch::Sender<State>,
    pub(crate) view: watch::Sender<u64>,
    wants: watch::Sender<Wants>,
    /// Changes when another node has said something to what this one listens to.
    hearing: watch::Sender<()>,
    /// Buckets whose actors have stopped, and the epochs that ended.
    released: Mutex<HashMap<u32, u64>>,
    renewed: Notify,
    /// Buckets that are to live on a certain node.
    pinned: Mutex<HashMap<u32, u64>>,
    /// Clients that are connected.
    pub(super) clients: AtomicUsize,
    groups: groups::Groups,
    joined: Mutex<groups::Joined>,
    /// Held while a group is shown a change.
    showing: Mutex<()>,
    farewell: Mutex<Farewell>,
    will_relocate: AtomicBool,
    handle: tokio::runtime::Handle,
}

impl Member {
    /// Binds the node's address. The node itself is built next, with [`Member::way`], and joins by
    /// [`Member::join`].
    ///
    /// # Errors
    /// The address is taken, the name ends in `.client`, the name has more than 253 bytes or the
    /// advertised address more than 512, a label is none or there are more than 16, frames are shorter
    /// than 8,192 bytes, or the certificate cannot be used or is not for this node.
    pub fn bind(config: MemberConfig) -> io::Result<Self> {
        if is_of_client(&config.name) {
            let text = format!("`{}` is a client's name: no node has it", config.name);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        check_len(&config.name, config.advertised.as_deref().unwrap_or_default())
            .map_err(invalid)?;
        check_labels(&config.labels).map_err(invalid)?;
        config.check_frame_len().map_err(invalid)?;
        let guard = Guard::open(&config.tls, &config.cluster, Some(&config.name))?;
        let listener = transport::bind(config.listen, &guard)?;
        let address = listener.local_addr()?;
        let worker = Worker::start("althing-cluster")?;
        let listener = {
            let _runtime = worker.handle().enter();
            TcpListener::from_std(listener)?
        };
        let advertised = config.advertised.clone().unwrap_or_else(|| address.to_string());
        let shared = Shared {
            config,
            guard,
            address: advertised,
            node: OnceLock::new(),
            me: AtomicU64::new(0),
            since: AtomicU64::new(0),
            core: Mutex::new(Core::new(0, 0)),
            turn: ReentrantMutex::new(()),
            runtime: OnceLock::new(),
            peers: Mutex::default(),
            parked: Mutex::default(),
            owed: Arc::default(),
            lease_until: AtomicU64::new(0),
            state: watch::Sender::new(State::Joining),
            view: watch::Sender::new(0),
            wants: watch::Sender::new(Wants::default()),
            hearing: watch::Sender::default(),
            released: Mutex::default(),
            renewed: Notify::new(),
            pinned: Mutex::default(),
            clients: AtomicUsize::new(0),
            groups: Mutex::default(),
            joined: Mutex::default(),
            showing: Mutex::default(),
            farewell: Mutex::default(),
            will_relocate: AtomicBool::new(false),
            handle: worker.handle().clone(),
        };
        let listener = Mutex::new(Some(listener));
        Ok(Self { shared: Arc::new(shared), address, worker, listener })
    }

    /// Where other nodes connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For `NodeBuilder::cluster`, of one node. The runtime in which that is built reads what other
    /// nodes send: it needs I/O (`enable_all`).
    pub fn way(&self) -> Arc<dyn Cluster> {
        Arc::new(ways::Way(self.shared.clone()))
    }

    /// Makes the node a member; resolves when it has its lease.
    ///
    /// # Errors
    /// See [`JoinError`], after [`MemberConfig::join_timeout`]. The member goes on trying, and `join`
    /// can be called again. A process that ends instead has to be started again by its orchestrator;
    /// if it became a member at that moment, its next life waits for the end of that lease.
    pub async fn join(&self) -> Result<(), JoinError> {
        if self.shared.node.get().is_none() {
            return Err(JoinError::NoNode);
        }
        if let Some(listener) = self.listener.lock().take() {
            self.worker.spawn(accept::serve(self.shared.clone(), listener));
            self.worker.spawn(keeper::keep(self.shared.clone()));
            self.worker.spawn(keeper::watch_lease(self.shared.clone()));
            self.worker.spawn(tls::look_on(self.shared.guard.clone()));
            let shared = self.shared.clone();
            self.worker.spawn(waiters::look_again(move || shared.wake_senders()));
        }
        let mut state = self.shared.state.subscribe();
        let joined = state.wait_for(|state| *state != State::Joining);
        let config = &self.shared.config;
        if timeout(config.join_timeout, joined).await.is_ok() {
            return Ok(());
        }
        let wants = self.shared.wants.borrow();
        Err(match &wants.untrusted {
            _ if wants.is_name_taken => JoinError::NameTaken(config.name.clone()),
            Some(why) => JoinError::Untrusted(why.clone()),
            None => JoinError::Unreachable(config.authorities.join(", ")),
        })
    }

    /// Connections to and from this node that came to nothing because one side did not trust the
    /// other.
    pub fn refusals(&self) -> Refusals {
        self.shared.guard.strangers.counts()
    }

    /// What the node may do at present, and each change of that.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// What the node knows of the cluster.
    pub fn view(&self) -> View {
        self.shared.sight()
    }

    /// The number of the view, and each change of it.
    pub fn views(&self) -> watch::Receiver<u64> {
        self.shared.view.subscribe()
    }

    /// Whether that life of a node is a member, as this node knows it.
    pub fn has(&self, node: Incarnation) -> bool {
        self.shared.is_member(node.0)
    }

    /// The member that owns the actor's name, as this node knows it; for an anonymous actor the one
    /// that started it.
    pub fn owner_of(&self, id: &ActorId) -> Option<Incarnation> {
        let Some(bucket) = bucket_of(id) else { return id.origin().map(|(node, _)| node) };
        let owner = self.shared.core.lock().router.record().holding(bucket).owner;
        owner.map(Incarnation)
    }

    /// The member to which the actor's bucket is moving, as this node knows; `None` if it stays.
    /// An actor that is stopping because it moves can send ahead what its next life needs.
    pub fn heir_of(&self, id: &ActorId) -> Option<Incarnation> {
        let heir = self.shared.core.lock().router.record().holding(bucket_of(id)?).going_to;
        heir.map(Incarnation)
    }

    /// Resolves once all members know that this node subscribes to the topic: what they publish
    /// from then on reaches its subscribers. Members that join later learn it by themselves; if one
    /// has published before it did, subscribers see a gap.
    ///
    /// # Errors
    /// See [`TopicError`].
    pub async fn subscribed<T: Send + Sync + 'static>(
        &self,
        topic: &Topic<T>,
    ) -> Result<(), TopicError> {
        let event = topic.event().ok_or_else(|| TopicError::of_local::<T>(topic.name()))?;
        topics::subscribed(&self.shared, topic.name(), event).await
    }

    /// Has an actor live on the node of that name, with all others of its bucket, one of 4,096, from
    /// the next moment on at which nothing of it runs; it stays there as long as that node is a
    /// member and does not leave. Resolves when the bucket is there, as this node knows.
    ///
    /// # Errors
    /// See [`MoveError`].
    ///
    /// # Cancel safety
    /// Dropping the future does not take the move back.
    pub async fn move_to(&self, id: &ActorId, node: &str) -> Result<(), MoveError> {
        moves::bring(&self.shared, id, node).await
    }

    /// Leaves: the node's buckets are moved to others while it goes on passing messages, then its
    /// last actors stop, then it is no member. What takes longer than `deadline` is given up.
    ///
    /// Where no other node takes the buckets they wait for the next one that joins.
    pub async fn leave(&self, deadline: Duration) -> ShutdownReport {
        moves::leave(&self.shared, deadline).await
    }
}

/// Nobody watches over the lease from here on.
impl Drop for Member {
    fn drop(&mut self) {
        keeper::abandon(&self.shared);
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.shared.config.name)
            .field("address", &self.shared.address)
            .field("state", &*self.shared.state.borrow())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn me(&self) -> u64 {
        self.me.load(Ordering::Acquire)
    }

    /// Its labels, and those that the kinds ask for which it knows by now.
    fn labels(&self) -> Labels {
        let kinds = self.node().map(|node| node.kinds()).unwrap_or_default();
        Labels::new(&self.config.labels, kinds.iter().map(KindName::as_str))
    }

    fn node(&self) -> Option<Node> {
        self.node.get().and_then(WeakNode::upgrade)
    }

    /// Whether the node has its lease at this moment.
    pub(crate) fn is_serving(&self) -> bool {
        let until = Duration::from_nanos(self.lease_until.load(Ordering::Acquire));
        clock::now() < until
    }

    /// The runtime of the node, if it was built in one.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.runtime.get().unwrap_or(&self.handle)
    }

    pub(crate) fn is_member(&self, who: u64) -> bool {
        self.core.lock().router.record().member(who).is_some()
    }

    /// The name of a member.
    pub(crate) fn name_of(&self, who: u64) -> Option<String> {
        self.core.lock().router.record().member(who).map(|member| member.name.clone())
    }

    /// What has come from that life of another node.
    pub(crate) fn peer(&self, who: u64) -> Arc<Peer> {
        self.peers.lock().entry(who).or_default().clone()
    }

    /// Whether an item of a node that knew the record `view` may be handled.
    pub(crate) fn may_handle(&self, view: u64) -> bool {
        *self.view.borrow() >= view && self.is_serving()
    }

    /// Resolves when it may.
    pub(crate) async fn ready_to_handle(&self, view: u64) {
        let mut views = self.view.subscribe();
        while !self.may_handle(view) {
            let renewed = self.renewed.notified();
            if self.may_handle(view) {
                return;
            }
            tokio::select! {
                () = renewed => {}
                changed = views.changed() => if changed.is_err() { return },
            }
        }
    }
}
