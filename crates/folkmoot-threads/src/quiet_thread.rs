//! A thread for work that may wait: where all processors are busy, it gets what the others leave.
//!
//! Threads that its jobs start have its priority, too: on Linux a thread takes over the priority of
//! the one that starts it.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

use tokio::sync::oneshot;

use crate::scheduling;

type Job = Box<dyn FnOnce() + Send>;

/// What a job has panicked with.
pub type Panic = Box<dyn Any + Send>;

/// Runs one job after the other at a lower priority; ends when it is dropped and its last job is
/// done.
#[derive(Debug)]
pub struct QuietThread {
    jobs: mpsc::Sender<Job>,
}

impl QuietThread {
    /// Starts the thread, with that name.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub fn start(name: &str) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let name = name.to_owned();
        std::thread::Builder::new().name(name.clone()).spawn(move || {
            if let Err(error) = scheduling::lower_priority() {
                tracing::debug!(%error, "thread {name} runs at the normal priority");
            }
            for job in queue {
                job();
            }
        })?;
        Ok(Self { jobs })
    }

    /// What `work` returns, or what it panics with.
    ///
    /// # Errors
    /// If `work` panics.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not stop the work.
    pub async fn try_run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panic> {
        let (done, result) = oneshot::channel::<Result<T, Panic>>();
        let job = move || {
            // Whoever asked may have gone meanwhile.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        };
        self.jobs.send(Box::new(job)).expect("the thread runs until this end is dropped");
        result.await.expect("a job that has begun sends its result")
    }

    /// What `work` returns; a panic in it goes on in the caller.
    ///
    /// # Cancel safety
    /// As `try_run`.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self.try_run(work).await {
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
    async fn jobs_run_at_a_lower_priority_and_so_do_the_threads_they_start() {
        let before = niceness();
        let thread = QuietThread::start("quiet").expect("a thread starts");
        let (own, started) = thread
            .run(|| (niceness(), std::thread::spawn(niceness).join().expect("it only asks")))
            .await;
        assert!(own > before || before == 19, "{own} after {before}");
        assert_eq!((started, niceness()), (own, before));
    }

    #[tokio::test]
    async fn a_job_that_panics_leaves_the_thread_to_the_next_one() {
        let thread = Arc::new(QuietThread::start("quiet").expect("a thread starts"));
        let of_task = thread.clone();
        let failed = tokio::spawn(async move {
            let work: fn() = || panic!("of the test");
            of_task.run(work).await;
        });
        assert!(failed.await.expect_err("the panic goes on in the caller").is_panic());
        assert_eq!(thread.run(|| 7).await, 7);
    }
}
