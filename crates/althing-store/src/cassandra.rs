//! The store on Apache Cassandra or ScyllaDB, for several nodes that share it.
//!
//! An actor's head, state, youngest events, deliveries and replies are in one partition, so a turn
//! is one conditional batch: it is written as a whole where the head is at the epoch and the version
//! that it follows on, and not at all otherwise. Actors share partitions, and turns of one partition
//! that wait together are one batch, in which each actor's head is a condition. Older events are in
//! buckets, what is due in an index by the minute.
//!
//! Nothing is answered before a majority of the replicas has it. A write of which nobody knows is
//! first excluded from taking effect any more and then looked for; only if that fails, too, is it
//! answered as unknown. Memory is bounded: what is full refuses.

mod batch;
mod core;
mod due;
mod head;
mod journal;
mod lanes;
mod left;
mod names;
mod patience;
mod session;
mod settle;
mod statements;
mod tables;
mod together;

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorId, Epoch, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::core::{AtWork, Core, work};
use self::due::Minutes;
use self::lanes::{Job, Lane, Lanes, Reply, Task};
use self::names::Names;
use self::session::Session;
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::store::{Answer, Event, Kept, Store, StoreError, Turn, check_names, in_order, with_key};

/// Bytes of a kind and a key together, and of a delivery's name: Cassandra's keys end at 64 KiB,
/// and the index has both in one.
const NAME_BYTES_MAX: usize = 8_192;

/// Bytes of one turn, whatever the options say: with what the server adds it must fit into half of
/// a segment of its log, and into a frame, which are 16 MiB by default.
const TURN_BYTES_MAX: usize = 8 << 20;

/// Events, postings and replies of one turn: a batch has 65,535 statements at most.
const TURN_CHANGES_MAX: usize = 32_768;

/// Less than the times after which the index of what is due takes something for left over.
const ANSWER_WITHIN_MAX: Duration = Duration::from_secs(60);
const WAIT_WITHIN_MAX: Duration = Duration::from_secs(300);

/// Keeps state in tables `althing_…` of a keyspace of Apache Cassandra (4.1 or later) or ScyllaDB,
/// which it makes and migrates itself.
///
/// What is acknowledged is as durable as the servers make it: with `commitlog_sync: batch` (or
/// `group`) it survives the end of every machine, with Cassandra's default of `periodic` that of a
/// minority of the replicas. ScyllaDB needs a keyspace that has conditional writes. Clocks of
/// the nodes that use it may differ by half a minute. Connections are not encrypted: use a network
/// that you trust. Dropping it lets what was called before be written.
///
/// ```no_run
/// use althing_store::Cassandra;
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Cassandra::connect(&["10.0.0.1:9042", "10.0.0.2:9042"]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Cassandra {
    core: Arc<Core>,
    runtime: Handle,
}

/// How a [`Cassandra`] uses its servers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CassandraOptions {
    /// Where the tables are: lower-case letters, digits and underscores, 48 of them at most.
    pub keyspace: String,
    /// Replicas in each data centre, if the keyspace is made.
    pub replicas: u32,
    /// Partitions into which actors are dealt, if the tables are made; what was said first holds for
    /// ever. Turns of one partition that wait at the same time are agreed upon as one, so fewer
    /// partitions make more commits a second, and larger partitions: the number should keep each
    /// below some 100 MB. Multiples of 4,096 fit a cluster of Althing, in which one node at a time
    /// writes into each; with less, nodes keep each other waiting, so 64 is for one process alone.
    pub partitions: usize,
    /// User and password, if the servers want them.
    pub login: Option<(String, String)>,
    /// How long the servers may take for one answer; a minute at most.
    pub answer_within: Duration,
    /// How long a call waits for servers that cannot be used before it is refused; five minutes at
    /// most.
    pub wait_within: Duration,
    /// Calls that wait or are under way, at most.
    pub calls_max: usize,
    /// Bytes that wait or are under way, at most; and so those of one turn, which has 8 MiB at
    /// most.
    pub bytes_max: usize,
}

/// What is wrong with the servers or the way to them: the cause in [`StoreError::Unavailable`] and
/// [`StoreError::Unknown`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassandraError {
    /// The servers refused something, or a connection broke.
    #[error("{0}")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The servers took too long.
    #[error("the servers did not answer within {0:?}")]
    NoAnswer(Duration),
    /// The keyspace's name is none.
    #[error(
        "`{0}` is no name for a keyspace: it has lower-case letters, digits and underscores, begins \
         with a letter and has 48 characters at most"
    )]
    Keyspace(String),
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
    /// The call has waited for servers that could not be used.
    #[error("waited {waited:?} for the servers: {cause}")]
    Unreachable {
        /// How long.
        waited: Duration,
        /// What went wrong last.
        cause: Arc<CassandraError>,
    },
    /// The runtime in which the store was connected has ended.
    #[error("the store's runtime has ended")]
    Ended,
}

impl Default for CassandraOptions {
    fn default() -> Self {
        Self {
            keyspace: "althing".to_owned(),
            replicas: 3,
            partitions: 4_096,
            login: None,
            answer_within: Duration::from_secs(10),
            wait_within: Duration::from_secs(30),
            calls_max: 65_536,
            bytes_max: 64 << 20,
        }
    }
}

