//! Rows in Apache Cassandra or ScyllaDB, in partitions of many users each.
//!
//! A row is written with its version as the time of the write, so the servers keep the newest one in
//! whatever order writes come: no lightweight transaction is needed but for the epoch, which whoever
//! takes the rows over raises. Who saves looks at it before. A process that is replaced in between
//! writes older versions, which lose against all that its successor writes.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use althing_cassandra::{Address, is_applied, profile};
use futures_util::future::try_join_all;
use scylla::client::session::Session;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::Mutex;

use super::entries::{decode, encode};
use super::{Answer, FORMAT, Row, RowStore, StoreError, VERSION_BITS, check_format};
use crate::table::spread;

/// How long the servers may take for one answer; a change of tables takes longer than any other.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Partitions, as bits: of 100 million users with 40 rooms each, one has 20 MB.
const PART_BITS: u32 = 12;
/// Rows in one batch, which is one partition's.
const BATCH_ROWS: usize = 50;
/// Batches on their way at once.
const BATCHES_AT_ONCE: usize = 32;

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS folkmoot_read_states (
        part int,
        user bigint,
        version bigint,
        states blob,
        PRIMARY KEY (part, user)
    )",
    "CREATE TABLE IF NOT EXISTS folkmoot_read_states_owner (
        one tinyint PRIMARY KEY,
        epoch bigint,
        format int
    )",
];

const OWNER: &str = "SELECT epoch, format FROM folkmoot_read_states_owner WHERE one = 1";

const TAKE_OVER: &str =
    "UPDATE folkmoot_read_states_owner SET epoch = ?, format = ? WHERE one = 1 IF epoch = ?";

const LOAD: &str = "SELECT version, states FROM folkmoot_read_states WHERE part = ? AND user = ?";

const SAVE: &str = "INSERT INTO folkmoot_read_states (part, user, version, states)
    VALUES (?, ?, ?, ?) USING TIMESTAMP ?";

/// Keeps rows in tables `folkmoot_read_states…` of a keyspace of Apache Cassandra (4.1 or later) or
/// ScyllaDB, which it makes itself. Connections are not encrypted: use a network that you trust.
pub struct CassandraRows {
    shared: Arc<Shared>,
}

struct Shared {
    driver: Session,
    owner: PreparedStatement,
    take_over: PreparedStatement,
    load: PreparedStatement,
    save: PreparedStatement,
    /// 0 until it has taken the rows over.
    epoch: Mutex<i64>,
}

fn failed(doing: &'static str) -> impl Fn(Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    move |error| StoreError::new(doing, error.to_string())
}

impl CassandraRows {
    /// Connects to servers by `cassandra://[user:password@]host[:port][,…]/keyspace[?replicas=3]`,
    /// and makes keyspace and tables if they are missing.
    ///
    /// # Errors
    /// The address cannot be read, no server can be used, or the tables are of a later version.
    pub async fn connect(address: &str) -> Result<Self, StoreError> {
        const DOING: &str = "connect";
        let address = Address::from_str(address)
            .map_err(|why| StoreError::new(DOING, format!("the address cannot be read: {why}")))?;
        let shared = Shared::connect(&address).await.map_err(failed(DOING))?;
        Ok(Self { shared: Arc::new(shared) })
    }
}

type Found<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

impl Shared {
    async fn connect(address: &Address) -> Found<Self> {
        let session = althing_cassandra::session(address, profile(ANSWER_WITHIN));
        let driver = session.build().await?;
        make_tables(&driver, address).await?;
        let mut save = driver.prepare(SAVE).await?;
        let mut load = driver.prepare(LOAD).await?;
        // To write a row of a version once more changes nothing.
        save.set_is_idempotent(true);
        load.set_is_idempotent(true);
        let mut owner = driver.prepare(OWNER).await?;
        owner.set_consistency(Consistency::Serial);
        let take_over = driver.prepare(TAKE_OVER).await?;
        Ok(Self { driver, owner, take_over, load, save, epoch: Mutex::default() })
    }

