//! The copy itself: every table, page by page, then both sides read again and compared.

use rusqlite::types::Value;

use super::digest::{Digest, digest, key_of, page};
use super::progress::{self, Reached};
use super::source::Source;
use super::tables::{Table, tables};
use super::target::Target;
use super::{CopyError, SqlError};
use crate::progress::{Bar, note};
use crate::storage::ids::Lsn;
use crate::storage::sql::Connection;
use crate::storage::sqlite::mover::applied_lsn;

/// Rows in one transaction of the target: long enough that its sync does not count.
const ROWS_AT_ONCE: usize = 5_000;

/// What was carried.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    /// The tables with what both sides have.
    pub(crate) tables: Vec<(String, Digest)>,
    /// The last record that is in it.
    pub(crate) applied: Lsn,
}

/// Fills the target, from where an earlier copy was cut off; [`Target::finish`] comes after it.
pub(crate) fn carry(source: &Source, target: &Target) -> Result<Carried, CopyError> {
    let tables = tables()?;
    target.require_source(&source.mark)?;
    let reached = progress::read(&target.connection)?;
    let is_new = reached.is_none();
    if is_new {
        progress::begin(&target.connection, &source.mark)?;
    }
    for (table, after) in what_is_left(&tables, reached.as_ref()) {
        if let (false, Some(after)) = (is_new, &after) {
            note(&format!("going on in table {} after row {}", table.name, words(after)));
        }
        carry_table(&source.connection, &target.connection, table, after)?;
    }
    let tables = compare(&source.connection, &target.connection, &tables)?;
    Ok(Carried { tables, applied: applied_lsn(&source.connection)? })
}

/// The tables that are not all there yet, and of the first one the last row that is.
fn what_is_left<'t>(
    tables: &'t [Table],
    reached: Option<&Reached>,
) -> Vec<(&'t Table, Option<Vec<Value>>)> {
    let at = reached.and_then(|reached| tables.iter().position(|it| it.name == reached.table));
    let after = reached.and_then(|reached| reached.after.clone());
    let first = at.unwrap_or_default();
    let mut left: Vec<_> = tables[first..].iter().map(|table| (table, None)).collect();
    if at.is_some() {
        left[0].1 = after;
    }
    left
}

fn carry_table(
    source: &Connection,
    target: &Connection,
    table: &Table,
    mut after: Option<Vec<Value>>,
) -> Result<(), SqlError> {
    let mut bar = Bar::new(table.name.clone(), count(source, table)?);
    if after.is_some() {
        bar.add(count(target, table)?);
    }
    loop {
        let rows = page(source, table, after.as_deref(), ROWS_AT_ONCE)?;
        let Some(last) = rows.last() else { break };
        let last = key_of(table, last);
        let transaction = target.begin()?;
        transaction.insert_rows(&table.name, &table.columns(), &rows)?;
        progress::reach(&transaction, &table.name, &last)?;
        transaction.commit()?;
        after = Some(last);
        bar.add(rows.len() as u64);
    }
    bar.end();
    Ok(())
}

/// Reads all that both sides have.
fn compare(
    source: &Connection,
    target: &Connection,
    tables: &[Table],
) -> Result<Vec<(String, Digest)>, CopyError> {
    let counts = tables.iter().map(|table| count(source, table));
    let all = counts.sum::<Result<u64, SqlError>>()?;
    let mut bar = Bar::new("verified", 2 * all);
    let mut digests = Vec::new();
    for table in tables {
        let mut read = |connection| digest(connection, table, |rows| bar.add(rows));
        let (source_side, target) = (read(source)?, read(target)?);
        if source_side != target {
            return Err(CopyError::Differs { table: table.name.clone(), target, source_side });
        }
        digests.push((table.name.clone(), target));
    }
    bar.end();
    Ok(digests)
}

fn count(connection: &Connection, table: &Table) -> Result<u64, SqlError> {
    let sql = format!("SELECT count(*) FROM {}", table.name);
    let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
    Ok(rows.unsigned_abs())
}

/// A key as people read it.
fn words(key: &[Value]) -> String {
    let word = |value: &Value| match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    key.iter().map(word).collect::<Vec<_>>().join(", ")
}
