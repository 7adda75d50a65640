//! What is wrong in a data directory, also while a server writes to it: the log's checksums and
//! numbers, the database's structure, and what rows say about each other.
//!
//! It changes nothing, and goes on after the first damage: who has to decide what to do wants to know all
//! of it. What a text should be nobody can tell: SQLite keeps no checksums of its rows.

mod log;
mod rows;

use std::path::Path;

use super::error::OpenError;
use super::moment::{Moment, NamedFiles};
use super::{UnixMillis, directory};

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
    let checked = rows::check(&database, &mut looked, findings)
        .and_then(|()| super::moment::named_files(&database, now));
    match checked {
        Ok(named) => Ok((looked, Some(named))),
        Err(error) => {
            let path = directory::database(data);
            findings.wrong(format!("{} cannot be read on: {error}", path.display()));
            Ok((looked, None))
        }
    }
}
