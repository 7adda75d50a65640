//! The tables, and how a database comes to have them. Statements here are constants, without any
//! value in them.

use althing_postgres::Server;
use tokio_postgres::{Client, IsolationLevel};

use super::session::{Link, within};
use super::{CONNECT_WITHIN, PostgresError};

/// Each step takes the tables from the format before to the next; how many there are is the format.
/// Released steps never change.
const STEPS: [&str; 2] = [
    "
    CREATE TABLE althing_actors (
        kind bytea NOT NULL,
        key bytea NOT NULL,
        epoch bigint NOT NULL,
        version bigint NOT NULL,
        last_event bigint NOT NULL,
        schema bigint,
        state bytea,
        includes bigint,
        PRIMARY KEY (kind, key)
    ) WITH (fillfactor = 70);
    CREATE TABLE althing_events (
        kind bytea NOT NULL,
        key bytea NOT NULL,
        number bigint NOT NULL,
        schema bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (kind, key, number)
    );
    ",
    "
    CREATE TABLE althing_deliveries (
        kind bytea NOT NULL,
        key bytea NOT NULL,
        name bytea NOT NULL,
        due bigint NOT NULL,
        cron bytea,
        to_kind bytea NOT NULL,
        to_key bytea NOT NULL,
        message bytea NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (kind, key, name)
    );
    CREATE INDEX althing_deliveries_due ON althing_deliveries (due, kind, key, name);
    CREATE TABLE althing_replies (
        kind bytea NOT NULL,
        key bytea NOT NULL,
        number bigint NOT NULL,
        request bytea NOT NULL,
        at bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (kind, key, number)
    );
    ",
];

/// The last format that this version knows.
const FORMAT: i32 = STEPS.len() as i32;

/// Nodes that start together migrate one after the other. Any number, so long as others use another
/// one: "althing" in hexadecimal.
const LOCK: i64 = 0x61_6c_74_68_69_6e_67;

/// Whatever the role has set: who connects says how long all of this may take.
const SETTINGS: &str = "
    SET LOCAL lock_timeout = 0;
    SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '10s';";

/// Brings the tables to the last format.
pub(super) async fn migrate(server: &Server) -> Result<(), PostgresError> {
    let mut link = Link::connect(server).await?;
    // It sees what others have made while it waited for them.
    let transaction = link
        .client
        .build_transaction()
        .isolation_level(IsolationLevel::ReadCommitted)
        .read_only(false)
        .start()
        .await?;
    transaction.batch_execute(SETTINGS).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Asked first: who may not create tables may still use those that are there.
    let is_there = "SELECT to_regclass('althing_format') IS NOT NULL";
    if !transaction.query_one(is_there, &[]).await?.get::<_, bool>(0) {
        let make = "CREATE TABLE althing_format (format integer NOT NULL);
                    INSERT INTO althing_format VALUES (0)";
        transaction.batch_execute(make).await?;
    }
    let found: i32 = transaction.query_one("SELECT format FROM althing_format", &[]).await?.get(0);
    refuse_later(found)?;
    for step in &STEPS[usize::try_from(found).unwrap_or(0)..] {
        transaction.batch_execute(step).await?;
    }
    if found < FORMAT {
        transaction.execute("UPDATE althing_format SET format = $1", &[&FORMAT]).await?;
        tracing::info!(from = found, to = FORMAT, "the store's tables were migrated");
    }
    transaction.commit().await?;
    Ok(())
}

/// Asked by each new connection: a later version may have migrated the tables meanwhile.
pub(super) async fn check(client: &Client) -> Result<(), PostgresError> {
    let select = client.query_one("SELECT format FROM althing_format", &[]);
    refuse_later(within(CONNECT_WITHIN, select).await?.get(0))
}

fn refuse_later(found: i32) -> Result<(), PostgresError> {
    if found > FORMAT {
        return Err(PostgresError::Later { found, known: FORMAT });
    }
    Ok(())
}
