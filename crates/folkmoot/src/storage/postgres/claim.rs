//! One server writes to a database. It holds a lock that ends with its session, which keeps a second
//! server out at its start; and a number that the next server raises, which each of its transactions
//! compares: what a server sends late, that was taken for dead, is refused by the database itself.
//!
//! The nodes of one server share the lock, so that they and a server alone keep each other out; each
//! has a lock and a number of its own, by its name, for the same purpose, and one that the nodes of its
//! cluster share. Their transactions come one after the other: each begins with a look at the one row
//! of `store`, and has it until its end.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::address::DatabaseAddress;
use super::schema;
use crate::storage::error::OpenError;
use crate::storage::ids::Lsn;
use crate::storage::sql::postgres::Session;
use crate::storage::sql::{Connection, OptionalExtension, SqlError, params};
use crate::storage::sqlite::apply::from_sql;
use crate::storage::sqlite::place::Restored;
use crate::storage::store::NodeName;

/// The lock, "folk" and "moot" in ASCII. It counts within one database only.
const LOCK: &str = "1718578283, 1836019572";
/// Held while the tables are made, where several nodes may do it.
const MIGRATION_LOCK: &str = "1718578283, 1";
/// How long a node that has stopped in the middle of a transaction may hold up the others: less than
/// a lease. PostgreSQL ends its session then, and it tries again if it goes on.
const PAUSE_MAX: &str = "SET idle_in_transaction_session_timeout = 3000";
/// The locks of nodes, told apart by their names.
const NODE_LOCKS: &str = "1718578284";
/// The locks of clusters, told apart by their names.
const CLUSTER_LOCKS: &str = "1718578285";
/// How long the session of a server that has just been killed may hold the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Characters of a node's name in that of its sessions, of which PostgreSQL keeps 63 in all.
const SHOWN_MAX: usize = 37;

/// What a server that writes goes by.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    address: DatabaseAddress,
    /// The name of our sessions that write, which tells them from those of other servers.
    name: String,
    /// Our number, or that of the server alone before us.
    writer: i64,
    /// Who we are among several.
    node: Option<NodeClaim>,
}

/// One of several nodes that write.
#[derive(Clone, Debug)]
struct NodeClaim {
    name: NodeName,
    number: i64,
}

/// Where the database stood when it was claimed, or found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The last record that is in it.
    pub(crate) applied: Lsn,
    /// The number of the last transaction.
    pub(crate) batch: i64,
}

/// A database that is ours.
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    pub(crate) connection: Connection,
    pub(crate) standing: Standing,
    pub(crate) stream_epoch: String,
}

/// A session that reads, or writes beside the server that has claimed the database.
pub(crate) fn connect(address: &DatabaseAddress, name: &str) -> Result<Connection, SqlError> {
    let session = Session::connect(&address.server(name))?;
    Ok(Connection::Postgres(Box::new(session)))
}

