//! The cluster as somebody sees it who is no node: it tells and asks actors, looks at nodes, and has
//! actors moved, as far as its certificate says that it may.
//!
//! A client is connected to one node at a time, which passes on what it sends, and to others while it
//! asks something about them. It has no lease and owns nothing, so it may come and go as it likes.

mod connection;
pub(crate) mod protocol;
mod seen;
#[cfg(test)]
mod tests;
mod under_way;
mod way;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorId, ActorKey, ActorRef, Node};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use self::connection::Connection;
use self::protocol::{Answer, Question};
pub use self::seen::{Changes, Found, FoundActor, Listed, NodeStatus};
use self::way::{Way, Ways};
use crate::capability::Capability;
use crate::label;
use crate::member::{FRAME_LEN_MAX_DEFAULT, View};
use crate::tls::{Guard, Tls};
use crate::transport::Whom;
use crate::waiters;

/// How long `connect` tries by default.
const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Pause between tries.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// How a client finds its cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Name of the cluster.
    pub cluster: String,
    /// Where some of its nodes are, each a host and a port; later ones are found by themselves.
    pub nodes: Vec<String>,
    /// The client's certificate, with names like `ada.look.client.shop.althing`, or plaintext.
    pub tls: Tls,
    /// Longest frame that is sent or read; a longer message fails its ask.
    pub frame_len_max: usize,
    /// How long `connect` tries.
    pub connect_timeout: Duration,
}

impl ClientConfig {
    /// A client of that cluster, of which some nodes are at these addresses.
    pub fn new<A: Into<String>>(
        cluster: impl Into<String>,
        nodes: impl IntoIterator<Item = A>,
        tls: Tls,
    ) -> Self {
        Self {
            cluster: cluster.into(),
            nodes: nodes.into_iter().map(Into::into).collect(),
            tls,
            frame_len_max: FRAME_LEN_MAX_DEFAULT,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
        }
    }

    /// Sets how long `connect` tries.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the length of the longest frame.
    #[must_use]
    pub fn frame_len_max(mut self, bytes: usize) -> Self {
        self.frame_len_max = bytes;
        self
    }
}

/// Why a client got no answer. Nothing has changed, but where it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The certificate cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Certificate(String),
    /// No node answers at these addresses.
    #[error("no node answers: {0}")]
    Unreachable(String),
    /// A node answers, and one side does not trust the other.
    #[error("no node that is trusted: {0}")]
    Untrusted(String),
    /// The certificate does not say that its owner may do this.
    #[error("the certificate does not say `{0}`")]
    NotAllowed(Capability),
    /// The cluster has no actors of that kind.
    #[error("no actors are called `{0}`")]
    UnknownKind(String),
    /// The cluster has no node of that name, or the actor may not live on it.
    #[error("no node is called `{0}` that can do this")]
    UnknownNode(String),
    /// The node has not all labels that the actor's kind asks for.
    #[error("the node `{node}` lacks labels that {id} asks for: {labels}")]
    LacksLabels {
        /// The actor.
        id: ActorId,
        /// The node's name.
        node: String,
        /// Those that it lacks, separated by commas.
        labels: String,
    },
    /// No other node takes buckets.
    #[error("no other node takes what this one has")]
    NobodyElse,
    /// Somebody else has moved the actor elsewhere meanwhile.
    #[error("it was moved elsewhere meanwhile")]
    Overridden,
    /// It took too long; what was asked for may still happen.
    #[error("it took too long, and may still happen")]
    TimedOut,
    /// The connection ended first; what was asked for may still happen.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The node answered something that means nothing.
    #[error("the node `{0}` gave an answer that means nothing")]
    Nonsense(String),
}

/// A cluster, seen and spoken to from outside; see `docs/guide/src/cluster.md`.
///
/// Messages of one client to one actor arrive in their order, each at most once, as long as its
/// connection lives. When that breaks, the client connects to the same node or to another one; asks
/// under way fail as `AskError::NodeLost`, and tells under way may be lost. Messages that were not
/// sent yet wait for the next connection.
///
/// It takes two-way messages only: actors cannot be watched, stopped or killed through it, and
/// addresses of a client's own actors mean nothing to the cluster.
pub struct Client {
    guard: Arc<Guard>,
    config: Arc<ClientConfig>,
    way: Arc<Way>,
    node: Node,
    /// Connections to certain nodes, by name.
    others: Mutex<HashMap<String, Arc<Connection>>>,
    keeping: AbortHandle,
}

