//! The store that is filled: empty, or filled in part by the same copy before. No server begins to
//! use it before all is there: a directory lacks its VERSION until then, and a database says so.

use std::path::{Path, PathBuf};

use super::site::Site;
use super::tables::tables;
use super::{CopyError, progress};
use crate::storage::cassandra::filling::Filling;
use crate::storage::directory::{self, DataDirectory};
use crate::storage::error::OpenError;
use crate::storage::ids::Lsn;
use crate::storage::postgres::claim;
use crate::storage::postgres::open::{connect_beside, connect_for_task};
use crate::storage::postgres::schema;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::apply::to_sql;
use crate::storage::sqlite::{migrations, open_reader, open_writer};

/// A store on its way to being whole.
pub(crate) struct Target {
    pub(crate) connection: Connection,
    pub(super) site: Site,
    /// Of a directory: locked, and still without its VERSION.
    directory: Option<(DataDirectory, PathBuf)>,
    /// Of a keyspace, whose rows are in a file until they are all there.
    filling: Option<Filling>,
}

impl Target {
    /// Opens an empty store, or one that a copy was begun into. `data`: where a copy into a keyspace
    /// is found again, if it is to be. `mark`: of the source. Blocks.
    pub(crate) fn open(site: &Site, data: Option<&Path>, mark: &str) -> Result<Self, CopyError> {
        match Self::open_empty(site, data) {
            Err(CopyError::NotEmpty(site)) if has_all(&site, mark) => {
                Err(CopyError::AllThere(site))
            }
            opened => opened,
        }
    }

    fn open_empty(site: &Site, data: Option<&Path>) -> Result<Self, CopyError> {
        let target = match site {
            Site::Directory(path) => {
                let Some(directory) = DataDirectory::begin(path)? else {
                    return Err(CopyError::NotEmpty(site.clone()));
                };
                let connection = open_writer(&directory.database())?;
                let directory = Some((directory, path.clone()));
                Self { connection, site: site.clone(), directory, filling: None }
            }
            Site::Database(address) => {
                let connection = connect_for_task(address)?;
                claim::lock(&connection, address)?;
                schema::take_steps(&connection, address)?;
                Self { connection, site: site.clone(), directory: None, filling: None }
            }
            Site::Keyspace(address) => {
                let Some(filling) = Filling::begin(address, data)? else {
                    return Err(CopyError::NotEmpty(site.clone()));
                };
                let connection = open_writer(&filling.file())?;
                let filling = Some(filling);
                Self { connection, site: site.clone(), directory: None, filling }
            }
        };
        let begun = progress::read(&target.connection)?;
        let is_begun = begun.is_some_and(|reached| !reached.is_finished || target.is_ours());
        match is_begun || target.is_empty()? {
            true => Ok(target),
            false => Err(CopyError::NotEmpty(site.clone())),
        }
    }

    /// Refuses what was begun from another source.
    pub(crate) fn require_source(&self, mark: &str) -> Result<(), CopyError> {
        match progress::read(&self.connection)? {
            Some(reached) if reached.source != mark => Err(CopyError::OtherSource(self.place())),
            _ => Ok(()),
        }
    }

    /// A new file of SQLite's, which somebody puts into a directory later. Blocks.
    pub(crate) fn file(path: &Path) -> Result<Self, CopyError> {
        let connection = rusqlite::Connection::open(path)?;
        // Nobody reads it before it is whole, and whoever keeps it syncs it.
        connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")?;
        let connection = Connection::from(connection);
        migrations::migrate(&connection, path)?;
        let site = Site::Directory(path.to_owned());
        Ok(Self { connection, site, directory: None, filling: None })
    }

    /// Empties a database that was to be filled; a directory is for the caller to empty.
    pub(crate) fn discard(self) -> Result<(), CopyError> {
        match self.connection.is_far() {
            true => Ok(self.connection.execute_batch("DROP SCHEMA folkmoot CASCADE")?),
            false => Ok(()),
        }
    }

    /// A directory, or what is to fill a keyspace, may have been left between its last two steps.
    fn is_ours(&self) -> bool {
        self.directory.is_some() || self.filling.is_some()
    }

    /// Where the rows of a copy that was begun are.
    fn place(&self) -> Site {
        match &self.filling {
            Some(filling) => Site::Directory(filling.directory().to_owned()),
            None => self.site.clone(),
        }
    }

    fn is_empty(&self) -> Result<bool, CopyError> {
        for table in tables()? {
            let sql =
                format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) any_row", table.name);
            let rows: i64 = self.connection.query_row(&sql, [], |row| row.get(0))?;
            if rows > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets servers in, once all rows are there: with an epoch of its own and numbers that go on
    /// behind those of the source.
    pub(crate) fn finish(self, applied: Lsn) -> Result<(), CopyError> {
        let transaction = self.connection.begin()?;
        let epoch = match self.connection.is_far() {
            true => "substr(replace(gen_random_uuid()::text, '-', ''), 1, 16)",
            false => "lower(hex(randomblob(8)))",
        };
        let sql = format!("UPDATE store SET epoch = {epoch}, applied_lsn = ?1, place = NULL");
        transaction.execute(&sql, [to_sql(applied.0)])?;
        if self.connection.is_far() {
            go_on_numbering(&transaction)?;
        }
        progress::finish(&transaction)?;
        transaction.commit()?;
        if let Some(filling) = self.filling {
            drop(self.connection);
            return match filling.finish(progress::TABLE)? {
                true => Ok(()),
                false => Err(CopyError::NotEmpty(self.site)),
            };
        }
        let Some((directory, path)) = self.directory else { return Ok(()) };
        // Empties SQLite's own log into the file.
        drop(self.connection);
        let made = std::fs::create_dir_all(directory.log());
        let made = made.and_then(|()| directory::write_version(&path));
        made.map_err(|source| CopyError::Open(OpenError::Io { path, source }))
    }
}

/// Whether a copy from that source has come to its end there, as far as can be told.
fn has_all(site: &Site, mark: &str) -> bool {
    let opened = match site {
        Site::Directory(path) => open_reader(&directory::database(path)),
        Site::Database(address) => connect_beside(address),
        Site::Keyspace(_) => return false,
    };
    let reached = opened.ok().and_then(|connection| progress::read(&connection).ok()).flatten();
    reached.is_some_and(|reached| reached.is_finished && reached.source == mark)
}

/// Has PostgreSQL give out numbers behind those that came, as SQLite does by itself.
fn go_on_numbering(transaction: &Connection) -> Result<(), SqlError> {
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns \
               WHERE table_schema = 'folkmoot' AND is_identity = 'YES'";
    let mut numbered = transaction.prepare_cached(sql)?;
    let numbered = numbered.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (table, column) in numbered.collect::<Result<Vec<(String, String)>, _>>()? {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('folkmoot.{table}', '{column}'), \
             coalesce(max({column}), 1), count(*) > 0) FROM {table}"
        );
        transaction.query_row(&sql, [], |_| Ok(()))?;
    }
    Ok(())
}
