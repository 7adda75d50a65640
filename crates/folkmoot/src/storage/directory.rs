//! The data directory: its format version, and the lock that keeps a second process out.
//!
//! `VERSION` names the format of everything below it and is written last when a directory is made,
//! so a directory without one holds nothing yet. The lock belongs to the open file and ends with
//! the process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::address::StoreAddress;
use super::error::OpenError;

/// The on-disk format that this program reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// The database; SQLite's own files beside it begin with its name.
pub(crate) const DATABASE: &str = "folkmoot.sqlite";
/// Who has it locked has the directory.
pub(crate) const LOCK: &str = "lock";
/// Says that what is beside it is a part of a backup, until all of that is there.
pub(crate) const RESTORING: &str = "RESTORING";
/// Says, in a directory without a database, that the database is in PostgreSQL.
const IN_POSTGRES: &str = "POSTGRES";
/// Says that the log is in Cassandra, and what else is here an index of it.
const IN_CASSANDRA: &str = "CASSANDRA";

/// Where the database of a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// In the directory.
    Everything,
    /// In PostgreSQL; only files are here.
    Files,
    /// In Cassandra; files are here and an index that can be made anew.
    Index,
}

impl Keeps {
    /// In the data directory of a store on servers of its own.
    pub(crate) fn of(address: &StoreAddress) -> Self {
        match address {
            StoreAddress::Postgres(_) => Self::Files,
            StoreAddress::Cassandra(_) => Self::Index,
        }
    }

    /// The file that says so.
    fn mark(self) -> Option<&'static str> {
        match self {
            Self::Everything => None,
            Self::Files => Some(IN_POSTGRES),
            Self::Index => Some(IN_CASSANDRA),
        }
    }
}

/// An opened and locked data directory. The lock is held until this is dropped.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    lock: File,
}

impl DataDirectory {
    /// Opens a directory, making it if it is missing or empty.
    pub(crate) fn open(path: &Path, keeps: Keeps) -> Result<Self, OpenError> {
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(io_error)?;
        // Before the lock file is made: a refused directory stays as it was.
        let is_empty = is_empty(path).map_err(io_error)?;
        let version = read_version(path)?;
        if version.is_none() && !is_empty {
            return Err(OpenError::NotADataDirectory { path: path.to_owned() });
        }
        refuse_other(path, keeps)?;
        let lock = lock(path)?;
        match version {
            Some(_) => write_mark(path, keeps).map_err(io_error)?,
            None => write_keeps(path, keeps).map_err(io_error)?,
        }
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Makes and locks a directory, whatever is in it.
    pub(crate) fn hold(path: &Path) -> Result<Self, OpenError> {
        let made = std::fs::create_dir_all(path);
        made.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), lock: lock(path)? })
    }

    /// Makes and locks a directory that is to become one, by [`write_version`], once it has been
    /// filled; `None` if it holds anything but what an earlier such filling has left.
    pub(crate) fn begin(path: &Path) -> Result<Option<Self>, OpenError> {
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(io_error)?;
        for entry in std::fs::read_dir(path).map_err(io_error)? {
            let name = entry.map_err(io_error)?.file_name();
            let name = name.to_string_lossy();
            let is_ours = [LOCK, "log", "attachments", "VERSION.tmp"].contains(&&*name);
            if !is_ours && !name.starts_with(DATABASE) {
                return Ok(None);
            }
        }
        Self::hold(path).map(Some)
    }

    /// Where the log's segments are.
    pub(crate) fn log(&self) -> PathBuf {
        log(&self.path)
    }

    /// Where the database is.
    pub(crate) fn database(&self) -> PathBuf {
        database(&self.path)
    }
}

/// An empty database beside the one that people know would look as if all were lost.
fn refuse_other(path: &Path, keeps: Keeps) -> Result<(), OpenError> {
    let holds = match keeps {
        Keeps::Everything if path.join(IN_CASSANDRA).exists() => {
            "is of a server with its data in Cassandra: say where with --store"
        }
        Keeps::Everything if path.join(IN_POSTGRES).exists() => {
            "is of a server with its data in PostgreSQL: say where with --store"
        }
        // Files are the same for both, and an index is made anew.
        Keeps::Files | Keeps::Index if database(path).exists() => {
            "holds the data of an embedded store: give another directory, or --store embedded"
        }
        _ => return Ok(()),
    };
    Err(OpenError::OtherStore { path: path.to_owned(), holds })
}

/// Where the log's segments are in a data directory.
pub(crate) fn log(path: &Path) -> PathBuf {
    path.join("log")
}

/// Where the database is in a data directory.
pub(crate) fn database(path: &Path) -> PathBuf {
    path.join(DATABASE)
}

/// Refuses what is no data directory of this format, or that of another kind of store; a server may
/// have it open.
pub(crate) fn require(path: &Path, keeps: Keeps) -> Result<(), OpenError> {
    match read_version(path)? {
        Some(_) => refuse_other(path, keeps),
        None => Err(OpenError::NotADataDirectory { path: path.to_owned() }),
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // Closing the file would do, but for a child that is between its fork and its exec and
        // holds a copy.
        let _ = self.lock.unlock();
    }
}

/// Whether nothing but an unfinished making of a data directory is in it.
fn is_empty(path: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        let name = entry?.file_name();
        if ![LOCK, "log", IN_POSTGRES, IN_CASSANDRA, "VERSION.tmp"].iter().any(|ours| name == *ours)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read_version(path: &Path) -> Result<Option<u32>, OpenError> {
    let file = path.join("VERSION");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: file, source }),
    };
    match text.trim().parse() {
        Ok(FORMAT_VERSION) => Ok(Some(FORMAT_VERSION)),
        _ => Err(OpenError::OtherVersion {
            path: path.to_owned(),
            found: text.trim().chars().take(20).collect(),
            expected: FORMAT_VERSION,
        }),
    }
}

/// Makes an empty directory, or one in which all files are there, the data directory of a store.
pub(crate) fn write_keeps(path: &Path, keeps: Keeps) -> io::Result<()> {
    write_mark(path, keeps)?;
    std::fs::create_dir_all(log(path))?;
    write_version(path)
}

fn write_mark(path: &Path, keeps: Keeps) -> io::Result<()> {
    keeps.mark().map_or(Ok(()), |mark| std::fs::write(path.join(mark), b""))
}

/// Says that a directory is a data directory of this format; all else in it is there already.
pub(crate) fn write_version(path: &Path) -> io::Result<()> {
    let unfinished = path.join("VERSION.tmp");
    let mut file = File::create(&unfinished)?;
    writeln!(file, "{FORMAT_VERSION}")?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path.join("VERSION"))?;
    File::open(path)?.sync_all()
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let lock_path = path.join(LOCK);
    let io_error = |source| OpenError::Io { path: lock_path.clone(), source };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&lock_path)
        .map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::Locked { path: path.to_owned(), holder: holder(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(io_error(source)),
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = written {
        // The number is a courtesy to whoever finds the directory locked; a full disk must not stop
        // us.
        tracing::warn!(%error, "cannot note the process number in the lock file");
    }
    Ok(file)
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        _ => "another process".to_owned(),
    }
}
