//! The keyspace and its tables, and how a cluster comes to have them. No value but the names in the
//! options is ever part of a statement.

use std::time::Duration;

use althing::stable_hash::fnv1a;
use althing_cassandra::is_keyspace;
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Statement;
use tokio::time::{Instant, sleep};

use super::session::server;
use super::{CassandraError, CassandraOptions};

/// Each step takes the tables from the format before to the next; how many there are is the format.
/// Released steps never change.
///
/// A row of `althing_actors` is one of four sorts: the head, an event that is not in its bucket
/// yet, a delivery, a reply. They are one table because a conditional batch takes no more than one.
/// Actors share partitions so that one batch can have turns of many.
const STEPS: [&[&str]; 1] = [&[
    "CREATE TABLE IF NOT EXISTS althing_actors (
        part int,
        kind blob,
        key blob,
        sort tinyint,
        number bigint,
        name blob,
        epoch bigint,
        version bigint,
        last_event bigint,
        moved bigint,
        opened blob,
        written blob,
        form bigint,
        body blob,
        at bigint,
        request blob,
        entry blob,
        cron blob,
        to_kind blob,
        to_key blob,
        message blob,
        PRIMARY KEY (part, kind, key, sort, number, name)
    )",
    "CREATE TABLE IF NOT EXISTS althing_events (
        kind blob,
        key blob,
        bucket bigint,
        number bigint,
        form bigint,
        body blob,
        PRIMARY KEY ((kind, key, bucket), number)
    )",
    // What comes back from the dead in these two is found stale, and removed again.
    "CREATE TABLE IF NOT EXISTS althing_due (
        bucket bigint,
        shard tinyint,
        at bigint,
        kind blob,
        key blob,
        name blob,
        entry blob,
        made bigint,
        PRIMARY KEY ((bucket, shard), at, kind, key, name, entry)
    ) WITH gc_grace_seconds = 3600",
    "CREATE TABLE IF NOT EXISTS althing_due_buckets (
        one tinyint,
        bucket bigint,
        PRIMARY KEY (one, bucket)
    ) WITH gc_grace_seconds = 3600",
]];

/// The last format that this version knows.
const FORMAT: i32 = STEPS.len() as i32;

/// Nodes that start together migrate one after the other. Whoever ends amid it is waited for this
/// many seconds.
const LOCK: &str =
    "UPDATE althing_format USING TTL 30 SET holder = 1 WHERE one = 1 IF holder = null";
const UNLOCK: &str = "UPDATE althing_format SET holder = null WHERE one = 1 IF holder = 1";

/// More would be a partition for each actor, or nearly so.
const PARTS_MAX: usize = 1 << 24;

/// How long one step may take.
const STEP_WITHIN: Duration = Duration::from_secs(30);

/// How long somebody else may be making the keyspace, or the table of the format.
const MADE_WITHIN: Duration = Duration::from_secs(10);

/// Pause between two tries to get the lock, of which nobody tells.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// Brings the tables to the last format, in the keyspace, which is made if it is missing.
/// Returns into how many partitions actors are dealt there.
pub(super) async fn migrate(
    session: &Session,
    options: &CassandraOptions,
) -> Result<i32, CassandraError> {
    let CassandraOptions { keyspace, replicas, .. } = options;
    // It becomes part of statements.
    if !is_keyspace(keyspace) {
        return Err(CassandraError::Keyspace(keyspace.clone()));
    }
    // Asked first: who may not create keyspaces may still use one that is there.
    let is_there = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let found = ask(session, is_there, (keyspace,)).await?;
    if found.into_rows_result().map_err(server)?.rows_num() == 0 {
        let make = format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication =
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
        );
        ask(session, make, ()).await?;
    }
    once_made(|| async { session.use_keyspace(keyspace, false).await.map_err(server) }).await?;
    let tables = "SELECT table_name FROM system_schema.tables
                  WHERE keyspace_name = ? AND table_name = 'althing_format'";
    let found = ask(session, tables, (keyspace,)).await?;
    if found.into_rows_result().map_err(server)?.rows_num() == 0 {
        ask(session, make_format(keyspace), ()).await?;
    }
    if once_made(|| format(session)).await? < FORMAT {
        bring_up(session).await?;
    }
    parts(session, options.partitions).await
}

