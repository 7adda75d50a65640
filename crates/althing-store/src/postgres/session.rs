//! One connection: it runs a batch as one transaction, in two steps, each of which is sent without
//! waiting in between.
//!
//! The first step locks the rows, the second one writes and commits. The lock is why an actor that
//! is opened anew after a failure reads the truth: a transaction of which nobody knows whether it
//! was committed still has its rows, and the open waits for it.

use std::sync::Arc;
use std::time::Duration;

use althing::Epoch;
use althing_postgres::Server;
use futures_util::future::{join, join_all, join4, join5};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Row as Found};

use super::queue::{Job, Task};
use super::rows::{Outcome, Rows, name};
use super::statements::Statements;
use super::{CONNECT_WITHIN, PostgresError, tables};
use crate::store::{Event, Snapshot};

/// The timeouts free rows whose client has vanished; what asks for them meanwhile is tried again. A
/// role or a database may have turned synchronous commits off, or end statements sooner than
/// `answer_within` does, which would refuse turns that are large; and statistics of a young table
/// make the planner read all of it.
const SETTINGS: &str = "
    SET statement_timeout = 0;
    SET lock_timeout = '5s';
    SET idle_in_transaction_session_timeout = '10s';
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
";

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A connection and the task that moves its bytes, which ends with it: it could wait for ever on a
/// server that has stopped.
pub(super) struct Link {
    pub(super) client: Client,
    mover: JoinHandle<()>,
}

/// A connection that is ready for batches.
pub(super) struct Session {
    link: Link,
    pub(super) statements: Statements,
}

/// Why a batch was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing of it was written, and nothing of it will be.
    NotWritten(Arc<PostgresError>),
    /// The server said neither yes nor no.
    Unknown(Arc<PostgresError>),
}

/// # Errors
/// It failed, or took too long.
pub(super) async fn within<T>(
    time: Duration,
    step: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PostgresError> {
    let done = tokio::time::timeout(time, step).await;
    Ok(done.map_err(|_| PostgresError::NoAnswer(time))??)
}

impl Link {
    pub(super) async fn connect(server: &Server) -> Result<Self, PostgresError> {
        let (client, connection) = within(CONNECT_WITHIN, server.connect()).await?;
        let mover = tokio::spawn(async {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL has broken");
            }
        });
        Ok(Self { client, mover })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.mover.abort();
    }
}

impl Session {
    pub(super) async fn connect(server: &Server) -> Result<Self, PostgresError> {
        let link = Link::connect(server).await?;
        let client = &link.client;
        tables::check(client).await?;
        within(CONNECT_WITHIN, client.batch_execute(SETTINGS)).await?;
        let statements = within(CONNECT_WITHIN, Statements::prepare(client)).await?;
        Ok(Self { link, statements })
    }

    pub(super) fn client(&self) -> &Client {
        &self.link.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.link.client.is_closed()
    }

    /// Does a batch of one sort, as the queue gives it out.
    pub(super) async fn run(&self, batch: &[Job], time: Duration) -> Result<Vec<Outcome>, Failure> {
        if batch.iter().all(Job::is_read) {
            let pages = join_all(batch.iter().map(|job| self.page(&job.task)));
            let pages = async { pages.await.into_iter().collect::<Result<Vec<_>, _>>() };
            let pages = within(time, pages).await;
            return pages.map_err(|error| Failure::NotWritten(Arc::new(error)));
        }
        let mut rows = Rows::of(batch.iter().map(|job| &job.task));
        // The transaction ends with the connection if it fails before it was told to commit.
        let locked = within(time, self.lock(&mut rows)).await;
        locked.map_err(|error| Failure::NotWritten(Arc::new(error)))?;
        let outcomes = batch.iter().map(|job| rows.apply(&job.task)).collect();
        self.write(&rows, time).await?;
        Ok(outcomes)
    }

    /// Begins the transaction, locks the rows, and reads them.
    async fn lock(&self, rows: &mut Rows<'_>) -> Result<(), tokio_postgres::Error> {
        let client = &self.link.client;
        let (kinds, keys): (Vec<_>, Vec<_>) = rows.rows.keys().copied().unzip();
        let are_read: Vec<_> = rows.rows.values().map(|row| row.is_read).collect();
        let made = rows.rows.iter().filter(|(_, row)| row.is_made).map(|(name, _)| *name);
        let (made_kinds, made_keys): (Vec<_>, Vec<_>) = made.unzip();
        let opened = rows.rows.iter().filter(|(_, row)| row.is_read).map(|(name, _)| *name);
        let (opened_kinds, opened_keys): (Vec<_>, Vec<_>) = opened.unzip();
        let (begun, made, found, replies) = join4(
            client.batch_execute(BEGIN),
            client.execute(&self.statements.make, &[&made_kinds, &made_keys]),
            client.query(&self.statements.lock, &[&kinds, &keys, &are_read]),
            self.replies(&opened_kinds, &opened_keys),
        )
        .await;
        begun?;
        made?;
        let mut places = rows.rows.values_mut().zip(1..);
        for found in found? {
            let place: i64 = found.get(0);
            let (row, _) =
                places.find(|(_, at)| *at == place).expect("rows come in the order of their names");
            row.epoch = Epoch(unsigned(&found, 1));
            row.version = unsigned(&found, 2);
            row.last_event = unsigned(&found, 3);
            row.stored = found.get::<_, Option<Vec<u8>>>(6).map(|bytes| Snapshot {
                schema: schema(&found, 4),
                bytes,
                includes: unsigned(&found, 5),
            });
        }
        let mut opened = rows.rows.values_mut().filter(|row| row.is_read).zip(1..).peekable();
        for (place, reply) in replies? {
            while opened.peek().is_some_and(|(_, at)| *at < place) {
                opened.next();
            }
            let (row, _) = opened.peek_mut().expect("replies come in the order of their rows");
            row.replies.push(reply);
        }
        Ok(())
    }

