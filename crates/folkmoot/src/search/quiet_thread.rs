//! The thread that writes the index. Its priority is lower than that of the threads that serve
//! sockets: where all processors are busy, indexing gets what they leave.
//!
//! The threads that the index starts for itself, to write and to merge segments, are started from
//! this one, and on Linux a thread takes over the priority of the one that starts it.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;
type Panic = Box<dyn Any + Send>;

/// A third of the processor time of a thread at the normal priority, while both want to run.
const NICENESS: i32 = 5;

/// Runs one job after the other; ends when it is dropped and its last job is done.
#[derive(Debug)]
pub(super) struct QuietThread {
    jobs: mpsc::Sender<Job>,
}

impl QuietThread {
    /// # Errors
    /// If the system starts no more threads.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("folkmoot-search".to_owned()).spawn(move || {
            if let Err(error) = rustix::process::nice(NICENESS) {
                tracing::debug!(%error, "the search index is written at the normal priority");
            }
            for job in queue {
                job();
            }
        })?;
        Ok(Self { jobs })
    }

    /// What `work` returns; a panic in it goes on in the caller.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (done, result) = oneshot::channel::<Result<T, Panic>>();
        let job = move || {
            // Whoever asked may have gone meanwhile.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        };
        self.jobs.send(Box::new(job)).expect("the thread runs until this end is dropped");
        match result.await.expect("a job that has begun sends its result") {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn niceness() -> i32 {
        rustix::process::nice(0).expect("a thread may ask for its own priority")
    }

    #[tokio::test]
    async fn the_index_is_written_at_a_lower_priority_and_so_by_the_threads_it_starts() {
        let before = niceness();
        let thread = QuietThread::start().expect("a thread starts");
        let (own, started) = thread
            .run(|| (niceness(), std::thread::spawn(niceness).join().expect("it only asks")))
            .await;
        let lowered = (before + NICENESS).min(19);
        assert_eq!((own, started, niceness()), (lowered, lowered, before));
    }

    #[tokio::test]
    async fn a_job_that_panics_leaves_the_thread_to_the_next_one() {
        let thread = Arc::new(QuietThread::start().expect("a thread starts"));
        let of_task = thread.clone();
        let failed = tokio::spawn(async move {
            let work: fn() = || panic!("of the test");
            of_task.run(work).await;
        });
        assert!(failed.await.expect_err("the panic goes on in the caller").is_panic());
        assert_eq!(thread.run(|| 7).await, 7);
    }
}
