//! A connection to either database, and the statements prepared on it.

use rusqlite::ToSql;
use rusqlite::types::Value;

use super::error::{Result, SqlError};
use super::local::{Local, Noted};
use super::params::Params;
use super::postgres::Session;
use super::row::{MappedRows, Row, Rows};

/// A connection to either database.
pub(crate) enum Connection {
    Sqlite(Local),
    Postgres(Box<Session>),
}

impl Connection {
    /// A statement that is prepared once for each connection.
    pub(crate) fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        match self {
            Self::Sqlite(local) => {
                let statement = local.prepare_cached(sql)?;
                let noted = local.note(sql, statement.readonly());
                Ok(Statement::Sqlite(statement, local, noted))
            }
            Self::Postgres(session) => Ok(Statement::Postgres(session, session.prepare(sql)?)),
        }
    }

    /// Runs a statement; gives how many rows it has changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        match self {
            Self::Sqlite(local) => {
                let mut statement = local.prepare(sql)?;
                match local.note(sql, statement.readonly()) {
                    None => Ok(statement.execute(params)?),
                    Some(noted) => noted.executed(params.values()?, || statement.execute(params)),
                }
            }
            Self::Postgres(session) => session.execute(&session.prepare(sql)?, params.values()?),
        }
    }

    /// The first row of an answer.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::Sqlite(local) => {
                let mut statement = local.prepare(sql)?;
                take_down(local.note(sql, statement.readonly()).as_ref(), &params)?;
                local.count_asked();
                first(&mut statement, params, read)
            }
            Self::Postgres(_) => self.prepare_cached(sql)?.query_row(params, read),
        }
    }

    /// Runs statements that take no values and give no rows.
    pub(crate) fn execute_batch(&self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Self::Postgres(session) => session.execute_batch(sql),
        }
    }

    /// Runs a statement of `INSERT … VALUES` or `UPDATE … WHERE` as [`Statement::execute_later`]
    /// does, together with others of the same text that come before anything else is asked. Each
    /// changes no row but its own; of several texts gathered at a time, no two touch the same
    /// table.
    pub(crate) fn gather(&self, sql: &str, params: impl Params) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.prepare_cached(sql)?.execute(params).map(drop),
            Self::Postgres(session) => {
                session.gather(sql, params.values()?);
                Ok(())
            }
        }
    }

    /// The rows of the answers to a statement that ends in `= ?1`, for each of some numbers; no
    /// order is promised.
    pub(crate) fn query_any<T>(
        &self,
        sql: &str,
        numbers: Vec<i64>,
        map: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut found = Vec::with_capacity(numbers.len());
                for number in numbers {
                    let mut rows = statement.query([number])?;
                    while let Some(row) = rows.next()? {
                        found.push(map(&Row::Sqlite(row))?);
                    }
                }
                Ok(found)
            }
            Self::Postgres(session) => {
                let sql = sql.replace("= ?1", "= ANY(?1)");
                let numbers = numbers.into_iter().map(Value::Integer).collect();
                let rows = session.query_any(&sql, numbers, Vec::new())?;
                rows.iter().map(|row| map(&Row::Postgres(row))).collect()
            }
        }
    }

    /// The rows of the answer to a statement that has some numbers in the place of `IN (?1)`, and
    /// other values from `?2` on: one statement, however many numbers.
    pub(crate) fn query_in<T, E: From<SqlError>>(
        &self,
        sql: &str,
        numbers: &[i64],
        others: &impl Params,
        map: impl Fn(&Row<'_>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        match self {
            Self::Sqlite(_) => {
                let sql = sql.replace("IN (?1)", "IN (SELECT value FROM json_each(?1))");
                let list = serde_json::to_string(numbers).expect("numbers have no failing parts");
                let mut values = vec![Value::Text(list)];
                values.extend(others.values()?);
                let values: Vec<&dyn ToSql> = values.iter().map(|value| value as _).collect();
                let mut statement = self.prepare_cached(&sql)?;
                let mut rows = statement.query(&*values)?;
                let mut found = Vec::with_capacity(numbers.len());
                while let Some(row) = rows.next()? {
                    found.push(map(&row)?);
                }
                Ok(found)
            }
            Self::Postgres(session) => {
                let sql = sql.replace("IN (?1)", "= ANY(?1)");
                let numbers = numbers.iter().copied().map(Value::Integer).collect();
                let rows = session.query_any(&sql, numbers, others.values()?)?;
                rows.iter().map(|row| map(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Statements asked for their rows so far. Each is a journey where [`Self::is_far`].
    pub(crate) fn asked(&self) -> u64 {
        match self {
            Self::Sqlite(local) => local.asked.get(),
            Self::Postgres(session) => session.asked.get(),
        }
    }

    /// Whether each answer costs a journey, so that it pays to ask for many at once.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Sends what waits to be sent, and hears what becomes of it.
    pub(crate) fn flush(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(session) => session.flush(),
        }
    }

    /// Whether the database answers.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Sqlite(_) => true,
            Self::Postgres(session) => !session.is_broken() && session.execute_batch("").is_ok(),
        }
    }

    /// Lets answers take as long as whole tables take, and transactions wait between two questions.
    pub(crate) fn take_time(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(session) => session.take_time(),
        }
    }

    /// SQLite's own connection, for what only SQLite has.
    pub(crate) fn as_sqlite(&self) -> Option<&rusqlite::Connection> {
        match self {
            Self::Sqlite(connection) => Some(connection),
            Self::Postgres(_) => None,
        }
    }

    /// The same, with what it takes down.
    pub(crate) fn local(&self) -> Option<&Local> {
        match self {
            Self::Sqlite(local) => Some(local),
            Self::Postgres(_) => None,
        }
    }

    /// The same, to be changed.
    #[cfg(test)]
    pub(crate) fn sqlite(&mut self) -> Option<&mut rusqlite::Connection> {
        match self {
            Self::Sqlite(connection) => Some(connection),
            Self::Postgres(_) => None,
        }
    }
}

