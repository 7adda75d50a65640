//! Opens a connection: checks its token, and subscribes it to what the token names.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use folkmoot_gateway::{Opening, encode};
use folkmoot_protocol::frame::{ConnectResult, Outcome, Reply};
use folkmoot_protocol::{DisconnectCode, ErrorCode};

use super::{Caller, command, expiry};
use crate::channels::Answer;
use crate::claims::{self, ConnectionClaims, SubClaims};
use crate::connection::Connection;
use crate::server::{Server, seconds_left};
use crate::token::TokenError;

/// Admits the connection, or says with which code to close it.
pub(super) async fn open(
    server: Arc<Server>,
    opening: Opening,
) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
    let claims = match authenticate(&server, &opening.request.token) {
        Ok(claims) => claims,
        Err(Refused::Closed(code)) => return Err(code),
        Err(Refused::Expired) => {
            // Its client gets a new one and comes again.
            let reply = Reply::failed(opening.id, ErrorCode::TokenExpired);
            opening.outbox.reply(encode(opening.format, &reply)).await;
            return Err(DisconnectCode::Expired);
        }
    };
    let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
    let connection = Arc::new(Connection::new(
        server.ids.next().into(),
        claims.sub.into(),
        info.ok_or(DisconnectCode::InvalidToken)?,
        opening.format,
        opening.outbox,
    ));
    let ends_at = claims::ends_at(claims.exp, claims.expire_at);
    if !server.people.enter(&connection, server.client.user_connection_limit) {
        return Err(DisconnectCode::ConnectionLimit);
    }
    let caller = Arc::new(Caller { server: server.clone(), connection: connection.clone() });
    let named = claims.channels.into_iter().map(|channel| (channel, SubClaims::default()));
    let mut subs = BTreeMap::new();
    // What is said of a channel in `subs` counts, also if `channels` names it too.
    for (channel, sub) in named.chain(claims.subs).collect::<BTreeMap<_, _>>() {
        let asked = opening.request.subs.get(&channel);
        let since = asked.filter(|asked| asked.recover);
        let since = since.map(|asked| (asked.offset, asked.epoch.clone()));
        let by_server = command::ByServer {
            info: claims::bytes(sub.info.as_deref(), &sub.b64info).unwrap_or_default(),
            data: claims::bytes(sub.data.as_deref(), &sub.b64data).unwrap_or_default(),
            since,
            answer: Answer::Connect,
        };
        match command::subscribe_by_server(&server, &connection, &channel, by_server).await {
            Ok(result) => subs.extend([(channel, result)]),
            Err(error) => {
                tracing::info!(%error, %channel, "a token names a channel that cannot be subscribed");
                caller.end().await;
                return Err(DisconnectCode::InvalidToken);
            }
        }
    }
    expiry::end_connection_at(&server, &connection, ends_at);
    let result = ConnectResult {
        client: connection.id.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        expires: ends_at > 0,
        ttl: seconds_left(ends_at),
        data: Bytes::new(),
        subs,
        ping: u32::try_from(server.client.ping_interval.0.as_secs()).unwrap_or(u32::MAX),
        pong: true,
        ..ConnectResult::default()
    };
    Ok((caller, Reply::ok(opening.id, Outcome::Connect(result))))
}

enum Refused {
    Closed(DisconnectCode),
    Expired,
}

fn authenticate(server: &Server, token: &str) -> Result<ConnectionClaims, Refused> {
    if token.is_empty() {
        return match server.client.allow_anonymous_connect_without_token {
            true => Ok(ConnectionClaims::default()),
            false => Err(Refused::Closed(DisconnectCode::BadRequest)),
        };
    }
    server.connection_tokens.verify(token).map_err(|error| match error {
        TokenError::Expired => Refused::Expired,
        TokenError::Invalid => Refused::Closed(DisconnectCode::InvalidToken),
    })
}
