//! Makes a store of a backup, or leaves everything as it was: the whole backup is checked
//! before the first byte is written, and a failure after that removes what was written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::archive::{self, ArchiveError, Piece};
use super::take::Bytes;
use super::{BackupError, io_error, sync_directory};
use crate::config::Config;
use crate::storage::{
    self, DataDirectory, FORMAT_VERSION, Keeps, Lsn, Site, Source, Store, StoreAddress,
    StoreOptions, Target, carry,
};

/// The directories of files of messages and people.
const OBJECTS: [&str; 3] = ["files", "thumbnails", "portraits"];
/// More would be no version.
const VERSION_BYTES_MAX: u64 = 20;

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBackup {
    /// Files of messages and pictures of people.
    pub files: u64,
}

/// Makes the data directory of `config`, which is empty or missing, of a backup; or fills its
/// database, which is empty, and puts the files into the directory.
///
/// # Errors
/// [`BackupError`]; the directory is empty then.
pub async fn restore(config: &Config, from: &Path) -> Result<RestoredBackup, BackupError> {
    let (config, from) = (config.clone(), from.to_owned());
    let restoring = tokio::task::spawn_blocking(move || {
        let (data, objects) = (config.data().to_owned(), config.attachments.directory.clone());
        let places = Places { data, objects };
        places.are_empty()?;
        check(&from, &places)?;
        // Again: somebody may have put something there meanwhile.
        places.are_empty()?;
        let restored = match &config.database {
            Some(address) => unpack_into_database(&from, &places, address),
            None => unpack(&from, &places).and_then(|files| Ok((Some(open(&places.data)?), files))),
        };
        if restored.is_err() {
            places.clear();
        }
        restored
    });
    let (store, files) = restoring.await.expect("restoring does not panic")?;
    if let Some(store) = store {
        // Moves the log that came with the backup into the database.
        store.close().await;
    }
    Ok(RestoredBackup { files })
}

/// By way of an embedded store, which is there only meanwhile. The files stay beside the database.
fn unpack_into_database(
    from: &Path,
    places: &Places,
    address: &StoreAddress,
) -> Result<(Option<Store>, u64), BackupError> {
    let target = Target::open(&address.clone().into(), None)?;
    let keeps = Keeps::of(address);
    let filled = fill(from, places, keeps, &target);
    match filled {
        Ok((files, applied)) => {
            target.finish(applied)?;
            Ok((None, files))
        }
        Err(error) => {
            target.discard()?;
            Err(error)
        }
    }
}

fn fill(
    from: &Path,
    places: &Places,
    keeps: Keeps,
    target: &Target,
) -> Result<(u64, Lsn), BackupError> {
    let _files = DataDirectory::open(&places.data, keeps)?;
    let data = places.data.join("restoring");
    let meanwhile = Places { data, objects: places.objects.clone() };
    let files = unpack(from, &meanwhile)?;
    let source = Source::open(&Site::Directory(meanwhile.data.clone()))?;
    let carried = carry(&source, target)?;
    drop(source);
    let removed = std::fs::remove_dir_all(&meanwhile.data);
    removed.map_err(|source| io_error(&meanwhile.data, source))?;
    Ok((files, carried.applied))
}

/// Begins the new epoch.
fn open(data: &Path) -> Result<Store, BackupError> {
    let restored = storage::Restored::Yes;
    Ok(Store::open(&StoreOptions { restored, ..StoreOptions::new(data) })?)
}

/// Where things go.
struct Places {
    data: PathBuf,
    objects: PathBuf,
}

