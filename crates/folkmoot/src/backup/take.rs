//! Takes a backup beside the running server, which is asked for nothing but to leave files where
//! they are for as long as it takes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::archive::ArchiveWriter;
use super::unfinished::Unfinished;
use super::{BackupError, io_error};
use crate::attachment::{Kept, Object};
use crate::config::Config;
use crate::progress::Bar;
use crate::storage::{
    FORMAT_VERSION, Keeps, Moment, NamedFiles, SegmentPart, Source, SqlError, Target, UnixMillis,
    carry, forget_pictures, named_files, require_directory,
};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// What bars count bytes in.
const MIB: u64 = 1 << 20;

/// What a backup holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// How long it is.
    pub bytes: u64,
    /// Files of messages and pictures of people.
    pub files: u64,
    /// Files that messages name and that are not on the disk.
    pub missing: Vec<PathBuf>,
}

/// Writes all that the server of `config` keeps into the new file `to`. Blocks.
///
/// Nothing that was acknowledged before the call is missing, and the server may go on meanwhile.
/// Beside `to` there are the unfinished backup and a copy of the database until it is taken.
///
/// # Errors
/// [`BackupError`]; there is no file then.
pub fn back_up(config: &Config, to: &Path, now: UnixMillis) -> Result<BackedUp, BackupError> {
    let files = &config.attachments.directory;
    // Before the moment: what the database names then stays until it is copied.
    let _kept = Kept::hold(files).map_err(|source| io_error(files, source))?;
    let store = Backed::take(config)?;
    let (out, unfinished) = Unfinished::begin(to)?;
    let mut taking = Taking::begin(config, unfinished, out)?;
    taking.copy_database(&store)?;
    let named = store.named_files(now).map_err(|source| taking.database_error(source))?;
    taking.add_log(store.segments())?;
    // Ends the snapshot: the database may clean up again, however long the files take.
    drop(store);
    taking.add_files(&named)?;
    taking.add_database()?;
    taking.finish()
}

/// What a backup is taken of, as of one moment.
enum Backed {
    Directory(Moment),
    Database(Source),
}

impl Backed {
    fn take(config: &Config) -> Result<Self, BackupError> {
        match &config.database {
            Some(address) => {
                // Files that are looked for elsewhere would all be missing.
                require_directory(config.data(), Keeps::of(address))?;
                Ok(Self::Database(Source::beside(address)?))
            }
            None => Ok(Self::Directory(Moment::take(config.data())?)),
        }
    }

    fn named_files(&self, now: UnixMillis) -> Result<NamedFiles, SqlError> {
        match self {
            Self::Directory(moment) => moment.named_files(now),
            Self::Database(source) => named_files(&source.connection, now),
        }
    }

    /// Of the log, what the database lacks.
    fn segments(&self) -> &[SegmentPart] {
        match self {
            Self::Directory(moment) => &moment.segments,
            Self::Database(_) => &[],
        }
    }
}

/// A backup on its way.
struct Taking<'a> {
    config: &'a Config,
    to: Unfinished,
    archive: ArchiveWriter<BufWriter<File>>,
    backed_up: BackedUp,
}

impl<'a> Taking<'a> {
    fn begin(config: &'a Config, to: Unfinished, out: File) -> Result<Self, BackupError> {
        let version = format!("{FORMAT_VERSION}\n");
        let begun = ArchiveWriter::begin(BufWriter::with_capacity(BUFFER_BYTES, out));
        let begun = begun.and_then(|mut archive| {
            archive.file("VERSION", version.len() as u64, version.as_bytes(), |_| {})?;
            Ok(archive)
        });
        let archive = begun.map_err(|source| io_error(to.path(), source))?;
        Ok(Self { config, to, archive, backed_up: BackedUp::default() })
    }

    fn copy_database(&self, store: &Backed) -> Result<(), BackupError> {
        let moment = match store {
            Backed::Directory(moment) => moment,
            Backed::Database(source) => {
                let target = Target::file(self.to.database())?;
                let carried = carry(source, &target)?;
                return Ok(target.finish(carried.applied)?);
            }
        };
        let mut bar = None;
        let mut shown = 0;
        let copied = moment.copy_database(self.to.database(), |done, all| {
            let bar = bar.get_or_insert_with(|| Bar::new("pages", all));
            bar.add(done - shown);
            shown = done;
        });
        copied.map_err(|source| self.database_error(source))?;
        bar.into_iter().for_each(Bar::end);
        Ok(())
    }

