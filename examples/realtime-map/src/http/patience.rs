//! How long a connection may stay without asking for anything.
//!
//! Every connection looks once per period: a timer set anew for every request, as hyper's own is,
//! takes a lock that all workers share and cost one request in twenty. So a silent connection is
//! let go after one period at least and two at most.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// What one connection has asked for; used by its own task only.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Requests so far, wrapping.
    asked: AtomicU32,
    /// Whether it is being told events: it need not ask for anything else.
    listens: AtomicBool,
}

impl Patience {
    /// A whole head has come.
    pub(super) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on it is told events, until it goes.
    pub(super) fn listens(&self) {
        self.listens.store(true, Ordering::Relaxed);
    }

    /// Resolves after a whole period in which nothing was asked for.
    pub(super) async fn ends(&self, period: Duration) {
        loop {
            let before = self.asked.load(Ordering::Relaxed);
            tokio::time::sleep(period).await;
            if self.asked.load(Ordering::Relaxed) == before && !self.listens.load(Ordering::Relaxed)
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_stays_silent_is_let_go() {
        let patience = Patience::default();
        let began = Instant::now();
        patience.asked();
        patience.ends(PERIOD).await;
        assert_eq!(began.elapsed().as_secs(), PERIOD.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_asks_or_listens_stays() {
        let patience = Patience::default();
        let asks = async {
            for _ in 0..10 {
                tokio::time::sleep(PERIOD / 2).await;
                patience.asked();
            }
            patience.listens();
        };
        let stays = async { tokio::join!(asks, timeout(PERIOD * 20, patience.ends(PERIOD))).1 };
        assert!(stays.await.is_err());
    }
}
