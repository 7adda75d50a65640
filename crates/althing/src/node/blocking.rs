//! CPU-heavy work, away from the reactor and bounded: as many jobs at once as there are cores, the
//! rest in line.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The bounded pool of a node, on tokio's blocking threads.
pub(crate) struct Blocking {
    permits: Arc<Semaphore>,
    /// None in a simulation, where there are no other threads.
    runtime: Option<Handle>,
}

impl Blocking {
    pub(crate) fn new(jobs_max: usize, runtime: Option<Handle>) -> Self {
        let permits = Semaphore::new(jobs_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { permits: Arc::new(permits), runtime }
    }

    /// Runs `work` when its turn comes; at once in a simulation, where it takes no time. A panic of
    /// `work` is passed on to who awaits it; who awaits work that is not done because the node's
    /// runtime has ended panics too, as there is nothing to yield.
    pub(crate) fn run<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (permits, runtime) = (self.permits.clone(), self.runtime.clone());
        async move {
            let Some(runtime) = runtime else { return work() };
            let permit = permits.acquire_owned().await.expect("the semaphore is never closed");
            let job = runtime.spawn_blocking(move || {
                let output = work();
                drop(permit);
                output
            });
            match job.await {
                Ok(output) => output,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    Err(_) => panic!("the work was not done: the node's runtime has ended"),
                },
            }
        }
    }
}
