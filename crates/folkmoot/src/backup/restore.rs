//! Makes a store of a backup, or leaves everything as it was: the whole backup is checked
//! before the first byte is written, and a failure after that removes what was written, unless
//! a database may have all of it.
//!
//! Who is killed amid it leaves `RESTORING` in the directory, by which the next restore knows that
//! it may begin anew there. No server begins on such a directory: `VERSION` comes last. Beside a
//! database it comes before the rows are all there; then the database lets no server begin.

mod places;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::places::Places;
use super::archive::{self, ArchiveError, Piece};
use super::take::Bytes;
use super::{BackupError, io_error};
use crate::config::Config;
use crate::storage::{
    self, CopyError, DataDirectory, FORMAT_VERSION, Keeps, Lsn, Site, Source, Store, StoreAddress,
    StoreOptions, Target, carry,
};

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
/// [`BackupError`]; the directory is empty then, unless the database may have all rows.
pub async fn restore(config: &Config, from: &Path) -> Result<RestoredBackup, BackupError> {
    let (config, from) = (config.clone(), from.to_owned());
    let restoring = tokio::task::spawn_blocking(move || {
        let places = Places::of(&config);
        places.are_free()?;
        let mark = check(&from, &places)?;
        // Before anything goes: if all rows are there, the files beside them are whole.
        let database = config.database.as_ref();
        let target = database.map(|address| open_database(address, &mark)).transpose()?;
        let held = Arc::new(places.hold()?);
        let restored = match target {
            Some(target) => (None, unpack_into_database(&from, &places, target, mark)?),
            None => unpack_into_directory(&from, &places, &held)?,
        };
        places.release()?;
        Ok::<_, BackupError>(restored)
    });
    let (store, files) = restoring.await.expect("restoring does not panic")?;
    if let Some(store) = store {
        // Moves the log that came with the backup into the database.
        store.close().await;
    }
    Ok(RestoredBackup { files })
}

/// For a server that has begun, so all is there: removes the marks that a restore has left which
/// was killed at its very end.
pub(crate) fn release(config: &Config) {
    if let Err(error) = Places::of(config).release() {
        tracing::warn!(%error, "what a restore that was killed has left could not be removed");
    }
}

/// Empty, or with a part of what is to be restored: what a migration has begun to carry, or a
/// restore of another backup, is not ours to discard.
fn open_database(address: &StoreAddress, mark: &str) -> Result<(Target, Keeps), BackupError> {
    let target = Target::open(&address.clone().into(), None, mark)?;
    target.require_source(mark)?;
    Ok((target, Keeps::of(address)))
}

fn unpack_into_directory(
    from: &Path,
    places: &Places,
    held: &Arc<DataDirectory>,
) -> Result<(Option<Store>, u64), BackupError> {
    let unpacked = unpack(from, places);
    let opened = unpacked.and_then(|files| Ok((Some(open(&places.data, held)?), files)));
    opened.inspect_err(|_| places.clear())
}

/// By way of an embedded store, which is there only meanwhile. The files stay beside the database.
fn unpack_into_database(
    from: &Path,
    places: &Places,
    (target, keeps): (Target, Keeps),
    mark: String,
) -> Result<u64, BackupError> {
    let filled = fill(from, places, &target, mark).and_then(|filled| {
        // First: a server that finds a directory of its own looks whether all rows are there.
        let written = storage::write_keeps(&places.data, keeps);
        written.map(|()| filled).map_err(|source| io_error(&places.data, source))
    });
    let (files, applied) = match filled {
        Ok(filled) => filled,
        Err(error) => {
            places.clear();
            if let Err(left) = target.discard() {
                tracing::warn!(%left, "rows that were half restored could not be removed");
            }
            return Err(error);
        }
    };
    match target.finish(applied) {
        Ok(()) => Ok(files),
        Err(error @ CopyError::NotEmpty(_)) => {
            places.clear();
            Err(error.into())
        }
        // The answer may be all that is missing: then the files are those of a server. If it is
        // not, no server begins on them, and the next restore begins anew.
        Err(error) => Err(error.into()),
    }
}

