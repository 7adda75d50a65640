//! Opens a connection: checks its token, and subscribes it to what the token names.

use std::collections::BTreeMap;
use std::sync::Arc;

use folkmoot_gateway::{Opening, encode};
use folkmoot_protocol::frame::{ConnectResult, Outcome, Reply};
use folkmoot_protocol::{DisconnectCode, ErrorCode};

use super::{Caller, Refusal, command, expiry, proxied};
use crate::channels::Answer;
use crate::claims::{self, ConnectionClaims, SubClaims};
use crate::connection::Connection;
use crate::proxy::{Connected, Event, Origin};
use crate::server::{Server, seconds_left};
use crate::token::TokenError;

/// Admits the connection, or says with which code to close it.
pub(super) async fn open(
    server: Arc<Server>,
    origin: &Origin,
    opening: Opening,
) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
    let mut origin = origin.clone();
    let headers = opening.request.headers.clone();
    server.proxies.add_emulated(&mut origin, headers);
    let id = server.ids.next();
    let claims = match authenticate(&server, &id, &origin, &opening).await {
        Ok(claims) => claims,
        Err(refused) => return Err(refused.tell(&opening).await),
    };
    let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
    let connection = Connection::new(
        id.into(),
        claims.sub.into(),
        info.ok_or(DisconnectCode::InvalidToken)?,
        opening.format,
        opening.outbox,
    );
    let connection = Arc::new(connection.by(origin));
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
    let asks = server.proxies.has(Event::Refresh);
    let result = ConnectResult {
        client: connection.id.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Where the backend is asked, the client need not ask for more time.
        expires: ends_at > 0 && !asks,
        ttl: if asks { 0 } else { seconds_left(ends_at) },
        data: claims.data,
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
    /// By the backend.
    Asked(Refusal),
}

impl Refused {
    /// Tells the client, and says with which code to close.
    async fn tell(self, opening: &Opening) -> DisconnectCode {
        let (error, code) = match self {
            Self::Closed(code) => return code,
            Self::Asked(Refusal::Disconnect(close)) => {
                // The first reason is the one that is told.
                opening.outbox.close(close);
                return DisconnectCode::ConnectionClosed;
            }
            Self::Asked(Refusal::Error(error)) => (error, DisconnectCode::ConnectionClosed),
            // Its client gets a new one and comes again.
            Self::Expired => (ErrorCode::TokenExpired.into(), DisconnectCode::Expired),
        };
        let reply = encode(opening.format, &Reply::failed(opening.id, error));
        opening.outbox.reply(reply).await;
        code
    }
}

async fn authenticate(
    server: &Server,
    id: &str,
    origin: &Origin,
    opening: &Opening,
) -> Result<ConnectionClaims, Refused> {
    let Opening { request, format, .. } = opening;
    if request.token.is_empty() {
        if server.proxies.has(Event::Connect) {
            let connected = proxied::connect(server, id, *format, origin, request).await;
            return connected.map(ConnectionClaims::from).map_err(Refused::Asked);
        }
        return match server.client.allow_anonymous_connect_without_token {
            true => Ok(ConnectionClaims::default()),
            false => Err(Refused::Closed(DisconnectCode::BadRequest)),
        };
    }
    let claims = server.connection_tokens.verify(&request.token).await;
    claims.map_err(|error| match error {
        TokenError::Unknown => Refused::Asked(ErrorCode::Internal.into()),
        TokenError::Expired => Refused::Expired,
        TokenError::Invalid => Refused::Closed(DisconnectCode::InvalidToken),
    })
}

impl From<Connected> for ConnectionClaims {
    fn from(connected: Connected) -> Self {
        let data = connected.data();
        let Connected { user, expire_at, info, b64info, channels, subs, .. } = connected;
        let expire_at = Some(expire_at);
        Self { sub: user, expire_at, info, b64info, channels, subs, data, ..Self::default() }
    }
}
