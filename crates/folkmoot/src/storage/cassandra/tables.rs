//! The keyspace and its tables, made by whoever connects first.

use std::time::Duration;

use althing_cassandra::Address;
use scylla::client::session::Session;
use tokio::time::{Instant, sleep};

use super::session::{Failure, refused};

/// The format of the tables that this program reads and writes.
pub(super) const FORMAT: i32 = 1;
/// Somebody else may be making them: they are listed a moment before they can be used.
const MADE_WITHIN: Duration = Duration::from_secs(20);
const MADE_PAUSE: Duration = Duration::from_millis(200);

/// Each bucket of the log is a partition; who may write into it is a condition of every entry.
const LOG: &str = "CREATE TABLE IF NOT EXISTS folkmoot_log (
        bucket bigint,
        number bigint,
        writer blob static,
        last bigint static,
        erased bigint static,
        name blob,
        data blob,
        PRIMARY KEY (bucket, number)
    )";

/// The snapshot that counts, in one row.
const STORE: &str = "CREATE TABLE IF NOT EXISTS folkmoot_store (
        one tinyint PRIMARY KEY,
        format int,
        steps int,
        number bigint,
        entry blob,
        snapshot blob,
        bytes bigint,
        hash blob,
        log_bytes bigint,
        made_at bigint,
        first_bucket bigint
    )";

/// All snapshots that were begun, so that those of which nothing came are deleted, too.
const SNAPSHOTS: &str = "CREATE TABLE IF NOT EXISTS folkmoot_snapshots (
        one tinyint,
        snapshot blob,
        bytes bigint,
        PRIMARY KEY (one, snapshot)
    )";

const PIECES: &str = "CREATE TABLE IF NOT EXISTS folkmoot_pieces (
        snapshot blob,
        piece bigint,
        data blob,
        PRIMARY KEY ((snapshot, piece))
    )";

/// Makes what is missing. Asked first: who may not make anything may still use what is there.
pub(super) async fn make(driver: &Session, address: &Address) -> Result<(), Failure> {
    let Address { keyspace, replicas, .. } = address;
    let is_there = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    if !has_rows(driver, is_there, keyspace).await? {
        let make = format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication =
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
        );
        driver.query_unpaged(make, ()).await?;
    }
    let until = Instant::now() + MADE_WITHIN;
    while let Err(error) = driver.use_keyspace(keyspace, false).await {
        if Instant::now() > until {
            return Err(refused(error));
        }
        sleep(MADE_PAUSE).await;
    }
    let is_there = "SELECT table_name FROM system_schema.tables
                    WHERE keyspace_name = ? AND table_name = 'folkmoot_pieces'";
    if !has_rows(driver, is_there, keyspace).await? {
        // The last one says that all are there.
        for table in [LOG, STORE, SNAPSHOTS, PIECES] {
            driver.query_unpaged(table, ()).await?;
        }
    }
    Ok(())
}

async fn has_rows(driver: &Session, cql: &str, keyspace: &str) -> Result<bool, Failure> {
    let found = driver.query_unpaged(cql, (keyspace,)).await?.into_rows_result();
    Ok(found.map_err(refused)?.rows_num() > 0)
}