    /// Writes what has changed, and commits.
    async fn write(&self, rows: &Rows<'_>, time: Duration) -> Result<(), Failure> {
        let client = &self.link.client;
        // Sent in this order. What was taken goes first: a delivery that is put again with the same
        // due time was put after that.
        let taken = join(self.remove_taken(rows), self.move_taken(rows));
        let posted = join(self.cancel(rows), self.put(rows));
        let kept = join(self.keep(rows), self.forget(rows));
        let state = join(self.update(rows), self.add(rows));
        let written = join5(taken, posted, kept, state, client.batch_execute("COMMIT"));
        let Ok((taken, posted, kept, state, committed)) = tokio::time::timeout(time, written).await
        else {
            return Err(Failure::Unknown(Arc::new(PostgresError::NoAnswer(time))));
        };
        let steps = [taken, posted, kept, state].into_iter();
        if let Err(error) = steps.flat_map(|(one, two)| [one, two]).collect::<Result<(), _>>() {
            // After an error of the server the commit rolled back, though it is answered as done.
            let is_refused = error.as_db_error().is_some();
            let error = Arc::new(error.into());
            return Err(if is_refused {
                Failure::NotWritten(error)
            } else {
                Failure::Unknown(error)
            });
        }
        committed.map_err(|error| Failure::Unknown(Arc::new(error.into())))
    }

    async fn update(&self, rows: &Rows<'_>) -> Result<(), tokio_postgres::Error> {
        let (kinds, keys): (Vec<_>, Vec<_>) = rows.changed().map(|(name, _)| *name).unzip();
        if kinds.is_empty() {
            return Ok(());
        }
        let numbers = |number: fn(&super::rows::Row<'_>) -> u64| -> Vec<i64> {
            rows.changed().map(|(_, row)| number(row).cast_signed()).collect()
        };
        let snapshots: Vec<_> = rows.changed().map(|(_, row)| row.written).collect();
        let schemas: Vec<_> =
            snapshots.iter().map(|it| it.map(|snapshot| i64::from(snapshot.schema))).collect();
        let states: Vec<_> = snapshots.iter().map(|it| it.map(|it| &it.bytes[..])).collect();
        let includes: Vec<_> =
            snapshots.iter().map(|it| it.map(|it| it.includes.cast_signed())).collect();
        let epochs = numbers(|row| row.epoch.0);
        let versions = numbers(|row| row.version);
        let last_events = numbers(|row| row.last_event);
        let client = &self.link.client;
        client
            .execute(
                &self.statements.write,
                &[&kinds, &keys, &epochs, &versions, &last_events, &schemas, &states, &includes],
            )
            .await?;
        Ok(())
    }

    async fn add(&self, rows: &Rows<'_>) -> Result<(), tokio_postgres::Error> {
        let events = &rows.events;
        if events.is_empty() {
            return Ok(());
        }
        let (kinds, keys): (Vec<_>, Vec<_>) = events.iter().map(|(name, _)| *name).unzip();
        let numbers: Vec<_> = events.iter().map(|(_, event)| event.number.cast_signed()).collect();
        let schemas: Vec<_> = events.iter().map(|(_, event)| i64::from(event.schema)).collect();
        let bodies: Vec<_> = events.iter().map(|(_, event)| &event.bytes[..]).collect();
        let client = &self.link.client;
        client.execute(&self.statements.add, &[&kinds, &keys, &numbers, &schemas, &bodies]).await?;
        Ok(())
    }

    async fn page(&self, task: &Task) -> Result<Outcome, tokio_postgres::Error> {
        let (id, after, limit) = match task {
            Task::Events(id, after, limit, _) => (id, after, limit),
            Task::Due(until, after, limit, _) => {
                return Ok(Outcome::Due(self.due(*until, after.as_ref(), *limit).await?));
            }
            Task::LeftBefore(names, limit, _) => {
                return Ok(Outcome::LeftBefore(self.left_before(names, *limit).await?));
            }
            Task::Open(..) | Task::Commit(..) | Task::Settle(..) => {
                unreachable!("the queue does not mix reads with turns")
            }
        };
        let (kind, key) = name(id);
        let after = i64::try_from(*after).unwrap_or(i64::MAX);
        let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
        let found =
            self.link.client.query(&self.statements.read, &[&kind, &key, &after, &limit]).await?;
        let event = |row: &Found| Event {
            number: unsigned(row, 0),
            schema: schema(row, 1),
            bytes: row.get(2),
        };
        Ok(Outcome::Events(found.iter().map(event).collect()))
    }
}

fn unsigned(row: &Found, column: usize) -> u64 {
    row.get::<_, i64>(column).cast_unsigned()
}

/// Kept as a `bigint`, because PostgreSQL has no unsigned numbers.
fn schema(row: &Found, column: usize) -> u32 {
    row.get::<_, i64>(column) as u32
}
