//! The thread that writes snapshots and looks whether somebody else has taken the log over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use rusqlite::OpenFlags;

use super::database::Database;
use super::index::{self, Place};
use super::names::Name;
use super::session::Session;
use super::snapshot::{self, Snapshot, Whole, now};
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::migrations;

/// How often it looks. A server that was replaced and writes nothing shows what it knew for this
/// long.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// The oldest that a snapshot may be while there are entries behind it: what was deleted stays in
/// the log for so long.
const SNAPSHOT_AGE_MS: u64 = 24 * 60 * 60 * 1_000;

/// What the thread needs.
pub(super) struct Keeper {
    pub(super) database: Arc<Database>,
    pub(super) session: Arc<Session>,
    pub(super) index: PathBuf,
    pub(super) snapshot: Snapshot,
    /// Bytes of entries behind which a snapshot is due, if it is no larger itself.
    pub(super) snapshot_bytes: u64,
}

impl Keeper {
    /// Runs until the other end of `stop` is dropped.
    pub(super) fn run(mut self, stop: &Receiver<()>) {
        while stop.recv_timeout(LOOK_PAUSE) == Err(RecvTimeoutError::Timeout) {
            self.database.look();
            let log_bytes = self.database.lock().log_bytes();
            if !self.is_due(log_bytes) {
                continue;
            }
            let go_on = || stop.try_recv() == Err(TryRecvError::Empty);
            match take(&self.session, &self.index, Some(&self.snapshot), &go_on) {
                Ok(Some(snapshot)) => self.snapshot = snapshot,
                Ok(None) => self.read_current(),
                Err(error) => {
                    tracing::warn!(%error, "no snapshot was written; trying again");
                    self.read_current();
                }
            }
        }
    }

    /// Another one may count by now: that of the server before us, which was writing it.
    fn read_current(&mut self) {
        if let Ok(Some(snapshot)) = snapshot::current(&self.session) {
            self.snapshot = snapshot;
        }
    }

    fn is_due(&self, log_bytes: u64) -> bool {
        let behind = log_bytes.saturating_sub(self.snapshot.log_bytes);
        let is_long = behind >= self.snapshot_bytes.max(self.snapshot.bytes);
        behind > 0 && (is_long || is_old(self.snapshot.made_at, now()))
    }
}

/// One from far ahead is of a clock that was wrong, and may be of any age.
fn is_old(made_at: u64, now: u64) -> bool {
    now.abs_diff(made_at) >= SNAPSHOT_AGE_MS
}

/// Writes what an index is now as the snapshot that counts; others may write to it meanwhile.
pub(super) fn take(
    session: &Session,
    index: &Path,
    before: Option<&Snapshot>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Snapshot>, SqlError> {
    let failed = |error| SqlError::Refused(format!("{}: {error}", index.display()));
    let file = index.with_extension("snapshot");
    index::remove(&file).map_err(failed)?;
    let copied = copy(index, &file).and_then(|()| read(&file));
    let published = copied.and_then(|(place, schema)| {
        let whole = Whole { file: &file, place, schema, name: Name::draw(), there: 0 };
        snapshot::publish(session, whole, before, go_on)
    });
    index::remove(&file).map_err(failed)?;
    if let Ok(Some(snapshot)) = &published {
        let (entry, bytes) = (snapshot.number, snapshot.bytes);
        tracing::info!(
            entry,
            bytes,
            "a snapshot is in Cassandra; the entries before it are deleted"
        );
    }
    published
}

/// Copies an index as of one moment, without what was deleted in it.
pub(super) fn copy(index: &Path, to: &Path) -> Result<(), SqlError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = rusqlite::Connection::open_with_flags(index, flags)?;
    source.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    Ok(())
}

/// How far a copy is, and the steps of the schema that it has taken.
pub(super) fn read(copy: &Path) -> Result<(Place, u32), SqlError> {
    let index = Connection::from(rusqlite::Connection::open(copy)?);
    let place = Place::read(&index)?.ok_or_else(|| {
        SqlError::Refused(format!("{} does not say how far it is", copy.display()))
    })?;
    Ok((place, migrations::taken(&index)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_old_after_a_day_whatever_the_clock_showed_when_it_was_made() {
        let now = 100 * SNAPSHOT_AGE_MS;
        assert!(!is_old(now - SNAPSHOT_AGE_MS + 1, now) && !is_old(now + 60_000, now));
        assert!(is_old(now - SNAPSHOT_AGE_MS, now) && is_old(2 * now, now) && is_old(0, now));
    }
}
