//! Ends what has expired: connections and subscriptions whose token was not renewed in time. What
//! expires has a task of its own, which holds nothing of the connection while it sleeps, and which
//! goes with the connection or when the end is another one.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use althing::SendError;
use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;
use folkmoot_protocol::frame::Unsubscribe;

use super::{Refusal, proxied};
use crate::channels::ChannelsCalls;
use crate::connection::{Connection, Watch};
use crate::proxy::{Event, Refreshed};
use crate::server::{Server, seconds_left};

/// The SDKs ask for a new token and subscribe again.
const UNSUBSCRIBED_AS_EXPIRED: u32 = 2501;

/// Between two questions to a backend that does not answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Closes the connection some time after its end, unless it gets another end before: from its
/// client, or from the backend, where that is asked.
pub(crate) fn end_connection_at(server: &Arc<Server>, connection: &Arc<Connection>, ends_at: i64) {
    let delay = server.client.expired_close_delay.0;
    let watched = Arc::downgrade(connection);
    let end = |watched: Weak<Connection>| async move {
        if let Some(connection) = watched.upgrade() {
            connection.outbox.close(DisconnectCode::Expired);
        }
    };
    if !server.proxies.has(Event::Refresh) {
        return connection.set_end(watch(ends_at, delay, end(watched)));
    }
    let server = server.clone();
    let ask = async move {
        let answer = answered(delay, || async {
            let Some(connection) = watched.upgrade() else { return Ok(None) };
            proxied::refresh(&server, &connection).await
        });
        match answer.await {
            // Without an end it is one that is over.
            Some(answer) if goes_on(&answer) && answer.expire_at > 0 => {
                if let Some(connection) = watched.upgrade() {
                    if let Some(info) = answer.info() {
                        connection.set_info(info);
                    }
                    if answer.meta.is_some() {
                        connection.set_meta(answer.meta.clone());
                    }
                    end_connection_at(&server, &connection, answer.expire_at);
                }
            }
            _ => end(watched).await,
        }
    };
    connection.set_end(watch(ends_at, Duration::ZERO, Box::pin(ask) as Ending));
}

/// Ends the subscription some time after its end, unless it gets another end before: from its
/// client, or from the backend, where that is asked.
pub(crate) fn end_subscription_at(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    channel: &Arc<str>,
    ends_at: i64,
) {
    let delay = server.client.expired_sub_close_delay.0;
    let (hub, client, name) = (server.hub.clone(), connection.id.clone(), channel.clone());
    let end = async move {
        let reason = "subscription expired".to_owned();
        let why = Unsubscribe { code: UNSUBSCRIBED_AS_EXPIRED, reason };
        let owner = hub.of(&name);
        // While its owner has no room, it waits: nothing that has expired may go on.
        while let Err(SendError::Timeout(_)) =
            owner.expel(name.clone(), client.clone(), why.clone()).tell().await
        {}
    };
    if !server.rules.of(channel).is_ok_and(|rule| rule.asks_to_renew()) {
        return connection.set_subscription_end(channel, watch(ends_at, delay, end));
    }
    let (server, name, watched) = (server.clone(), channel.clone(), Arc::downgrade(connection));
    let ask = async move {
        let answer = answered(delay, || async {
            let Some(connection) = watched.upgrade() else { return Ok(None) };
            proxied::sub_refresh(&server, &connection, &name).await
        });
        match (answer.await, watched.upgrade()) {
            (Some(answer), Some(connection)) if goes_on(&answer) => {
                if let Some(info) = answer.info() {
                    inform(&server, &connection, &name, info).await;
                }
                end_subscription_at(&server, &connection, &name, answer.expire_at);
            }
            _ => end.await,
        }
    };
    connection
        .set_subscription_end(channel, watch(ends_at, Duration::ZERO, Box::pin(ask) as Ending));
}

/// Has a subscription that goes on show what its backend says of the user from now on.
pub(super) async fn inform(
    server: &Server,
    connection: &Connection,
    channel: &Arc<str>,
    info: Bytes,
) {
    let informed = server.hub.of(channel).inform(channel.clone(), connection.id.clone(), info);
    if let Err(error) = informed.await {
        tracing::debug!(%error, "what a backend says of a subscriber is not shown");
    }
}

/// A task's work that may begin another one of its kind.
type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether a backend lets something go on: with an end that is not over, or without one.
fn goes_on(answer: &Refreshed) -> bool {
    !answer.expired && (answer.expire_at == 0 || seconds_left(answer.expire_at) > 0)
}

/// Asks until there is an answer, for little longer than that at most. `None`: it does not go on.
async fn answered<F>(within: Duration, ask: impl Fn() -> F) -> Option<Refreshed>
where
    F: Future<Output = Result<Option<Refreshed>, Refusal>>,
{
    let asking = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(Refusal::Disconnect(_)) => return None,
                Err(Refusal::Error(_)) => tokio::time::sleep(ASK_AGAIN_AFTER).await,
            }
        }
    };
    tokio::time::timeout(within + ASK_AGAIN_AFTER, asking).await.ok().flatten()
}

/// Does something `delay` after an end in seconds since 1970; 0 or less: there is no end.
fn watch(
    ends_at: i64,
    delay: Duration,
    end: impl Future<Output = ()> + Send + 'static,
) -> Option<Watch> {
    if ends_at <= 0 {
        return None;
    }
    let left = Duration::from_secs(seconds_left(ends_at).into());
    let task = tokio::spawn(async move {
        tokio::time::sleep(left + delay).await;
        end.await;
    });
    Some(Watch(task.abort_handle()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_what_has_gone_takes_no_memory() {
        let (held, by_task) = tokio::sync::oneshot::channel::<()>();
        let end = async move { drop(held) };
        let watch = watch(i64::MAX, Duration::ZERO, end);
        assert!(watch.is_some());
        drop(watch);
        let gone = tokio::time::timeout(Duration::from_secs(30), by_task).await;
        assert!(gone.is_ok(), "the task goes on");
    }
}
