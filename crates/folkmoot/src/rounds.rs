//! A worker of the server that looks for work in rounds: at the start, when it is woken, and again
//! after a pause. Knows nothing of the work.

use std::time::Duration;

use tokio::sync::watch;

/// Wakes the worker, and tells how far it is.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Counts reasons to look; the start of the server is the first.
    wanted: watch::Sender<u64>,
    /// All that there was to do for so many of them is done.
    done: watch::Sender<u64>,
}

/// What came of a look.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Looked {
    /// Nothing is left to do; the next look is after a pause, or when the worker is woken.
    All(Option<Duration>),
    /// Something is left to do after a pause.
    Part(Duration),
}

impl Default for Rounds {
    fn default() -> Self {
        Self { wanted: watch::Sender::new(1), done: watch::Sender::new(0) }
    }
}

impl Rounds {
    /// There is something to do: does not wait for it.
    pub(crate) fn wake(&self) {
        self.wanted.send_modify(|count| *count += 1);
    }

    /// Waits until all that there was to do before is done.
    pub(crate) async fn done(&self) {
        let wanted = *self.wanted.borrow();
        let _ = self.done.subscribe().wait_for(|done| *done >= wanted).await;
    }

    /// Looks for work until the server stops.
    pub(crate) async fn run<F: Future<Output = Looked>>(
        &self,
        mut stopping: watch::Receiver<bool>,
        look: impl Fn() -> F,
    ) {
        let mut wanted = self.wanted.subscribe();
        loop {
            let count = *wanted.borrow_and_update();
            let looked = tokio::select! {
                _ = stopping.wait_for(|stops| *stops) => return,
                looked = look() => looked,
            };
            let pause = match looked {
                Looked::All(pause) => {
                    self.done.send_replace(count);
                    pause
                }
                Looked::Part(pause) => Some(pause),
            };
            let again = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = stopping.wait_for(|stops| *stops) => return,
                _ = wanted.changed() => {}
                () = again => {}
            }
        }
    }
}
