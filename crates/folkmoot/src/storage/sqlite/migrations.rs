//! The schema, as the ordered list of steps that make it.
//!
//! A step that has been released is never changed: databases out there have run it. `user_version`
//! counts the steps a database has taken; each runs in one transaction with the count.

use std::path::Path;

use super::apply::to_sql;
use crate::storage::error::OpenError;
use crate::storage::record::MessageDetails;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::name_words::note_words;

/// All steps, oldest first.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_base.sql"),
    include_str!("migrations/0002_reactions.sql"),
    include_str!("migrations/0003_message_changes.sql"),
    include_str!("migrations/0004_attachments.sql"),
    include_str!("migrations/0005_administration.sql"),
    include_str!("migrations/0006_safety.sql"),
    include_str!("migrations/0007_deletion.sql"),
    include_str!("migrations/0008_by_person.sql"),
    include_str!("migrations/0009_profiles.sql"),
    include_str!("migrations/0010_directory.sql"),
    include_str!("migrations/0011_retention.sql"),
    include_str!("migrations/0012_pins.sql"),
    include_str!("migrations/0013_mutes.sql"),
    include_str!("migrations/0014_invite_claims.sql"),
];

/// The step that brings the table of quotes, which are in the details of messages until then.
const QUOTES: u32 = 6;

/// Fills the table of quotes.
fn note_quotes(transaction: &Connection) -> Result<(), OpenError> {
    let sql = "SELECT room, seq, details FROM messages WHERE details IS NOT NULL";
    let mut messages = transaction.prepare_cached(sql)?;
    let mut rows = messages.query([])?;
    while let Some(row) = rows.next()? {
        let (room, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
        let details: Vec<u8> = row.get(2)?;
        // What does not decode is told of by whoever reads the message.
        let Ok(details) = MessageDetails::decode(Some(&details)) else { continue };
        if let Some(quote) = details.reply_to {
            let place = [room, to_sql(quote.seq.as_u64()), seq];
            transaction.execute("INSERT OR IGNORE INTO quotes VALUES (?1, ?2, ?3)", place)?;
        }
    }
    Ok(())
}

/// The step that brings the words of names, which SQLite cannot fold.
const NAME_WORDS: u32 = 8;

fn note_name_words(transaction: &Connection) -> Result<(), OpenError> {
    let mut users = transaction.prepare_cached("SELECT id, name, display_name FROM users")?;
    let mut rows = users.query([])?;
    while let Some(row) = rows.next()? {
        let (name, display_name): (String, String) = (row.get(1)?, row.get(2)?);
        note_words(transaction, row.get(0)?, &name, &display_name)?;
    }
    Ok(())
}

/// How many steps a database has taken.
pub(crate) fn taken(connection: &Connection) -> Result<u32, SqlError> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// How many steps there are.
pub(crate) fn newest() -> u32 {
    u32::try_from(STEPS.len()).expect("there are few migrations")
}

/// Takes the steps that a database lacks.
pub(crate) fn migrate(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let (taken, newest) = (taken(connection)?, newest());
    if taken > newest {
        return Err(OpenError::NewerSchema { path: path.to_owned(), found: taken, newest });
    }
    for (version, step) in (1..).zip(STEPS).skip(taken as usize) {
        let transaction = connection.begin()?;
        transaction.execute_batch(step)?;
        if version == QUOTES {
            note_quotes(&transaction)?;
        }
        if version == NAME_WORDS {
            note_name_words(&transaction)?;
        }
        transaction.execute_batch(&format!("PRAGMA user_version = {version}"))?;
        transaction.commit()?;
        if taken > 0 {
            tracing::info!(schema = version, "migrated the database");
        }
    }
    Ok(())
}
