//! CPU-heavy work, away from the reactor and bounded: as many jobs at once as there are cores, the rest in line.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// The bounded pool of a node, on tokio's blocking threads.
pub(crate) struct Blocking {
    permits: Arc<Semaphore>,
    /// In a simulation there are no other threads.
    is_simulated: bool,
}

impl Blocking {
    pub(crate) fn new(jobs_max: usize, is_simulated: bool) -> Self {
        Self { permits: Arc::new(Semaphore::new(jobs_max.max(1))), is_simulated }
    }

    /// Runs `work` when its turn comes; at once in a simulation, where it takes no time. A panic of `work` is passed on to
    /// who awaits it.
    pub(crate) fn run<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (permits, is_simulated) = (self.permits.clone(), self.is_simulated);
        async move {
            if is_simulated {
                return work();
            }
            let permit = permits.acquire_owned().await.expect("the semaphore is never closed");
            let job = tokio::task::spawn_blocking(move || {
                let output = work();
                drop(permit);
                output
            });
            match job.await {
                Ok(output) => output,
                Err(error) => resume_unwind(error.into_panic()),
            }
        }
    }
}
