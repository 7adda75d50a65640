//! Control transactions: those that wait at the same time share an entry.

use std::collections::VecDeque;

use super::database::{Database, Done};
use super::entry::Entry;
use crate::storage::sql::SqlError;
use crate::storage::sqlite::together::{self, Job, run_all};

/// Runs and commits some jobs.
pub(super) fn commit(database: &Database, jobs: &mut VecDeque<Job>) {
    let mut state = database.lock();
    let mut done = Vec::new();
    let committed = database.transact(&mut state, |transaction, applied| {
        let local = transaction.local().expect("the index is SQLite's");
        local.begin_taking();
        done = run_all(transaction, jobs);
        let changes = local.end_taking();
        match transaction.is_taken_back() {
            true => Err(SqlError::rolled_back()),
            false => Ok(Done { answer: (), entry: Entry::of_changes(changes), applied }),
        }
    });
    drop(state);
    together::tell(jobs, done, &committed);
}
