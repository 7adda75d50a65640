//! A data directory as of one moment, also while a server writes to it: the database as it was
//! then, and the part of the log that it lacked. What was acknowledged before is in one of the two.
//!
//! Whoever holds SQLite's write lock keeps the mover and every control transaction waiting. While it is
//! held no segment is deleted, and no record comes into the log that depends on a transaction
//! which the database lacks. In those milliseconds the snapshot begins and the end of the log is
//! found; copying comes later, beside the server, and reads nothing that still changes.
//!
//! Nothing here writes into the directory.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};

use super::directory::{self, Keeps};
use super::error::OpenError;
use super::ids::{AttachmentId, Lsn, PictureId, UnixMillis};
use super::log::segment::{self, End, SEGMENT_HEADER_LEN, SegmentHeader};
use super::log::segments::{list, segment_path};
use super::sql::{self, Connection};
use super::sqlite::apply::{from_sql, to_sql};
use super::sqlite::open_sqlite_reader;

/// The server's own transactions take milliseconds; a batch on a slow disk takes seconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// Segments that the last batch emptied may vanish between being listed and opened, one after the
/// other; there are no others, so this is for a disk that stands still.
const LISTING_PATIENCE: Duration = Duration::from_secs(10);
/// Pages of the database copied between two looks at the bar; 4 MiB.
const PAGES_AT_ONCE: i32 = 1_024;

/// The directory's content as of one moment.
pub(crate) struct Moment {
    /// In a transaction that sees the database as it was.
    database: Connection,
    /// What the database lacks, oldest first.
    pub(crate) segments: Vec<SegmentPart>,
}

/// The beginning of a log segment, up to the moment.
#[derive(Debug)]
pub(crate) struct SegmentPart {
    pub(crate) number: u64,
    pub(crate) file: File,
    pub(crate) len: u64,
}

/// The files that the database names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(crate) attachments: Vec<NamedAttachment>,
    pub(crate) pictures: Vec<PictureId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedAttachment {
    pub(crate) id: AttachmentId,
    /// Bytes of the file.
    pub(crate) size: u64,
    pub(crate) has_thumbnail: bool,
    /// Nobody names it any more, so its bytes may be gone already.
    pub(crate) has_expired: bool,
}

/// A segment that is open, and where it begins.
#[derive(Debug)]
pub(crate) struct Opened {
    number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) first_lsn: Lsn,
}

impl Moment {
    /// Takes the moment that is now. Blocks.
    pub(crate) fn take(data: &Path) -> Result<Self, OpenError> {
        let (database, (applied, opened, newest)) = Self::begin(data, |applied, opened| {
            let opened = opened?;
            let newest = opened.last().map(|newest| end_of(newest, None)).transpose()?;
            Ok((applied, opened, newest))
        })?;
        let segments = parts(opened, newest, applied)?;
        Ok(Self { database, segments })
    }

    /// Begins a snapshot of the database. With SQLite's write lock still held, `look` is given the
    /// last record that the database has and the log's segments.
    pub(super) fn begin<T>(
        data: &Path,
        look: impl FnOnce(Lsn, Result<Vec<Opened>, OpenError>) -> Result<T, OpenError>,
    ) -> Result<(Connection, T), OpenError> {
        directory::require(data, Keeps::Everything)?;
        let path = directory::database(data);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let holder = rusqlite::Connection::open_with_flags(&path, flags)?;
        holder.busy_timeout(LOCK_PATIENCE)?;
        holder.execute_batch("BEGIN IMMEDIATE")?;
        let database = open_sqlite_reader(&path)?;
        database.execute_batch("BEGIN")?;
        // The first read is what begins the snapshot.
        let applied = database.query_row("SELECT applied_lsn FROM store", [], |row| row.get(0))?;
        let applied = Lsn(from_sql(applied));
        let seen = look(applied, open_segments(&directory::log(data)))?;
        holder.execute_batch("ROLLBACK")?;
        Ok((database.into(), seen))
    }

    /// Copies the database into a new file; `on_pages` is told how many are done, and of how many.
    pub(crate) fn copy_database(
        &self,
        to: &Path,
        mut on_pages: impl FnMut(u64, u64),
    ) -> Result<(), rusqlite::Error> {
        let mut copy = rusqlite::Connection::open(to)?;
        // Nobody reads it before it is whole, and whoever keeps it syncs it.
        copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")?;
        let database = self.database.as_sqlite().expect("a directory has SQLite");
        let backup = Backup::new(database, &mut copy)?;
        loop {
            let step = backup.step(PAGES_AT_ONCE)?;
            let progress = backup.progress();
            let pages = |count: i32| u64::try_from(count).unwrap_or(0);
            let all = pages(progress.pagecount);
            on_pages(all - pages(progress.remaining).min(all), all);
            match step {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                // Somebody else opened the copy, which is new and ours.
                _ => {
                    return Err(rusqlite::Error::SqliteFailure(
                        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                        Some(format!("{} is in use", to.display())),
                    ));
                }
            }
        }
    }

    /// The files that the database names.
    pub(crate) fn named_files(&self, now: UnixMillis) -> sql::Result<NamedFiles> {
        named_files(&self.database, now)
    }
}

