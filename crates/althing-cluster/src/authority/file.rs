//! The store in a directory: one file, replaced as a whole.
//!
//! A record counts once the file has its new name and the directory is synced. Whoever crashes in
//! between comes back with the record before, of which nobody has heard more. The lock on the
//! directory is the lead: one process at a time has it, until it ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::storage::{Claimant, Lead, Op, Replaced, Storage, StorageError, opened, sealed};
use crate::record::Record;

const FILE: &str = "cluster.record";
const NEW_FILE: &str = "cluster.record.new";
const LOCK: &str = "cluster.lock";

/// The directory, locked.
pub(crate) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Takes the directory for this process.
    ///
    /// # Errors
    /// Another process has it, it cannot be made, or its record is damaged.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let lock = path.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(lock)?;
        lock.try_lock()?;
        let directory = Self { path: path.to_owned(), _lock: lock };
        directory.read().map_err(io::Error::other)?;
        Ok(directory)
    }

    fn read(&self) -> Result<Record, StorageError> {
        match std::fs::read(self.path.join(FILE)) {
            Ok(bytes) => opened(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::empty()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let new = self.path.join(NEW_FILE);
        let mut file = File::create(&new)?;
        file.write_all(&sealed(record))?;
        file.sync_all()?;
        std::fs::rename(&new, self.path.join(FILE))?;
        File::open(&self.path)?.sync_all()
    }
}

impl Storage for Directory {
    fn claim<'a>(&'a self, me: &'a Claimant, _: Duration) -> Op<'a, Lead> {
        Box::pin(async { Ok(Lead { leader: me.clone(), term: 1 }) })
    }

    fn resign<'a>(&'a self, _: &'a Claimant) -> Op<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn load(&self) -> Op<'_, Record> {
        Box::pin(async { self.read() })
    }

    fn replace<'a>(&'a self, expected: u64, record: &'a Record) -> Op<'a, Replaced> {
        Box::pin(async move {
            if self.read()?.writes != expected {
                return Ok(Replaced::Refused);
            }
            self.write(record)?;
            Ok(Replaced::Done)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Directory, FILE, NEW_FILE};
    use crate::authority::conformance;
    use crate::authority::storage::Storage;
    use crate::record::Record;

    #[tokio::test]
    async fn the_directory_keeps_every_promise() {
        let directory = tempfile::tempdir().expect("a directory");
        conformance::run(|cluster| {
            let opened = Directory::open(&directory.path().join(cluster)).ok()?;
            Some(Arc::new(opened) as Arc<dyn Storage>)
        })
        .await;
    }

    #[test]
    fn a_record_outlives_its_authority_and_a_damaged_one_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(place.path()).expect("nobody has it");
        assert!(Directory::open(place.path()).is_err(), "one at a time");
        let record = Record { view: 7, writes: 9, ..Record::empty() };
        directory.write(&record).expect("there is room");
        // A crash while the next one was written.
        std::fs::write(place.path().join(NEW_FILE), b"half").expect("there is room");
        drop(directory);
        let directory = Directory::open(place.path()).expect("nobody has it");
        assert_eq!(directory.read().expect("it is whole"), record);
        drop(directory);
        let mut bytes = std::fs::read(place.path().join(FILE)).expect("it is there");
        bytes[9] ^= 1;
        std::fs::write(place.path().join(FILE), bytes).expect("there is room");
        assert!(Directory::open(place.path()).is_err(), "epochs must not start anew");
    }
}
