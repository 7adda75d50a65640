//! Ends what has expired: connections and subscriptions whose token was not renewed in time. What
//! expires has a task of its own, which holds nothing of the connection while it sleeps, and which
//! goes with the connection or when the end is another one.

use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::DisconnectCode;
use folkmoot_protocol::frame::Unsubscribe;

use crate::channels::ChannelsCalls;
use crate::connection::{Connection, Watch};
use crate::server::{Server, seconds_left};

/// The SDKs ask for a new token and subscribe again.
const UNSUBSCRIBED_AS_EXPIRED: u32 = 2501;

/// Closes the connection some time after its end, unless it gets another end before.
pub(crate) fn end_connection_at(server: &Server, connection: &Arc<Connection>, ends_at: i64) {
    let delay = server.client.expired_close_delay.0;
    let watched = Arc::downgrade(connection);
    let end = async move {
        if let Some(connection) = watched.upgrade() {
            connection.outbox.close(DisconnectCode::Expired);
        }
    };
    connection.set_end(watch(ends_at, delay, end));
}

/// Ends the subscription some time after its end, unless it gets another end before.
pub(super) fn end_subscription_at(
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
        let _ = hub.of(&name).expel(name.clone(), client, why).await;
    };
    connection.set_subscription_end(channel, watch(ends_at, delay, end));
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
