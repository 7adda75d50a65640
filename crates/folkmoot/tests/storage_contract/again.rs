//! What a store in Cassandra did is all in its log: an index that is made anew of that has the same
//! rows as the one in which it happened.

use std::path::Path;

use folkmoot::storage::CassandraAddress;
use rusqlite::types::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::storage_support::TestDirectory;

/// Makings of tables would keep each other waiting.
static TURN: Mutex<()> = Mutex::const_new(());

/// A keyspace, while no other test has one.
pub(crate) struct Keyspace {
    pub(crate) address: CassandraAddress,
    _turn: MutexGuard<'static, ()>,
}

impl Keyspace {
    pub(crate) async fn new() -> Self {
        let turn = TURN.lock().await;
        Self { address: crate::storage_cassandra::new_keyspace().await, _turn: turn }
    }
}

/// Loses the index of a store that is closed, and compares the new one with it.
pub(crate) async fn is_the_same_from_the_log(
    directory: &TestDirectory,
    keyspace: &CassandraAddress,
) {
    let index = directory.path().join("index.sqlite");
    let happened = rows(&index);
    std::fs::remove_file(&index).expect("it is there");
    directory.open_on(keyspace).close().await;
    let again = rows(&index);
    assert_eq!(happened.len(), again.len());
    for (here, there) in happened.iter().zip(&again) {
        assert_eq!(here, there);
    }
}

/// All rows of all tables, and the numbers that are given out next.
fn rows(index: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let database = rusqlite::Connection::open(index).expect("it can be read");
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut names = database.prepare(sql).expect("SQLite has it");
    let names = names.query_map([], |row| row.get::<_, String>(0)).expect("it can be read");
    let names: Vec<_> = names.map(|name| name.expect("a text")).collect();
    assert!(names.len() > 20, "{names:?}");
    let table = |name: String| {
        let mut all = database.prepare(&format!("SELECT * FROM {name}")).expect("it is there");
        let columns = all.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Vec<Value>> {
            (0..columns).map(|column| row.get(column)).collect()
        };
        let rows = all.query_map([], row).expect("it can be read");
        let rows: Vec<Vec<Value>> = rows.map(|row| row.expect("values")).collect();
        (name, rows)
    };
    names.into_iter().map(table).collect()
}