impl Cassandra {
    /// Connects to a cluster by some of its nodes, each a host and a port, and makes or migrates
    /// the keyspace and its tables.
    ///
    /// # Errors
    /// No node can be used, or the tables are of a later version.
    pub async fn connect(nodes: &[impl AsRef<str>]) -> Result<Self, CassandraError> {
        Self::connect_with(nodes, CassandraOptions::default()).await
    }

    /// As `connect`, with options.
    ///
    /// # Errors
    /// As `connect`, or the keyspace has no name.
    pub async fn connect_with(
        nodes: &[impl AsRef<str>],
        mut options: CassandraOptions,
    ) -> Result<Self, CassandraError> {
        options.answer_within = options.answer_within.min(ANSWER_WITHIN_MAX);
        options.wait_within = options.wait_within.min(WAIT_WITHIN_MAX);
        let session = Session::connect(nodes, &options).await?;
        let lanes = Lanes::new(options.calls_max, options.bytes_max);
        let (names, minutes) = (Names::new(), Minutes::default());
        let core = Core { session, lanes, options, names, minutes };
        Ok(Self { core: Arc::new(core), runtime: Handle::current() })
    }

    fn ask<T: Send + 'static>(
        &self,
        id: &ActorId,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        let pushed = self.check(id, bytes).and_then(|bytes| {
            self.core.lanes.push(id, Job::new(task(reply), bytes)).map_err(unavailable)
        });
        if let Ok(Lane::Idle) = pushed {
            let at_work = AtWork::new(self.core.lanes.clone());
            self.runtime.spawn(work(self.core.clone(), id.clone(), at_work));
        }
        Box::pin(async {
            pushed?;
            answer.await.unwrap_or_else(|_| Err(unknown(CassandraError::Ended)))
        })
    }

    fn check(&self, id: &ActorId, bytes: usize) -> Result<usize, StoreError> {
        let name = id.kind().as_str().len() + with_key(id)?.len();
        check_size(id, "name", name, NAME_BYTES_MAX)?;
        check_size(id, "turn", bytes, self.core.lanes.bytes_max.min(TURN_BYTES_MAX))?;
        Ok(bytes + name)
    }

    /// Does something that is no actor's, in its own task, as often as it takes.
    fn run<T, F>(&self, bytes: usize, task: impl FnOnce(Arc<Core>, Instant) -> F) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let room = match self.core.lanes.enter(bytes) {
            Ok(room) => room,
            Err(full) => return Box::pin(async { Err(unavailable(full)) }),
        };
        let task = task(self.core.clone(), Instant::now());
        let done = self.runtime.spawn(async {
            let done = task.await;
            drop(room);
            done
        });
        Box::pin(async { done.await.unwrap_or_else(|_| Err(unknown(CassandraError::Ended))) })
    }
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

fn unavailable(error: impl Into<Arc<CassandraError>>) -> StoreError {
    let error: Arc<CassandraError> = error.into();
    StoreError::Unavailable(error)
}

fn unknown(error: impl Into<Arc<CassandraError>>) -> StoreError {
    let error: Arc<CassandraError> = error.into();
    StoreError::Unknown(error)
}

/// # Errors
/// Somebody in the turn has no key, a name is too long, or there are too many changes.
fn check_turn(turn: &Turn) -> Result<(), StoreError> {
    check_names(turn)?;
    let changes = turn.events.len() + turn.postings.len() + turn.replies.len();
    if changes > TURN_CHANGES_MAX {
        let id = turn.id.clone();
        return Err(StoreError::TooMany { id, changes, max: TURN_CHANGES_MAX });
    }
    for posting in &turn.postings {
        let name = match posting {
            Posting::Put(delivery) => {
                let to = &delivery.letter.to;
                let bytes = to.kind().as_str().len() + with_key(to)?.len();
                check_size(to, "name", bytes, NAME_BYTES_MAX)?;
                &delivery.name
            }
            Posting::Cancel(name) => name,
        };
        check_size(&turn.id, "delivery's name", name.len(), NAME_BYTES_MAX)?;
    }
    Ok(())
}

impl Store for Cassandra {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.ask(id, 0, |reply| Task::Open(epoch, reply))
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        if let Err(refused) = check_turn(&turn) {
            return Box::pin(async { Err(refused) });
        }
        let (id, bytes) = (turn.id.clone(), turn.bytes());
        self.ask(&id, bytes, |reply| Task::Commit(Box::new(turn), reply))
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.ask(id, 0, |reply| Task::Events(after, limit, reply))
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        if let Some(Err(refused)) = after.as_ref().map(|mark| with_key(&mark.owner).map(drop)) {
            return Box::pin(async { Err(refused) });
        }
        self.run(0, |core, since| async move {
            let mut patience = core.patience(since);
            patience.insist(|| core.due(until, after.as_ref(), limit)).await
        })
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        let names = in_order(names);
        let bytes = names.iter().map(|(_, name)| size_of::<(ActorId, String)>() + name.len()).sum();
        self.run(bytes, move |core, since| async move {
            core.patience(since).insist(|| core.left_before(&names, limit)).await
        })
    }

    fn settle(&self, mut settled: Vec<Settled>) -> Answer<()> {
        // Nobody without a key has left anything.
        settled.retain(|settled| settled.mark.owner.key().is_some());
        let bytes = settled.iter().map(|it| size_of::<Settled>() + it.mark.name.len()).sum();
        self.run(bytes, |core, since| async move {
            core.patience(since).insist(|| core.settle(&settled)).await
        })
    }
}
