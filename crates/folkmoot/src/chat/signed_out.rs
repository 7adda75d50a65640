//! Ends the connections of devices that are signed out. The store has that by then, and nobody can
//! ask for it again: an old password is gone. So it is done also if the user's actor cannot be
//! asked just then.

use std::sync::Arc;
use std::time::Duration;

use crate::server::Server;
use crate::storage::UserId;
use crate::user::{UserCalls, UserError};

/// Until a user is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often: for an hour. A node that hangs is given up long before, and a connection that comes to
/// the user's next actor is looked at by itself.
const TRIES_MAX: u32 = 3_600;

/// Ends those connections of a user: now, or as soon as the user's actor answers.
pub(crate) async fn hang_up(server: &Arc<Server>, user: UserId) {
    if is_done(server, user).await {
        return;
    }
    let server = server.clone();
    tokio::spawn(async move {
        if !insist(AGAIN_AFTER, || is_done(&server, user)).await {
            tracing::error!(%user, "devices that were signed out may be connected still");
        }
    });
}

async fn is_done(server: &Server, user: UserId) -> bool {
    match server.user(user).end_signed_out().await {
        Ok(Ok(()) | Err(UserError::NoSuchUser)) => true,
        Ok(Err(error)) => {
            tracing::debug!(%user, %error, "it is not known yet which devices are signed out");
            false
        }
        Err(error) => {
            tracing::debug!(%user, %error, "a user is asked again to hang up");
            false
        }
    }
}

/// Tries until it is done; says whether it is.
async fn insist<F: Future<Output = bool>>(pause: Duration, is_done: impl Fn() -> F) -> bool {
    for _ in 0..TRIES_MAX {
        tokio::time::sleep(pause).await;
        if is_done().await {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn who_does_not_answer_at_first_is_asked_until_they_do() {
        let tries = Cell::new(0);
        let answers_the_third_time = || {
            tries.set(tries.get() + 1);
            ready(tries.get() == 3)
        };
        assert!(insist(Duration::ZERO, answers_the_third_time).await);
        assert_eq!(tries.get(), 3);
    }
}
