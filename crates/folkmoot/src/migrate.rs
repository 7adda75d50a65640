//! `folkmoot migrate`: carries all that a server keeps from one of the three kinds of store into an
//! empty one, of the same kind or another. No server runs on either side meanwhile.
//!
//! The rows go first, are compared, and then the files that they name; only then servers are let
//! in. The source stays as it is. The index of the search is made anew by the server.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::attachment::Object;
use crate::config::Config;
use crate::progress::Bar;
use crate::search::Search;
use crate::storage::{
    CopyError, DataDirectory, Digest, Keeps, NamedFiles, OpenError, Site, Source, Target,
    UnixMillis, carry, named_files,
};

/// Why nothing was migrated, or not all of it. The source is as it was, and the same command goes
/// on where this one ended.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// One of the two stores cannot be used, or does not take what it is given.
    #[error("{0}")]
    Copy(#[from] CopyError),
    /// The directory of files cannot be used.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The files of a store with a database have to be somewhere.
    #[error(
        "a server on PostgreSQL or Cassandra keeps the files of messages in a data directory of its \
         own, and {0} is the embedded store's; name another one with --data DIR before `migrate`"
    )]
    FilesElsewhere(PathBuf),
    /// A file cannot be copied.
    #[error("{path}: {source}; the same command goes on from here")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What was migrated.
#[derive(Debug, Clone)]
pub struct Migrated {
    /// Each table with what both sides have.
    pub tables: Vec<(String, Digest)>,
    /// Files of messages and pictures of people that are at the target now.
    pub files: u64,
    /// Where they are.
    pub directory: PathBuf,
    /// Files that messages name and that were not there.
    pub missing: Vec<PathBuf>,
}

/// Fills `to`, which is empty or was filled in part by the same command before, with all that
/// `from` has. Blocks.
///
/// # Errors
/// [`MigrateError`]; the source is as it was.
pub fn migrate(
    config: &Config,
    from: &Site,
    to: &Site,
    now: UnixMillis,
) -> Result<Migrated, MigrateError> {
    if from == to {
        return Err(CopyError::Same(to.clone()).into());
    }
    let files = Files::of(config, from, to)?;
    let source = Source::open(from)?;
    // Before the target: what is to fill a keyspace is in the data directory meanwhile.
    let _files_of_database = files.hold(from)?;
    let target = Target::open(to, files.data.as_ref().map(|(data, _)| &**data), &source.mark)?;
    let carried = carry(&source, &target)?;
    let named = named_files(&source.connection, now).map_err(CopyError::from)?;
    let (files_there, missing) = files.copy(&named)?;
    if !source.is_unchanged(from)? {
        return Err(CopyError::Changed(from.clone()).into());
    }
    if let Some((data, _)) = &files.data {
        // Of another store, if there is one.
        Search::discard(data).map_err(|source| io_error(data, source))?;
    }
    target.finish(carried.applied)?;
    let (tables, directory) = (carried.tables, files.to);
    Ok(Migrated { tables, files: files_there, directory, missing })
}

/// Where files of messages and people are, and where they are to be.
struct Files {
    from: PathBuf,
    to: PathBuf,
    /// The data directory of a server with a database, if one of the two is, and what that keeps
    /// there.
    data: Option<(PathBuf, Keeps)>,
}

impl Files {
    fn of(config: &Config, from: &Site, to: &Site) -> Result<Self, MigrateError> {
        let configured = &config.attachments.directory;
        let beside_data = *configured == config.data().join("attachments");
        let directory = |site: &Site| match site {
            Site::Directory(path) if beside_data => path.join("attachments"),
            _ => configured.clone(),
        };
        let keeps = [to, from].into_iter().map(Site::keeps).find(|it| *it != Keeps::Everything);
        let data = keeps.map(|keeps| (config.data().to_owned(), keeps));
        for site in [from, to] {
            if let (Site::Directory(path), Some((data, _))) = (site, &data)
                && is_same(path, data)
            {
                return Err(MigrateError::FilesElsewhere(path.clone()));
            }
        }
        Ok(Self { from: directory(from), to: directory(to), data })
    }

    /// Keeps servers out of the data directory of a store with a database, which has the files
    /// only. It is made if it is the target's.
    fn hold(&self, from: &Site) -> Result<Option<DataDirectory>, MigrateError> {
        let Some((data, keeps)) = &self.data else { return Ok(None) };
        if from.keeps() != Keeps::Everything && !data.exists() {
            return Err(OpenError::NotADataDirectory { path: data.clone() }.into());
        }
        Ok(Some(DataDirectory::open(data, *keeps)?))
    }

    /// Says how many are at the target then, and which are missing.
    fn copy(&self, named: &NamedFiles) -> Result<(u64, Vec<PathBuf>), MigrateError> {
        let mut bar = Bar::new("files", (named.attachments.len() + named.pictures.len()) as u64);
        let (mut there, mut missing) = (0, Vec::new());
        for part in ["files", "thumbnails", "portraits"] {
            let part = self.to.join(part);
            fs::create_dir_all(&part).map_err(|source| io_error(&part, source))?;
        }
        let attachments = named.attachments.iter().map(|file| {
            let thumbnail = file.has_thumbnail.then_some(Object::Thumbnail(file.id));
            ([Some(Object::File(file.id)), thumbnail], file.has_expired)
        });
        let pictures =
            named.pictures.iter().map(|picture| ([Some(Object::Portrait(*picture)), None], false));
        for (objects, has_expired) in attachments.chain(pictures) {
            for object in objects.into_iter().flatten() {
                match self.copy_one(&object.name())? {
                    true => there += 1,
                    false if has_expired => {}
                    false => missing.push(self.from.join(object.name())),
                }
            }
            bar.add(1);
        }
        for part in ["files", "thumbnails", "portraits"] {
            sync(&self.to.join(part))?;
        }
        bar.end();
        Ok((there, missing))
    }

    /// Says whether there is such a file. A second name of the same bytes will do where both are on
    /// one disk: files are never changed.
    fn copy_one(&self, name: &str) -> Result<bool, MigrateError> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        if !from.exists() {
            return Ok(false);
        }
        if to.exists() || fs::hard_link(&from, &to).is_ok() {
            return Ok(true);
        }
        // A name that the next start of a server removes, should this be cut off.
        let unfinished = self.to.join(format!("{name}#0"));
        let copied = fs::copy(&from, &unfinished)
            .and_then(|_| File::open(&unfinished)?.sync_all())
            .and_then(|()| fs::rename(&unfinished, &to));
        copied.map_err(|source| io_error(&to, source))?;
        Ok(true)
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn sync(directory: &Path) -> Result<(), MigrateError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|source| io_error(directory, source))
}

fn io_error(path: &Path, source: io::Error) -> MigrateError {
    MigrateError::Io { path: path.to_owned(), source }
}
