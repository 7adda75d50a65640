//! Control transactions that share a commit, and so a sync of the disk: each runs in a savepoint of
//! its own, so one that is refused takes nothing of the others back. All are answered once the disk
//! has them, also those refused: what a refusal goes by may be in the same commit.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::storage::error::ControlError;
use crate::storage::sql::{Connection, SqlError, Transaction};

/// Jobs in one commit: a sync is shared by enough of them, and the first does not wait for long.
pub(crate) const JOBS_AT_ONCE: usize = 64;

/// A job whose work is done, and how its caller is told what became of it.
pub(crate) struct Ran {
    /// Whether it changed something that is to be committed.
    is_kept: bool,
    tell: Box<dyn FnOnce(Result<(), ControlError>)>,
}

/// Does its work, unless there is no transaction to do it in.
pub(crate) type Job = Box<dyn FnOnce(Result<&Connection, ControlError>) -> Ran + Send>;

/// Work for whose outcome somebody waits; they may have given up, and the change stands.
pub(crate) fn job<R: Send + 'static>(
    work: impl FnOnce(&Connection) -> Result<R, ControlError> + Send + 'static,
    answer: oneshot::Sender<Result<R, ControlError>>,
) -> Job {
    Box::new(move |connection| match connection.and_then(work) {
        Ok(done) => {
            let tell = move |committed: Result<(), ControlError>| {
                let _ = answer.send(committed.map(|()| done));
            };
            Ran { is_kept: true, tell: Box::new(tell) }
        }
        Err(refused) => {
            let tell = move |_| drop(answer.send(Err(refused)));
            Ran { is_kept: false, tell: Box::new(tell) }
        }
    })
}

/// Runs and commits the first of some jobs, at least one; those it leaves have not begun.
pub(super) fn commit(connection: &Connection, jobs: &mut VecDeque<Job>) {
    let transaction = match connection.begin() {
        Ok(transaction) => transaction,
        Err(error) => return refuse_first(jobs, error.into()),
    };
    let done = run_all(&transaction, jobs);
    let committed = match transaction.is_taken_back() {
        true => Err(SqlError::rolled_back()),
        false => transaction.commit(),
    };
    tell_all(done, &committed);
}

/// Tells the caller of the first job that it was not even begun.
fn refuse_first(jobs: &mut VecDeque<Job>, error: ControlError) {
    if let Some(first) = jobs.pop_front() {
        (first(Err(error)).tell)(Ok(()));
    }
}

/// Does the work of the first jobs.
pub(crate) fn run_all(transaction: &Transaction<'_>, jobs: &mut VecDeque<Job>) -> Vec<Ran> {
    let mut done = Vec::new();
    while done.len() < JOBS_AT_ONCE
        && let Some(job) = jobs.pop_front()
    {
        done.extend(run(transaction, job));
        // A full disk or a broken one takes all of it back; nothing may follow then.
        if transaction.is_taken_back() {
            break;
        }
    }
    done
}

/// Tells the callers of jobs what became of their transaction.
fn tell_all(done: Vec<Ran>, committed: &Result<(), SqlError>) {
    for Ran { tell, .. } in done {
        tell(match committed {
            Ok(()) => Ok(()),
            Err(error) => Err(error.again().into()),
        });
    }
}

/// Tells the callers what became of a transaction, all of them if it did not come to any job.
pub(crate) fn tell(jobs: &mut VecDeque<Job>, done: Vec<Ran>, committed: &Result<(), SqlError>) {
    match committed {
        Err(error) if done.is_empty() => {
            while !jobs.is_empty() {
                refuse_first(jobs, error.again().into());
            }
        }
        committed => tell_all(done, committed),
    }
}

