//! Whole rows by the thousand, in and out of a table: for carrying data over and for filling a
//! database, not for serving.

use rusqlite::ToSql;
use rusqlite::types::Value;

use super::connection::Connection;
use super::error::Result;

/// The values of a row, in the order of the columns that were asked for.
pub(crate) type Values = Vec<Value>;

impl Connection {
    /// Adds rows to a table: on PostgreSQL as one stream of bytes, whose answer is awaited once.
    pub(crate) fn insert_rows(&self, table: &str, columns: &[&str], rows: &[Values]) -> Result<()> {
        let names = columns.join(", ");
        match self {
            Self::Sqlite(local) => {
                let places: Vec<_> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
                let places = places.join(", ");
                let sql = format!("INSERT INTO {table} ({names}) VALUES ({places})");
                let mut statement = local.prepare_cached(&sql)?;
                let noted = local.note(&sql, statement.readonly());
                for row in rows {
                    let mut insert = || statement.execute(rusqlite::params_from_iter(row));
                    match &noted {
                        None => insert()?,
                        Some(noted) => noted.executed(row.clone(), &mut insert)?,
                    };
                }
                Ok(())
            }
            Self::Postgres(session) => {
                let kinds = session.prepare(&format!("SELECT {names} FROM {table} LIMIT 0"))?;
                let copy = session.prepare(&format!("COPY {table} ({names}) FROM STDIN BINARY"))?;
                session.copy_in(&copy, &kinds, rows)
            }
        }
    }

    /// Up to `limit` rows of a table in the order of its key, from behind a place in it.
    pub(crate) fn rows_after(
        &self,
        table: &str,
        columns: &[&str],
        key: &[&str],
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<Values>> {
        let (names, order) = (columns.join(", "), key.join(", "));
        let places: Vec<_> = (1..=key.len()).map(|place| format!("?{place}")).collect();
        let from = match after {
            Some(_) => format!("WHERE ({order}) > ({})", places.join(", ")),
            None => String::new(),
        };
        let sql = format!("SELECT {names} FROM {table} {from} ORDER BY {order} LIMIT {limit}");
        let mut statement = self.prepare_cached(&sql)?;
        let after: Vec<&dyn ToSql> =
            after.unwrap_or_default().iter().map(|value| value as &dyn ToSql).collect();
        let mut rows = statement.query(&after[..])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((0..columns.len()).map(|column| row.get(column)).collect::<Result<_>>()?);
        }
        Ok(found)
    }
}
