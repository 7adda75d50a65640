//! The directories that a restore fills: who may fill them, what goes where, and how they become
//! empty again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::backup::{BackupError, io_error, sync_directory};
use crate::storage::{self, DataDirectory};

/// The directories of files of messages and people.
const OBJECTS: [&str; 3] = ["files", "thumbnails", "portraits"];
/// Says that what is beside it is a part of a backup.
const MARK: &str = "RESTORING";
/// Where the data of a database is meanwhile.
const MEANWHILE: &str = "restoring";

pub(super) struct Places {
    pub(super) data: PathBuf,
    objects: PathBuf,
}

impl Places {
    pub(super) fn new(data: &Path, objects: &Path) -> Self {
        Self { data: data.to_owned(), objects: objects.to_owned() }
    }

    /// Where everything but files is unpacked on its way into a database.
    pub(super) fn meanwhile(&self) -> Self {
        Self { data: self.data.join(MEANWHILE), objects: self.objects.clone() }
    }

    /// Whether nothing is there but what a restore that was killed has left.
    pub(super) fn are_free(&self) -> Result<(), BackupError> {
        for directory in self.directories() {
            let names = names(directory)?;
            let has = |name: &str| names.iter().any(|it| it == name);
            let is_left = has(MARK) && !has("VERSION");
            if !is_left && names.iter().any(|name| name != storage::LOCK) {
                return Err(BackupError::NotEmpty(directory.to_owned()));
            }
        }
        Ok(())
    }

    /// Makes the directories, keeps others out of them, and empties them. Until they are released
    /// or cleared, who finds them knows what they are.
    pub(super) fn hold(&self) -> Result<DataDirectory, BackupError> {
        let held = DataDirectory::hold(&self.data)?;
        // Again: somebody may have put something there meanwhile.
        self.are_free()?;
        for directory in self.directories() {
            std::fs::create_dir_all(directory).map_err(|source| io_error(directory, source))?;
            empty(directory, &[storage::LOCK, MARK])
                .map_err(|source| io_error(directory, source))?;
            let mark = directory.join(MARK);
            let made = File::create(&mark).and_then(|mark| mark.sync_all());
            made.map_err(|source| io_error(&mark, source))?;
            sync_directory(directory)?;
        }
        Ok(held)
    }

    /// Everything is there.
    pub(super) fn release(&self) -> Result<(), BackupError> {
        for directory in self.directories().rev() {
            let mark = directory.join(MARK);
            std::fs::remove_file(&mark).map_err(|source| io_error(&mark, source))?;
            sync_directory(directory)?;
        }
        Ok(())
    }

    /// Empties the directories. The marks go last: until then another restore may do it.
    pub(super) fn clear(&self) {
        for directory in self.directories().rev() {
            let cleared = empty(directory, &[storage::LOCK, MARK])
                .and_then(|()| empty(directory, &[storage::LOCK]))
                .and_then(|()| empty(directory, &[]));
            if let Err(error) = cleared {
                let path = directory.display();
                tracing::warn!(%path, %error, "what was half restored could not be removed");
            }
        }
    }

    /// Where a file of a backup belongs; `None`: nowhere.
    pub(super) fn place(&self, name: &str) -> Option<PathBuf> {
        let is_plain =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match name.split('/').collect::<Vec<_>>()[..] {
            [storage::DATABASE] => Some(storage::database(&self.data)),
            ["log", segment] if segment.strip_suffix(".wal").is_some_and(is_plain) => {
                Some(storage::log_directory(&self.data).join(segment))
            }
            ["attachments", part, id] if OBJECTS.contains(&part) && is_plain(id) => {
                Some(self.objects.join(part).join(id))
            }
            _ => None,
        }
    }

    pub(super) fn make(&self) -> Result<(), BackupError> {
        let objects = OBJECTS.map(|part| self.objects.join(part));
        for directory in [storage::log_directory(&self.data)].iter().chain(&objects) {
            std::fs::create_dir_all(directory).map_err(|source| io_error(directory, source))?;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), BackupError> {
        for part in OBJECTS {
            sync_directory(&self.objects.join(part))?;
        }
        sync_directory(&self.objects)?;
        sync_directory(&storage::log_directory(&self.data))?;
        sync_directory(&self.data)
    }

    /// Those that are filled, one inside the other left out.
    fn directories(&self) -> impl DoubleEndedIterator<Item = &Path> {
        let elsewhere = (!self.objects.starts_with(&self.data)).then_some(&*self.objects);
        [&*self.data].into_iter().chain(elsewhere)
    }
}

fn names(directory: &Path) -> Result<Vec<String>, BackupError> {
    let failed = |source| io_error(directory, source);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let name = |entry: io::Result<std::fs::DirEntry>| {
        Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

/// Removes everything in a directory but these.
fn empty(directory: &Path, but: &[&str]) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if but.iter().any(|kept| entry.file_name() == *kept) {
            continue;
        }
        let path = entry.path();
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(&path)?,
            false => std::fs::remove_file(&path)?,
        }
    }
    Ok(())
}
