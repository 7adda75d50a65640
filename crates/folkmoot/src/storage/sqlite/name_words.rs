//! The words by which people are found while somebody types: the account's name, and the name to
//! show from each of its words on, without case and accents.
//!
//! Triggers take the words away when an account goes or is called otherwise; new ones are noted
//! here, because SQLite cannot fold them.

use crate::storage::sql::{self, Connection, params};
use crate::text;

/// Notes the words of an account that has none yet.
pub(crate) fn note_words(
    connection: &Connection,
    user: i64,
    name: &str,
    display_name: &str,
) -> sql::Result<()> {
    note_all(connection, words(name, display_name).map(|word| (word, user)))
}

/// The words of a name and a name to show.
pub(crate) fn words(name: &str, display_name: &str) -> impl Iterator<Item = String> {
    std::iter::once(name.to_owned()).chain(text::beginnings(display_name))
}

/// Notes words with whose they are; in the order of the words, where there are many.
pub(crate) fn note_all(
    connection: &Connection,
    words: impl Iterator<Item = (String, i64)>,
) -> sql::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO name_words VALUES (?1, ?2)")?;
    for (word, user) in words {
        insert.execute(params![word, user])?;
    }
    Ok(())
}
