//! What PostgreSQL's plugin `pgoutput` says of committed transactions, version 1 of its protocol, as
//! values. Bytes come in, changes go out; nothing is read or written here.

use bytes::{Buf, Bytes};

/// The first of January 2000, from which the database counts, in milliseconds since 1970.
const EPOCH_MS: i64 = 946_684_800_000;

/// A place in the database's log.
pub(super) type Lsn = u64;

/// A part of the stream that matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A transaction that was committed at this place.
    Begin {
        commit: Lsn,
        /// When that was, in milliseconds since 1970.
        at_ms: i64,
    },
    /// The shape of a table, before its first row.
    Relation(Relation),
    Insert {
        relation: u32,
        values: Vec<Option<Bytes>>,
    },
    /// The transaction is over; the next one comes after `end`.
    Commit {
        end: Lsn,
    },
    /// What is not asked for: other changes, types, origins.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) id: u32,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) columns: Vec<String>,
}

/// The message is shorter than it says, or of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the database sent a change that cannot be read")]
pub(crate) struct Unreadable;

/// Reads one message.
pub(super) fn read(mut message: Bytes) -> Result<Change, Unreadable> {
    Ok(match take_u8(&mut message)? {
        b'B' => {
            let commit = take_u64(&mut message)?;
            let at_ms = take_u64(&mut message)?.cast_signed() / 1_000 + EPOCH_MS;
            Change::Begin { commit, at_ms }
        }
        b'C' => {
            take_u8(&mut message)?;
            take_u64(&mut message)?;
            Change::Commit { end: take_u64(&mut message)? }
        }
        b'R' => Change::Relation(relation(&mut message)?),
        b'I' => {
            let relation = take_u32(&mut message)?;
            match take_u8(&mut message)? {
                b'N' => Change::Insert { relation, values: values(&mut message)? },
                _ => return Err(Unreadable),
            }
        }
        _ => Change::Other,
    })
}

/// The relation of a row, and its first values.
type Head = (u32, Vec<Option<Bytes>>);

/// Reads the beginning of an inserted row: its relation, and those values that are whole. `None`: it
/// is another change.
pub(super) fn read_head(mut head: Bytes) -> Result<Option<Head>, Unreadable> {
    if take_u8(&mut head)? != b'I' {
        return Ok(None);
    }
    let relation = take_u32(&mut head)?;
    if take_u8(&mut head)? != b'N' {
        return Err(Unreadable);
    }
    let count = take_u16(&mut head)?;
    let mut values = Vec::new();
    while values.len() < count.into()
        && let Ok(value) = value(&mut head)
    {
        values.push(value);
    }
    Ok(Some((relation, values)))
}

fn relation(message: &mut Bytes) -> Result<Relation, Unreadable> {
    let id = take_u32(message)?;
    let (schema, name) = (take_text(message)?, take_text(message)?);
    take_u8(message)?;
    let count = take_u16(message)?;
    let mut columns = Vec::with_capacity(count.into());
    for _ in 0..count {
        take_u8(message)?;
        columns.push(take_text(message)?);
        take_u32(message)?;
        take_u32(message)?;
    }
    Ok(Relation { id, schema, name, columns })
}

/// The values of a row as text; `None` is NULL.
fn values(message: &mut Bytes) -> Result<Vec<Option<Bytes>>, Unreadable> {
    let count = take_u16(message)?;
    let mut values = Vec::with_capacity(count.into());
    for _ in 0..count {
        values.push(value(message)?);
    }
    Ok(values)
}

fn value(message: &mut Bytes) -> Result<Option<Bytes>, Unreadable> {
    match take_u8(message)? {
        b't' => {
            let len = take_u32(message)? as usize;
            if message.len() < len {
                return Err(Unreadable);
            }
            Ok(Some(message.split_to(len)))
        }
        b'n' | b'u' => Ok(None),
        _ => Err(Unreadable),
    }
}

fn take_text(message: &mut Bytes) -> Result<String, Unreadable> {
    let end = message.iter().position(|byte| *byte == 0).ok_or(Unreadable)?;
    let text = message.split_to(end);
    message.advance(1);
    String::from_utf8(text.into()).map_err(|_| Unreadable)
}

pub(super) fn take_u8(message: &mut Bytes) -> Result<u8, Unreadable> {
    message.try_get_u8().map_err(|_| Unreadable)
}

fn take_u16(message: &mut Bytes) -> Result<u16, Unreadable> {
    message.try_get_u16().map_err(|_| Unreadable)
}

fn take_u32(message: &mut Bytes) -> Result<u32, Unreadable> {
    message.try_get_u32().map_err(|_| Unreadable)
}

pub(super) fn take_u64(message: &mut Bytes) -> Result<u64, Unreadable> {
    message.try_get_u64().map_err(|_| Unreadable)
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};

    use super::*;

    fn insert() -> Bytes {
        let mut message = BytesMut::new();
        message.put_slice(b"I");
        message.put_u32(7);
        message.put_slice(b"N");
        message.put_u16(2);
        message.put_slice(b"t");
        message.put_u32(2);
        message.put_slice(b"42n");
        message.freeze()
    }

    #[test]
    fn a_row_is_read_as_it_was_inserted() {
        let values = vec![Some(Bytes::from_static(b"42")), None];
        assert_eq!(read(insert()), Ok(Change::Insert { relation: 7, values }));
    }

    #[test]
    fn the_beginning_of_a_row_has_the_values_that_are_whole() {
        let whole = insert();
        let id = Some(Bytes::from_static(b"42"));
        assert_eq!(read_head(whole.clone()), Ok(Some((7, vec![id.clone(), None]))));
        let cut = whole.slice(..whole.len() - 1);
        assert_eq!(read_head(cut), Ok(Some((7, vec![id]))));
        assert_eq!(read_head(Bytes::from_static(b"U1")), Ok(None));
        assert_eq!(read_head(Bytes::from_static(b"I1")), Err(Unreadable));
    }

    #[test]
    fn a_message_that_was_cut_is_refused_and_never_a_panic() {
        let whole = insert();
        for len in 0..whole.len() {
            assert_eq!(read(whole.slice(..len)), Err(Unreadable), "{len}");
        }
        for kind in *b"BCRI" {
            assert_eq!(read(Bytes::copy_from_slice(&[kind])), Err(Unreadable));
        }
        assert_eq!(read(Bytes::from_static(b"T")), Ok(Change::Other));
    }
}
