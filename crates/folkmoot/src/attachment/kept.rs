//! Keeps the files of messages from being removed while a backup copies them, by a lock on a file in
//! their directory. The lock belongs to the open file: it ends with its process, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// A file of its own: over NFS a directory cannot be locked.
const LOCK: &str = "lock";

/// As long as this is there, no file of a message is removed.
#[derive(Debug)]
pub(crate) struct Kept {
    _lock: Option<File>,
}

impl Kept {
    /// Waits for a removal that is under way, and holds up later ones. A directory that is missing
    /// has nothing to be removed.
    pub(crate) fn hold(directory: &Path) -> io::Result<Self> {
        let lock = match open(directory) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { _lock: None });
            }
            Err(error) => return Err(error),
        };
        lock.lock_shared()?;
        Ok(Self { _lock: Some(lock) })
    }
}

/// The permission to remove files; `None` while they are kept.
pub(super) fn may_remove(directory: &Path) -> io::Result<Option<File>> {
    let lock = open(directory)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(directory: &Path) -> io::Result<File> {
    let path = directory.join(LOCK);
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_may_be_removed_while_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let removing = may_remove(path).unwrap();
        assert!(removing.is_some());
        drop(removing);
        let (one, other) = (Kept::hold(path).unwrap(), Kept::hold(path).unwrap());
        assert!(may_remove(path).unwrap().is_none());
        drop(one);
        assert!(may_remove(path).unwrap().is_none());
        drop(other);
        assert!(may_remove(path).unwrap().is_some());
    }

    #[test]
    fn a_directory_that_is_missing_has_nothing_to_be_kept() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Kept::hold(&directory.path().join("none")).is_ok());
    }
}
