//! The rows of an answer, and their values.

use rusqlite::types::{FromSql, ValueRef};

use super::error::Result;
use super::postgres::values;

/// The rows of an answer, one after the other.
pub(crate) enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres(std::vec::IntoIter<tokio_postgres::Row>, Option<tokio_postgres::Row>),
}

impl Rows<'_> {
    /// The next row; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        match self {
            Self::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
            Self::Postgres(rows, current) => {
                *current = rows.next();
                Ok(current.as_ref().map(Row::Postgres))
            }
        }
    }
}

/// One row of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    /// The value of a column, counted from 0.
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Result<T> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => values::get(row, column),
        }
    }

    /// The same without a copy of it. Not for texts, which may be kept in another form.
    pub(crate) fn get_ref(&self, column: usize) -> Result<ValueRef<'r>> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(column)?),
            Self::Postgres(row) => values::get_ref(row, column),
        }
    }
}

/// Rows that each become a value.
pub(crate) struct MappedRows<'s, F> {
    pub(super) rows: Rows<'s>,
    pub(super) map: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next().transpose()?;
        Some(row.and_then(|row| (self.map)(&row)))
    }
}
