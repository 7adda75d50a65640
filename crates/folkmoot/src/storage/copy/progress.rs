//! How far a copy is, kept at the target in one row, which changes in the transactions that bring
//! the rows. Once the copy is whole the row stays and says so.

use rusqlite::types::Value;

use crate::storage::sql::{Connection, OptionalExtension, SqlError, params};

/// The table that has the row.
pub(super) const TABLE: &str = "migration";

/// The place that a copy has reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reached {
    /// By what the source is told from any other, and from itself at another time.
    pub(super) source: String,
    /// The table whose rows came last; empty at the beginning.
    pub(super) table: String,
    /// The key of the last row that came, if one did.
    pub(super) after: Option<Vec<Value>>,
    pub(super) is_finished: bool,
}

/// How far the copy into a database is; `None`: none was begun.
pub(super) fn read(target: &Connection) -> Result<Option<Reached>, SqlError> {
    if !is_there(target)? {
        return Ok(None);
    }
    let sql = "SELECT source, table_name, last_key, finished FROM migration";
    let found = target.query_row(sql, [], |row| {
        let (key, finished): (Option<String>, i64) = (row.get(2)?, row.get(3)?);
        let after = key.map(|key| key_of(&key)).transpose()?;
        Ok(Reached { source: row.get(0)?, table: row.get(1)?, after, is_finished: finished != 0 })
    });
    found.optional()
}

fn is_there(target: &Connection) -> Result<bool, SqlError> {
    let sql = match target.is_far() {
        true => {
            "SELECT count(*) FROM pg_tables \
             WHERE schemaname = 'folkmoot' AND tablename = 'migration'"
        }
        false => "SELECT count(*) FROM sqlite_schema WHERE name = 'migration'",
    };
    let count: i64 = target.query_row(sql, [], |row| row.get(0))?;
    Ok(count > 0)
}

/// Whether a copy into a database was begun and is not whole.
pub(crate) fn is_unfinished(target: &Connection) -> Result<bool, SqlError> {
    Ok(read(target)?.is_some_and(|reached| !reached.is_finished))
}

/// Notes that a copy begins.
pub(super) fn begin(target: &Connection, source: &str) -> Result<(), SqlError> {
    let transaction = target.begin()?;
    transaction.execute_batch(
        "CREATE TABLE migration (source TEXT NOT NULL, table_name TEXT NOT NULL, last_key TEXT, \
         finished BIGINT NOT NULL)",
    )?;
    transaction.execute("INSERT INTO migration VALUES (?1, '', NULL, 0)", [source])?;
    transaction.commit()
}

/// Notes the last row that came, in the transaction that brings it.
pub(super) fn reach(
    transaction: &Connection,
    table: &str,
    after: &[Value],
) -> Result<(), SqlError> {
    let sql = "UPDATE migration SET table_name = ?1, last_key = ?2";
    transaction.prepare_cached(sql)?.execute_later(params![table, text_of(after)])
}

/// Notes that all of it is there.
pub(super) fn finish(transaction: &Connection) -> Result<(), SqlError> {
    transaction.execute_batch("UPDATE migration SET finished = 1")
}

/// Keys are numbers and texts.
fn text_of(key: &[Value]) -> String {
    let value = |value: &Value| match value {
        Value::Integer(number) => serde_json::Value::from(*number),
        Value::Text(text) => serde_json::Value::from(text.as_str()),
        _ => serde_json::Value::Null,
    };
    serde_json::Value::Array(key.iter().map(value).collect()).to_string()
}

fn key_of(text: &str) -> Result<Vec<Value>, SqlError> {
    let strange = || SqlError::Parameter(format!("the place that was reached is not one: {text}"));
    let values: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|_| strange())?;
    let value = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => Ok(Value::Text(text)),
        serde_json::Value::Number(number) => {
            number.as_i64().map(Value::Integer).ok_or_else(strange)
        }
        _ => Err(strange()),
    };
    values.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_as_it_was_reached() {
        let target = Connection::from(rusqlite::Connection::open_in_memory().unwrap());
        assert_eq!(read(&target).unwrap(), None);
        begin(&target, "here").unwrap();
        assert!(is_unfinished(&target).unwrap());
        let after = vec![Value::Integer(-7), Value::Text("a\0\u{FDD0}\"]".to_owned())];
        reach(&target, "reactions", &after).unwrap();
        let reached = read(&target).unwrap().unwrap();
        assert_eq!((reached.table.as_str(), reached.after), ("reactions", Some(after)));
        finish(&target).unwrap();
        assert!(!is_unfinished(&target).unwrap());
    }
}
