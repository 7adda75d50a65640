//! The tables that a store has, as the schema itself tells: a table or column that a later step
//! adds is carried without a word here.

use std::path::Path;

use crate::storage::error::OpenError;
use crate::storage::sql::Connection;
use crate::storage::sqlite::migrations;

/// A table with the names that both databases know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// The columns of its key, in their order.
    pub(crate) key: Vec<String>,
}

impl Table {
    pub(super) fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(String::as_str).collect()
    }

    pub(super) fn key(&self) -> Vec<&str> {
        self.key.iter().map(String::as_str).collect()
    }
}

/// All tables but the one of the store itself, which is of one database and no other.
pub(crate) fn tables() -> Result<Vec<Table>, OpenError> {
    let schema = Connection::from(rusqlite::Connection::open_in_memory()?);
    migrations::migrate(&schema, Path::new(":memory:"))?;
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' \
               AND name <> 'store' AND name NOT LIKE 'sqlite%' ORDER BY rowid";
    let mut names = schema.prepare_cached(sql)?;
    let names = names.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    names.into_iter().map(|name| Ok(table(&schema, name)?)).collect()
}

fn table(schema: &Connection, name: String) -> Result<Table, crate::storage::sql::SqlError> {
    let mut about = schema.prepare_cached("SELECT name, pk FROM pragma_table_info(?1)")?;
    let columns = about.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let columns = columns.collect::<Result<Vec<(String, i64)>, _>>()?;
    let mut key: Vec<_> = columns.iter().filter(|(_, place)| *place > 0).collect();
    key.sort_by_key(|(_, place)| *place);
    let key = key.into_iter().map(|(name, _)| name.clone()).collect();
    let columns = columns.into_iter().map(|(name, _)| name).collect();
    Ok(Table { name, columns, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_key_to_go_by() {
        let tables = tables().unwrap();
        assert!(tables.iter().all(|table| !table.key.is_empty()), "{tables:?}");
        let reactions = tables.iter().find(|table| table.name == "reactions").unwrap();
        assert_eq!(reactions.key, ["room", "seq", "emoji", "user"]);
        assert!(tables.iter().any(|table| table.name == "room_events"));
        assert!(!tables.iter().any(|table| table.name == "store"));
    }
}
