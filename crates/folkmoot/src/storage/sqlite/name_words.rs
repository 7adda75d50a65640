//! The words by which people are found while somebody types: the account's name, and the name to
//! show from each of its words on, without case and accents.
//!
//! Triggers take the words away when an account goes or is called otherwise; new ones are noted
//! here, because SQLite cannot fold them.

use rusqlite::{Connection, params};

use crate::text;

/// Notes the words of an account that has none yet.
pub(crate) fn note_words(
    connection: &Connection,
    user: i64,
    name: &str,
    display_name: &str,
) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO name_words VALUES (?1, ?2)")?;
    insert.execute(params![name, user])?;
    for word in text::beginnings(display_name) {
        insert.execute(params![word, user])?;
    }
    Ok(())
}