impl From<rusqlite::Connection> for Connection {
    fn from(connection: rusqlite::Connection) -> Self {
        Self::Sqlite(connection.into())
    }
}

/// A prepared statement.
pub(crate) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>, &'c Local, Option<Noted<'c>>),
    Postgres(&'c Session, tokio_postgres::Statement),
}

impl Statement<'_> {
    /// Runs it; gives how many rows it has changed.
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        match self {
            Self::Sqlite(statement, _, None) => Ok(statement.execute(params)?),
            Self::Sqlite(statement, _, Some(noted)) => {
                noted.executed(params.values()?, || statement.execute(params))
            }
            Self::Postgres(session, statement) => session.execute(statement, params.values()?),
        }
    }

    /// Runs it at the latest before the next answer is read or the transaction commits, which then
    /// fails if this does: nobody waits for a database that is far away.
    pub(crate) fn execute_later(&mut self, params: impl Params) -> Result<()> {
        match self {
            Self::Sqlite(..) => self.execute(params).map(drop),
            Self::Postgres(session, statement) => {
                session.execute_later(statement, params.values()?)
            }
        }
    }

    /// All rows of the answer.
    pub(crate) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        match self {
            Self::Sqlite(statement, local, noted) => {
                take_down(noted.as_ref(), &params)?;
                local.count_asked();
                Ok(Rows::Sqlite(statement.query(params)?))
            }
            Self::Postgres(session, statement) => {
                let rows = session.query(statement, params.values()?)?;
                Ok(Rows::Postgres(rows.into_iter(), None))
            }
        }
    }

    /// All rows of the answer, each read by `map`.
    pub(crate) fn query_map<T, F: FnMut(&Row<'_>) -> Result<T>>(
        &mut self,
        params: impl Params,
        map: F,
    ) -> Result<MappedRows<'_, F>> {
        Ok(MappedRows { rows: self.query(params)?, map })
    }

    /// The first row of the answer.
    pub(crate) fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::Sqlite(statement, local, noted) => {
                take_down(noted.as_ref(), &params)?;
                local.count_asked();
                first(statement, params, read)
            }
            Self::Postgres(..) => {
                let mut rows = self.query(params)?;
                let row = rows.next()?.ok_or(SqlError::NoRow)?;
                read(&row)
            }
        }
    }
}

/// Takes down a statement that changes rows and gives them.
fn take_down(noted: Option<&Noted<'_>>, params: &impl Params) -> Result<()> {
    if let Some(noted) = noted {
        noted.asked(params.values()?);
    }
    Ok(())
}

fn first<T>(
    statement: &mut rusqlite::Statement<'_>,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<T> {
    let mut rows = statement.query(params)?;
    let row = rows.next()?.ok_or(SqlError::NoRow)?;
    read(&Row::Sqlite(row))
}
