//! Snapshots: the whole index as of one entry, in pieces, so that the entries before it can be
//! deleted and a new index begins there.
//!
//! One row says which snapshot counts; it changes by a condition on the one before. A snapshot of a
//! writer that has been replaced is still one of the log's own beginning, and does no harm. Pieces
//! have names that are used once and times that we give: what is deleted is never the younger one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Instant, SystemTime};

use sha2::{Digest, Sha256};

use super::index::Place;
use super::log::{AWAY_MAX, bucket_of, last_of};
use super::names::Name;
use super::session::{Failure, Session};
use super::tables::FORMAT;
use crate::storage::sql::SqlError;

/// Bytes of a piece, which is a partition.
const PIECE_BYTES: usize = 1 << 20;

/// The snapshot that counts.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The steps of the schema that it has taken.
    pub(super) schema: u32,
    /// The last entry that is in it, and its name.
    pub(super) number: u64,
    pub(super) entry: Name,
    /// Names its pieces.
    name: Name,
    pub(super) bytes: u64,
    hash: Vec<u8>,
    /// Bytes of all entries up to it.
    pub(super) log_bytes: u64,
    /// When it was made, in ms since 1970.
    pub(super) made_at: u64,
    /// The first bucket that may have entries.
    first_bucket: i64,
}

/// A file that is to be a snapshot.
#[derive(Clone, Copy)]
pub(super) struct Whole<'f> {
    pub(super) file: &'f Path,
    pub(super) place: Place,
    /// The steps of the schema that it has taken.
    pub(super) schema: u32,
    /// Names its pieces; nobody has given it to another file.
    pub(super) name: Name,
    /// So many pieces are in Cassandra already.
    pub(super) there: u64,
}

/// What was begun, of which something may be kept.
struct Begun {
    name: Name,
    bytes: u64,
}

type StoreRow = (i32, i32, i64, Vec<u8>, Vec<u8>, i64, Vec<u8>, i64, i64, i64);

const READ: &str = "SELECT format, steps, number, entry, snapshot, bytes, hash, log_bytes, made_at,
    first_bucket FROM folkmoot_store WHERE one = 1";
const FIRST: &str =
    "INSERT INTO folkmoot_store (one, format, steps, number, entry, snapshot, bytes,
    hash, log_bytes, made_at, first_bucket) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
const NEXT: &str = "UPDATE folkmoot_store SET format = ?, steps = ?, number = ?, entry = ?,
    snapshot = ?, bytes = ?, hash = ?, log_bytes = ?, made_at = ?, first_bucket = ?
    WHERE one = 1 IF snapshot = ?";
const ERASED: &str = "UPDATE folkmoot_store SET first_bucket = ? WHERE one = 1 IF snapshot = ?";
const BEGIN: &str =
    "INSERT INTO folkmoot_snapshots (one, snapshot, bytes) VALUES (1, ?, ?) USING TIMESTAMP 1";
const LIST: &str = "SELECT snapshot, bytes FROM folkmoot_snapshots WHERE one = 1";
const FORGET: &str =
    "DELETE FROM folkmoot_snapshots USING TIMESTAMP 2 WHERE one = 1 AND snapshot = ?";
const WRITE_PIECE: &str =
    "INSERT INTO folkmoot_pieces (snapshot, piece, data) VALUES (?, ?, ?) USING TIMESTAMP 1";
const READ_PIECE: &str = "SELECT data FROM folkmoot_pieces WHERE snapshot = ? AND piece = ?";
const FIND_PIECE: &str = "SELECT piece FROM folkmoot_pieces WHERE snapshot = ? AND piece = ?";
const DELETE_PIECE: &str =
    "DELETE FROM folkmoot_pieces USING TIMESTAMP 2 WHERE snapshot = ? AND piece = ?";

