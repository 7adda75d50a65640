//! How long somebody goes on trying, and with which pauses.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::session::Failure;
use super::{CassandraError, unavailable};
use crate::store::StoreError;

/// Pause after the first failure; it doubles with each that follows.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause: about so long after the server is back, so is the store.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The patience of one call.
#[derive(Debug)]
pub(super) struct Patience {
    since: Instant,
    wait_within: Duration,
    failures: u32,
}

impl Patience {
    pub(super) fn new(since: Instant, wait_within: Duration) -> Self {
        Self { since, wait_within, failures: 0 }
    }

    /// Does what may be done more than once until it is done.
    ///
    /// # Errors
    /// The server refused it, or it was not done in time.
    pub(super) async fn insist<T, F: Future<Output = Result<T, Failure>>>(
        &mut self,
        attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(Failure::Refused(cause)) => return Err(unavailable(cause)),
                Err(failure) => self.pause(failure.cause()).await.map_err(unavailable)?,
            }
        }
    }

    /// Waits after a failure.
    ///
    /// # Errors
    /// The time is over.
    pub(super) async fn pause(
        &mut self,
        cause: &Arc<CassandraError>,
    ) -> Result<(), CassandraError> {
        tracing::warn!(%cause, failures = self.failures, "Cassandra cannot be used");
        let until = self.since + self.wait_within;
        let pause = (PAUSE_FIRST * 2_u32.pow(self.failures.min(10))).min(PAUSE_MAX);
        self.failures += 1;
        let next = Instant::now() + by_chance(pause);
        if next < until {
            sleep_until(next).await;
            return Ok(());
        }
        sleep_until(until).await;
        Err(CassandraError::Unreachable { waited: self.since.elapsed(), cause: cause.clone() })
    }
}

/// Half of it by chance, so that those who wait do not come back all at once.
fn by_chance(pause: Duration) -> Duration {
    let chance = RandomState::new().hash_one(pause) as u32;
    pause.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0)
}