/// The files that a database names; rows of uploads that have not arrived name none.
pub(crate) fn named_files(database: &Connection, now: UnixMillis) -> sql::Result<NamedFiles> {
    let sql = "SELECT id, size, width > 0, expires_at IS NOT NULL AND expires_at <= ?1 \
               FROM attachments WHERE media_type <> ''";
    let mut statement = database.prepare_cached(sql)?;
    let attachment = |row: &sql::Row<'_>| {
        let id = AttachmentId::from_u64(row.get::<i64>(0)?.cast_unsigned());
        let size = row.get::<i64>(1)?.cast_unsigned();
        let (has_thumbnail, has_expired) = (row.get(2)?, row.get(3)?);
        Ok(NamedAttachment { id, size, has_thumbnail, has_expired })
    };
    let attachments = statement.query_map([to_sql(now.as_u64())], attachment)?;
    let attachments = attachments.collect::<Result<Vec<_>, _>>()?;
    Ok(NamedFiles { attachments, pictures: pictures(database)? })
}

/// The pictures that people show. Of an account that is being deleted it goes first.
pub(crate) fn pictures(database: &Connection) -> sql::Result<Vec<PictureId>> {
    let sql = "SELECT picture FROM users WHERE picture IS NOT NULL AND deleted_at IS NULL";
    let mut statement = database.prepare_cached(sql)?;
    let pictures = statement
        .query_map([], |row| Ok(PictureId::from_u64(row.get::<i64>(0)?.cast_unsigned())))?;
    pictures.collect()
}

/// Has nobody show these pictures in a copy of a database.
pub(crate) fn forget_pictures(copy: &Path, pictures: &[PictureId]) -> Result<(), rusqlite::Error> {
    if pictures.is_empty() {
        return Ok(());
    }
    let mut copy = rusqlite::Connection::open(copy)?;
    // Without a journal in a file, which would outlive a kill and be applied to the next copy.
    copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")?;
    let transaction = copy.transaction()?;
    for picture in pictures {
        let sql = "UPDATE users SET picture = NULL WHERE picture = ?1";
        transaction.execute(sql, [to_sql(picture.as_u64())])?;
    }
    transaction.commit()
}

fn open_segments(log: &Path) -> Result<Vec<Opened>, OpenError> {
    let until = Instant::now() + LISTING_PATIENCE;
    loop {
        match try_open_segments(log) {
            Err(OpenError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && Instant::now() < until => {}
            opened => return opened,
        }
    }
}

fn try_open_segments(log: &Path) -> Result<Vec<Opened>, OpenError> {
    let numbers = list(log).map_err(|source| io_error(log, source))?;
    let mut opened = Vec::new();
    for number in &numbers {
        let path = segment_path(log, *number);
        let file = File::open(&path).map_err(|source| io_error(&path, source))?;
        let mut header = Vec::new();
        let read = (&file).take(SEGMENT_HEADER_LEN as u64).read_to_end(&mut header);
        read.map_err(|source| io_error(&path, source))?;
        match SegmentHeader::decode(&header) {
            Some(SegmentHeader { number: inside, first_lsn }) if inside == *number => {
                opened.push(Opened { number: *number, path, file, first_lsn });
            }
            // Power went before the header was synced, so nothing in it was acknowledged.
            None if Some(number) == numbers.last() && header.iter().all(|byte| *byte == 0) => {}
            _ => {
                let reason = "its header is damaged".to_owned();
                return Err(OpenError::Corrupt { segment: path, position: 0, reason });
            }
        }
    }
    Ok(opened)
}

/// Of the segments, what the database lacks. `newest`: where the last one ended at the moment.
fn parts(
    opened: Vec<Opened>,
    newest: Option<u64>,
    applied: Lsn,
) -> Result<Vec<SegmentPart>, OpenError> {
    if let Some(found) = opened.first().map(|segment| segment.first_lsn)
        && found > applied.next()
    {
        return Err(OpenError::MissingRecords { applied, found });
    }
    let ends: Vec<Option<Lsn>> =
        opened.iter().skip(1).map(|next| Some(next.first_lsn)).chain([None]).collect();
    let mut parts = Vec::new();
    for (segment, until) in opened.into_iter().zip(ends) {
        let len = match (until, newest) {
            (Some(until), _) if until <= applied.next() => continue,
            (None, Some(newest)) => newest,
            (until, _) => end_of(&segment, until)?,
        };
        parts.push(SegmentPart { number: segment.number, file: segment.file, len });
    }
    Ok(parts)
}

/// Where the intact records of a segment end, which may be written to meanwhile.
fn end_of(segment: &Opened, until: Option<Lsn>) -> Result<u64, OpenError> {
    let mut damaged_before = None;
    loop {
        let scanned = from_start(&segment.file)
            .and_then(|bytes| segment::scan(bytes, until, |_| {}))
            .map_err(|source| io_error(&segment.path, source))?;
        let scan = scanned.expect("the header was decoded before");
        let position = scan.valid_len as u64;
        match scan.end {
            End::Clean | End::Torn => return Ok(position),
            // While it was read, a record may have come in front of what was read last. A second
            // look finds that one whole; what is damaged is still so.
            End::Corrupt(_) if damaged_before != Some(position) => {
                damaged_before = Some(position);
            }
            End::Corrupt(reason) => {
                let segment = segment.path.clone();
                return Err(OpenError::Corrupt { segment, position, reason });
            }
        }
    }
}

/// All bytes that a segment has now, from its first one on, wherever others read it.
pub(crate) fn from_start(file: &File) -> io::Result<impl Read + use<'_>> {
    struct At<'f>(&'f File, u64);
    impl Read for At<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read_at(into, self.1)?;
            self.1 += read as u64;
            Ok(read)
        }
    }
    Ok(At(file, 0).take(file.metadata()?.len()))
}

fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}
