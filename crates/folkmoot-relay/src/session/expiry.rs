//! Ends what has expired: connections and subscriptions whose token was not renewed in time. What
//! expires has a task of its own, which holds nothing of the connection while it sleeps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use folkmoot_protocol::DisconnectCode;
use folkmoot_protocol::frame::Unsubscribe;

use crate::channels::ChannelsCalls;
use crate::connection::Connection;
use crate::server::{Server, seconds_left};

/// The SDKs ask for a new token and subscribe again.
const UNSUBSCRIBED_AS_EXPIRED: u32 = 2501;

/// Closes the connection some time after its end, unless that was put off meanwhile.
pub(super) fn watch_connection(server: &Arc<Server>, connection: &Arc<Connection>) {
    let delay = server.client.expired_close_delay.0;
    let (watched, first) = (Arc::downgrade(connection), connection.ends_at());
    tokio::spawn(async move {
        let end = async |connection: Arc<Connection>| {
            connection.outbox.close(DisconnectCode::Expired);
        };
        until_over(watched, first, delay, |connection| Some(connection.ends_at()), end).await;
    });
}

/// Ends the subscription some time after its end, unless that was put off meanwhile.
pub(super) fn watch_subscription(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    channel: &Arc<str>,
) {
    let delay = server.client.expired_sub_close_delay.0;
    let Some(held) = connection.subscription(channel) else { return };
    let (server, watched, channel) = (server.clone(), Arc::downgrade(connection), channel.clone());
    tokio::spawn(async move {
        let end = async |connection: Arc<Connection>| {
            let reason = "subscription expired".to_owned();
            let why = Unsubscribe { code: UNSUBSCRIBED_AS_EXPIRED, reason };
            let owner = server.hub.of(&channel);
            let _ = owner.expel(channel.clone(), connection.id.clone(), why).await;
        };
        let ends_at =
            |connection: &Connection| connection.subscription(&channel).map(|held| held.ends_at);
        until_over(watched, held.ends_at, delay, ends_at, end).await;
    });
}

/// Sleeps until the end and `delay` after it, looks whether the end is another one by now, and ends
/// what is over. 0 is no end, `None` means that it is gone already.
async fn until_over(
    watched: Weak<Connection>,
    first: i64,
    delay: Duration,
    ends_at: impl Fn(&Connection) -> Option<i64>,
    end: impl AsyncFnOnce(Arc<Connection>),
) {
    let mut at = first;
    while at > 0 {
        let left = Duration::from_secs(seconds_left(at).into());
        tokio::time::sleep(left + delay).await;
        let Some(connection) = watched.upgrade() else { return };
        match ends_at(&connection) {
            Some(later) if later != at => at = later,
            Some(_) => return end(connection).await,
            None => return,
        }
    }
}