/// `mark`: by it a restore that was killed knows that the rows that are there are of this backup.
fn fill(
    from: &Path,
    places: &Places,
    target: &Target,
    mark: String,
) -> Result<(u64, Lsn), BackupError> {
    let meanwhile = places.meanwhile();
    let files = unpack(from, &meanwhile)?;
    let source = Source::open(&Site::Directory(meanwhile.data.clone()))?.marked(mark);
    let carried = carry(&source, target)?;
    drop(source);
    let removed = std::fs::remove_dir_all(&meanwhile.data);
    removed.map_err(|source| io_error(&meanwhile.data, source))?;
    Ok((files, carried.applied))
}

/// Begins the new epoch.
fn open(data: &Path, held: &Arc<DataDirectory>) -> Result<Store, BackupError> {
    let restored = storage::Restored::Yes;
    Ok(Store::open_held(&StoreOptions { restored, ..StoreOptions::new(data) }, held)?)
}

/// Reads a whole backup and writes nothing. Returns by what it is told from any other.
fn check(from: &Path, places: &Places) -> Result<String, BackupError> {
    let (mut version, mut is_version, mut has_database) = (Vec::new(), false, false);
    let (mut sum, mut bytes) = (0, 0_u64);
    each(from, "checking MiB", |piece| {
        match piece {
            Piece::File { path, len } => {
                is_version = path == "VERSION" && len <= VERSION_BYTES_MAX;
                has_database |= path == storage::DATABASE;
                if !is_version && places.place(path).is_none() {
                    let reason = format!("it has a file {path:?}, which no data directory has");
                    return Err(content(from, reason));
                }
                sum = crc32c::crc32c_append(sum, path.as_bytes());
            }
            Piece::Bytes(piece) => {
                if is_version {
                    version.extend_from_slice(piece);
                }
                sum = crc32c::crc32c_append(sum, piece);
                bytes += piece.len() as u64;
            }
        }
        Ok(())
    })?;
    let version = String::from_utf8_lossy(&version);
    let version = version.trim();
    if version != FORMAT_VERSION.to_string() {
        let reason = format!(
            "its data has format {version:?}, this program reads format {FORMAT_VERSION}; \
             use the folkmoot that made it"
        );
        return Err(content(from, reason));
    }
    if !has_database {
        return Err(content(from, "it has no database".to_owned()));
    }
    Ok(format!("backup {bytes} {sum:08x}"))
}

/// Writes the files of a backup; says how many are of messages and people.
fn unpack(from: &Path, places: &Places) -> Result<u64, BackupError> {
    places.make()?;
    let mut unpacking = Unpacking { from, places, file: None, files: 0 };
    each(from, "writing MiB", |piece| unpacking.take(piece))?;
    unpacking.end_file()?;
    let files = unpacking.files;
    places.sync()?;
    // With it the directory is one that a server opens.
    let written = storage::write_version(&places.data);
    written.map_err(|source| io_error(&places.data, source))?;
    Ok(files)
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
    /// `None`: bytes of the version, which was looked at before.
    file: Option<(File, PathBuf)>,
    files: u64,
}

impl Unpacking<'_> {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), BackupError> {
        match (piece, &mut self.file) {
            (Piece::File { path: "VERSION", .. }, _) => self.end_file(),
            (Piece::File { path, .. }, _) => {
                self.end_file()?;
                let no_place = || content(self.from, format!("{path:?} is out of place"));
                let place = self.places.place(path).ok_or_else(no_place)?;
                let file = File::create_new(&place).map_err(|source| io_error(&place, source))?;
                self.files += u64::from(path.starts_with("attachments/"));
                self.file = Some((file, place));
                Ok(())
            }
            (Piece::Bytes(bytes), Some((file, place))) => {
                file.write_all(bytes).map_err(|source| io_error(place, source))
            }
            (Piece::Bytes(_), None) => Ok(()),
        }
    }

    fn end_file(&mut self) -> Result<(), BackupError> {
        let Some((file, place)) = self.file.take() else { return Ok(()) };
        file.sync_all().map_err(|source| io_error(&place, source))
    }
}

fn content(from: &Path, reason: String) -> BackupError {
    BackupError::Content { path: from.to_owned(), reason }
}