    async fn execute(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Found<QueryResult> {
        Ok(self.driver.execute_unpaged(statement, values).await?)
    }

    /// Which epoch the rows have, and which format the tables.
    async fn owner(&self) -> Found<(Option<i64>, i32)> {
        let found = self.execute(&self.owner, ()).await?.into_rows_result()?;
        let (epoch, format) = found.maybe_first_row::<(Option<i64>, Option<i32>)>()?.unzip();
        Ok((epoch.flatten(), format.flatten().unwrap_or(FORMAT)))
    }

    /// Raises the epoch; `None` if somebody else did meanwhile.
    async fn raise(&self, from: Option<i64>, version: u64) -> Found<Option<i64>> {
        let above = (version >> VERSION_BITS).cast_signed();
        let epoch = from.unwrap_or(0).max(above) + 1;
        let raised = self.execute(&self.take_over, (epoch, FORMAT, from)).await?;
        Ok(is_applied(raised)?.then_some(epoch))
    }

    async fn load_row(&self, user: u64) -> Found<Option<Row>> {
        let key = (part(user), user.cast_signed());
        let found = self.execute(&self.load, key).await?.into_rows_result()?;
        let row = found.maybe_first_row::<(i64, Vec<u8>)>()?;
        Ok(row.map(|(version, entries)| Row {
            user,
            version: version.cast_unsigned(),
            entries: decode(&entries),
        }))
    }

    async fn save_rows(&self, rows: &[Row]) -> Found<()> {
        let mut parts: BTreeMap<i32, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            parts.entry(part(row.user)).or_default().push(row);
        }
        let batches: Vec<_> = parts
            .iter()
            .flat_map(|(part, rows)| rows.chunks(BATCH_ROWS).map(move |rows| (*part, rows)))
            .collect();
        for batches in batches.chunks(BATCHES_AT_ONCE) {
            try_join_all(batches.iter().map(|(part, rows)| self.save_batch(*part, rows))).await?;
        }
        Ok(())
    }

    async fn save_batch(&self, part: i32, rows: &[&Row]) -> Found<()> {
        // One partition is written as one without a log of batches.
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            batch.append_statement(self.save.clone());
            let version = row.version.cast_signed();
            values.push((part, row.user.cast_signed(), version, encode(&row.entries), version));
        }
        self.driver.batch(&batch, values).await?;
        Ok(())
    }
}

async fn make_tables(driver: &Session, address: &Address) -> Found<()> {
    let Address { keyspace, replicas, .. } = address;
    // Asked first: who may not create keyspaces may still use one that is there.
    let is_there = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let found = driver.query_unpaged(is_there, (keyspace,)).await?.into_rows_result()?;
    if found.rows_num() == 0 {
        let make = format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication =
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
        );
        driver.query_unpaged(make, ()).await?;
    }
    driver.use_keyspace(keyspace, false).await?;
    let tables = "SELECT table_name FROM system_schema.tables
                  WHERE keyspace_name = ? AND table_name = 'folkmoot_read_states_owner'";
    let found = driver.query_unpaged(tables, (keyspace,)).await?.into_rows_result()?;
    if found.rows_num() == 0 {
        for table in TABLES {
            driver.query_unpaged(table, ()).await?;
        }
    }
    Ok(())
}

/// Which partition a user is in.
fn part(user: u64) -> i32 {
    (spread(user) >> (u64::BITS - PART_BITS)) as i32
}

impl RowStore for CassandraRows {
    fn take_over(&self, version: u64) -> Answer<u64> {
        const DOING: &str = "take the rows over";
        let shared = self.shared.clone();
        Box::pin(async move {
            let mut ours = shared.epoch.lock().await;
            loop {
                let (epoch, format) = shared.owner().await.map_err(failed(DOING))?;
                check_format(format)?;
                let raised = shared.raise(epoch, version).await.map_err(failed(DOING))?;
                if let Some(epoch) = raised {
                    *ours = epoch;
                    return Ok(epoch.cast_unsigned() << VERSION_BITS);
                }
            }
        })
    }

    fn load(&self, user: u64) -> Answer<Option<Row>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.load_row(user).await.map_err(failed("load a row")) })
    }

    fn save(&self, rows: Vec<Row>) -> Answer<()> {
        const DOING: &str = "save rows";
        let shared = self.shared.clone();
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let (epoch, _) = shared.owner().await.map_err(failed(DOING))?;
            if epoch != Some(*shared.epoch.lock().await) {
                return Err(StoreError::taken_over(DOING));
            }
            shared.save_rows(&rows).await.map_err(failed(DOING))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_spread_over_all_partitions() {
        let parts: std::collections::HashSet<_> = (0..100_000).map(part).collect();
        assert_eq!(parts.len(), 4_096);
        assert!(parts.iter().all(|part| (0..4_096).contains(part)));
    }
}
