//! The SQLite file in which histories were before they had a log. What is in it is brought over
//! once, and then the file goes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::frame::Publication;
use prost::Message;
use rusqlite::{Connection, ErrorCode};

use super::{Found, Restored, RowKey};
use crate::epoch::Epoch;
use crate::payload::Payload;
use crate::version::Version;

pub(super) const FILE: &str = "relay.sqlite";
/// The last `user_version` that such a file had. Those of 1 have no versions.
const FORMAT: u32 = 2;
/// How long to wait for a process that is about to let the file go.
const BUSY: Duration = Duration::from_secs(2);

/// Reads the file of a directory; `None`: there is none.
pub(super) fn read(directory: &Path) -> Result<Option<Found>, String> {
    let path = directory.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "it is used by another process".to_owned()
        }
        _ => error.to_string(),
    };
    let connection = Connection::open(&path).map_err(failed)?;
    let format = prepare(&connection).map_err(failed)?;
    match format {
        // Nothing was ever made in it.
        0 => Ok(Some(Found::default())),
        1..=FORMAT => load(&connection, format).map(Some).map_err(failed),
        later => Err(format!("it has format {later}, and {FORMAT} is the last known")),
    }
}

/// Removes the file and what SQLite keeps beside it, which is worth nothing without it.
pub(super) fn remove(directory: &Path) -> std::io::Result<()> {
    let path: PathBuf = directory.join(FILE);
    std::fs::remove_file(&path)?;
    for beside in ["relay.sqlite-wal", "relay.sqlite-shm"] {
        let _ = std::fs::remove_file(directory.join(beside));
    }
    Ok(())
}

fn prepare(connection: &Connection) -> rusqlite::Result<u32> {
    connection.busy_timeout(BUSY)?;
    // A relay of a former version that still runs has it like this, too.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")?;
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn load(connection: &Connection, format: u32) -> rusqlite::Result<Found> {
    let mut found = Found::default();
    load_streams(connection, format, &mut found)?;
    load_publications(connection, &mut found)?;
    load_keys(connection, &mut found)?;
    let mut rows = connection.prepare("SELECT source, id, part, channel FROM rows")?;
    let mut rows = rows.query([])?;
    let mut sources: HashMap<String, Arc<str>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (source, id, part): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let channel: String = row.get(3)?;
        let source = sources.entry(source).or_insert_with_key(|source| source.as_str().into());
        let (id, part) = (id.cast_unsigned(), part.cast_unsigned());
        found.rows.push((RowKey { source: source.clone(), id, part }, channel.into()));
    }
    let mut progress = connection.prepare("SELECT source, at FROM progress")?;
    let mut rows = progress.query([])?;
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(1)?;
        found.progress.insert(row.get::<_, String>(0)?.into(), at.cast_unsigned());
    }
    Ok(found)
}

fn load_streams(connection: &Connection, format: u32, found: &mut Found) -> rusqlite::Result<()> {
    let version = if format == 1 { "NULL, ''" } else { "version, version_epoch" };
    let select = format!("SELECT channel, epoch, top, at, {version} FROM streams");
    let mut streams = connection.prepare(&select)?;
    let mut rows = streams.query([])?;
    while let Some(row) = rows.next()? {
        let (channel, epoch, top, at): (String, i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let version: Option<i64> = row.get(4)?;
        let version_epoch: String = row.get(5)?;
        let version = version.map(|number| {
            let (number, epoch) = (number.cast_unsigned(), version_epoch.into());
            Arc::new(Version { number, epoch })
        });
        let restored = Restored {
            version,
            epoch: Epoch::from_number(epoch.cast_unsigned()),
            top: top.cast_unsigned(),
            at: at.cast_unsigned(),
            ..Restored::default()
        };
        found.channels.insert(channel.into(), restored);
    }
    Ok(())
}

fn load_publications(connection: &Connection, found: &mut Found) -> rusqlite::Result<()> {
    // The same payload in many channels is held once.
    let mut payloads: HashMap<Vec<u8>, Arc<Payload>> = HashMap::new();
    let select = "SELECT channel, offset, body FROM publications ORDER BY channel, offset DESC";
    let mut publications = connection.prepare(select)?;
    let mut rows = publications.query([])?;
    while let Some(row) = rows.next()? {
        let (channel, offset, body): (String, i64, Vec<u8>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let Some(restored) = found.channels.get_mut(&*channel) else { continue };
        // From the newest one back, until one is missing.
        let expected = restored.top.checked_sub(restored.history.len() as u64);
        if expected != Some(offset.cast_unsigned()) {
            continue;
        }
        if let Some(payload) = payloads.get(&body) {
            restored.history.push_front(payload.clone());
        } else if let Ok(publication) = Publication::decode(&*body) {
            let payload = Arc::new(Payload::from(publication));
            payloads.insert(body, payload.clone());
            restored.history.push_front(payload);
        }
    }
    Ok(())
}

fn load_keys(connection: &Connection, found: &mut Found) -> rusqlite::Result<()> {
    let mut keys =
        connection.prepare("SELECT channel, key, offset, until FROM keys ORDER BY until")?;
    let mut rows = keys.query([])?;
    while let Some(row) = rows.next()? {
        let (channel, key): (String, String) = (row.get(0)?, row.get(1)?);
        let (offset, until): (i64, i64) = (row.get(2)?, row.get(3)?);
        if let Some(restored) = found.channels.get_mut(&*channel) {
            let (offset, until) = (offset.cast_unsigned(), until.cast_unsigned());
            restored.keys.push_back((key.into(), offset, until));
        }
    }
    Ok(())
}
