//! One connection: it runs a batch as one transaction, in two steps, each of which is sent without
//! waiting in between.
//!
//! The first step locks the rows, the second one writes and commits. The lock is why an actor that
//! is opened anew after a failure reads the truth: a transaction of which nobody knows whether it
//! was committed still has its rows, and the open waits for it.

use std::sync::Arc;
use std::time::Duration;

use althing::Epoch;
use futures_util::future::{join_all, join3};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, Row as Found, Statement};

use super::queue::{Job, Task};
use super::rows::{Outcome, Rows, name};
use super::{CONNECT_WITHIN, PostgresError, tables};
use crate::store::{Event, Snapshot};

/// The timeouts free rows whose client has vanished; what asks for them meanwhile is tried again. A
/// role or a database may have turned synchronous commits off, and statistics of a young table make
/// the planner read all of it.
const SETTINGS: &str = "
    SET lock_timeout = '5s';
    SET idle_in_transaction_session_timeout = '10s';
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
";

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

const MAKE: &str = "
    INSERT INTO althing_actors (kind, key, epoch, version, last_event)
    SELECT kind, key, 0, 0, 0 FROM unnest($1::bytea[], $2::bytea[]) AS asked (kind, key)
    ON CONFLICT (kind, key) DO NOTHING";

const LOCK: &str = "
    SELECT asked.place, epoch, version, last_event, schema, includes,
        CASE WHEN asked.is_read THEN state END
    FROM unnest($1::bytea[], $2::bytea[], $3::boolean[])
        WITH ORDINALITY AS asked (kind, key, is_read, place)
    JOIN althing_actors AS actors ON actors.kind = asked.kind AND actors.key = asked.key
    ORDER BY asked.place
    FOR UPDATE OF actors";

const WRITE: &str = "
    UPDATE althing_actors AS actors SET
        epoch = written.epoch,
        version = written.version,
        last_event = written.last_event,
        schema = coalesce(written.schema, actors.schema),
        state = coalesce(written.state, actors.state),
        includes = coalesce(written.includes, actors.includes)
    FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bytea[], $8::bigint[])
        AS written (kind, key, epoch, version, last_event, schema, state, includes)
    WHERE actors.kind = written.kind AND actors.key = written.key";

const ADD: &str = "
    INSERT INTO althing_events (kind, key, number, schema, body)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[])";

const READ: &str = "
    SELECT number, schema, body FROM althing_events
    WHERE kind = $1 AND key = $2 AND number > $3 ORDER BY number LIMIT $4";

/// A connection and the task that moves its bytes, which ends with it: it could wait for ever on a
/// server that has stopped.
pub(super) struct Link {
    pub(super) client: Client,
    mover: JoinHandle<()>,
}

/// A connection that is ready for batches.
pub(super) struct Session {
    link: Link,
    make: Statement,
    lock: Statement,
    write: Statement,
    add: Statement,
    read: Statement,
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
    pub(super) async fn connect(config: &Config) -> Result<Self, PostgresError> {
        let (client, connection) = within(CONNECT_WITHIN, config.connect(NoTls)).await?;
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
    pub(super) async fn connect(config: &Config) -> Result<Self, PostgresError> {
        let link = Link::connect(config).await?;
        let client = &link.client;
        tables::check(client).await?;
        within(CONNECT_WITHIN, client.batch_execute(SETTINGS)).await?;
        let statements = join_all([MAKE, LOCK, WRITE, ADD, READ].map(|sql| client.prepare(sql)));
        let prepared = async { statements.await.into_iter().collect::<Result<Vec<_>, _>>() };
        let prepared = within(CONNECT_WITHIN, prepared).await?;
        let Ok([make, lock, write, add, read]) = <[Statement; 5]>::try_from(prepared) else {
            unreachable!("as many are prepared as were asked for")
        };
        Ok(Self { link, make, lock, write, add, read })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.link.client.is_closed()
    }

    /// Does a batch of one sort, as the queue gives it out.
    pub(super) async fn run(&self, batch: &[Job], time: Duration) -> Result<Vec<Outcome>, Failure> {
        if batch.iter().all(Job::is_events) {
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
        let (begun, made, found) = join3(
            client.batch_execute(BEGIN),
            client.execute(&self.make, &[&made_kinds, &made_keys]),
            client.query(&self.lock, &[&kinds, &keys, &are_read]),
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
        Ok(())
    }

    /// Writes what has changed, and commits.
    async fn write(&self, rows: &Rows<'_>, time: Duration) -> Result<(), Failure> {
        let client = &self.link.client;
        let written = join3(self.update(rows), self.add(rows), client.batch_execute("COMMIT"));
        let Ok((updated, added, committed)) = tokio::time::timeout(time, written).await else {
            return Err(Failure::Unknown(Arc::new(PostgresError::NoAnswer(time))));
        };
        if let Err(error) = updated.and(added) {
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
                &self.write,
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
        client.execute(&self.add, &[&kinds, &keys, &numbers, &schemas, &bodies]).await?;
        Ok(())
    }

    async fn page(&self, task: &Task) -> Result<Outcome, tokio_postgres::Error> {
        let Task::Events(id, after, limit, _) = task else {
            unreachable!("the queue does not mix journals with turns")
        };
        let (kind, key) = name(id);
        let after = i64::try_from(*after).unwrap_or(i64::MAX);
        let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
        let found = self.link.client.query(&self.read, &[&kind, &key, &after, &limit]).await?;
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
