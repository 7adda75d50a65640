//! The store on a PostgreSQL server, for several nodes that share it.
//!
//! Actors are dealt onto a few connections by a hash of their identity. Each connection has a task
//! that takes what has gathered and writes it in one transaction, so the calls of one actor keep
//! their order though there are several connections.
//!
//! Nothing is answered before the server has committed. Memory is bounded: a queue that is full
//! refuses. While the server cannot be reached calls wait, and are refused once they have waited
//! too long; the connection comes back by itself.

mod deliveries;
mod queue;
mod rows;
mod session;
mod statements;
mod tables;
mod writer;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorId, Epoch, Timestamp};
use althing_postgres::{Server, UrlError};
use futures_util::future::try_join_all;
use tokio::sync::oneshot;

use self::queue::{Job, Queue, Reply, Task};
use self::session::Session;
use self::writer::Writer;
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::store::{Answer, Event, Kept, Store, StoreError, Turn, check_names, in_order, with_key};

/// Bytes of a kind and a key together: what an entry of PostgreSQL's index holds (2,704), less its
/// own overhead.
const NAME_BYTES_MAX: usize = 2_000;

/// Bytes of the kind, the key and the name of a delivery together, which are in one entry of an
/// index, too.
const DELIVERY_NAME_BYTES_MAX: usize = 2_600;

/// Bytes of one turn, whatever the options say: PostgreSQL's values end at 1 GB. A statement too
/// large to be sent would leave the rest of its transaction alone.
const TURN_BYTES_MAX: usize = 256 << 20;

/// How long one attempt to connect may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Keeps state in tables `althing_…` of a PostgreSQL database (13 or later), which it makes and
/// migrates itself.
///
/// The server must be reached directly or through a pooler that gives out whole sessions.
/// The URL says whether connections are encrypted and whose certificates are believed, by `sslmode`
/// and `sslrootcert` as libpq has them (`verify-full` is the safe one; without a word they are
/// encrypted if the server can). Dropping it lets what was called before be written.
///
/// ```no_run
/// use althing_store::Postgres;
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Postgres::connect("postgres://chat@127.0.0.1/chat").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Postgres {
    /// One for each connection.
    queues: Vec<Arc<Queue>>,
}

/// How a [`Postgres`] uses its server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Connections, each with its own queue; one at least.
    pub connections: usize,
    /// How long the server may take for one step of a transaction before its connection is given
    /// up.
    pub answer_within: Duration,
    /// How long a call waits for a server that cannot be reached before it is refused; so long it
    /// also waits, while it connects, for others that make or migrate the tables.
    pub wait_within: Duration,
    /// Calls that wait for one connection, at most.
    pub queue_calls_max: usize,
    /// Bytes that wait for one connection, at most; and so those of one turn, which has 256 MiB at
    /// most.
    pub queue_bytes_max: usize,
}

/// What is wrong with the server or the way to it: the cause in [`StoreError::Unavailable`] and
/// [`StoreError::Unknown`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The URL cannot be read, or the certificates that it names.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The server refused something, or the connection broke.
    #[error("{}", with_sources(.0))]
    Server(#[from] tokio_postgres::Error),
    /// The server took too long.
    #[error("the server did not answer within {0:?}")]
    NoAnswer(Duration),
    /// The tables were made by a later version of this library.
    #[error("the tables have format {found}, and {known} is the last that this version knows")]
    Later {
        /// Their format.
        found: i32,
        /// The last known one.
        known: i32,
    },
    /// Too much waits already.
    #[error("{calls} calls with {bytes} bytes wait already, and that is the limit")]
    QueueFull {
        /// Calls that wait.
        calls: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The call has waited for a server that could not be used.
    #[error("waited {waited:?} for the server: {cause}")]
    Unreachable {
        /// How long.
        waited: Duration,
        /// What went wrong last.
        cause: Arc<PostgresError>,
    },
    /// The runtime in which the store was connected has ended.
    #[error("the store's runtime has ended")]
    Ended,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 4,
            answer_within: Duration::from_secs(10),
            wait_within: Duration::from_secs(10),
            queue_calls_max: 16_384,
            queue_bytes_max: 64 << 20,
        }
    }
}

impl Postgres {
    /// Connects to a server by its URL, and makes or migrates the tables.
    ///
    /// # Errors
    /// The URL cannot be read, the server cannot be used, or its tables are of a later version.
    pub async fn connect(url: &str) -> Result<Self, PostgresError> {
        Self::connect_with(url, PostgresOptions::default()).await
    }

