//! What PostgreSQL's plugin `pgoutput` says of committed transactions, version 1 of its protocol, as
//! values. Bytes come in, changes go out; nothing is read or written here.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The first of January 2000, from which the database counts, in milliseconds since 1970.
const EPOCH_MS: i64 = 946_684_800_000;

/// What stands before the values of a row that is inserted.
const ROW_HEAD_BYTES: usize = 8;
/// The longest value that is kept of a row that is too long to be held: ids and methods are shorter.
const VALUE_BYTES_MAX: usize = 1 << 10;

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

/// A change that is too long to be held, as it comes: what is kept of it reads as an inserted row
/// whose long values are missing.
#[derive(Debug, Default)]
pub(super) struct Shortened {
    kept: BytesMut,
    /// Bytes of a long value that are still to come.
    passing: usize,
}

impl Shortened {
    /// Takes in what has come, as far as it can be told apart; how many bytes that is.
    pub(super) fn take(&mut self, mut coming: &[u8]) -> usize {
        let all = coming.len();
        loop {
            let before = coming.len();
            self.step(&mut coming);
            if coming.len() == before {
                return all - before;
            }
        }
    }

    /// What tells which row it was.
    pub(super) fn kept(self) -> Bytes {
        self.kept.freeze()
    }

    /// Takes in the head, a value, or a part of one; nothing, if too little has come.
    fn step(&mut self, coming: &mut &[u8]) {
        let head_left = ROW_HEAD_BYTES.saturating_sub(self.kept.len());
        if head_left > 0 {
            let (head, rest) = coming.split_at(head_left.min(coming.len()));
            self.kept.put_slice(head);
            *coming = rest;
        } else if self.passing > 0 {
            let passed = self.passing.min(coming.len());
            self.passing -= passed;
            coming.advance(passed);
        } else if let [b't', a, b, c, d, rest @ ..] = *coming {
            let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            if len > VALUE_BYTES_MAX {
                self.kept.put_u8(b'u');
                (self.passing, *coming) = (len, rest);
            } else if rest.len() >= len {
                let (value, rest) = coming.split_at(5 + len);
                self.kept.put_slice(value);
                *coming = rest;
            }
        } else if let [b'n' | b'u', rest @ ..] = *coming {
            self.kept.put_u8(coming[0]);
            *coming = rest;
        } else if coming.first().is_some_and(|kind| *kind != b't') {
            // It is no row, and nothing of it is held up.
            self.passing = usize::MAX;
        }
    }
}

/// The relation of a row, and its first values.
type Head = (u32, Vec<Option<Bytes>>);

/// Reads what is known of an inserted row: its relation, and those values that are whole. `None`: it
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
    fn of_a_row_that_is_too_long_the_values_around_its_long_ones_are_known() {
        let mut message = BytesMut::from(&insert()[..6]);
        message.put_u16(4);
        for len in [VALUE_BYTES_MAX + 1, 2, VALUE_BYTES_MAX] {
            message.put_slice(b"t");
            message.put_u32(u32::try_from(len).unwrap());
            message.put_bytes(b'4', len);
        }
        message.put_slice(b"n");
        let value = |len| Some(Bytes::from(vec![b'4'; len]));
        let values = vec![None, value(2), value(VALUE_BYTES_MAX), None];
        for at_once in [1, 3, 1_000, message.len()] {
            let (mut shortened, mut waiting) = (Shortened::default(), BytesMut::new());
            for part in message.chunks(at_once) {
                waiting.put_slice(part);
                let taken = shortened.take(&waiting);
                waiting.advance(taken);
            }
            assert!(waiting.is_empty());
            assert_eq!(read_head(shortened.kept()), Ok(Some((7, values.clone()))), "{at_once}");
        }
    }

    #[test]
    fn of_what_is_too_long_and_no_row_nothing_is_held() {
        let mut shortened = Shortened::default();
        let taken = (0..100).map(|_| shortened.take(&[b'x'; 1_000])).sum::<usize>();
        assert!(taken >= 99_000, "{taken}");
        assert_eq!(shortened.kept().len(), ROW_HEAD_BYTES);
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
