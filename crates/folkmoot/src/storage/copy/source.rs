//! The store that is read: all of it as of one moment, with everybody else kept out until it is
//! closed.

use std::time::SystemTime;

use super::CopyError;
use super::site::Site;
use crate::storage::address::StoreAddress;
use crate::storage::cassandra::address::CassandraAddress;
use crate::storage::cassandra::beside::{self, Fetched, Scratch};
use crate::storage::directory::{self, DataDirectory, Keeps};
use crate::storage::error::OpenError;
use crate::storage::postgres::claim;
use crate::storage::postgres::open::{connect_beside, connect_for_task};
use crate::storage::postgres::schema;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::store::settled;

/// A store that nobody writes to.
pub(crate) struct Source {
    /// In a transaction that sees one moment, as long as the session lives.
    pub(crate) connection: Connection,
    /// By what it is told from any other, and from itself once it has changed.
    pub(crate) mark: String,
    /// Keeps servers out of a directory; out of a database the session's own lock does, and out of
    /// a keyspace nothing: [`Source::is_unchanged`] says whether one has written.
    _directory: Option<DataDirectory>,
    /// Where what was fetched is meanwhile, after the connection to it.
    _scratch: Option<Scratch>,
}

impl Source {
    /// Opens a store; what its log has and its database lacks is applied first. Blocks.
    pub(crate) fn open(site: &Site) -> Result<Self, CopyError> {
        match site {
            Site::Directory(path) => {
                if !path.join("VERSION").exists() {
                    return Err(CopyError::NoData(site.clone()));
                }
                directory::require(path, Keeps::Everything)?;
                let directory = DataDirectory::open(path, Keeps::Everything)?;
                let connection = settled(&directory)?;
                let mark = mark_of_directory(&connection, &directory)?;
                connection.begin_snapshot()?;
                Ok(Self { connection, mark, _directory: Some(directory), _scratch: None })
            }
            Site::Database(address) => {
                let connection = connect_for_task(address)?;
                claim::lock(&connection, address)?;
                if !schema::is_there(&connection).map_err(OpenError::from)? {
                    return Err(CopyError::NoData(site.clone()));
                }
                schema::migrate(&connection, address)?;
                connection.begin_snapshot()?;
                let mark = mark_of_database(&connection)?;
                Ok(Self { connection, mark, _directory: None, _scratch: None })
            }
            Site::Keyspace(address) => Self::fetch(address),
        }
    }

    /// The same under a mark of the caller's, who knows what the store has been made of.
    pub(crate) fn marked(self, mark: String) -> Self {
        Self { mark, ..self }
    }

    fn fetch(address: &CassandraAddress) -> Result<Self, CopyError> {
        let Some(fetched) = beside::fetch(address)? else {
            return Err(CopyError::NoData(Site::Keyspace(address.clone())));
        };
        let Fetched { connection, mark, scratch } = fetched;
        Ok(Self { connection, mark, _directory: None, _scratch: Some(scratch) })
    }

    /// Whether nobody has written to it since it was opened. Only a keyspace can have been.
    pub(crate) fn is_unchanged(&self, site: &Site) -> Result<bool, CopyError> {
        let Site::Keyspace(address) = site else { return Ok(true) };
        Ok(beside::mark(address)?.is_some_and(|mark| mark == self.mark))
    }

    /// The store of a database as of now, beside the server that goes on writing. Blocks.
    pub(crate) fn beside(address: &StoreAddress) -> Result<Self, CopyError> {
        let address = match address {
            StoreAddress::Postgres(address) => address,
            StoreAddress::Cassandra(address) => return Self::fetch(address),
        };
        let connection = connect_beside(address)?;
        connection.begin_snapshot()?;
        let mark = mark_of_database(&connection)?;
        Ok(Self { connection, mark, _directory: None, _scratch: None })
    }
}

fn mark_of_database(connection: &Connection) -> Result<String, SqlError> {
    let sql = "SELECT concat_ws(' ', epoch, applied_lsn, writer, batch) FROM store";
    connection.query_row(sql, [], |row| row.get(0))
}

/// The log has been applied and SQLite's own is emptied here, so the file tells of every change.
fn mark_of_directory(
    connection: &Connection,
    directory: &DataDirectory,
) -> Result<String, CopyError> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let sql = "SELECT epoch || ' ' || applied_lsn FROM store";
    let epoch: String = connection.query_row(sql, [], |row| row.get(0))?;
    let path = directory.database();
    let about = std::fs::metadata(&path).and_then(|about| Ok((about.len(), about.modified()?)));
    let (len, changed) = about.map_err(|source| CopyError::Io { path, source })?;
    let changed = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{epoch} {len} {}", changed.as_nanos()))
}