impl Client {
    /// Connects to one of the nodes. Runs in the present runtime, which needs I/O and time.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        let certificate = |error: std::io::Error| ClientError::Certificate(error.to_string());
        let guard = Guard::open(&config.tls, &config.cluster, None).map_err(certificate)?;
        let config = Arc::new(config);
        let known = Arc::new(Mutex::new(config.nodes.clone()));
        let until = Instant::now() + config.connect_timeout;
        let mut turn = 0;
        let connection = loop {
            match dial_any(&guard, &config, &known, turn).await {
                Ok(connection) => break connection,
                Err(error @ ClientError::Untrusted(_)) => return Err(error),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => sleep(RETRY_EVERY).await,
            }
            turn += 1;
        };
        let way = Arc::new(Way::default());
        let node = Node::builder("client").cluster(Arc::new(Ways(way.clone()))).build();
        let connection = Arc::new(connection);
        way.connected(&connection);
        let keep = keep(guard.clone(), config.clone(), known, way.clone(), connection);
        let waits = way.clone();
        let keeping = tokio::spawn(async move {
            tokio::join!(keep, waiters::look_again(|| waits.wake_senders()));
        });
        let keeping = keeping.abort_handle();
        Ok(Self { guard, config, way, node, others: Mutex::default(), keeping })
    }

    /// What the node that the client is connected to lets it do.
    pub fn capabilities(&self) -> Vec<Capability> {
        self.way.connection().map(|at| at.capabilities.clone()).unwrap_or_default()
    }

    /// The address of an actor of the cluster: what is sent to it goes where it lives. The kind has
    /// to be one with `wire`.
    ///
    /// # Errors
    /// `NotAllowed` without [`Capability::Talk`].
    pub fn get<A: Actor>(&self, key: impl ActorKey<A>) -> Result<ActorRef<A>, ClientError> {
        match self.way.connection() {
            Some(at) if !at.may(Capability::Talk) => Err(ClientError::NotAllowed(Capability::Talk)),
            _ => Ok(self.node.get::<A>(key)),
        }
    }

    /// What a node knows of the cluster.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Look`].
    pub async fn view(&self) -> Result<View, ClientError> {
        let at = self.any().await?;
        match at.ask(Question::View).await? {
            Answer::View(sight) => Ok(sight.into()),
            _ => Err(ClientError::Nonsense(at.name.clone())),
        }
    }

    /// The view now, and each later one.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Look`].
    pub async fn changes(&self) -> Result<Changes, ClientError> {
        let at = self.any().await?;
        if !at.may(Capability::Look) {
            return Err(ClientError::NotAllowed(Capability::Look));
        }
        Ok(Changes::new(at))
    }

    /// How a node is, as it says itself.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Look`].
    pub async fn status(&self, node: &str) -> Result<NodeStatus, ClientError> {
        let at = self.at(node).await?;
        match at.ask(Question::Status).await? {
            Answer::Status(condition) => Ok(condition.into()),
            _ => Err(ClientError::Nonsense(at.name.clone())),
        }
    }

    /// Actors that a node has in memory and whose kind or key holds `text`, 10,000 at most.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Look`].
    pub async fn actors(
        &self,
        node: &str,
        text: &str,
        limit: usize,
    ) -> Result<Listed, ClientError> {
        let at = self.at(node).await?;
        let question = Question::Actors { text: text.to_owned(), limit: limit as u64 };
        match at.ask(question).await? {
            Answer::Actors { actors, left } => Ok(Listed::new(actors, left)),
            _ => Err(ClientError::Nonsense(at.name.clone())),
        }
    }

    /// Where an actor lives, and what it does.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Look`].
    pub async fn find(&self, kind: &str, key: &str) -> Result<Found, ClientError> {
        let question = || Question::Find { kind: kind.to_owned(), key: key.to_owned() };
        let at = self.any().await?;
        let Answer::Found(found) = at.ask(question()).await? else {
            return Err(ClientError::Nonsense(at.name.clone()));
        };
        let Some(owner) = found.owner.clone().filter(|_| !found.is_here) else {
            return Ok(found.into());
        };
        let at = self.at(&owner).await?;
        match at.ask(question()).await? {
            Answer::Found(found) => Ok(found.into()),
            _ => Err(ClientError::Nonsense(at.name.clone())),
        }
    }

    /// Has an actor live on the node of that name, with all others of its bucket, one of 4,096; it
    /// stays there as long as that node does. Resolves when it has been moved.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Manage`]. `TimedOut` after `deadline`.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the move back.
    pub async fn move_to(
        &self,
        id: &ActorId,
        node: &str,
        deadline: Duration,
    ) -> Result<(), ClientError> {
        let Some(key) = id.key() else { return Err(ClientError::UnknownKind(id.to_string())) };
        let (kind, key) = (id.kind().as_str().to_owned(), key.to_string());
        let at = self.any().await?;
        let question = Question::Move { kind, key, to: node.to_owned() };
        match within(deadline, at.ask(question)).await {
            Err(why @ ClientError::UnknownNode(_)) => {
                Err(self.lacks_labels(id, node).await.unwrap_or(why))
            }
            ended => ended,
        }
    }

    /// Why an actor may not live on a node, if that is for its labels.
    async fn lacks_labels(&self, id: &ActorId, node: &str) -> Option<ClientError> {
        let view = self.view().await.ok()?;
        let node = view.members.into_iter().find(|member| member.name == node)?;
        let labels = label::lacking(id.kind().as_str(), &node.labels)?;
        Some(ClientError::LacksLabels { id: id.clone(), node: node.name, labels })
    }

    /// Has a node give all its buckets away, and take no others. It goes on as a member, for the
    /// actors without a name, until its process leaves. Resolves when it owns nothing.
    ///
    /// # Errors
    /// See [`ClientError`]; needs [`Capability::Manage`]. `TimedOut` after `deadline`.
    ///
    /// # Cancel safety
    /// Dropping the future does not take it back.
    pub async fn drain(&self, node: &str, deadline: Duration) -> Result<(), ClientError> {
        let at = self.at(node).await?;
        within(deadline, at.ask(Question::Drain)).await
    }

    /// The present connection, or the next one.
    async fn any(&self) -> Result<Arc<Connection>, ClientError> {
        let until = Instant::now() + self.config.connect_timeout;
        loop {
            if let Some(connection) = self.way.connection() {
                return Ok(connection);
            }
            if Instant::now() >= until {
                return Err(ClientError::Unreachable(self.config.nodes.join(", ")));
            }
            sleep(RETRY_EVERY).await;
        }
    }

    /// A connection to that node.
    async fn at(&self, node: &str) -> Result<Arc<Connection>, ClientError> {
        let at = self.any().await?;
        if at.name == node {
            return Ok(at);
        }
        let view = self.view().await;
        // Who may not look cannot know where the others are.
        let view = view?;
        let Some(member) = view.members.iter().find(|member| member.name == node) else {
            return Err(ClientError::UnknownNode(node.to_owned()));
        };
        let known = {
            let mut others = self.others.lock();
            others.retain(|_, other| !other.has_ended());
            let is_it = |other: &&Arc<Connection>| other.node == member.incarnation.0;
            others.get(node).filter(is_it).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        // Without the lock: who asks about another node does not wait for this one.
        let whom = Whom { address: &member.address, turn: 0, node: Some(node) };
        let dialled = Arc::new(Connection::dial(&self.guard, &self.config, &whom).await?);
        self.others.lock().insert(node.to_owned(), dialled.clone());
        Ok(dialled)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.keeping.abort();
        self.way.close();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.way.connection().map(|at| at.name.clone());
        f.debug_struct("Client").field("cluster", &self.config.cluster).field("at", &at).finish()
    }
}

