//! What one server consists of: its node, store, settings and limits. Everything hangs off a
//! `Server`, so two of them fit into one process, and so into one test.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use althing::{Actor, ActorRef, Incarnation, Node, Start, Topic, TopicOptions};
use folkmoot_gateway::{Door, Doorman, Network, Room as Doorway, Tls, raise_descriptors};
use folkmoot_protocol::Channel;
use tokio::sync::watch;

use crate::account::familiar::Familiar;
use crate::account::pool::PasswordPool;
use crate::account::token::{Token, TokenHash};
use crate::attachment::Attachments;
use crate::attachment::of_user::UserUploads;
use crate::config::Config;
use crate::goodbye::Goodbye;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::nodes::{Moved, Nodes, NotHeard};
use crate::open_rooms::OpenRooms;
use crate::ports::{self, ActorLimits, Common, Feed, Others, Ports};
use crate::pulse::Pulse;
use crate::room::{AskedRoom, Room};
use crate::rounds::Rounds;
use crate::search::{Index, Search};
use crate::settings::Settings;
use crate::setup::Setup;
use crate::storage::contract::{
    Administration, ChangeFeed, Directory, Erasure, Files, Keeping, StreamLog,
};
use crate::storage::{Lost, ReadError, Record, RoomId, SignedIn, Store, UnixMillis, UserId};
use crate::stream::{Coming, Publication};
use crate::user::User;

/// How long actors may take to finish on shutdown before they are abandoned.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How old the note of when a device was seen may become: one record an hour for a busy one.
const SEEN_AGAIN_AFTER: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) config: Config,
    store: Store,
    pub(crate) attachments: Attachments,
    /// Rooms and accounts that are to be erased.
    pub(crate) deletions: Rounds,
    /// Messages that are kept no longer.
    pub(crate) keeper: Rounds,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) limits: Limits,
    pub(crate) pulse: Pulse,
    /// How the first administrator is made.
    pub(crate) setup: Setup,
    pub(crate) settings: Settings,
    pub(crate) doorman: Arc<Doorman>,
    /// Unset: connections are in the clear.
    tls: OnceLock<Arc<Tls>>,
    pub(crate) passwords: PasswordPool,
    /// From where accounts were signed in to.
    pub(crate) familiar: Familiar,
    pub(crate) started_at: UnixMillis,
    /// `None`: switched off, or its directory cannot be written.
    pub(crate) search: Option<Search>,
    ports: Ports,
    /// `None`: the server is alone.
    nodes: Option<Arc<Nodes>>,
    /// Tells sessions that rooms and users may live elsewhere now.
    moves: Topic<Moved>,
    stopping: watch::Sender<bool>,
    goodbye: Goodbye,
    connections: watch::Sender<usize>,
    /// Rooms that every new account is let into; only a demo has some.
    open_rooms: OnceLock<OpenRooms>,
}

/// What else a server begins with.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    pub(crate) setup: Setup,
    pub(crate) settings: Settings,
    /// `None`: it is alone.
    pub(crate) nodes: Option<Nodes>,
}

/// Counts as a connection until dropped.
#[derive(Debug)]
pub(crate) struct Connected(Arc<Server>);

impl Server {
    /// A server on an open store, with the index of its messages and the files in them.
    pub(crate) fn new(
        config: Config,
        store: Store,
        index: Option<Index>,
        attachments: Attachments,
        beginning: Beginning,
    ) -> Arc<Self> {
        let kept = (store, index, attachments);
        Arc::new_cyclic(|server| Self::build(server, config, kept, beginning))
    }