/// Does one job's work; nothing if it panicked, which its caller sees by getting no answer.
fn run(transaction: &Transaction<'_>, job: Job) -> Option<Ran> {
    // What is dropped while unwinding is rolled back; the thread goes on, or everybody who waits for
    // the database would wait for ever.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let savepoint = match transaction.savepoint() {
            Ok(savepoint) => savepoint,
            Err(error) => return Some(job(Err(error.into()))),
        };
        let ran = job(Ok(&savepoint));
        if !ran.is_kept {
            return Some(ran);
        }
        match savepoint.keep() {
            Ok(()) => Some(ran),
            Err(error) => {
                (ran.tell)(Err(error.into()));
                None
            }
        }
    }));
    ran.unwrap_or_else(|_| {
        tracing::error!("a transaction panicked; its caller is told that it failed");
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Database(std::path::PathBuf);

    impl Database {
        fn new(name: &str) -> Self {
            let name = format!("folkmoot-together-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            let database = Self(path);
            let connection = database.open();
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
            connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
            database
        }

        fn open(&self) -> Connection {
            rusqlite::Connection::open(self.0.join("t.sqlite")).unwrap().into()
        }
    }

    impl Drop for Database {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    type Answer = oneshot::Receiver<Result<i64, ControlError>>;

    fn insert(n: i64, then: impl FnOnce() + Send + 'static) -> (Job, Answer) {
        let (tx, rx) = oneshot::channel();
        let work = move |connection: &Connection| {
            connection.execute("INSERT INTO t VALUES (?1)", [n])?;
            then();
            Ok(n)
        };
        (job(work, tx), rx)
    }

    #[test]
    fn those_who_wait_together_share_a_commit() {
        let database = Database::new("share");
        let (connection, other) = (database.open(), database.open());
        let (first, mut first_answer) = insert(1, || ());
        let (second, mut second_answer) = insert(2, move || {
            assert_eq!(count(&other), 0, "the first was committed alone");
        });
        commit(&connection, &mut VecDeque::from([first, second]));
        assert_eq!(count(&database.open()), 2);
        assert_eq!(first_answer.try_recv().unwrap().unwrap(), 1);
        assert_eq!(second_answer.try_recv().unwrap().unwrap(), 2);
    }

    #[test]
    fn one_that_is_refused_or_panics_takes_nothing_of_the_others_back() {
        let database = Database::new("refused");
        let connection = database.open();
        let jobs = [
            insert(1, || ()),
            insert(1, || ()),
            insert(2, || panic!("on purpose")),
            insert(3, || ()),
        ];
        let (mut jobs, mut answers): (VecDeque<Job>, Vec<Answer>) = jobs.into_iter().unzip();
        commit(&connection, &mut jobs);
        let told: Vec<_> = answers.iter_mut().map(|answer| answer.try_recv()).collect();
        assert!(matches!(told[0], Ok(Ok(1))));
        assert!(matches!(told[1], Ok(Err(ControlError::Database(_)))), "{:?}", told[1]);
        assert!(told[2].is_err(), "{:?}", told[2]);
        assert!(matches!(told[3], Ok(Ok(3))));
        assert_eq!(count(&connection), 2);
    }

    #[test]
    fn a_commit_that_fails_is_told_to_all_and_leaves_nothing() {
        let database = Database::new("fails");
        let connection = database.open();
        // Checked at the commit only.
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON; CREATE TABLE child (n REFERENCES t (n) \
                 DEFERRABLE INITIALLY DEFERRED)",
            )
            .unwrap();
        let (first, mut first_answer) = insert(1, || ());
        let (tx, mut orphan_answer) = oneshot::channel();
        let orphan = job(
            |connection: &Connection| Ok(connection.execute("INSERT INTO child VALUES (9)", [])?),
            tx,
        );
        commit(&connection, &mut VecDeque::from([first, orphan]));
        assert!(matches!(first_answer.try_recv(), Ok(Err(ControlError::Database(_)))));
        assert!(matches!(orphan_answer.try_recv(), Ok(Err(ControlError::Database(_)))));
        assert_eq!(count(&connection), 0);
        let (next, mut next_answer) = insert(2, || ());
        commit(&connection, &mut VecDeque::from([next]));
        assert!(matches!(next_answer.try_recv(), Ok(Ok(2))));
    }
}