async fn within(
    deadline: Duration,
    asking: impl Future<Output = Result<Answer, ClientError>>,
) -> Result<(), ClientError> {
    match timeout_at(Instant::now() + deadline, asking).await {
        Ok(answer) => answer.map(|_| ()),
        Err(_) => Err(ClientError::TimedOut),
    }
}

/// Connects to the first of the known nodes that answers. Of a name with several addresses another one
/// is tried first in each turn: one that hangs must not stand for all of them.
async fn dial_any(
    guard: &Arc<Guard>,
    config: &ClientConfig,
    known: &Mutex<Vec<String>>,
    turn: usize,
) -> Result<Connection, ClientError> {
    let addresses = known.lock().clone();
    let mut last = ClientError::Unreachable("no address is known".to_owned());
    for address in addresses {
        let whom = Whom { address: &address, turn, node: None };
        match Connection::dial(guard, config, &whom).await {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Keeps the client connected, and knows more nodes with each connection.
async fn keep(
    guard: Arc<Guard>,
    config: Arc<ClientConfig>,
    known: Arc<Mutex<Vec<String>>>,
    way: Arc<Way>,
    mut connection: Arc<Connection>,
) {
    loop {
        let mut views = connection.views();
        let learn = async {
            while views.changed().await.is_ok() {
                let sight = views.borrow_and_update().clone();
                let members = sight.iter().flat_map(|sight| &sight.members);
                let found: Vec<_> = members.map(|member| member.address.clone()).collect();
                let given = config.nodes.iter().filter(|given| !found.contains(given)).cloned();
                let mut all = found.clone();
                all.extend(given);
                *known.lock() = all;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = connection.ended() => {}
            () = learn => {}
        }
        let mut turn = 0;
        connection = loop {
            match dial_any(&guard, &config, &known, turn).await {
                Ok(next) => break Arc::new(next),
                Err(why) => tracing::debug!(%why, "a client is not connected"),
            }
            turn += 1;
            sleep(RETRY_EVERY).await;
        };
        way.connected(&connection);
    }
}
