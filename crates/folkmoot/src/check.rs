//! `folkmoot check`: says what is wrong with what a server keeps, and changes nothing. The server
//! may run meanwhile.

use std::io;
use std::path::Path;

use crate::attachment::{Kept, Object};
use crate::config::Config;
use crate::progress::Bar;
use crate::storage::{self, Findings, NamedFiles, OpenError, PictureId, StoreAddress, UnixMillis};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Records of the log, rooms, messages and files that were looked at.
    pub records: u64,
    /// Rooms.
    pub rooms: u64,
    /// Messages in them, also deleted ones.
    pub messages: u64,
    /// Files of messages and pictures of people.
    pub files: u64,
    /// How much is wrong.
    pub wrong: u64,
    /// The first of it, a line each.
    pub lines: Vec<String>,
    /// What is worth a word and no damage.
    pub notes: Vec<String>,
}

/// Looks at the whole data directory, or at the database and the files beside it. Blocks.
///
/// # Errors
/// [`OpenError`] if it cannot be looked at at all.
pub fn check(config: &Config, now: UnixMillis) -> Result<Checked, OpenError> {
    let directory = &config.attachments.directory;
    let failed = |source| OpenError::Io { path: directory.clone(), source };
    // Before the database is read: what it names then is not removed by the server meanwhile.
    let _kept = Kept::hold(directory).map_err(failed)?;
    let mut findings = Findings::default();
    let (looked, named) = match &config.database {
        Some(StoreAddress::Postgres(address)) => {
            storage::check_database(address, now, &mut findings)?
        }
        Some(StoreAddress::Cassandra(address)) => {
            storage::check_keyspace(address, now, &mut findings)?
        }
        None => storage::check(config.data(), now, &mut findings)?,
    };
    let mut files = 0;
    if let Some(named) = named {
        let missing;
        (files, missing) = check_files(directory, &named, &mut findings);
        if !missing.is_empty() {
            check_pictures(config, &missing, &mut findings);
        }
    }
    let (lines, wrong, notes) = findings.into_parts();
    let storage::Looked { records, rooms, messages } = looked;
    Ok(Checked { records, rooms, messages, files, wrong, lines, notes })
}

/// Returns how many were looked at, and which pictures are not there.
fn check_files(
    directory: &Path,
    named: &NamedFiles,
    findings: &mut Findings,
) -> (u64, Vec<PictureId>) {
    let mut missing = Vec::new();
    let mut bar = Bar::new("files", (named.attachments.len() + named.pictures.len()) as u64);
    let mut files = 0;
    for attachment in named.attachments.iter().filter(|attachment| !attachment.has_expired) {
        let (id, size) = (attachment.id, Some(attachment.size));
        let thumbnail = attachment.has_thumbnail.then_some((Object::Thumbnail(id), None));
        for (object, size) in [(Object::File(id), size)].into_iter().chain(thumbnail) {
            check_file(&directory.join(object.name()), size, findings);
            files += 1;
        }
        bar.add(1);
    }
    for picture in &named.pictures {
        let path = directory.join(Object::Portrait(*picture).name());
        match path.try_exists() {
            Ok(false) => missing.push(*picture),
            _ => check_file(&path, None, findings),
        }
        files += 1;
        bar.add(1);
    }
    bar.end();
    (files, missing)
}

/// Unlike files of messages, a picture that somebody replaces is removed at once, also while we
/// look: it is missing only if somebody shows it still.
fn check_pictures(config: &Config, missing: &[PictureId], findings: &mut Findings) {
    let shown = match storage::shown_pictures(config.data(), config.database.as_ref()) {
        Ok(shown) => shown,
        Err(error) => {
            findings.wrong(format!("who shows which picture cannot be read again: {error}"));
            return;
        }
    };
    for picture in missing.iter().filter(|picture| shown.contains(picture)) {
        let path = config.attachments.directory.join(Object::Portrait(*picture).name());
        findings.wrong(format!("{} is missing", path.display()));
    }
}

/// `size`: what the database says it has.
fn check_file(path: &Path, size: Option<u64>, findings: &mut Findings) {
    let shown = path.display();
    match (std::fs::metadata(path), size) {
        (Ok(found), Some(size)) if found.len() != size => {
            findings.wrong(format!("{shown} has {} bytes, the database says {size}", found.len()))
        }
        (Ok(_), _) => {}
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
            findings.wrong(format!("{shown} is missing"));
        }
        (Err(error), _) => findings.wrong(format!("{shown} cannot be read: {error}")),
    }
}
