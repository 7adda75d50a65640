//! Which segments exist, and what start-up makes of those it finds.
//!
//! A segment begins at an lsn and ends where the next one begins: records beyond that are leftovers
//! of a write that failed and was never acknowledged. The last segment is the only one written to;
//! start-up never continues an old one but opens a new one, so a torn tail is cut off exactly once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::disk::Disk;
use super::segment::{self, End, SEGMENT_HEADER_LEN, SegmentHeader};
use crate::storage::error::OpenError;
use crate::storage::ids::Lsn;

/// One segment: its number and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSpan {
    pub(crate) number: u64,
    pub(crate) first_lsn: Lsn,
}

/// The segments of one data directory, oldest first; shared by the log's thread and the mover.
#[derive(Debug)]
pub(crate) struct Segments {
    directory: PathBuf,
    spans: Mutex<Vec<SegmentSpan>>,
}

/// What start-up found in the log.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) segments: Segments,
    /// The last record that is in the log or in SQLite.
    pub(crate) last_lsn: Lsn,
    /// The number for the next segment.
    pub(crate) next_number: u64,
}

impl Segments {
    /// Checks every segment that SQLite still needs, cuts off a torn tail and refuses damage.
    pub(crate) fn recover(directory: &Path, applied: Lsn) -> Result<Recovered, OpenError> {
        let numbers = list(directory).map_err(|source| io_error(directory, source))?;
        let next_number = numbers.last().map_or(1, |number| number + 1);
        let mut spans = Vec::new();
        for number in &numbers {
            let is_last = Some(number) == numbers.last();
            spans.extend(read_span(&segment_path(directory, *number), *number, is_last)?);
        }
        if let Some(found) = spans.first().map(|span| span.first_lsn)
            && found > applied.next()
        {
            return Err(OpenError::MissingRecords { applied, found });
        }
        let mut last_lsn = applied;
        for (index, span) in spans.iter().enumerate() {
            let until = spans.get(index + 1).map(|next| next.first_lsn);
            if until.is_some_and(|until| until <= applied.next()) {
                continue;
            }
            let path = segment_path(directory, span.number);
            last_lsn = last_lsn.max(check_segment(&path, until)?);
        }
        let segments = Self { directory: directory.to_owned(), spans: Mutex::new(spans) };
        Ok(Recovered { segments, last_lsn, next_number })
    }

    /// The directory they are in.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds the segment that is written from now on. Must precede the acknowledgement of its
    /// records, or a reader would take superseded ones for them.
    pub(crate) fn push(&self, span: SegmentSpan) {
        self.spans.lock().push(span);
    }

    /// The segment that holds a record, and where the next one begins.
    pub(crate) fn holding(&self, lsn: Lsn) -> Option<(SegmentSpan, Option<Lsn>)> {
        let spans = self.spans.lock();
        let index = spans.iter().rposition(|span| span.first_lsn <= lsn)?;
        Some((spans[index], spans.get(index + 1).map(|next| next.first_lsn)))
    }

    /// Deletes the segments that hold nothing after `applied`; never the last one.
    pub(crate) fn remove_applied(&self, applied: Lsn, disk: &dyn Disk) {
        loop {
            let span = {
                let mut spans = self.spans.lock();
                match spans.get(1) {
                    Some(next) if next.first_lsn <= applied.next() => spans.remove(0),
                    _ => return,
                }
            };
            let path = segment_path(&self.directory, span.number);
            if let Err(error) = disk.remove(&path) {
                // Harmless: its records are skipped on the next start, which tries again.
                tracing::warn!(segment = %path.display(), %error, "cannot delete an applied segment");
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.spans.lock().len()
    }
}

/// Where a segment is.
pub(crate) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:08}.wal"))
}

/// The numbers of the segments in a directory, oldest first.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_suffix(".wal")?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads a segment's header; `None` for one that never came into use, which is deleted.
fn read_span(path: &Path, number: u64, is_last: bool) -> Result<Option<SegmentSpan>, OpenError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SEGMENT_HEADER_LEN as u64).read_to_end(&mut bytes))
        .map_err(|source| io_error(path, source))?;
    match SegmentHeader::decode(&bytes) {
        Some(header) if header.number == number => {
            Ok(Some(SegmentSpan { number, first_lsn: header.first_lsn }))
        }
        // Power went before the header was synced, so nothing in it was acknowledged.
        None if is_last && bytes.iter().all(|byte| *byte == 0) => {
            std::fs::remove_file(path).map_err(|source| io_error(path, source))?;
            Ok(None)
        }
        _ => Err(OpenError::Corrupt {
            segment: path.to_owned(),
            position: 0,
            reason: "its header is damaged".to_owned(),
        }),
    }
}

/// Reads a whole segment, a piece at a time; returns its last record.
fn check_segment(path: &Path, until: Option<Lsn>) -> Result<Lsn, OpenError> {
    let failed = |source| io_error(path, source);
    let file = File::open(path).map_err(failed)?;
    let scan = segment::scan(file, until, |_| {}).map_err(failed)?;
    let scan = scan.expect("the header was decoded before");
    match scan.end {
        End::Clean => {}
        End::Torn => cut_off(path, scan.valid_len as u64, scan.last_lsn).map_err(failed)?,
        End::Corrupt(reason) => {
            let position = scan.valid_len as u64;
            return Err(OpenError::Corrupt { segment: path.to_owned(), position, reason });
        }
    }
    Ok(scan.last_lsn)
}

fn cut_off(path: &Path, valid_len: u64, last_lsn: Lsn) -> io::Result<()> {
    let file: File = OpenOptions::new().write(true).open(path)?;
    let len = file.metadata()?.len();
    file.set_len(valid_len)?;
    file.sync_all()?;
    tracing::warn!(
        segment = %path.display(),
        position = valid_len,
        bytes = len - valid_len,
        last_record = last_lsn.0,
        "cut off the torn tail of the log: an unfinished write that was never acknowledged"
    );
    Ok(())
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}
