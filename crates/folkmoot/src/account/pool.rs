//! Where passwords are hashed. Each takes 19 MiB and a tenth of a second on purpose, so a flood of
//! attempts to sign in must neither fill the memory nor stand in the way of searches, thumbnails or
//! anybody who is signed in: a few at a time, a short queue, and an answer for who does not fit.

use std::sync::atomic::{AtomicUsize, Ordering};

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use tokio::sync::Semaphore;

use super::password;

/// Hashes under way at once; the other cores are for those who chat.
const AT_ONCE: usize = 2;
/// Attempts that wait: a few seconds of work.
const WAITING_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct PasswordPool {
    places: Semaphore,
    inside: AtomicUsize,
}

impl Default for PasswordPool {
    fn default() -> Self {
        Self { places: Semaphore::new(AT_ONCE), inside: AtomicUsize::new(0) }
    }
}

/// Counts one who works or waits until dropped, also when the caller goes away.
struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PasswordPool {
    /// Hashes a new password.
    pub(crate) async fn hash(&self, password: String) -> Result<String, RpcError> {
        self.run(move || password::hash(&password)).await
    }

    /// Whether `password` is the one behind `stored`.
    pub(crate) async fn verify(
        &self,
        password: String,
        stored: Option<String>,
    ) -> Result<bool, RpcError> {
        self.run(move || password::verify(&password, stored.as_deref())).await
    }

    async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, RpcError> {
        let before = self.inside.fetch_add(1, Ordering::Relaxed);
        let _inside = Inside(&self.inside);
        if before >= AT_ONCE + WAITING_MAX {
            let text = "too many attempts to sign in at once; try again in a moment";
            return Err(RpcError::new(ErrorCode::TooManyRequests, text));
        }
        let _place = self.places.acquire().await.map_err(|_| ErrorCode::Internal)?;
        tokio::task::spawn_blocking(work).await.map_err(|_| ErrorCode::Internal.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn a_flood_is_refused_and_those_inside_are_served() {
        let pool = PasswordPool::default();
        // Nobody makes room before all have come.
        let all_came = Arc::new(OnceLock::new());
        let mut flood = join_all((0..200).map(|number| {
            let all_came = all_came.clone();
            pool.run(move || {
                all_came.wait();
                number
            })
        }));
        assert!((&mut flood).now_or_never().is_none());
        all_came.set(()).unwrap();
        let answers = flood.await;
        let served = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(served, AT_ONCE + WAITING_MAX);
        let refused = answers.into_iter().find_map(Result::err).unwrap();
        assert_eq!(refused.code, ErrorCode::TooManyRequests);
        assert_eq!(pool.run(|| 7).await, Ok(7), "there is room again");
    }
}