/// The snapshot that counts; `None` if the keyspace has no data yet.
///
/// # Errors
/// It is of a later program; or the servers cannot be used.
pub(super) fn current(session: &Session) -> Result<Option<Snapshot>, SqlError> {
    let until = Instant::now() + AWAY_MAX;
    let found = session.insist(until, async |it| {
        let answer = it.ask_serial(READ).await?.into_rows_result().map_err(unread)?;
        answer.maybe_first_row::<StoreRow>().map_err(unread)
    })?;
    let Some(row) = found else { return Ok(None) };
    let (format, schema, number, entry, name, bytes, hash, log_bytes, made_at, first_bucket) = row;
    if format > FORMAT {
        return Err(SqlError::Refused(format!(
            "its tables have format {format}, and {FORMAT} is the last that this program knows"
        )));
    }
    let strange = || SqlError::Refused("the row of its store is damaged".to_owned());
    Ok(Some(Snapshot {
        schema: u32::try_from(schema).map_err(|_| strange())?,
        number: number.cast_unsigned(),
        entry: Name::of(&entry).ok_or_else(strange)?,
        name: Name::of(&name).ok_or_else(strange)?,
        bytes: bytes.cast_unsigned(),
        hash,
        log_bytes: log_bytes.cast_unsigned(),
        made_at: made_at.cast_unsigned(),
        first_bucket,
    }))
}

/// Writes a file as the snapshot that counts, and deletes what came before it. `None` if another
/// one has come to count meanwhile, or `go_on` says no.
pub(super) fn publish(
    session: &Session,
    whole: Whole<'_>,
    before: Option<&Snapshot>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Snapshot>, SqlError> {
    // Listed before ours is begun: what others begin once it counts is theirs to delete.
    let begun = list(session)?;
    let Some((bytes, hash)) = write(session, whole, go_on)? else { return Ok(None) };
    let Whole { place, schema, name, .. } = whole;
    let snapshot = Snapshot {
        schema,
        number: place.number,
        entry: place.name,
        name,
        bytes,
        hash,
        log_bytes: place.bytes,
        made_at: now(),
        first_bucket: before.map_or(0, |before| before.first_bucket),
    };
    if !count(session, &snapshot, before)? {
        return Ok(None);
    }
    for old in begun.iter().filter(|old| old.name != snapshot.name) {
        delete_pieces(session, old)?;
    }
    Ok(Some(erase(session, snapshot)?))
}

/// How many pieces so many bytes have.
pub(super) fn pieces_of(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE_BYTES as u64)
}

/// Writes the pieces that are not there; returns how many bytes all of them have, and their hash.
fn write(
    session: &Session,
    Whole { file, name, there, .. }: Whole<'_>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<(u64, Vec<u8>)>, SqlError> {
    let failed = |error: io::Error| SqlError::Refused(format!("{}: {error}", file.display()));
    let mut file_in = File::open(file).map_err(failed)?;
    let bytes = file_in.metadata().map_err(failed)?.len();
    let begun = (name.bytes(), bytes.cast_signed());
    session.insist(deadline(), async |it| it.ask(BEGIN, begun.clone()).await)?;
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    for number in 0..pieces_of(bytes) {
        if !go_on() {
            return Ok(None);
        }
        let len = (bytes - number * PIECE_BYTES as u64).min(PIECE_BYTES as u64);
        let piece = &mut piece[..usize::try_from(len).expect("a piece fits into memory")];
        file_in.read_exact(piece).map_err(failed)?;
        hasher.update(&*piece);
        if number < there {
            continue;
        }
        let piece: &[u8] = piece;
        session.insist(deadline(), async |it| {
            it.ask(WRITE_PIECE, (name.bytes(), number.cast_signed(), piece)).await
        })?;
    }
    Ok(Some((bytes, hasher.finalize().to_vec())))
}

/// How many pieces of a file are there, which were written in order. A majority is asked, and has
/// them then, though one may have been on its way to fewer when its writer ended.
pub(super) fn there(session: &Session, name: Name) -> Result<u64, SqlError> {
    let mut there = 0_u64;
    loop {
        let is_there = session.insist(deadline(), async |it| {
            let answer = it.ask(FIND_PIECE, (name.bytes(), there.cast_signed())).await?;
            Ok(answer.into_rows_result().map_err(unread)?.rows_num() > 0)
        })?;
        if !is_there {
            return Ok(there);
        }
        there += 1;
    }
}