impl Places {
    fn are_empty(&self) -> Result<(), BackupError> {
        for directory in [&self.data, &self.objects] {
            let is_empty = match std::fs::read_dir(directory) {
                Ok(mut entries) => entries.next().is_none(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(source) => return Err(io_error(directory, source)),
            };
            if !is_empty {
                return Err(BackupError::NotEmpty(directory.clone()));
            }
        }
        Ok(())
    }

    /// Where a file of a backup belongs; `None`: nowhere.
    fn place(&self, name: &str) -> Option<PathBuf> {
        let is_plain =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match name.split('/').collect::<Vec<_>>()[..] {
            ["folkmoot.sqlite"] => Some(storage::database(&self.data)),
            ["log", segment] if segment.strip_suffix(".wal").is_some_and(is_plain) => {
                Some(storage::log_directory(&self.data).join(segment))
            }
            ["attachments", part, id] if OBJECTS.contains(&part) && is_plain(id) => {
                Some(self.objects.join(part).join(id))
            }
            _ => None,
        }
    }

    fn make(&self) -> Result<(), BackupError> {
        let objects = OBJECTS.map(|part| self.objects.join(part));
        for directory in [storage::log_directory(&self.data)].iter().chain(&objects) {
            std::fs::create_dir_all(directory).map_err(|source| io_error(directory, source))?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), BackupError> {
        for part in OBJECTS {
            sync_directory(&self.objects.join(part))?;
        }
        sync_directory(&self.objects)?;
        sync_directory(&storage::log_directory(&self.data))?;
        sync_directory(&self.data)
    }

    /// Empties the directories, which were empty.
    fn clear(&self) {
        for directory in [&self.objects, &self.data] {
            let Ok(entries) = std::fs::read_dir(directory) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let removed = match path.is_dir() {
                    true => std::fs::remove_dir_all(&path),
                    false => std::fs::remove_file(&path),
                };
                if let Err(error) = removed {
                    let path = path.display();
                    tracing::warn!(%path, %error, "what was half restored could not be removed");
                }
            }
        }
    }
}

/// Reads a whole backup and writes nothing.
fn check(from: &Path, places: &Places) -> Result<(), BackupError> {
    each(from, "checking MiB", |piece| match piece {
        Piece::File { path, .. } if path != "VERSION" && places.place(path).is_none() => {
            Err(content(from, format!("it has a file {path:?}, which no data directory has")))
        }
        _ => Ok(()),
    })
}

/// Writes the files of a backup; says how many are of messages and people.
fn unpack(from: &Path, places: &Places) -> Result<u64, BackupError> {
    places.make()?;
    let mut unpacking = Unpacking { from, places, file: None, version: None, files: 0 };
    each(from, "writing MiB", |piece| unpacking.take(piece))?;
    unpacking.finish()
}

/// Hands out the pieces of a backup, with a bar.
fn each(
    from: &Path,
    what: &'static str,
    mut visit: impl FnMut(Piece<'_>) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let file = File::open(from).map_err(|source| io_error(from, source))?;
    let len = file.metadata().map_err(|source| io_error(from, source))?.len();
    let mut bar = Bytes::new(what, len);
    let read = archive::read(io::BufReader::new(file), |piece| {
        if let Piece::Bytes(bytes) = &piece {
            bar.add(bytes.len() as u64);
        }
        visit(piece).map_err(Stopped::Visit)
    });
    match read {
        Ok(()) => {
            bar.end();
            Ok(())
        }
        Err(Stopped::Visit(error)) => Err(error),
        Err(Stopped::Archive(source)) => {
            Err(BackupError::Archive { path: from.to_owned(), source })
        }
    }
}

enum Stopped {
    Archive(ArchiveError),
    Visit(BackupError),
}

impl From<ArchiveError> for Stopped {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

/// Files on their way to their places.
struct Unpacking<'a> {
    from: &'a Path,
    places: &'a Places,
    file: Option<(File, PathBuf)>,
    /// While it is read: what the backup's VERSION says.
    version: Option<Vec<u8>>,
    files: u64,
}

impl Unpacking<'_> {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), BackupError> {
        match (piece, &mut self.file, &mut self.version) {
            (Piece::File { path: "VERSION", len }, None, None) if len <= VERSION_BYTES_MAX => {
                self.version = Some(Vec::new());
                Ok(())
            }
            (Piece::File { path, .. }, ..) => {
                self.end_file()?;
                let no_place = || content(self.from, format!("{path:?} is out of place"));
                let place = self.places.place(path).ok_or_else(no_place)?;
                let file = File::create_new(&place).map_err(|source| io_error(&place, source))?;
                self.files += u64::from(path.starts_with("attachments/"));
                self.file = Some((file, place));
                Ok(())
            }
            (Piece::Bytes(bytes), Some((file, place)), _) => {
                file.write_all(bytes).map_err(|source| io_error(place, source))
            }
            (Piece::Bytes(bytes), None, Some(version)) => {
                version.extend_from_slice(bytes);
                Ok(())
            }
            (Piece::Bytes(_), None, None) => unreachable!("bytes follow the name of their file"),
        }
    }

    fn end_file(&mut self) -> Result<(), BackupError> {
        let Some((file, place)) = self.file.take() else { return Ok(()) };
        file.sync_all().map_err(|source| io_error(&place, source))
    }

    /// The version comes last: with it the directory is one that a server opens.
    fn finish(mut self) -> Result<u64, BackupError> {
        self.end_file()?;
        let version = self.version.take().unwrap_or_default();
        let version = String::from_utf8_lossy(&version);
        if version.trim() != FORMAT_VERSION.to_string() {
            let version = version.trim();
            let reason = format!(
                "its data has format {version:?}, this program reads format {FORMAT_VERSION}; \
                 use the folkmoot that made it"
            );
            return Err(content(self.from, reason));
        }
        if !storage::database(&self.places.data).exists() {
            return Err(content(self.from, "it has no database".to_owned()));
        }
        self.places.sync()?;
        let written = storage::write_version(&self.places.data);
        written.map_err(|source| io_error(&self.places.data, source))?;
        Ok(self.files)
    }
}

fn content(from: &Path, reason: String) -> BackupError {
    BackupError::Content { path: from.to_owned(), reason }
}