    /// As `connect`, with options.
    ///
    /// # Errors
    /// As `connect`.
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, PostgresError> {
        let mut server: Server = url.parse()?;
        let config = &mut server.config;
        config.connect_timeout(CONNECT_WITHIN).tcp_user_timeout(options.answer_within);
        if config.get_application_name().is_none() {
            config.application_name("althing-store");
        }
        let within = options.wait_within;
        let migrated = tokio::time::timeout(within, tables::migrate(&server)).await;
        migrated.map_err(|_| PostgresError::NoAnswer(within))??;
        let sessions = (0..options.connections.max(1)).map(|_| Session::connect(&server));
        let sessions = try_join_all(sessions).await?;
        let start = |session| {
            let queue = Arc::new(Queue::new(options.queue_calls_max, options.queue_bytes_max));
            tokio::spawn(
                Writer::new(queue.clone(), server.clone(), options.clone(), session).run(),
            );
            queue
        };
        Ok(Self { queues: sessions.into_iter().map(start).collect() })
    }

    fn ask<T: Send + 'static>(
        &self,
        id: &ActorId,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Answer<T> {
        let queue = with_key(id).and_then(|key| {
            let name = id.kind().as_str().len() + key.len();
            check_size(id, "name", name, NAME_BYTES_MAX)?;
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            let queue = &self.queues[hasher.finish() as usize % self.queues.len()];
            check_size(id, "turn", bytes, queue.bytes_max.min(TURN_BYTES_MAX))?;
            Ok((queue, bytes + name))
        });
        match queue {
            Ok((queue, bytes)) => push(queue, bytes, task),
            Err(refused) => Box::pin(async { Err(refused) }),
        }
    }
}

fn push<T: Send + 'static>(
    queue: &Queue,
    bytes: usize,
    task: impl FnOnce(Reply<T>) -> Task,
) -> Answer<T> {
    let (reply, answer) = oneshot::channel();
    let pushed = queue.push(Job::new(task(reply), bytes)).map_err(unavailable);
    Box::pin(async {
        pushed?;
        answer.await.unwrap_or_else(|_| Err(unknown(PostgresError::Ended)))
    })
}

fn check_size(
    id: &ActorId,
    what: &'static str,
    bytes: usize,
    max: usize,
) -> Result<(), StoreError> {
    if bytes <= max {
        return Ok(());
    }
    Err(StoreError::TooLarge { id: id.clone(), what, bytes, max })
}

/// # Errors
/// Somebody in the turn has no key, or a delivery's name does not fit.
fn check_turn(turn: &Turn) -> Result<(), StoreError> {
    check_names(turn)?;
    let owner = turn.id.kind().as_str().len() + with_key(&turn.id)?.len();
    for posting in &turn.postings {
        if let Posting::Put(delivery) = posting {
            let name = owner + delivery.name.len();
            check_size(&turn.id, "delivery's name", name, DELIVERY_NAME_BYTES_MAX)?;
        }
    }
    Ok(())
}

fn unavailable(error: impl Into<Arc<PostgresError>>) -> StoreError {
    let error: Arc<PostgresError> = error.into();
    StoreError::Unavailable(error)
}

fn unknown(error: impl Into<Arc<PostgresError>>) -> StoreError {
    let error: Arc<PostgresError> = error.into();
    StoreError::Unknown(error)
}

/// An error of the driver says no more than "db error"; what the server said is in its sources.
fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Store for Postgres {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        let id_ = id.clone();
        self.ask(id, 0, |reply| Task::Open(id_, epoch, reply))
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        if let Err(refused) = check_turn(&turn) {
            return Box::pin(async { Err(refused) });
        }
        let (id, bytes) = (turn.id.clone(), turn.bytes());
        self.ask(&id, bytes, |reply| Task::Commit(Box::new(turn), reply))
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        let id_ = id.clone();
        self.ask(id, 0, |reply| Task::Events(id_, after, limit, reply))
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        if let Some(Err(refused)) = after.as_ref().map(|mark| with_key(&mark.owner).map(drop)) {
            return Box::pin(async { Err(refused) });
        }
        push(&self.queues[0], 0, |reply| Task::Due(until, after, limit, reply))
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        let names = in_order(names);
        let bytes = names.iter().map(|(_, name)| size_of::<(ActorId, String)>() + name.len()).sum();
        push(&self.queues[0], bytes, |reply| Task::LeftBefore(names, limit, reply))
    }

    fn settle(&self, mut settled: Vec<Settled>) -> Answer<()> {
        // Nobody without a key has left anything.
        settled.retain(|settled| settled.mark.owner.key().is_some());
        let bytes = settled.iter().map(|it| size_of::<Settled>() + it.mark.name.len()).sum();
        push(&self.queues[0], bytes, |reply| Task::Settle(settled, reply))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}
