//! What the server API does to those of a user's connections that came to this node.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_gateway::Close;
use folkmoot_protocol::frame::{PushKind, Refresh, Unsubscribe};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};
use futures_util::future::join_all;

use super::method::Subscription;
use crate::channels::{Answer, ChannelsCalls};
use crate::connection::Connection;
use crate::nodes::{UserCommand, Whose};
use crate::payload::Encoded;
use crate::rules::Rule;
use crate::server::{Server, seconds_left, unavailable};
use crate::session::{ByServer, end_connection_at, end_subscription_at, subscribe_by_server};

/// The SDKs do not subscribe again by themselves after a code below 2500.
const UNSUBSCRIBED_BY_SERVER: u32 = 2000;

/// Does what is asked to those that are here.
pub(crate) async fn on_users(server: &Arc<Server>, command: UserCommand) -> Result<(), RpcError> {
    match command {
        UserCommand::Subscribe { whose, subscription } => {
            subscribe(server, &whose, &subscription).await
        }
        UserCommand::Unsubscribe { whose, channel } => unsubscribe(server, &whose, &channel).await,
        UserCommand::Disconnect { whose, code, reason } => {
            let close = Close { code, reason: reason.into() };
            for connection in connections(server, &whose) {
                connection.outbox.close(close.clone());
            }
            Ok(())
        }
        UserCommand::Refresh { whose, expired, expire_at, info } => {
            refresh(server, &whose, (expired, expire_at, info));
            Ok(())
        }
    }
}

fn connections(server: &Server, whose: &Whose) -> Vec<Arc<Connection>> {
    let mut connections = server.people.of(&whose.user, &whose.client, &whose.session);
    connections.retain(|one| !whose.spared.iter().any(|spared| **spared == *one.id));
    connections
}

async fn subscribe(
    server: &Arc<Server>,
    whose: &Whose,
    asked: &Subscription,
) -> Result<(), RpcError> {
    let rule = asked.overrides.over(server.rules.of(&asked.channel)?)?;
    let rule = &rule;
    each(connections(server, whose), |connection| async move {
        subscribe_one(server, &connection, rule, asked).await
    })
    .await
}

/// Does something to each, whatever comes of it for the others; the first error counts.
async fn each<F: Future<Output = Result<(), RpcError>>>(
    connections: Vec<Arc<Connection>>,
    work: impl Fn(Arc<Connection>) -> F,
) -> Result<(), RpcError> {
    join_all(connections.into_iter().map(work)).await.into_iter().collect()
}

async fn subscribe_one(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    rule: &Rule,
    asked: &Subscription,
) -> Result<(), RpcError> {
    let since = asked.since.as_ref();
    let by_server = ByServer {
        info: asked.info.clone(),
        data: asked.data.clone(),
        since: since.map(|since| (since.offset, since.epoch.clone())),
        answer: Answer::Push,
        place: None,
    };
    let channel = Arc::from(asked.channel.as_str());
    match subscribe_by_server(server, connection, &channel, rule, by_server).await {
        Ok(_) => end_subscription_at(server, connection, &channel, asked.ends_at),
        Err(error) => match error.code {
            // It has what was wanted for it, but for another end.
            ErrorCode::AlreadySubscribed if asked.ends_at != 0 => {
                end_subscription_at(server, connection, &channel, asked.ends_at);
            }
            // Or it ends.
            ErrorCode::AlreadySubscribed | ErrorCode::NotAvailable => {}
            // It must not go on without what its backend takes it to have.
            ErrorCode::LimitExceeded => connection.outbox.close(DisconnectCode::ChannelLimit),
            _ => return Err(error),
        },
    }
    Ok(())
}

async fn unsubscribe(server: &Server, whose: &Whose, channel: &Arc<str>) -> Result<(), RpcError> {
    each(connections(server, whose), |connection| async move {
        connection.take_back(channel);
        let reason = "server unsubscribe".to_owned();
        let why = Unsubscribe { code: UNSUBSCRIBED_BY_SERVER, reason };
        let expelled = server.hub.of(channel).expel(channel.clone(), connection.id.clone(), why);
        expelled.await.map(drop).map_err(|error| unavailable(&error))
    })
    .await
}

fn refresh(
    server: &Arc<Server>,
    whose: &Whose,
    (expired, expire_at, info): (bool, i64, Option<Bytes>),
) {
    for connection in connections(server, whose) {
        if expired || expire_at > 0 && seconds_left(expire_at) == 0 {
            connection.outbox.close(DisconnectCode::Expired);
            continue;
        }
        if let Some(info) = &info {
            connection.set_info(info.clone());
        }
        end_connection_at(server, &connection, expire_at);
        let refresh =
            PushKind::Refresh(Refresh { expires: expire_at > 0, ttl: seconds_left(expire_at) });
        connection.push(Encoded::new(&Arc::from(""), refresh).bytes(connection.format));
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use folkmoot_gateway::Outbox;
    use folkmoot_protocol::Format;
    use futures_util::FutureExt;

    use super::*;
    use crate::overrides::Overrides;
    use crate::server::now_ms;
    use crate::settings::Settings;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_subscription_ends_though_nobody_waits_any_more_until_it_is_made() {
        let settings = r#"{ "client": { "expired_sub_close_delay": "0s" } }"#;
        let settings = Settings::from_json(settings).unwrap();
        let relay = crate::start(settings, SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let server = relay.server();
        let outbox = Arc::new(Outbox::new(10_000));
        let connection =
            Connection::new("one".into(), "42".into(), Bytes::new(), Format::Json, outbox);
        let connection = Arc::new(connection);
        assert!(server.people.enter(&connection, 10));
        let (text, spared) = (String::new, Vec::new());
        let whose = Whose { user: "42".to_owned(), client: text(), session: text(), spared };
        let subscription = Subscription {
            channel: "news".to_owned(),
            info: Bytes::new(),
            data: Bytes::new(),
            since: None,
            ends_at: now_ms() / 1_000 + 2,
            overrides: Overrides::default(),
        };
        let command = UserCommand::Subscribe { whose, subscription };
        let mut asking = Box::pin(command.run_everywhere(server));
        assert!(asking.as_mut().now_or_never().is_none());
        let made_and_ended = async {
            while !connection.is_subscribed("news") {
                tokio::task::yield_now().await;
            }
            drop(asking);
            while connection.is_subscribed("news") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, made_and_ended).await.expect("it has no end");
        relay.stop().await;
    }
}
