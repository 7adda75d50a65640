//! One server writes to a database. It holds a lock that ends with its session, which keeps a second
//! server out at its start; and a number that the next server raises, which each of its transactions
//! compares: what a server sends late, that was taken for dead, is refused by the database itself.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::address::DatabaseAddress;
use super::schema;
use crate::storage::error::OpenError;
use crate::storage::ids::Lsn;
use crate::storage::sql::postgres::Session;
use crate::storage::sql::{Connection, OptionalExtension, SqlError};
use crate::storage::sqlite::apply::from_sql;
use crate::storage::sqlite::place::Restored;

/// The lock, "folk" and "moot" in ASCII. It counts within one database only.
const LOCK: &str = "1718578283, 1836019572";
/// How long the session of a server that has just been killed may hold the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// What a server that writes goes by.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    address: DatabaseAddress,
    /// The name of our sessions that write, which tells them from those of other servers.
    name: String,
    /// Our number.
    writer: i64,
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
    let session = Session::connect(&address.config(name))?;
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
    let claim = Claim { address: address.clone(), name, writer };
    Ok(Claimed { claim, connection, standing, stream_epoch })
}

impl Claim {
    /// Where the database is.
    pub(crate) fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    /// Counts a transaction at its end; it fails then if the database is no longer ours.
    pub(crate) fn count(&self, transaction: &Connection) -> Result<(), SqlError> {
        transaction.prepare_cached("SELECT count_batch(?1)")?.execute_later([self.writer])
    }

    /// Connects again. Once this returns, nothing that an earlier session of ours was asked can
    /// happen any more: it held the lock.
    pub(crate) fn connect_again(&self) -> Result<(Connection, Standing), SqlError> {
        let connection = connect(&self.address, &self.name)?;
        let is_locked = try_lock(&connection)?;
        let sql = "SELECT applied_lsn, batch FROM store WHERE writer = ?1";
        let found = connection.query_row(sql, [self.writer], |row| {
            Ok(Standing { applied: Lsn(from_sql(row.get(0)?)), batch: row.get(1)? })
        });
        let standing = found.optional()?.ok_or(SqlError::Fenced)?;
        if is_locked {
            return Ok((connection, standing));
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
}

fn try_lock(connection: &Connection) -> Result<bool, SqlError> {
    let sql = format!("SELECT pg_try_advisory_lock({LOCK})");
    connection.query_row(&sql, [], |row| row.get(0))
}

/// Who holds the lock, as far as PostgreSQL tells us.
fn holder(connection: &Connection) -> Result<String, SqlError> {
    let sql = "SELECT a.application_name, host(a.client_addr) FROM pg_locks l \
               JOIN pg_stat_activity a ON a.pid = l.pid \
               WHERE l.locktype = 'advisory' AND l.classid::bigint = 1718578283 \
               AND l.objid::bigint = 1836019572 AND l.granted \
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let found = connection.query_row(sql, [], |row| {
        let (name, host): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
        let host = host.unwrap_or_else(|| "the database's machine".to_owned());
        Ok(format!("{} on {host}", name.unwrap_or_else(|| "another server".to_owned())))
    });
    Ok(found.optional()?.unwrap_or_else(|| "another server".to_owned()))
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