/// Has it count; says whether it does.
fn count(
    session: &Session,
    snapshot: &Snapshot,
    before: Option<&Snapshot>,
) -> Result<bool, SqlError> {
    let row: StoreRow = (
        FORMAT,
        snapshot.schema.cast_signed(),
        snapshot.number.cast_signed(),
        snapshot.entry.bytes(),
        snapshot.name.bytes(),
        snapshot.bytes.cast_signed(),
        snapshot.hash.clone(),
        snapshot.log_bytes.cast_signed(),
        snapshot.made_at.cast_signed(),
        snapshot.first_bucket,
    );
    let counts = session.insist(deadline(), async |it| match before {
        None => it.ask_if(FIRST, row.clone()).await,
        Some(before) => {
            let (a, b, c, d, e, f, g, h, i, j) = row.clone();
            let values = (a, b, c, d, e, f, g, h, i, j, before.name.bytes());
            it.ask_if(NEXT, values).await
        }
    })?;
    // The answer to a try before may not have been heard.
    Ok(counts || current(session)?.is_some_and(|current| current.name == snapshot.name))
}

/// Deletes the entries that are in it.
fn erase(session: &Session, mut snapshot: Snapshot) -> Result<Snapshot, SqlError> {
    if snapshot.number == 0 {
        return Ok(snapshot);
    }
    let last = bucket_of(snapshot.number);
    for bucket in snapshot.first_bucket..=last {
        let up_to = snapshot.number.min(last_of(bucket));
        session.insist(deadline(), async |it| it.erase(bucket, up_to).await)?;
    }
    snapshot.first_bucket = last;
    session
        .insist(deadline(), async |it| it.ask_if(ERASED, (last, snapshot.name.bytes())).await)?;
    Ok(snapshot)
}

/// Reads a snapshot into a new file.
pub(super) fn fetch(session: &Session, snapshot: &Snapshot, to: &Path) -> Result<(), SqlError> {
    let failed = |error: io::Error| SqlError::Refused(format!("{}: {error}", to.display()));
    let mut file = File::create(to).map_err(failed)?;
    let mut hasher = Sha256::new();
    for number in 0..pieces_of(snapshot.bytes) {
        let piece = session.insist(deadline(), async |it| {
            let values = (snapshot.name.bytes(), number.cast_signed());
            let answer = it.ask(READ_PIECE, values).await?.into_rows_result().map_err(unread)?;
            answer.maybe_first_row::<(Vec<u8>,)>().map_err(unread)
        })?;
        let (piece,) = piece.ok_or_else(|| {
            SqlError::Refused(format!("piece {number} of the snapshot is not in Cassandra"))
        })?;
        hasher.update(&piece);
        file.write_all(&piece).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    match hasher.finalize().to_vec() == snapshot.hash {
        true => Ok(()),
        false => {
            let why = "the snapshot in Cassandra is damaged: its checksum is another one";
            Err(SqlError::Refused(why.to_owned()))
        }
    }
}

fn list(session: &Session) -> Result<Vec<Begun>, SqlError> {
    let found = session.insist(deadline(), async |it| {
        let answer = it.ask(LIST, ()).await?.into_rows_result().map_err(unread)?;
        let rows = answer.rows::<(Vec<u8>, i64)>().map_err(unread)?;
        rows.collect::<Result<Vec<_>, _>>().map_err(unread)
    })?;
    let begun = found.into_iter().filter_map(|(name, bytes)| {
        Some(Begun { name: Name::of(&name)?, bytes: bytes.cast_unsigned() })
    });
    Ok(begun.collect())
}

fn delete_pieces(session: &Session, begun: &Begun) -> Result<(), SqlError> {
    for number in 0..pieces_of(begun.bytes) {
        let values = (begun.name.bytes(), number.cast_signed());
        session.insist(deadline(), async |it| it.ask(DELETE_PIECE, values.clone()).await)?;
    }
    session.insist(deadline(), async |it| it.ask(FORGET, (begun.name.bytes(),)).await)?;
    Ok(())
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn deadline() -> Instant {
    Instant::now() + AWAY_MAX
}

fn unread(error: impl std::error::Error) -> Failure {
    Failure::Unknown(crate::storage::sql::in_full(&error))
}
