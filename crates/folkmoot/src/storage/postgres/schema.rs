//! The tables in PostgreSQL, as the ordered list of steps that make them. They stand in a schema of
//! their own, so they meet nobody else's.
//!
//! A step that has been released is never changed: databases out there have run it. `steps` holds
//! how many a database has taken; each runs in one transaction with the count.

use super::address::DatabaseAddress;
use crate::storage::copy::is_unfinished;
use crate::storage::error::OpenError;
use crate::storage::sql::{Connection, SqlError};

/// All steps, oldest first. A step of the embedded store's schema has its like here.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_base.sql"),
    include_str!("migrations/0002_nodes.sql"),
    include_str!("migrations/0003_mutes.sql"),
    include_str!("migrations/0004_invite_claims.sql"),
];

/// Whether a database has our tables.
pub(crate) fn is_there(connection: &Connection) -> Result<bool, SqlError> {
    let sql =
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'folkmoot' AND tablename = 'store'";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(count > 0)
}

/// Refuses what is no database of this program's schema; a server may have it open.
pub(super) fn require(connection: &Connection, address: &DatabaseAddress) -> Result<(), OpenError> {
    let address = || address.clone();
    if !is_there(connection)? {
        return Err(OpenError::NoTables { address: address() });
    }
    if is_unfinished(connection)? {
        return Err(OpenError::Unfinished { address: address() });
    }
    let sql = "SELECT coalesce(max(taken), 0) FROM steps";
    let found: u32 = connection.query_row(sql, [], |row| row.get(0))?;
    match (found, newest()) {
        (found, newest) if found > newest => {
            Err(OpenError::NewerDatabase { address: address(), found, newest })
        }
        (found, newest) if found < newest => {
            Err(OpenError::OlderDatabase { address: address(), found, newest })
        }
        _ => Ok(()),
    }
}

fn newest() -> u32 {
    u32::try_from(STEPS.len()).expect("there are few migrations")
}

/// Takes the steps that a database lacks, which is one to be served. Only who has locked the
/// database may.
pub(crate) fn migrate(connection: &Connection, address: &DatabaseAddress) -> Result<(), OpenError> {
    if is_unfinished(connection)? {
        return Err(OpenError::Unfinished { address: address.clone() });
    }
    take_steps(connection, address)
}

/// The same for a database that is on its way to being one.
pub(crate) fn take_steps(
    connection: &Connection,
    address: &DatabaseAddress,
) -> Result<(), OpenError> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('server_encoding')";
    let (is_standby, encoding): (bool, String) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if is_standby {
        return Err(OpenError::Standby { address: address.clone() });
    }
    if encoding != "UTF8" {
        return Err(OpenError::DatabaseEncoding { address: address.clone(), encoding });
    }
    // Asked first: who may not make anything may still use what is there.
    if !is_there(connection)? {
        connection.execute_batch(
            "CREATE SCHEMA IF NOT EXISTS folkmoot; \
             CREATE TABLE IF NOT EXISTS folkmoot.steps (taken BIGINT NOT NULL)",
        )?;
    }
    let sql = "SELECT coalesce(max(taken), 0) FROM steps";
    let taken: u32 = connection.query_row(sql, [], |row| row.get(0))?;
    let newest = newest();
    if taken > newest {
        return Err(OpenError::NewerDatabase { address: address.clone(), found: taken, newest });
    }
    for (version, step) in (1_u32..).zip(STEPS).skip(taken as usize) {
        let transaction = connection.begin()?;
        transaction.execute_batch(step)?;
        transaction
            .execute_batch(&format!("DELETE FROM steps; INSERT INTO steps VALUES ({version})"))?;
        transaction.commit()?;
        if taken > 0 {
            tracing::info!(schema = version, "migrated the database");
        }
    }
    Ok(())
}
