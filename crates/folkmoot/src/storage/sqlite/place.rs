//! By what a database is told from a copy of it. A copy that was made earlier and is put in its
//! place would give out offsets a second time, which clients have seen with other events: so a
//! database that finds itself in another file begins a new epoch, and clients fetch history again.
//!
//! A file keeps its number and the time of its birth for as long as it lives, also when it is
//! renamed. Who brings back a whole disk brings these back too; that takes a word from the
//! operator.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use crate::storage::error::OpenError;
use crate::storage::sql::Connection;

/// Whether the data is known to be older than what clients have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restored {
    /// Only the file itself can tell.
    #[default]
    Unknown,
    /// The operator has brought an older state back.
    Yes,
}

/// Begins a new epoch if this is another file than at the last start.
pub(crate) fn note_place(
    connection: &Connection,
    path: &Path,
    restored: Restored,
) -> Result<(), OpenError> {
    let here = place(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let known: Option<String> =
        connection.query_row("SELECT place FROM store", [], |row| row.get(0))?;
    let is_copy = known.as_ref().is_some_and(|known| *known != here);
    if is_copy || restored == Restored::Yes {
        tracing::warn!("the data was restored from a copy: clients will fetch history again");
        connection.execute("UPDATE store SET epoch = lower(hex(randomblob(8)))", [])?;
    }
    if known.as_ref() != Some(&here) {
        connection.execute("UPDATE store SET place = ?1", [here])?;
    }
    Ok(())
}

fn place(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    // Not every file system knows the birth; the number alone must do there.
    let born = metadata.created().ok();
    let born = born.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(format!("{}:{}", metadata.ino(), born.unwrap_or_default().as_nanos()))
}
