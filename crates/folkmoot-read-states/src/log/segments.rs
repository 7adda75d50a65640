//! The files of the log, and the bytes of a record.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::LogError;
use crate::change::Change;

const RECORD_BYTES: usize = 44;
const BODY_BYTES: usize = RECORD_BYTES - 4;

/// Two pages of a disk. They say nothing: no row is older than version 0.
const TRIAL_RECORDS: usize = 8_192 / RECORD_BYTES;

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
    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let half = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if crc32c::crc32c(&bytes[..BODY_BYTES]) != half(BODY_BYTES) {
            return None;
        }
        let change = match half(36) {
            ACKNOWLEDGE => Change::Acknowledge { message: word(24), mentions_left: half(32) },
            MENTION => Change::Mention { message: word(24) },
            FORGET => Change::Forget,
            _ => return None,
        };
        Some(Self { user: word(0), room: word(8), version: word(16), change })
    }
}

/// The records of a segment, and how many others the disk has spoilt. Those behind the last whole
/// one are the tail that a crash may leave.
fn decode_all(bytes: &[u8]) -> (Vec<Record>, usize) {
    let (places, _) = bytes.as_chunks::<RECORD_BYTES>();
    let mut read: Vec<_> = places.iter().map(Record::decode).collect();
    let whole = read.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    read.truncate(whole);
    let records: Vec<_> = read.into_iter().flatten().collect();
    let spoilt = whole - records.len();
    (records, spoilt)
}

pub(super) struct Segments {
    directory: PathBuf,
    /// Locked while we live: two that write one log would lose each other's changes.
    _lock: File,
    /// Numbers of the files that are there, the one being written last.
    numbers: Vec<u64>,
}

impl Segments {
    pub(super) fn open(directory: &Path) -> Result<(Self, Vec<Record>), LogError> {
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
        let mut records = Vec::new();
        for number in &segments.numbers {
            let path = segments.path(*number);
            let bytes = fs::read(&path).map_err(LogError::new("read a segment"))?;
            let (found, spoilt) = decode_all(&bytes);
            if spoilt > 0 {
                tracing::error!(path = %path.display(), spoilt, "changes to read states are lost");
            }
            records.extend(found);
        }
        Ok((segments, records))
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
