//! Reads durable records in order, behind the writer and across segments.
//!
//! Bytes past the durable lsn may be changing while they are read, so nothing beyond it is looked
//! at.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::segment::{self, SEGMENT_HEADER_LEN};
use super::segments::{SegmentSpan, Segments, segment_path};
use crate::storage::ids::Lsn;
use crate::storage::record::{Record, RecordError};

/// Why the log cannot be read on; it was intact when it was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TailError {
    #[error("log segment {segment} is corrupt at byte {position}: record {missing} is not there")]
    Missing { segment: PathBuf, position: u64, missing: Lsn },
    #[error("no log segment holds record {0}")]
    NoSegment(Lsn),
    #[error("record {lsn} of the log does not decode: {source}")]
    Undecodable { lsn: Lsn, source: RecordError },
    #[error("cannot read log segment {segment}: {source}")]
    Io { segment: PathBuf, source: io::Error },
}

/// A position in the log.
pub(crate) struct TailReader {
    segments: Arc<Segments>,
    next_lsn: Lsn,
    open: Option<Open>,
    buffer: Vec<u8>,
}

struct Open {
    span: SegmentSpan,
    file: File,
    position: u64,
}

impl TailReader {
    /// Begins after `applied`.
    pub(crate) fn new(segments: Arc<Segments>, applied: Lsn) -> Self {
        Self { segments, next_lsn: applied.next(), open: None, buffer: Vec::new() }
    }

    /// Reads on, up to `durable` and about `bytes_max`; empty once it has caught up.
    pub(crate) fn read(
        &mut self,
        durable: Lsn,
        bytes_max: usize,
    ) -> Result<Vec<(Lsn, Record)>, TailError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        while self.next_lsn <= durable && bytes < bytes_max {
            let next_lsn = self.next_lsn;
            let (span, end) =
                self.segments.holding(next_lsn).ok_or(TailError::NoSegment(next_lsn))?;
            let last = end.map_or(durable, |end| durable.min(Lsn(end.0 - 1)));
            self.open_at(span)?;
            bytes += self.read_chunk(last, bytes_max - bytes, &mut records)?;
        }
        Ok(records)
    }

    fn open_at(&mut self, span: SegmentSpan) -> Result<(), TailError> {
        if self.open.as_ref().is_some_and(|open| open.span == span) {
            return Ok(());
        }
        let path = segment_path(self.segments.directory(), span.number);
        let file = File::open(&path).map_err(|source| TailError::Io { segment: path, source })?;
        self.open = Some(Open { span, file, position: SEGMENT_HEADER_LEN as u64 });
        self.skip_applied(span.first_lsn)
    }

    /// Passes over the records that SQLite has already; only after a start in the middle of a
    /// segment.
    fn skip_applied(&mut self, first_lsn: Lsn) -> Result<(), TailError> {
        let wanted = self.next_lsn;
        self.next_lsn = first_lsn;
        while self.next_lsn < wanted {
            let mut skipped = Vec::new();
            self.read_chunk(Lsn(wanted.0 - 1), 1 << 20, &mut skipped)?;
        }
        Ok(())
    }

    /// Reads one chunk of the open segment; at least one record, however large.
    fn read_chunk(
        &mut self,
        last: Lsn,
        bytes_max: usize,
        records: &mut Vec<(Lsn, Record)>,
    ) -> Result<usize, TailError> {
        let open = self.open.as_mut().expect("a chunk is read from the segment just opened");
        let path = || segment_path(self.segments.directory(), open.span.number);
        let chunk = bytes_max.max(segment::RECORD_HEADER_LEN + segment::PAYLOAD_LEN_MAX);
        self.buffer.resize(chunk, 0);
        let read = read_up_to(&open.file, &mut self.buffer, open.position)
            .map_err(|source| TailError::Io { segment: path(), source })?;
        let mut consumed = 0;
        while self.next_lsn <= last && consumed < bytes_max {
            let rest = &self.buffer[consumed..read];
            let frame = segment::decode_frame(rest).filter(|frame| frame.lsn == self.next_lsn);
            let Some(frame) = frame else {
                if consumed > 0 && read == self.buffer.len() {
                    break; // Cut by the chunk's end; the next chunk begins here.
                }
                let position = open.position + consumed as u64;
                return Err(TailError::Missing {
                    segment: path(),
                    position,
                    missing: self.next_lsn,
                });
            };
            let record = Record::decode(frame.payload)
                .map_err(|source| TailError::Undecodable { lsn: frame.lsn, source })?;
            records.push((frame.lsn, record));
            consumed += frame.len();
            self.next_lsn = self.next_lsn.next();
        }
        open.position += consumed as u64;
        Ok(consumed)
    }
}

fn read_up_to(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], position + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
