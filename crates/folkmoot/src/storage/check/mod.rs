//! What is wrong in a store, also while a server writes to it: the log's checksums and
//! numbers, the database's structure, and what rows say about each other.
//!
//! It changes nothing, and goes on after the first damage: who has to decide what to do wants to
//! know all of it. What a text should be nobody can tell: SQLite keeps no checksums of its rows.

mod log;
mod rows;

use std::path::Path;

use super::cassandra::{self, address::CassandraAddress};
use super::error::OpenError;
use super::moment::{Moment, NamedFiles};
use super::postgres::address::DatabaseAddress;
use super::postgres::open::connect_beside;
use super::sql::Connection;
use super::sqlite::open_reader;
use super::{PictureId, StoreAddress, UnixMillis, directory};

/// More lines would help nobody; the number of all is told.
const LINES_MAX: usize = 200;

/// What was found, in words.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    lines: Vec<String>,
    count: u64,
    notes: Vec<String>,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) records: u64,
    pub(crate) rooms: u64,
    pub(crate) messages: u64,
}

impl Findings {
    /// Something that is not as it was written.
    pub(crate) fn wrong(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }

    /// Something that is worth a word and no damage.
    pub(crate) fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// The first lines, the number of all, and the notes.
    pub(crate) fn into_parts(self) -> (Vec<String>, u64, Vec<String>) {
        (self.lines, self.count, self.notes)
    }
}

/// Looks at log and database; the files that the database names are left to the caller, who knows
/// where they are. `None`: the database cannot say. Blocks.
pub(crate) fn check(
    data: &Path,
    now: UnixMillis,
    findings: &mut Findings,
) -> Result<(Looked, Option<NamedFiles>), OpenError> {
    let (database, (applied, segments)) =
        Moment::begin(data, |applied, segments| Ok((applied, segments)))?;
    let mut looked = Looked::default();
    match segments {
        Ok(segments) => looked.records = log::check(&segments, applied, findings),
        Err(error) => findings.wrong(error.to_string()),
    }
    let place = directory::database(data).display().to_string();
    let named = check_rows(&database, now, &place, &mut looked, findings);
    Ok((looked, named))
}

/// The same for a store in PostgreSQL, which has no log of ours; all of it as of one moment.
pub(crate) fn check_database(
    address: &DatabaseAddress,
    now: UnixMillis,
    findings: &mut Findings,
) -> Result<(Looked, Option<NamedFiles>), OpenError> {
    let database = connect_beside(address)?;
    database.begin_snapshot()?;
    let mut looked = Looked::default();
    let named = check_rows(&database, now, &address.to_string(), &mut looked, findings);
    Ok((looked, named))
}

/// The same for a store in Cassandra: its last snapshot and all entries behind it are read anew.
pub(crate) fn check_keyspace(
    address: &CassandraAddress,
    now: UnixMillis,
    findings: &mut Findings,
) -> Result<(Looked, Option<NamedFiles>), OpenError> {
    let fetched = cassandra::beside::fetch(address)?;
    let fetched = fetched.ok_or_else(|| OpenError::EmptyKeyspace { address: address.clone() })?;
    let mut looked = Looked::default();
    let place = address.to_string();
    let named = check_rows(&fetched.connection, now, &place, &mut looked, findings);
    Ok((looked, named))
}

/// The pictures that people show now. Blocks.
pub(crate) fn shown_pictures(
    data: &Path,
    address: Option<&StoreAddress>,
) -> Result<Vec<PictureId>, OpenError> {
    let read = |database: &Connection| super::moment::pictures(database).map_err(OpenError::from);
    match address {
        None => read(&open_reader(&directory::database(data))?),
        Some(StoreAddress::Postgres(address)) => read(&connect_beside(address)?),
        Some(StoreAddress::Cassandra(address)) => {
            let fetched = cassandra::beside::fetch(address)?;
            fetched.map_or_else(|| Ok(Vec::new()), |fetched| read(&fetched.connection))
        }
    }
}

fn check_rows(
    database: &Connection,
    now: UnixMillis,
    place: &str,
    looked: &mut Looked,
    findings: &mut Findings,
) -> Option<NamedFiles> {
    let checked = rows::check(database, looked, findings)
        .and_then(|()| super::moment::named_files(database, now));
    match checked {
        Ok(named) => Some(named),
        Err(error) => {
            findings.wrong(format!("{place} cannot be read on: {error}"));
            None
        }
    }
}