/// Keeps servers out for as long as the session lives.
pub(crate) fn lock(connection: &Connection, address: &DatabaseAddress) -> Result<(), OpenError> {
    let began = Instant::now();
    while !try_lock(connection)? {
        if began.elapsed() > LOCK_PATIENCE {
            let holder = holder(connection)?;
            return Err(OpenError::DatabaseInUse { address: address.clone(), holder });
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(())
}

/// Claims a database, whose schema is made or brought up to date.
pub(crate) fn claim(address: &DatabaseAddress, restored: Restored) -> Result<Claimed, OpenError> {
    let name = format!("folkmoot {:016x}", RandomState::new().hash_one(std::process::id()));
    let unreachable = |source| OpenError::Unreachable { address: address.clone(), source };
    let connection = connect(address, &name).map_err(unreachable)?;
    lock(&connection, address)?;
    schema::migrate(&connection, address)?;
    note_place(&connection, restored)?;
    let sql = "UPDATE store SET writer = writer + 1 \
               RETURNING writer, applied_lsn, batch, epoch";
    let (writer, standing, stream_epoch) = connection.query_row(sql, [], |row| {
        let standing = Standing { applied: Lsn(from_sql(row.get(1)?)), batch: row.get(2)? };
        Ok((row.get(0)?, standing, row.get(3)?))
    })?;
    let claim = Claim { address: address.clone(), name, writer, node: None };
    Ok(Claimed { claim, connection, standing, stream_epoch })
}

/// Claims a database for one of the nodes that write to it beside each other.
pub(crate) fn claim_as(address: &DatabaseAddress, node: &NodeName) -> Result<Claimed, OpenError> {
    let unreachable = |source| OpenError::Unreachable { address: address.clone(), source };
    let session = RandomState::new().hash_one(std::process::id());
    let name = format!("folkmoot {} {session:016x}", shown(&node.node));
    let connection = connect(address, &name).map_err(unreachable)?;
    let began = Instant::now();
    while !try_lock_as(&connection, node)? {
        if began.elapsed() > LOCK_PATIENCE {
            let (address, cluster) = (address.clone(), node.cluster.clone());
            return Err(match stranger(&connection, &cluster)? {
                Some(holder) => OpenError::OtherCluster { address, holder, cluster },
                None => OpenError::DatabaseInUse { address, holder: holder(&connection)? },
            });
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    connection.execute_batch(PAUSE_MAX)?;
    // Nodes that start together make the tables one after the other.
    connection.query_row(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})"), [], |_| Ok(()))?;
    schema::migrate(&connection, address)?;
    note_place(&connection, Restored::Unknown)?;
    connection.query_row(
        &format!("SELECT pg_advisory_unlock({MIGRATION_LOCK})"),
        [],
        |_| Ok(()),
    )?;
    let sql = "INSERT INTO writers VALUES (?1, 1, 0) \
               ON CONFLICT (node) DO UPDATE SET number = writers.number + 1 \
               RETURNING number, batch";
    let (number, batch) =
        connection.query_row(sql, [&node.node], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sql = "SELECT writer, applied_lsn, epoch FROM store";
    let (writer, applied, stream_epoch) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, Lsn(from_sql(row.get(1)?)), row.get(2)?)))?;
    let node = Some(NodeClaim { name: node.clone(), number });
    let claim = Claim { address: address.clone(), name, writer, node };
    let standing = Standing { applied, batch };
    Ok(Claimed { claim, connection, standing, stream_epoch })
}

impl Claim {
    /// Where the database is.
    pub(crate) fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    /// Whether other nodes write beside this one.
    pub(super) fn is_shared(&self) -> bool {
        self.node.is_some()
    }

    /// Begins a transaction among those of other nodes, which wait for its end: gives the last
    /// record that is in the database. A server alone knows it.
    pub(super) fn enter(&self, transaction: &Connection) -> Result<Option<Lsn>, SqlError> {
        let Some(node) = &self.node else { return Ok(None) };
        let sql = "SELECT enter_shared(?1, ?2, ?3)";
        let of = params![self.writer, node.name.node, node.number];
        let last = transaction.prepare_cached(sql)?.query_row(of, |row| row.get(0))?;
        Ok(Some(Lsn(from_sql(last))))
    }

    /// Counts a transaction at its end; it fails then if the database is no longer ours.
    pub(crate) fn count(&self, transaction: &Connection) -> Result<(), SqlError> {
        match &self.node {
            None => {
                transaction.prepare_cached("SELECT count_batch(?1)")?.execute_later([self.writer])
            }
            Some(node) => transaction
                .prepare_cached("SELECT count_shared(?1, ?2)")?
                .execute_later(params![node.name.node, node.number]),
        }
    }

    /// Connects again. Once this returns, nothing that an earlier session of ours was asked can
    /// happen any more: it held the lock. What the database had when we last heard of it is `known`.
    pub(crate) fn connect_again(
        &self,
        known: Standing,
    ) -> Result<(Connection, Standing), SqlError> {
        let connection = connect(&self.address, &self.name)?;
        let is_locked = match &self.node {
            None => try_lock(&connection)?,
            Some(node) => {
                connection.execute_batch(PAUSE_MAX)?;
                try_lock_as(&connection, &node.name)?
            }
        };
        let (numbers, standing) = self.read(&connection)?;
        let ours = self.numbers();
        if numbers.0 > ours.0 || numbers.1 > ours.1 {
            return Err(SqlError::Fenced);
        }
        if is_locked {
            self.write(&connection)?;
            if numbers == ours && standing.batch >= known.batch {
                return Ok((connection, standing));
            }
            self.end_epoch(&connection)?;
            return Err(SqlError::SetBack);
        }
        // The server has not noticed yet that the session was lost.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE application_name = ?1 AND pid <> pg_backend_pid()";
        let ended: i64 = connection.query_row(end, [&self.name], |row| row.get(0))?;
        Err(SqlError::Away(match ended {
            0 => "another session holds the lock on the database".to_owned(),
            _ => "the session that was lost has not ended yet".to_owned(),
        }))
    }

    /// The number of the last server, and that of the last process of this node; 0 for a server
    /// alone.
    fn numbers(&self) -> (i64, i64) {
        (self.writer, self.node.as_ref().map_or(0, |node| node.number))
    }

    /// The numbers that count, and where the database stands.
    fn read(&self, connection: &Connection) -> Result<((i64, i64), Standing), SqlError> {
        let sql = "SELECT s.writer, coalesce(w.number, 0), s.applied_lsn, coalesce(w.batch, s.batch) \
                   FROM store s LEFT JOIN writers w ON w.node = ?1";
        // No node has that name.
        let node = self.node.as_ref().map_or("", |node| &*node.name.node);
        connection.query_row(sql, [node], |row| {
            let standing = Standing { applied: Lsn(from_sql(row.get(2)?)), batch: row.get(3)? };
            Ok(((row.get(0)?, row.get(1)?), standing))
        })
    }

    /// Writes something, and nothing new: a standby refuses that; and what was committed before is
    /// wherever commits have to be once this is.
    fn write(&self, connection: &Connection) -> Result<(), SqlError> {
        let changed = match &self.node {
            None => connection.execute("UPDATE store SET writer = writer", []),
            Some(node) => connection
                .execute("UPDATE writers SET number = number WHERE node = ?1", [&node.name.node]),
        };
        changed.map(drop)
    }

    /// Has clients fetch history anew, and nobody write who knows what is gone: offsets that they
    /// have seen are given out again.
    fn end_epoch(&self, connection: &Connection) -> Result<(), SqlError> {
        let sql = "UPDATE store SET writer = greatest(writer, ?1) + 1, \
                   epoch = substr(replace(gen_random_uuid()::text, '-', ''), 1, 16)";
        connection.execute(sql, [self.writer]).map(drop)
    }
}

/// A name as PostgreSQL shows it.
fn shown(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    name.chars().map(kept).take(SHOWN_MAX).collect()
}

/// Takes the locks that nodes share, and the node's own.
fn try_lock_as(connection: &Connection, node: &NodeName) -> Result<bool, SqlError> {
    let shared = format!("SELECT pg_try_advisory_lock_shared({LOCK})");
    if !connection.query_row(&shared, [], |row| row.get(0))? {
        return Ok(false);
    }
    let own = format!("SELECT pg_try_advisory_lock({NODE_LOCKS}, hashtext(?1))");
    let is_ours: bool = connection.query_row(&own, [&node.node], |row| row.get(0))?;
    if is_ours {
        if try_lock_cluster(connection, &node.cluster)? {
            return Ok(true);
        }
        let give_back = format!("SELECT pg_advisory_unlock({NODE_LOCKS}, hashtext(?1))");
        connection.query_row(&give_back, [&node.node], |_| Ok(()))?;
    }
    // Taken again with the next try; the database counts how often a session has it.
    let give_back = format!("SELECT pg_advisory_unlock_shared({LOCK})");
    connection.query_row(&give_back, [], |_| Ok(()))?;
    Ok(false)
}

/// Takes the lock that nodes of one cluster share, unless nodes of another one have theirs. Taken
/// first and looked for then: of two that come at once, one sees the other at least.
fn try_lock_cluster(connection: &Connection, cluster: &str) -> Result<bool, SqlError> {
    let take = format!("SELECT pg_advisory_lock_shared({CLUSTER_LOCKS}, hashtext(?1))");
    connection.query_row(&take, [cluster], |_| Ok(()))?;
    if stranger(connection, cluster)?.is_none() {
        return Ok(true);
    }
    let give_back = format!("SELECT pg_advisory_unlock_shared({CLUSTER_LOCKS}, hashtext(?1))");
    connection.query_row(&give_back, [cluster], |_| Ok(()))?;
    Ok(false)
}

fn try_lock(connection: &Connection) -> Result<bool, SqlError> {
    let sql = format!("SELECT pg_try_advisory_lock({LOCK})");
    connection.query_row(&sql, [], |row| row.get(0))
}

/// Who holds the lock, as far as PostgreSQL tells us.
fn holder(connection: &Connection) -> Result<String, SqlError> {
    let is_it = "l.classid::bigint = 1718578283 AND l.objid::bigint = 1836019572";
    Ok(holder_of(connection, is_it)?.unwrap_or_else(|| "another server".to_owned()))
}

/// A node of another cluster that is there.
fn stranger(connection: &Connection, cluster: &str) -> Result<Option<String>, SqlError> {
    let number = "SELECT hashtext(?1)::bigint & 4294967295";
    let own: i64 = connection.query_row(number, [cluster], |row| row.get(0))?;
    let is_it = format!("l.classid::bigint = {CLUSTER_LOCKS} AND l.objid::bigint <> {own}");
    holder_of(connection, &is_it)
}

/// A session that holds such a lock.
fn holder_of(connection: &Connection, is_it: &str) -> Result<Option<String>, SqlError> {
    let sql = format!(
        "SELECT a.application_name, host(a.client_addr) FROM pg_locks l \
         JOIN pg_stat_activity a ON a.pid = l.pid \
         WHERE l.locktype = 'advisory' AND {is_it} AND l.granted \
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    let found = connection.query_row(&sql, [], |row| {
        let (name, host): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
        let host = host.unwrap_or_else(|| "the database's machine".to_owned());
        Ok(format!("{} on {host}", name.unwrap_or_else(|| "another server".to_owned())))
    });
    found.optional()
}

/// Begins a new epoch if this is another database than at the last start, made from a copy of it:
/// it would give out offsets a second time that clients have seen with other events.
fn note_place(connection: &Connection, restored: Restored) -> Result<(), SqlError> {
    // A dump that is played back makes new tables, a copy within the server is another database, and
    // a base backup begins a new timeline.
    let sql = "SELECT s.place, concat_ws(':', (SELECT system_identifier FROM pg_control_system()), \
                 substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), \
                 (SELECT oid FROM pg_database WHERE datname = current_database()), \
                 'store'::regclass::oid) \
               FROM store s";
    let (known, here): (Option<String>, String) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_copy = known.as_ref().is_some_and(|known| *known != here);
    if is_copy || restored == Restored::Yes {
        tracing::warn!("the data was restored from a copy: clients will fetch history again");
        connection.execute(
            "UPDATE store SET epoch = substr(replace(gen_random_uuid()::text, '-', ''), 1, 16)",
            [],
        )?;
    }
    if known.as_ref() != Some(&here) {
        connection.execute("UPDATE store SET place = ?1", [here])?;
    }
    Ok(())
}
