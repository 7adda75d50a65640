//! The thread of control transactions: those that wait at the same time share an entry.

use std::collections::VecDeque;

use super::database::{Database, Done};
use super::entry::Entry;
use crate::storage::progress::Progress;
use crate::storage::sql::SqlError;
use crate::storage::sqlite::together::{Job, refuse_first, run_all, tell_all};
use crate::storage::sqlite::writer::Control;

/// Runs until nothing waits and nothing comes any more.
pub(super) fn run(database: &Database, control: &Control, progress: &Progress) {
    loop {
        let (mut jobs, is_ending) = control.take();
        if jobs.is_empty() {
            if is_ending {
                break;
            }
            progress.wait(None);
        }
        while !jobs.is_empty() {
            commit(database, &mut jobs);
        }
    }
}

/// Runs and commits some jobs.
fn commit(database: &Database, jobs: &mut VecDeque<Job>) {
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
    match committed {
        Err(error) if done.is_empty() => {
            while !jobs.is_empty() {
                refuse_first(jobs, error.again().into());
            }
        }
        committed => tell_all(done, &committed),
    }
}
