//! A backup until it is whole: under another name, so that nobody takes it for one, and locked, so
//! that no second one is written there.
//!
//! A backup that was killed leaves it behind, unlocked. The next one of that name removes it; nobody
//! else knows these names.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{BackupError, io_error, sync_directory};

/// A backup that is being written. What there is of it goes with this, unless it is finished.
pub(super) struct Unfinished {
    to: PathBuf,
    path: PathBuf,
    database: PathBuf,
    /// Holds the lock, which ends with the process, however that ends.
    _lock: File,
    is_finished: bool,
}

impl Unfinished {
    /// Begins to write what is to become the new file `to`.
    pub(super) fn begin(to: &Path) -> Result<(File, Self), BackupError> {
        if to.exists() {
            return Err(BackupError::FileExists(to.to_owned()));
        }
        let (path, database) = (beside(to, "unfinished"), beside(to, "unfinished-database"));
        remove_left(&path)?;
        // Only its owner may read it: it has the hashes of passwords.
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(&path);
        let out = match created {
            Ok(out) => out,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Underway(path));
            }
            Err(source) => return Err(io_error(&path, source)),
        };
        lock(&out, &path)?;
        let failed = |source| io_error(&path, source);
        let lock = out.try_clone().map_err(failed)?;
        let to = to.to_owned();
        let unfinished = Self { to, path: path.clone(), database, _lock: lock, is_finished: false };
        remove_if_there(&unfinished.database)?;
        options.open(&unfinished.database).map_err(failed)?;
        Ok((out, unfinished))
    }

    /// Where it is written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the copy of the database is meanwhile: on the disk that has room for the backup.
    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// Gives it its name, durably; what has that name by now is not replaced.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        match rename_new(&self.path, &self.to) {
            Ok(()) => self.is_finished = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::FileExists(self.to.clone()));
            }
            Err(source) => return Err(io_error(&self.to, source)),
        }
        sync_directory(directory_of(&self.to))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let backup = (!self.is_finished).then_some(&self.path);
        for path in backup.into_iter().chain([&self.database]) {
            if let Err(error) = std::fs::remove_file(path) {
                let path = path.display();
                tracing::warn!(%path, %error, "an unfinished file could not be removed");
            }
        }
    }
}

/// Removes what one that was killed has left.
fn remove_left(path: &Path) -> Result<(), BackupError> {
    let left = match OpenOptions::new().write(true).open(path) {
        Ok(left) => left,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io_error(path, source)),
    };
    lock(&left, path)?;
    let ours = left.metadata().map_err(|source| io_error(path, source))?.ino();
    // Another one may have removed it before us, and begun its own.
    match std::fs::metadata(path) {
        Ok(there) if there.ino() == ours => remove_if_there(path),
        _ => Err(BackupError::Underway(path.to_owned())),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), BackupError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(BackupError::Underway(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(io_error(path, source)),
    }
}

fn remove_if_there(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path, error)),
        _ => Ok(()),
    }
}

/// Renames a file to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot promise it; who writes backups into it at once is not known.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if to.exists() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

fn beside(to: &Path, end: &str) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    PathBuf::from(name)
}

fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