    /// `server` is what is built: actors may ask for it once it is there.
    fn build(
        server: &Weak<Self>,
        config: Config,
        (store, index, attachments): (Store, Option<Index>, Attachments),
        beginning: Beginning,
    ) -> Self {
        let Beginning { setup, settings, nodes } = beginning;
        let nodes = nodes.map(Arc::new);
        let metrics = Arc::new(Metrics::default());
        let ports = {
            let (store, metrics) = (store.clone(), metrics.clone());
            let limits = ActorLimits {
                room_idle: config.room_idle,
                user_idle: config.user_idle,
                connections_per_user_max: config.gateway.connections_per_user_max,
            };
            let others = nodes.clone().map(|nodes| Box::new(nodes) as Box<dyn Others>);
            let common = Arc::new(Common { store, metrics, limits, others });
            move |node: Node| Ports::new(node, common.clone())
        };
        let (for_rooms, for_users) = (ports.clone(), ports.clone());
        let for_uploads = server.clone();
        let mut node = Node::builder("folkmoot")
            .actor(move |start: Start<Room>| {
                let (id, ports) = (start.key_as::<RoomId>(), for_rooms(start.node()));
                async move { Room::load(id?, ports).await }
            })
            .actor(move |start: Start<User>| {
                let (id, ports) = (start.key_as::<UserId>(), for_users(start.node()));
                async move { User::load(id?, ports).await }
            })
            .actor(move |start: Start<UserUploads>| {
                let (id, server) = (start.key_as::<UserId>(), for_uploads.clone());
                async move { Ok(UserUploads::new(id?, server)) }
            })
            .event::<Arc<Publication>>("folkmoot.publication")
            .event::<Arc<Coming>>("folkmoot.coming");
        if let Some(nodes) = &nodes {
            node = node.cluster(nodes.way());
        }
        let node = node.build();
        Self {
            deletions: Rounds::default(),
            keeper: Rounds::default(),
            metrics,
            limits: Limits::new(&config.limits),
            pulse: Pulse::default(),
            setup,
            settings,
            passwords: PasswordPool::default(),
            familiar: Familiar::default(),
            tls: OnceLock::new(),
            doorman: Doorman::new(room_at_the_door(&config)),
            started_at: ports::now(),
            search: index.map(|index| Search::start(&node, Feed::new(store.clone()), index)),
            stopping: watch::Sender::new(false),
            goodbye: Goodbye::new(),
            connections: watch::Sender::new(0),
            open_rooms: OnceLock::new(),
            moves: node.topic(ports::MOVES, TopicOptions { replay: 0 }),
            nodes,
            ports: ports(node),
            config,
            store,
            attachments,
        }
    }

    /// The streams of rooms and users.
    pub(crate) fn streams(&self) -> &(impl StreamLog + Directory + use<>) {
        self.ports.streams()
    }

    /// Who there is, and what they own.
    pub(crate) fn directory(&self) -> &(impl Directory + use<>) {
        &self.store
    }

    /// What is known of the files in messages.
    pub(crate) fn files(&self) -> &(impl Files + use<>) {
        &self.store
    }

    /// Resolves when the store is no longer this server's, and says why.
    pub(crate) async fn lost(&self) -> Lost {
        self.store.lost().await
    }

    /// Which messages changed, for an index and for who searches in it.
    pub(crate) fn changes(&self) -> &(impl ChangeFeed + use<>) {
        &self.store
    }

    /// The server as a whole.
    pub(crate) fn administration(&self) -> &(impl Administration + use<>) {
        &self.store
    }

    /// What deleting takes.
    pub(crate) fn erasure(&self) -> &(impl Erasure + use<>) {
        &self.store
    }

    /// How long messages are kept.
    pub(crate) fn keeping(&self) -> &(impl Keeping + use<>) {
        &self.store
    }

    /// The store itself, for tests that look behind its contract.
    #[cfg(test)]
    pub(crate) fn embedded(&self) -> &Store {
        &self.store
    }

    pub(crate) fn node(&self) -> &Node {
        &self.ports.node
    }

    pub(crate) fn room(&self, room: RoomId) -> ActorRef<Room> {
        self.ports.node.get::<Room>(room)
    }

