//! SQLite's connection, which can take down what its transaction changes: each statement that has
//! changed rows, with its values and how many rows those were.
//!
//! Run again in the same order on the same rows, they change the same: a statement that takes a
//! part of the rows it finds says which by `ORDER BY`, and nothing that is by chance or of the
//! clock stands in a statement of a control transaction. The count of rows says when that did not
//! hold.
//! What `execute_batch` runs is not taken down: transactions and the making of tables.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

use rusqlite::types::Value;

use super::error::{Result, SqlError};

/// A statement that has changed something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    /// Rows that it has changed, with those that triggers did; unknown of one that gives rows.
    pub(crate) rows: Option<u64>,
}

/// SQLite's connection, and what is taken down.
pub(crate) struct Local {
    connection: rusqlite::Connection,
    /// `None`: nothing is.
    taken: RefCell<Option<Vec<Change>>>,
    /// Statements asked for their rows.
    pub(super) asked: Cell<u64>,
}

/// What is taken down of a prepared statement.
pub(crate) struct Noted<'c> {
    local: &'c Local,
    sql: String,
}

impl Local {
    /// Takes down what is changed from now on.
    pub(crate) fn begin_taking(&self) {
        *self.taken.borrow_mut() = Some(Vec::new());
    }

    /// What was changed since then; nothing more is taken down.
    pub(crate) fn end_taking(&self) -> Vec<Change> {
        self.taken.take().unwrap_or_default()
    }

    pub(super) fn count_asked(&self) {
        self.asked.set(self.asked.get() + 1);
    }

    /// How much is taken down so far.
    pub(super) fn mark(&self) -> usize {
        self.taken.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Forgets what was taken back.
    pub(super) fn forget(&self, from: usize) {
        if let Some(taken) = &mut *self.taken.borrow_mut() {
            taken.truncate(from);
        }
    }

    /// What is to be taken down of a statement when it is run.
    pub(super) fn note(&self, sql: &str, is_readonly: bool) -> Option<Noted<'_>> {
        let is_taken = !is_readonly && self.taken.borrow().is_some();
        is_taken.then(|| Noted { local: self, sql: sql.to_owned() })
    }

    /// Runs a change that was taken down elsewhere.
    ///
    /// # Errors
    /// What SQLite says, or it changes not what it changed there.
    pub(crate) fn repeat(&self, change: &Change) -> Result<()> {
        let before = self.connection.total_changes();
        let mut statement = self.connection.prepare_cached(&change.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(&change.values))?;
        while rows.next()?.is_some() {}
        let rows = self.connection.total_changes() - before;
        match change.rows {
            Some(there) if there != rows => Err(SqlError::Refused(format!(
                "`{}` has changed {there} rows where it was run first, and {rows} here",
                change.sql
            ))),
            _ => Ok(()),
        }
    }
}

impl Noted<'_> {
    /// Runs the statement by `run`, and takes it down if it has changed something.
    pub(super) fn executed(
        &self,
        values: Vec<Value>,
        run: impl FnOnce() -> rusqlite::Result<usize>,
    ) -> Result<usize> {
        let before = self.local.total_changes();
        let changed = run()?;
        let rows = self.local.total_changes() - before;
        if rows > 0 {
            self.take(values, Some(rows));
        }
        Ok(changed)
    }

    /// Takes down a statement whose rows are about to be read.
    pub(super) fn asked(&self, values: Vec<Value>) {
        self.take(values, None);
    }

    fn take(&self, values: Vec<Value>, rows: Option<u64>) {
        if let Some(taken) = &mut *self.local.taken.borrow_mut() {
            taken.push(Change { sql: self.sql.clone(), values, rows });
        }
    }
}

impl From<rusqlite::Connection> for Local {
    fn from(connection: rusqlite::Connection) -> Self {
        Self { connection, taken: RefCell::default(), asked: Cell::default() }
    }
}

impl Deref for Local {
    type Target = rusqlite::Connection;

    fn deref(&self) -> &rusqlite::Connection {
        &self.connection
    }
}

impl DerefMut for Local {
    fn deref_mut(&mut self) -> &mut rusqlite::Connection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::sql::{Connection, params};

    const TABLES: &str = "CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT); \
         CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER); \
         CREATE TRIGGER gone AFTER DELETE ON t BEGIN DELETE FROM log WHERE n = OLD.n; END";

    fn database() -> Connection {
        let database = Connection::from(rusqlite::Connection::open_in_memory().unwrap());
        database.execute_batch(TABLES).unwrap();
        database
    }

    fn rows(database: &Connection) -> Vec<(i64, String)> {
        let sql = "SELECT n, text FROM t UNION ALL SELECT id, 'log ' || n FROM log ORDER BY 1, 2";
        let mut found = database.prepare_cached(sql).unwrap();
        let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_>>().unwrap()
    }

    fn insert(database: &Connection, n: i64, text: &str) {
        let sql = "INSERT INTO t VALUES (?1, ?2)";
        database.prepare_cached(sql).unwrap().execute(params![n, text]).unwrap();
        let sql = "INSERT INTO log (n) VALUES (?1) RETURNING id";
        database.query_row(sql, [n], |row| row.get::<i64>(0)).unwrap();
    }

    #[test]
    fn what_was_taken_down_makes_the_same_rows_without_what_was_taken_back() {
        let (here, there) = (database(), database());
        let local = here.local().unwrap();
        local.begin_taking();
        let transaction = here.begin().unwrap();
        insert(&transaction, 1, "with a\0nothing in it");
        let savepoint = transaction.savepoint().unwrap();
        insert(&savepoint, 2, "taken back");
        drop(savepoint);
        let savepoint = transaction.savepoint().unwrap();
        insert(&savepoint, 3, "kept");
        savepoint.keep().unwrap();
        transaction.gather("UPDATE t SET text = ?2 WHERE n = ?1", params![3, "again"]).unwrap();
        transaction.execute("UPDATE t SET text = '' WHERE n = 99", []).unwrap();
        insert(&transaction, 4, "deleted");
        transaction.execute("DELETE FROM t WHERE n = ?1", [4]).unwrap();
        transaction.commit().unwrap();
        let changes = local.end_taking();
        assert_eq!(changes.last().unwrap().rows, Some(2), "the trigger's row counts");
        insert(&here, 5, "not taken down");
        here.execute("DELETE FROM t WHERE n = 5", []).unwrap();
        let again = there.begin().unwrap();
        changes.iter().for_each(|change| there.local().unwrap().repeat(change).unwrap());
        again.commit().unwrap();
        assert_eq!(rows(&there), rows(&here));
        assert_eq!(rows(&there).len(), 4);
    }

    #[test]
    fn a_statement_that_changes_something_else_is_refused() {
        let (here, there) = (database(), database());
        insert(&here, 1, "one");
        here.local().unwrap().begin_taking();
        here.execute("UPDATE t SET text = 'two'", []).unwrap();
        let changes = here.local().unwrap().end_taking();
        let refused = there.local().unwrap().repeat(&changes[0]).unwrap_err().to_string();
        assert!(refused.contains("1 rows where it was run first, and 0 here"), "{refused}");
    }
}
