//! Control transactions: those that wait at the same time share a commit.

use std::collections::VecDeque;

use super::database::Database;
use crate::storage::sql::SqlError;
use crate::storage::sqlite::together::{self, Job, run_all};

/// Runs and commits some jobs. What a job asks cannot be asked twice, so one whose session breaks is
/// refused, unless it turns out to be in.
pub(crate) fn commit(database: &Database, jobs: &mut VecDeque<Job>) {
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
    // None has begun, and the next try has a new session.
    let may_try_again = done.is_empty() && !is_away && matches!(committed, Err(SqlError::Away(_)));
    if !may_try_again {
        together::tell(jobs, done, &committed);
    }
}
