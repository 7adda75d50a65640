//! What one transaction of the index did, as the log has it: the records that were applied, or the
//! statements of control transactions with their values.

use prost::Message;
use rusqlite::types::Value;

use super::index::Place;
use crate::storage::ids::Lsn;
use crate::storage::record::Record;
use crate::storage::sql::{Change, Connection, SqlError, Transaction};
use crate::storage::sqlite::apply;
use crate::storage::sqlite::migrations;

/// Bytes of records in one entry, unless one record alone has more: what the servers agree upon at
/// once, in some milliseconds.
pub(super) const RECORD_BYTES: usize = 512 << 10;
/// Bytes of one entry, which with what the server adds has to fit into half of a segment of its log
/// and into a frame, 16 MiB each by default.
pub(super) const ENTRY_BYTES_MAX: usize = 12 << 20;

/// What a transaction did.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    /// The steps of the schema that the index had taken.
    #[prost(uint32, tag = "1")]
    schema: u32,
    /// The number of the first record.
    #[prost(uint64, tag = "2")]
    first_lsn: u64,
    /// As they entered the queue.
    #[prost(bytes = "vec", repeated, tag = "3")]
    records: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "4")]
    statements: Vec<Statement>,
}

#[derive(Clone, PartialEq, Message)]
struct Statement {
    /// Empty: that of the statement before.
    #[prost(string, tag = "1")]
    sql: String,
    #[prost(message, repeated, tag = "2")]
    values: Vec<Cell>,
    #[prost(uint64, optional, tag = "3")]
    rows: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Cell {
    #[prost(oneof = "CellKind", tags = "1, 2, 3, 4")]
    kind: Option<CellKind>,
}

/// Nothing of it: NULL.
#[derive(Clone, PartialEq, prost::Oneof)]
enum CellKind {
    #[prost(sint64, tag = "1")]
    Integer(i64),
    #[prost(double, tag = "2")]
    Real(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bytes = "vec", tag = "4")]
    Blob(Vec<u8>),
}

impl Entry {
    /// Of records that were applied together.
    pub(super) fn of_records(first: Lsn, records: Vec<Vec<u8>>) -> Self {
        Self { schema: migrations::newest(), first_lsn: first.0, records, statements: Vec::new() }
    }

    /// Of statements; `None` if there are none.
    pub(super) fn of_changes(changes: Vec<Change>) -> Option<Self> {
        if changes.is_empty() {
            return None;
        }
        let mut statements: Vec<_> = changes.into_iter().map(Statement::of).collect();
        for index in (1..statements.len()).rev() {
            if statements[index].sql == statements[index - 1].sql {
                statements[index].sql.clear();
            }
        }
        let schema = migrations::newest();
        Some(Self { schema, first_lsn: 0, records: Vec::new(), statements })
    }

    /// # Errors
    /// It is larger than the servers take.
    pub(super) fn encode(&self) -> Result<Vec<u8>, SqlError> {
        let bytes = self.encoded_len();
        match bytes <= ENTRY_BYTES_MAX {
            true => Ok(self.encode_to_vec()),
            false => Err(SqlError::Refused(format!(
                "a transaction of {bytes} bytes is over the limit of {ENTRY_BYTES_MAX} bytes of one \
                 entry in Cassandra"
            ))),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, SqlError> {
        Self::decode_from(bytes)
            .map_err(|error| SqlError::Refused(format!("an entry does not decode: {error}")))
    }

    fn decode_from(bytes: &[u8]) -> Result<Self, prost::DecodeError> {
        <Self as Message>::decode(bytes)
    }

    /// Does in an index what was done, and notes that it has got there.
    pub(super) fn apply(self, index: &Connection, place: Place) -> Result<(), SqlError> {
        let transaction = index.begin()?;
        let schema = migrations::taken(&transaction)?;
        if schema != self.schema {
            return Err(SqlError::Refused(format!(
                "entry {} is of schema {}, and the index has {schema}",
                place.number, self.schema
            )));
        }
        match self.records.is_empty() {
            true => self.repeat(&transaction)?,
            false => self.apply_records(&transaction)?,
        }
        place.note(&transaction)?;
        transaction.commit()
    }

    fn apply_records(self, transaction: &Transaction<'_>) -> Result<(), SqlError> {
        let last = Lsn(self.first_lsn + self.records.len() as u64 - 1);
        let records = (self.first_lsn..).map(Lsn).zip(&self.records);
        let records = records.map(|(lsn, payload)| Ok((lsn, Record::decode(payload)?)));
        let records = records.collect::<Result<_, _>>().map_err(
            |error: crate::storage::record::RecordError| SqlError::Refused(error.to_string()),
        )?;
        apply::apply_in(transaction, records, last)
    }

    fn changes(self) -> impl Iterator<Item = Change> {
        let mut sql = String::new();
        self.statements.into_iter().map(move |statement| {
            let mut change = statement.change();
            match change.sql.is_empty() {
                true => change.sql.clone_from(&sql),
                false => sql.clone_from(&change.sql),
            }
            change
        })
    }

    fn repeat(self, transaction: &Transaction<'_>) -> Result<(), SqlError> {
        let local = transaction.local().expect("the index is SQLite's");
        self.changes().try_for_each(|change| local.repeat(&change))
    }
}

impl Statement {
    fn of(change: Change) -> Self {
        let values = change.values.into_iter().map(Cell::of).collect();
        Self { sql: change.sql, values, rows: change.rows }
    }

    fn change(self) -> Change {
        let values = self.values.into_iter().map(Cell::value).collect();
        Change { sql: self.sql, values, rows: self.rows }
    }
}

impl Cell {
    fn of(value: Value) -> Self {
        let kind = match value {
            Value::Null => None,
            Value::Integer(number) => Some(CellKind::Integer(number)),
            Value::Real(number) => Some(CellKind::Real(number)),
            Value::Text(text) => Some(CellKind::Text(text)),
            Value::Blob(bytes) => Some(CellKind::Blob(bytes)),
        };
        Self { kind }
    }

    fn value(self) -> Value {
        match self.kind {
            None => Value::Null,
            Some(CellKind::Integer(number)) => Value::Integer(number),
            Some(CellKind::Real(number)) => Value::Real(number),
            Some(CellKind::Text(text)) => Value::Text(text),
            Some(CellKind::Blob(bytes)) => Value::Blob(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written_and_one_too_large_is_refused() {
        let values = vec![
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(0.1),
            Value::Text("a\0b".to_owned()),
            Value::Text(String::new()),
            Value::Blob(vec![0, 255]),
        ];
        let change = Change { sql: "INSERT".to_owned(), values, rows: Some(1) };
        let other = Change { sql: "DELETE".to_owned(), values: Vec::new(), rows: None };
        let changes = vec![change.clone(), change.clone(), other, change];
        let entry = Entry::of_changes(changes.clone()).unwrap();
        let read = Entry::decode(&entry.encode().unwrap()).unwrap();
        assert_eq!(read.changes().collect::<Vec<_>>(), changes);
        assert_eq!(Entry::of_changes(Vec::new()), None);
        let large = Entry::of_records(Lsn(1), vec![vec![0; ENTRY_BYTES_MAX]]);
        let refused = large.encode().unwrap_err().to_string();
        assert!(refused.contains("over the limit of 12582912 bytes"), "{refused}");
        assert!(Entry::decode(&[255; 9]).is_err());
    }
}