async fn bring_up(session: &Session) -> Result<(), CassandraError> {
    while !is_applied(session, LOCK).await? {
        sleep(LOCK_PAUSE).await;
    }
    let stepped = step(session).await;
    is_applied(session, UNLOCK).await?;
    stepped
}

/// Into how many partitions actors are dealt: for ever what was said first.
async fn parts(session: &Session, wanted: usize) -> Result<i32, CassandraError> {
    let select = "SELECT parts FROM althing_format WHERE one = 1";
    loop {
        let found = ask(session, select, ()).await?.into_rows_result().map_err(server)?;
        let row: Option<(Option<i32>,)> = found.maybe_first_row().map_err(server)?;
        if let Some(parts @ 1..) = row.and_then(|(parts,)| parts) {
            return Ok(parts);
        }
        let wanted = wanted.clamp(1, PARTS_MAX);
        let set =
            format!("UPDATE althing_format SET parts = {wanted} WHERE one = 1 IF parts = null");
        // If it was not applied, somebody else has said it.
        is_applied(session, &set).await?;
    }
}

/// Another node may be making the keyspace or the table: they are listed a moment before they can
/// be used.
async fn once_made<T, Used: Future<Output = Result<T, CassandraError>>>(
    used: impl Fn() -> Used,
) -> Result<T, CassandraError> {
    let until = Instant::now() + MADE_WITHIN;
    loop {
        match used().await {
            Err(CassandraError::Server(_)) if Instant::now() < until => sleep(LOCK_PAUSE).await,
            found => return found,
        }
    }
}

async fn step(session: &Session) -> Result<(), CassandraError> {
    let found = format(session).await?;
    for step in &STEPS[usize::try_from(found).unwrap_or(0)..] {
        for statement in *step {
            ask(session, *statement, ()).await?;
        }
    }
    if found < FORMAT {
        let set = "UPDATE althing_format SET format = ? WHERE one = 1";
        // Not mixed with the lock's column: the two have timestamps of different clocks.
        ask(session, set, (FORMAT,)).await?;
        tracing::info!(from = found, to = FORMAT, "the store's tables were migrated");
    }
    Ok(())
}

/// A change of tables takes as long as the nodes need to agree upon it, which no other answer does.
/// Amid the changes of others the server forgets statements that it has prepared a moment before:
/// it has done nothing then, and is asked again.
async fn ask(
    session: &Session,
    cql: impl Into<Statement>,
    values: impl SerializeRow,
) -> Result<QueryResult, CassandraError> {
    let mut statement: Statement = cql.into();
    statement.set_request_timeout(Some(STEP_WITHIN));
    let until = Instant::now() + STEP_WITHIN;
    loop {
        match session.query_unpaged(statement.clone(), &values).await {
            Err(error) if is_forgotten(&error) && Instant::now() < until => sleep(LOCK_PAUSE).await,
            answer => return answer.map_err(server),
        }
    }
}

fn is_forgotten(error: &ExecutionError) -> bool {
    let ExecutionError::LastAttemptError(RequestAttemptError::DbError(refused, _)) = error else {
        return false;
    };
    matches!(refused, DbError::Unprepared { .. })
}

/// # Errors
/// It is later than the last known one.
async fn format(session: &Session) -> Result<i32, CassandraError> {
    let select = "SELECT format FROM althing_format WHERE one = 1";
    let found = ask(session, select, ()).await?;
    let found = found.into_rows_result().map_err(server)?;
    let row: Option<(Option<i32>,)> = found.maybe_first_row().map_err(server)?;
    let found = row.and_then(|(format,)| format).unwrap_or(0);
    if found > FORMAT {
        return Err(CassandraError::Later { found, known: FORMAT });
    }
    Ok(found)
}

async fn is_applied(session: &Session, conditional: &str) -> Result<bool, CassandraError> {
    althing_cassandra::is_applied(ask(session, conditional, ()).await?).map_err(server)
}

/// Two nodes that make the table at once make the same one: its id follows from the keyspace.
fn make_format(keyspace: &str) -> String {
    let hash = fnv1a(keyspace.bytes());
    let (high, low) = ((hash >> 48) & 0xfff, hash & 0xffff_ffff_ffff);
    format!(
        "CREATE TABLE IF NOT EXISTS althing_format (
            one tinyint PRIMARY KEY,
            format int,
            holder tinyint,
            parts int
        ) WITH id = 616c7468-696e-4767-8{high:03x}-{low:012x}"
    )
}