    fn add_log(&mut self, segments: &[SegmentPart]) -> Result<(), BackupError> {
        let mut bar = Bytes::new("log MiB", segments.iter().map(|part| part.len).sum());
        for SegmentPart { number, file, len } in segments {
            let name = format!("log/{number:08}.wal");
            self.add(&name, *len, FromStart { file, at: 0 }, &mut bar)?;
        }
        bar.end();
        Ok(())
    }

    fn add_files(&mut self, named: &NamedFiles) -> Result<(), BackupError> {
        let mut bar = Bar::new("files", (named.attachments.len() + named.pictures.len()) as u64);
        let mut quiet = Bytes::hidden();
        for attachment in &named.attachments {
            let id = attachment.id;
            let thumbnail = attachment.has_thumbnail.then_some(Object::Thumbnail(id));
            for object in [Object::File(id)].into_iter().chain(thumbnail) {
                let is_there = self.add_object(object, &mut quiet)?;
                if !is_there && !attachment.has_expired {
                    let directory = &self.config.attachments.directory;
                    self.backed_up.missing.push(directory.join(object.name()));
                }
            }
            bar.add(1);
        }
        let mut replaced = Vec::new();
        for picture in &named.pictures {
            if !self.add_object(Object::Portrait(*picture), &mut quiet)? {
                replaced.push(*picture);
            }
            bar.add(1);
        }
        // Somebody who showed a picture when the backup began and replaced it meanwhile shows none
        // in the backup: unlike files of messages, pictures are removed at once.
        let forgotten = forget_pictures(self.to.database(), &replaced);
        forgotten.map_err(|source| self.database_error(source))?;
        bar.end();
        Ok(())
    }

    /// Says whether it is on the disk.
    fn add_object(&mut self, object: Object, bar: &mut Bytes) -> Result<bool, BackupError> {
        let path = self.config.attachments.directory.join(object.name());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(io_error(&path, source)),
        };
        let len = file.metadata().map_err(|source| io_error(&path, source))?.len();
        let name = format!("attachments/{}", object.name());
        self.add(&name, len, &file, bar)?;
        self.backed_up.files += 1;
        Ok(true)
    }

    fn add_database(&mut self) -> Result<(), BackupError> {
        let copy = self.to.database().to_owned();
        let failed = |source| io_error(&copy, source);
        let file = File::open(&copy).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut bar = Bytes::new("database MiB", len);
        self.add("folkmoot.sqlite", len, &file, &mut bar)?;
        bar.end();
        Ok(())
    }

    fn add(
        &mut self,
        name: &str,
        len: u64,
        from: impl io::Read,
        bar: &mut Bytes,
    ) -> Result<(), BackupError> {
        let added = self.archive.file(name, len, from, |bytes| bar.add(bytes));
        added.map_err(|source| io_error(self.to.path(), source))
    }

    fn finish(self) -> Result<BackedUp, BackupError> {
        let Self { to, archive, mut backed_up, .. } = self;
        let failed = |source| io_error(to.path(), source);
        let out = archive.finish().map_err(failed)?;
        let out = out.into_inner().map_err(|error| failed(error.into_error()))?;
        out.sync_all().map_err(failed)?;
        backed_up.bytes = out.metadata().map_err(failed)?.len();
        to.finish()?;
        Ok(backed_up)
    }

    fn database_error(&self, source: impl Into<SqlError>) -> BackupError {
        let source = source.into();
        let (path, copy) = (self.config.data().to_owned(), self.to.database().to_owned());
        BackupError::Database { path, copy, source }
    }
}

/// A file from its first byte on, whatever was read of it before.
struct FromStart<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A bar that counts bytes in whole MiB.
pub(super) struct Bytes {
    bar: Option<Bar>,
    bytes: u64,
    shown: u64,
}

impl Bytes {
    pub(super) fn new(what: &'static str, all: u64) -> Self {
        Self { bar: Some(Bar::new(what, all.div_ceil(MIB))), bytes: 0, shown: 0 }
    }

    /// One that nobody sees.
    pub(super) fn hidden() -> Self {
        Self { bar: None, bytes: 0, shown: 0 }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        let Some(bar) = &mut self.bar else { return };
        bar.add(self.bytes / MIB - self.shown);
        self.shown = self.bytes / MIB;
    }

    pub(super) fn end(mut self) {
        let Some(mut bar) = self.bar.take() else { return };
        bar.add(self.bytes.div_ceil(MIB) - self.shown);
        bar.end();
    }
}
