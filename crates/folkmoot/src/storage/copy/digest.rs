//! A checksum of a table that does not depend on the order of its rows, nor on the database: both
//! say the same of the same rows.

use std::fmt;

use rusqlite::types::Value;
use sha2::{Digest as _, Sha256};

use super::tables::Table;
use crate::storage::sql::{Connection, SqlError, Values};

/// Rows read at a time; the longest message has some KiB.
const ROWS_AT_ONCE: usize = 5_000;

/// How many rows there are, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// How many.
    pub rows: u64,
    /// The sum of the first 128 bits of each row's SHA-256, in 128 bits.
    pub sum: u128,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, checksum {:032x}", self.rows, self.sum)
    }
}

impl Digest {
    fn add(&mut self, row: &Values) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hash(row));
    }
}

/// Reads a whole table; `on_rows` is told how many rows more were read.
pub(super) fn digest(
    connection: &Connection,
    table: &Table,
    mut on_rows: impl FnMut(u64),
) -> Result<Digest, SqlError> {
    let mut digest = Digest::default();
    let mut after: Option<Vec<Value>> = None;
    loop {
        let rows = page(connection, table, after.as_deref(), ROWS_AT_ONCE)?;
        let Some(last) = rows.last() else { return Ok(digest) };
        after = Some(key_of(table, last));
        rows.iter().for_each(|row| digest.add(row));
        on_rows(rows.len() as u64);
    }
}

pub(super) fn page(
    connection: &Connection,
    table: &Table,
    after: Option<&[Value]>,
    limit: usize,
) -> Result<Vec<Values>, SqlError> {
    connection.rows_after(&table.name, &table.columns(), &table.key(), after, limit)
}

/// The values of a row's key.
pub(super) fn key_of(table: &Table, row: &Values) -> Vec<Value> {
    let at = |name: &String| table.columns.iter().position(|column| column == name);
    table.key.iter().filter_map(|name| Some(row[at(name)?].clone())).collect()
}

/// Each value with its kind and length, so that no two rows are one.
fn hash(row: &Values) -> u128 {
    let mut hasher = Sha256::new();
    for value in row {
        let (kind, bytes): (u8, &[u8]) = match value {
            Value::Null => (0, &[]),
            Value::Integer(number) => {
                hasher.update([1]);
                hasher.update(number.to_le_bytes());
                continue;
            }
            Value::Real(number) => {
                hasher.update([2]);
                hasher.update(number.to_le_bytes());
                continue;
            }
            Value::Text(text) => (3, text.as_bytes()),
            Value::Blob(bytes) => (4, bytes),
        };
        hasher.update([kind]);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    let hash = hasher.finalize();
    u128::from_be_bytes(hash[..16].try_into().expect("a SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn rows_are_told_apart_by_value_kind_and_column_and_not_by_order() {
        let rows = [
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
            vec![Value::Blob(b"ab".to_vec()), text("c")],
            vec![Value::Null, text("abc")],
            vec![Value::Integer(0), text("abc")],
        ];
        for (index, row) in rows.iter().enumerate() {
            assert!(rows[index + 1..].iter().all(|other| hash(row) != hash(other)), "{row:?}");
        }
        let sum = |rows: &[Values]| {
            let mut digest = Digest::default();
            rows.iter().for_each(|row| digest.add(row));
            digest
        };
        let turned: Vec<_> = rows.iter().rev().cloned().collect();
        assert_eq!(sum(&rows), sum(&turned));
        assert_ne!(sum(&rows[1..]).sum, sum(&rows).sum);
    }
}
