//! Where an authority keeps its record: one file, replaced as a whole.
//!
//! A record counts once the file has its new name and the directory is synced. Whoever crashes in
//! between comes back with the record before, of which nobody has heard more. One process at a
//! time has the directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use althing::Wire;

use crate::bucket::fnv;
use crate::record::Record;

const FILE: &str = "cluster.record";
const NEW_FILE: &str = "cluster.record.new";
const LOCK: &str = "cluster.lock";

/// The directory, locked.
pub(crate) struct Kept {
    directory: PathBuf,
    _lock: File,
}

impl Kept {
    /// Takes the directory for this process.
    ///
    /// # Errors
    /// Another process has it, or it cannot be made.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        lock.try_lock()?;
        Ok(Self { directory: directory.to_owned(), _lock: lock })
    }

    /// The record that counts; an empty one where there was none.
    ///
    /// # Errors
    /// There is one, and it cannot be read: an empty one in its place would start epochs anew.
    pub(crate) fn load(&self) -> io::Result<Record> {
        let bytes = match std::fs::read(self.directory.join(FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::empty()),
            Err(error) => return Err(error),
        };
        let damaged = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let (sum, body) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| damaged("the cluster's record is cut off".to_owned()))?;
        if u64::from_be_bytes(*sum) != fnv(body.iter().copied()) {
            return Err(damaged("the cluster's record is damaged".to_owned()));
        }
        Record::decode(body).map_err(|error| damaged(error.to_string()))
    }

    /// Has `record` count from now on.
    ///
    /// # Errors
    /// Whether it counts is unknown then: load again.
    pub(crate) fn store(&self, record: &Record) -> io::Result<()> {
        let mut body = Vec::new();
        record.encode(&mut body);
        let new = self.directory.join(NEW_FILE);
        let mut file = File::create(&new)?;
        file.write_all(&fnv(body.iter().copied()).to_be_bytes())?;
        file.write_all(&body)?;
        file.sync_all()?;
        std::fs::rename(&new, self.directory.join(FILE))?;
        File::open(&self.directory)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, Kept, NEW_FILE};
    use crate::record::Record;

    #[test]
    fn a_record_outlives_its_authority_and_a_damaged_one_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = Kept::open(directory.path()).expect("nobody has it");
        assert!(Kept::open(directory.path()).is_err(), "one at a time");
        let record = Record { view: 7, ..Record::empty() };
        kept.store(&record).expect("there is room");
        // A crash while the next one was written.
        std::fs::write(directory.path().join(NEW_FILE), b"half").expect("there is room");
        drop(kept);
        let kept = Kept::open(directory.path()).expect("nobody has it");
        assert_eq!(kept.load().expect("it is whole"), record);
        let mut bytes = std::fs::read(directory.path().join(FILE)).expect("it is there");
        bytes[9] ^= 1;
        std::fs::write(directory.path().join(FILE), bytes).expect("there is room");
        assert!(kept.load().is_err(), "epochs must not start anew");
    }
}
