//! The files of the log, and the bytes of a record.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::LogError;
use crate::change::Change;

const RECORD_BYTES: usize = 44;
const BODY_BYTES: usize = RECORD_BYTES - 4;

/// Two pages of a disk. They say nothing: no row is older than version 0.
const TRIAL_RECORDS: usize = 8_192 / RECORD_BYTES;

/// Bytes of a segment that are read at once.
const READ_BYTES: usize = 256 * 1024;

const ACKNOWLEDGE: u32 = 1;
const MENTION: u32 = 2;
const FORGET: u32 = 3;

/// One change of one user in one room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) user: u64,
    pub(crate) room: u64,
    pub(crate) version: u64,
    pub(crate) change: Change,
}

impl Record {
    #[inline]
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let (kind, message, mentions) = match self.change {
            Change::Acknowledge { message, mentions_left } => (ACKNOWLEDGE, message, mentions_left),
            Change::Mention { message } => (MENTION, message, 0),
            Change::Forget => (FORGET, 0, 0),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.user.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.room.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.version.to_le_bytes());
        bytes[24..32].copy_from_slice(&message.to_le_bytes());
        bytes[32..36].copy_from_slice(&mentions.to_le_bytes());
        bytes[36..40].copy_from_slice(&kind.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` for bytes that are no whole record.
    ///
    /// # Errors
    /// It is one of a kind that is not known.
    fn decode(bytes: &[u8; RECORD_BYTES]) -> Result<Option<Self>, LogError> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let half = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if crc32c::crc32c(&bytes[..BODY_BYTES]) != half(BODY_BYTES) {
            return Ok(None);
        }
        let change = match half(36) {
            ACKNOWLEDGE => Change::Acknowledge { message: word(24), mentions_left: half(32) },
            MENTION => Change::Mention { message: word(24) },
            FORGET => Change::Forget,
            kind => {
                let why =
                    format!("it has records of kind {kind}, which a later version has written");
                return Err(LogError { doing: "read a segment", why });
            }
        };
        Ok(Some(Self { user: word(0), room: word(8), version: word(16), change }))
    }
}

/// What earlier processes have left, read once for its length and highest version, and then piece by piece: a
/// log of hours does not fit into memory.
pub(crate) struct Earlier {
    segments: std::vec::IntoIter<Old>,
    open: Option<(BufReader<File>, usize)>,
    /// The highest one of its records.
    pub(crate) version: u64,
}

/// A segment of an earlier process.
struct Old {
    path: PathBuf,
    /// Up to its last whole record. What is behind that is the tail that a crash may leave.
    places: usize,
}

impl Earlier {
    fn look(paths: impl Iterator<Item = PathBuf>) -> Result<Self, LogError> {
        let (mut segments, mut version) = (Vec::new(), 0);
        for path in paths {
            let (mut at, mut places, mut records) = (0, 0, 0);
            let mut reader = open(&path)?;
            while let Some(place) = read(&mut reader)? {
                at += 1;
                if let Some(record) = Record::decode(&place)? {
                    (places, records) = (at, records + 1);
                    version = version.max(record.version);
                }
            }
            let spoilt = places - records;
            if spoilt > 0 {
                tracing::error!(path = %path.display(), spoilt, "changes to read states are lost");
            }
            segments.push(Old { path, places });
        }
        Ok(Self { segments: segments.into_iter(), open: None, version })
    }

    /// The next records, in their order; none at the end.
    pub(crate) fn next(&mut self, count_max: usize) -> Result<Vec<Record>, LogError> {
        let mut records = Vec::new();
        while records.len() < count_max {
            let Some((reader, places)) = &mut self.open else {
                let Some(Old { path, places }) = self.segments.next() else { break };
                self.open = Some((open(&path)?, places));
                continue;
            };
            match read(reader)?.filter(|_| *places > 0) {
                Some(place) => {
                    *places -= 1;
                    records.extend(Record::decode(&place)?);
                }
                None => self.open = None,
            }
        }
        Ok(records)
    }
}

fn open(path: &Path) -> Result<BufReader<File>, LogError> {
    let file = File::open(path).map_err(LogError::new("read a segment"))?;
    Ok(BufReader::with_capacity(READ_BYTES, file))
}

/// The bytes of the next record; `None` at the end.
fn read(reader: &mut BufReader<File>) -> Result<Option<[u8; RECORD_BYTES]>, LogError> {
    let mut place = [0; RECORD_BYTES];
    match reader.read_exact(&mut place) {
        Ok(()) => Ok(Some(place)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(LogError::new("read a segment")(error)),
    }
}

pub(super) struct Segments {
    directory: PathBuf,
    /// Locked while we live: two that write one log would lose each other's changes.
    _lock: File,
    /// Numbers of the files that are there, the one being written last.
    numbers: Vec<u64>,
}

impl Segments {
    pub(super) fn open(directory: &Path) -> Result<(Self, Earlier), LogError> {
        fs::create_dir_all(directory).map_err(LogError::new("make its directory"))?;
        let lock = File::create(directory.join("lock")).map_err(LogError::new("make its lock"))?;
        lock.try_lock().map_err(|why| LogError {
            doing: "lock its directory, which another process uses",
            why: why.to_string(),
        })?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(directory).map_err(LogError::new("list its directory"))? {
            let name = entry.map_err(LogError::new("list its directory"))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".log"));
            let number: Option<u64> = number.and_then(|number| number.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        let segments = Self { directory: directory.to_owned(), _lock: lock, numbers };
        let earlier = Earlier::look(segments.numbers.iter().map(|number| segments.path(*number)))?;
        Ok((segments, earlier))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:020}.log"))
    }

    pub(super) fn last(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }

    /// Makes the next file, durably.
    pub(super) fn begin(&mut self) -> Result<File, LogError> {
        let file = self.make()?;
        self.sync_directory()?;
        Ok(file)
    }

    /// As `begin`, for a disk that has refused something: refused unless it takes a few kilobytes.
    /// Then nothing is left of the file: else every attempt would leave one.
    pub(super) fn begin_on_trial(&mut self) -> Result<File, LogError> {
        let mut file = self.make()?;
        let idle = Record { user: 0, room: 0, version: 0, change: Change::Forget };
        let idle = idle.encode().repeat(TRIAL_RECORDS);
        let tried = file.write_all(&idle).and_then(|()| file.sync_data());
        let tried = tried.map_err(LogError::new("write")).and_then(|()| self.sync_directory());
        if let Err(error) = tried {
            if fs::remove_file(self.path(self.last())).is_ok() {
                self.numbers.pop();
            }
            return Err(error);
        }
        Ok(file)
    }

    /// Its number is taken from now on, whatever becomes of it: another file of that name cannot be
    /// made.
    fn make(&mut self) -> Result<File, LogError> {
        let number = self.last() + 1;
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(self.path(number))
            .map_err(LogError::new("make a segment"))?;
        self.numbers.push(number);
        Ok(file)
    }

    pub(super) fn remove(&mut self, before: u64) -> Result<(), LogError> {
        let old = self.numbers.iter().take_while(|number| **number < before).count();
        for number in self.numbers.drain(..old).collect::<Vec<_>>() {
            fs::remove_file(self.path(number)).map_err(LogError::new("remove a segment"))?;
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        let files = self.numbers.iter().filter_map(|number| fs::metadata(self.path(*number)).ok());
        files.map(|file| file.len()).sum()
    }

    fn sync_directory(&self) -> Result<(), LogError> {
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(LogError::new("sync its directory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_whose_directory_was_not_synced_is_in_the_way_of_no_later_one_and_goes_with_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut segments, _) = Segments::open(directory.path()).expect("it opens");
        segments.begin().expect("it is made");
        // As `begin` leaves it if the sync fails.
        drop(segments.make().expect("it is made"));
        segments.begin().expect("it is made");
        segments.remove(segments.last()).expect("they are removed");
        drop(segments);
        let (segments, _) = Segments::open(directory.path()).expect("it opens");
        assert_eq!(segments.numbers, [3]);
    }
}
