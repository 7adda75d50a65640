//! The thread of control transactions: those that wait at the same time share a commit.

use std::collections::VecDeque;

use super::database::Database;
use crate::storage::progress::Progress;
use crate::storage::sql::SqlError;
use crate::storage::sqlite::together::{Job, refuse_first, run_all, tell_all};
use crate::storage::sqlite::writer::Control;

/// Runs until nothing waits and nothing comes any more.
pub(crate) fn run(database: &Database, control: &Control, progress: &Progress) {
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

/// Runs and commits some jobs. What a job asks cannot be asked twice, so one whose session breaks is
/// refused, unless it turns out to be in.
fn commit(database: &Database, jobs: &mut VecDeque<Job>) {
    let mut state = database.lock();
    let mut done = Vec::new();
    let committed = database.transact(&mut state, |transaction, _| {
        // Before the first job: a session that broke while it was idle costs nobody anything.
        transaction.flush()?;
        done = run_all(transaction, jobs);
        Ok(())
    });
    let is_away = state.is_away();
    drop(state);
    match committed {
        // None has begun, and the next try has a new session.
        Err(SqlError::Away(_)) if done.is_empty() && !is_away => {}
        Err(error) if done.is_empty() => {
            while !jobs.is_empty() {
                refuse_first(jobs, error.again().into());
            }
        }
        committed => tell_all(done, &committed),
    }
}
