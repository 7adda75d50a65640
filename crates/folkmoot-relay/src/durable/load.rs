//! Reads histories: all at the start, and those of one owner when it begins anew. Whatever is not
//! whole is left out, never guessed.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::frame::Publication;
use prost::Message;
use rusqlite::Connection;

use super::{Found, Restored, RowKey};
use crate::epoch::Epoch;
use crate::payload::Payload;
use crate::version::Version;

/// Reads the channels that are meant, and their rows.
pub(super) fn load(
    connection: &Connection,
    is_meant: &dyn Fn(&str) -> bool,
) -> rusqlite::Result<Found> {
    let mut found = Found::default();
    let mut streams = connection
        .prepare("SELECT channel, epoch, top, at, version, version_epoch FROM streams")?;
    let mut rows = streams.query([])?;
    while let Some(row) = rows.next()? {
        let (channel, epoch, top, at): (String, i64, i64, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        if !is_meant(&channel) {
            continue;
        }
        let version: Option<i64> = row.get(4)?;
        let version_epoch: String = row.get(5)?;
        let restored = Restored {
            version: version.map(|number| Version {
                number: number.cast_unsigned(),
                epoch: version_epoch.into(),
            }),
            epoch: Epoch::from_number(epoch.cast_unsigned()),
            top: top.cast_unsigned(),
            at: at.cast_unsigned(),
            ..Restored::default()
        };
        found.channels.insert(channel.into(), restored);
    }
    load_publications(connection, &mut found)?;
    load_keys(connection, &mut found)?;
    let mut rows = connection.prepare("SELECT source, id, part, channel FROM rows")?;
    let mut rows = rows.query([])?;
    let mut sources: HashMap<String, Arc<str>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (source, id, part): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let channel: String = row.get(3)?;
        if !is_meant(&channel) {
            continue;
        }
        let source = sources.entry(source).or_insert_with_key(|source| source.as_str().into());
        let (id, part) = (id.cast_unsigned(), part.cast_unsigned());
        let row_key = RowKey { source: source.clone(), id, part };
        found.rows.push((row_key, channel.into()));
    }
    let mut progress = connection.prepare("SELECT source, at FROM progress")?;
    let mut rows = progress.query([])?;
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(1)?;
        found.progress.insert(row.get::<_, String>(0)?.into(), at.cast_unsigned());
    }
    Ok(found)
}

fn load_publications(connection: &Connection, found: &mut Found) -> rusqlite::Result<()> {
    // The same payload in many channels is held once, as it was before.
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
            restored.history.push(payload.clone());
        } else if let Ok(publication) = Publication::decode(&*body) {
            let payload = Arc::new(Payload::from(publication));
            payloads.insert(body, payload.clone());
            restored.history.push(payload);
        }
    }
    for restored in found.channels.values_mut() {
        restored.history.reverse();
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
            restored.keys.push((key.into(), offset, until));
        }
    }
    Ok(())
}