    /// A room to be asked something that depends on who asks.
    pub(crate) fn asked(&self, room: RoomId) -> AskedRoom<'_> {
        AskedRoom::new(&self.ports, room)
    }

    pub(crate) fn user(&self, user: UserId) -> ActorRef<User> {
        self.ports.node.get::<User>(user)
    }

    /// The files of a user that come in pieces.
    pub(crate) fn uploads(&self, user: UserId) -> ActorRef<UserUploads> {
        self.ports.node.get::<UserUploads>(user)
    }

    /// Whether somebody may be in memory, here or on the node where they live.
    pub(crate) fn may_be_active<A: Actor>(&self, actor: &ActorRef<A>) -> bool {
        self.ports.may_be_active(actor)
    }

    /// The live events of a channel.
    pub(crate) fn topic(&self, channel: Channel) -> Topic<Arc<Publication>> {
        self.ports.topic(channel)
    }

    /// The connections that come to a room and go.
    pub(crate) fn comings(&self, channel: Channel) -> Topic<Arc<Coming>> {
        self.ports.comings(channel)
    }

    /// The nodes of which this is one; `None`: the server is alone.
    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Whether clients may connect to this process.
    pub(crate) fn takes_connections(&self) -> bool {
        self.config.cluster.as_ref().is_none_or(|cluster| cluster.role.takes_connections())
    }

    /// Tells that rooms and users may live elsewhere now; only where there are several nodes.
    pub(crate) fn moves(&self) -> &Topic<Moved> {
        &self.moves
    }

    /// On which node a channel's room or user lives; `None` on a server alone.
    pub(crate) fn home_of(&self, channel: Channel) -> Option<Incarnation> {
        let nodes = self.nodes.as_ref()?;
        nodes.owner_of(&match channel {
            Channel::Room(room) => self.room(room).id(),
            Channel::User(user) => self.user(user).id(),
        })
    }

    /// Resolves once what is published in a channel from now on reaches this node, whichever node
    /// its room or user lives on. It was subscribed to before.
    pub(crate) async fn heard(&self, channel: Channel) -> Result<(), NotHeard> {
        match &self.nodes {
            None => Ok(()),
            Some(nodes) => nodes.heard(&self.topic(channel)).await,
        }
    }

    /// In which offsets count: that of the data directory.
    pub(crate) fn epoch(&self) -> &str {
        self.ports.epoch()
    }

    pub(crate) fn now(&self) -> UnixMillis {
        ports::now()
    }

    /// Whom a token belongs to; nobody, if its device was not seen for too long.
    pub(crate) async fn signed_in(&self, token: &Token) -> Result<Option<SignedIn>, ReadError> {
        let Some(found) = self.store.signed_in(token.hash()).await? else { return Ok(None) };
        let now = self.now();
        let unseen_ms = now.as_u64().saturating_sub(found.seen_at.as_u64());
        let unseen = Duration::from_millis(unseen_ms);
        if self.config.session_max.is_some_and(|max| unseen > max) {
            return Ok(None);
        }
        if unseen > SEEN_AGAIN_AFTER {
            // Nobody waits for it: when a device was last seen may be a moment old after a crash.
            let seen = Record::DeviceSeen { device: found.device, at: now };
            drop(self.store.append(self.store.write_epoch(), &seen));
        }
        Ok(Some(found))
    }

    /// Whether a device is signed in that was before.
    pub(crate) async fn is_signed_in(&self, token: TokenHash) -> Result<bool, ReadError> {
        Ok(self.store.signed_in(token).await?.is_some())
    }

    /// Lets every account made from now on into these rooms.
    pub(crate) fn open_to_all(&self, rooms: OpenRooms) {
        let is_first = self.open_rooms.set(rooms).is_ok();
        debug_assert!(is_first, "a server has one demo");
    }

    pub(crate) fn open_rooms(&self) -> Option<&OpenRooms> {
        self.open_rooms.get()
    }

    /// Encrypts connections from now on.
    pub(crate) fn encrypt(&self, tls: Tls) {
        let is_first = self.tls.set(Arc::new(tls)).is_ok();
        debug_assert!(is_first, "a server has one certificate");
    }

    /// What connections are encrypted by; `None`: by nothing.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.get()
    }

    /// What every connection passes.
    pub(crate) fn door(&self) -> Door {
        Door {
            doorman: self.doorman.clone(),
            header_timeout: self.config.gateway.header_timeout,
            tls: self.tls.get().cloned(),
            stopping: self.stopping(),
        }
    }

    /// Turns true when the server begins to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Counts a connection.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.send_modify(|count| *count += 1);
        Connected(self.clone())
    }

    /// How many connections there are.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.connections.subscribe()
    }

    /// When connections of clients are told that the server stops.
    pub(crate) fn goodbye(&self) -> &Goodbye {
        &self.goodbye
    }

    /// Takes no more connections, and ends what is done beside them.
    pub(crate) fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Ends the actors, then the store: what was appended is on disk afterwards.
    pub(crate) async fn close(&self) {
        let report = match &self.nodes {
            None => self.ports.node.shutdown(SHUTDOWN_TIMEOUT).await,
            Some(nodes) => nodes.leave(SHUTDOWN_TIMEOUT).await,
        };
        tracing::debug!(?report, "the actors have stopped");
        self.store.close().await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.send_modify(|count| *count -= 1);
    }
}

/// As many connections as the settings allow, and never more than there are descriptors for.
fn room_at_the_door(config: &Config) -> Doorway {
    let possible = raise_descriptors();
    let connections_max = config.gateway.connections_max.unwrap_or(possible).min(possible);
    let mut unlimited = config.trusted_proxies.clone();
    // This machine itself: a proxy beside the server, or a test of its load.
    let own: [Network; 2] = ["127.0.0.0/8", "::1"].map(|own| own.parse().expect("a network"));
    unlimited.extend(own);
    let per_address_max = config.gateway.connections_per_address_max;
    Doorway { connections_max, per_address_max, unlimited }
}
