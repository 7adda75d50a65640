//! The directories that a restore fills: who may fill them, what goes where, and how they become
//! empty again.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::backup::{BackupError, io_error, sync_directory};
use crate::config::Config;
use crate::storage::{self, DataDirectory, Keeps, RESTORING as MARK};

/// The directories of files of messages and people.
const OBJECTS: [&str; 3] = ["files", "thumbnails", "portraits"];
/// Where the data of a database is meanwhile.
const MEANWHILE: &str = "restoring";

pub(super) struct Places {
    pub(super) data: PathBuf,
    objects: PathBuf,
    keeps: Keeps,
}

impl Places {
    pub(super) fn of(config: &Config) -> Self {
        let keeps = config.database.as_ref().map_or(Keeps::Everything, Keeps::of);
        let (data, objects) = (config.data().to_owned(), config.attachments.directory.clone());
        Self { data, objects, keeps }
    }

    /// Where everything but files is unpacked on its way into a database.
    pub(super) fn meanwhile(&self) -> Self {
        let (data, objects) = (self.data.join(MEANWHILE), self.objects.clone());
        Self { data, objects, keeps: Keeps::Everything }
    }

    /// Whether nothing is there but what a restore that was killed has left.
    pub(super) fn are_free(&self) -> Result<(), BackupError> {
        for directory in self.directories() {
            let names = names(directory)?;
            let has = |name: &str| names.iter().any(|it| it == name);
            // Beside a database VERSION comes before all rows are there, and the database is asked.
            let is_beside = self.keeps != Keeps::Everything && !has(storage::DATABASE);
            let is_left = self.is_marked(directory)? && (!has("VERSION") || is_beside);
            // A mark may be torn, and then nothing is beside it.
            let is_empty = names.iter().all(|name| [storage::LOCK, MARK].contains(&&**name));
            if !(is_left || is_empty && self.may_be_ours(directory)?) {
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
            let whose = self.whose()?;
            let made = File::create(&mark).and_then(|mut mark| {
                mark.write_all(&whose)?;
                mark.sync_all()
            });
            made.map_err(|source| io_error(&mark, source))?;
            sync_directory(directory)?;
        }
        Ok(held)
    }

    /// Everything is there.
    pub(super) fn release(&self) -> Result<(), BackupError> {
        for directory in self.directories().rev() {
            if !self.is_marked(directory)? {
                continue;
            }
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

    /// Whether what is in a directory was said to be a part of a backup. A directory of files says
    /// of which data directory: others may have theirs in it.
    fn is_marked(&self, directory: &Path) -> Result<bool, BackupError> {
        match read_mark(directory)? {
            Some(found) => Ok(directory == self.data || found == self.whose()?),
            None => Ok(false),
        }
    }

    /// Whether a directory has no mark of another restore.
    fn may_be_ours(&self, directory: &Path) -> Result<bool, BackupError> {
        let found = read_mark(directory)?.unwrap_or_default();
        Ok(directory == self.data || self.whose()?.starts_with(&found))
    }

    /// What a mark says.
    fn whose(&self) -> Result<Vec<u8>, BackupError> {
        let data = std::path::absolute(&self.data);
        let data = data.map_err(|source| io_error(&self.data, source))?;
        Ok(data.as_os_str().as_bytes().to_vec())
    }

    /// Those that are filled, one inside the other left out.
    fn directories(&self) -> impl DoubleEndedIterator<Item = &Path> {
        let elsewhere = (!self.objects.starts_with(&self.data)).then_some(&*self.objects);
        [&*self.data].into_iter().chain(elsewhere)
    }
}

/// What the mark in a directory says, if there is one.
fn read_mark(directory: &Path) -> Result<Option<Vec<u8>>, BackupError> {
    let mark = directory.join(MARK);
    match std::fs::read(&mark) {
        Ok(found) => Ok(Some(found)),
        // Whoever uses the directory says what is wrong with it.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(source) => Err(io_error(&mark, source)),
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
