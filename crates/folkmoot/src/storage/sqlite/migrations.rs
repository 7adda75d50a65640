//! The schema, as the ordered list of steps that make it.
//!
//! A step that has been released is never changed: databases out there have run it. `user_version` counts
//! the steps a database has taken; each runs in one transaction with the count.

use std::path::Path;

use rusqlite::Connection;

use crate::storage::error::OpenError;

/// All steps, oldest first.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_base.sql"),
    include_str!("migrations/0002_reactions.sql"),
    include_str!("migrations/0003_message_changes.sql"),
    include_str!("migrations/0004_attachments.sql"),
    include_str!("migrations/0005_administration.sql"),
    include_str!("migrations/0006_safety.sql"),
];

/// Takes the steps that a database lacks.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let taken: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let newest = u32::try_from(STEPS.len()).expect("there are few migrations");
    if taken > newest {
        return Err(OpenError::NewerSchema { path: path.to_owned(), found: taken, newest });
    }
    for (version, step) in (1..).zip(STEPS).skip(taken as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
        if taken > 0 {
            tracing::info!(schema = version, "migrated the database");
        }
    }
    Ok(())
}
