//! Opens a connection: checks its token, and subscribes it to what the token names.

use std::collections::BTreeMap;
use std::sync::Arc;

use folkmoot_gateway::{Direction, Opening, encode};
use folkmoot_protocol::frame::{
    ConnectRequest, ConnectResult, Error, Outcome, Reply, SubscribeResult,
};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};

use super::{Caller, Refusal, command, expiry, proxied};
use crate::channels::Answer;
use crate::claims::{self, ConnectionClaims, SubClaims};
use crate::connection::{Connection, Reserved};
use crate::proxy::{Connected, Event, Origin};
use crate::server::{Server, seconds_left};
use crate::token::TokenError;

/// Admits the connection, or says with which code to close it.
pub(super) async fn open(
    server: Arc<Server>,
    origin: &Origin,
    direction: Direction,
    opening: Opening,
) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
    let mut origin = origin.clone();
    let headers = opening.request.headers.clone();
    server.proxies.add_emulated(&mut origin, headers);
    let id = server.ids.next();
    // Who only listens has no other secret name by which its backend could mean it.
    let unidirectional = (direction == Direction::ToClient).then(|| server.ids.next());
    let session = opening.session.clone().or(unidirectional);
    let mut claims = match authenticate(&server, &id, &origin, &opening).await {
        Ok(claims) => claims,
        Err(refused) => return Err(refused.tell(direction, &opening).await),
    };
    let by_token = Some(claims.named()).filter(|_| !opening.request.token.is_empty());
    let subs = named(&server, &mut claims, direction, &opening.request)?;
    let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
    let connection = Connection::new(
        id.into(),
        claims.sub.into(),
        info.ok_or(DisconnectCode::InvalidToken)?,
        opening.format,
        opening.outbox,
    );
    let connection = Arc::new(connection.by(origin).known_as(session.clone()));
    connection.set_meta(claims.meta);
    connection.note_named(by_token.unwrap_or_default());
    let ends_at = claims::ends_at(claims.exp, claims.expire_at);
    // Taken before anybody else can find the connection and subscribe it.
    let places = reserve(&server, &connection, &subs)?;
    enter(&server, &connection)?;
    let caller = Arc::new(Caller { server: server.clone(), connection: connection.clone() });
    let subs = subs.into_iter().zip(places);
    let subs = match subscribe(&server, &connection, subs, &opening.request).await {
        Ok(subs) => subs,
        Err(code) => {
            caller.end().await;
            return Err(code);
        }
    };
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
        session: session.unwrap_or_default(),
        ..ConnectResult::default()
    };
    Ok((caller, Reply::ok(opening.id, Outcome::Connect(result))))
}

/// Lets the connection in, or says why its user has too many.
fn enter(server: &Server, connection: &Arc<Connection>) -> Result<(), DisconnectCode> {
    let personal = &server.client.subscribe_to_user_personal_channel;
    if personal.enabled && personal.single_connection && !connection.user.is_empty() {
        for other in server.people.replace(connection) {
            other.outbox.close(DisconnectCode::ConnectionLimit);
        }
        return Ok(());
    }
    match server.people.enter(connection, server.client.user_connection_limit) {
        true => Ok(()),
        false => Err(DisconnectCode::ConnectionLimit),
    }
}

/// What a connection is subscribed to from the start.
fn named(
    server: &Server,
    claims: &mut ConnectionClaims,
    direction: Direction,
    request: &ConnectRequest,
) -> Result<BTreeMap<String, SubClaims>, DisconnectCode> {
    let channels = std::mem::take(&mut claims.channels).into_iter();
    let channels = channels.map(|channel| (channel, SubClaims::default()));
    // What is said of a channel in `subs` counts, also if `channels` names it too.
    let mut subs: BTreeMap<_, _> = channels.chain(std::mem::take(&mut claims.subs)).collect();
    let personal = server.client.subscribe_to_user_personal_channel.of(&claims.sub);
    if let Some(channel) = personal {
        subs.entry(channel).or_default();
    }
    let is_asked = request.token.is_empty() && server.proxies.has(Event::Connect);
    if direction == Direction::ToClient && !is_asked {
        for channel in request.subs.keys() {
            // It cannot subscribe by itself, so it gets here what it might.
            let rule = server.rules.of(channel).map_err(|_| DisconnectCode::BadRequest)?;
            let may_be = rule.may_subscribe(channel, &claims.sub).is_ok();
            if may_be && !rule.asks_to_subscribe(channel) {
                subs.entry(channel.clone()).or_default();
            } else {
                tracing::debug!(%channel, "a client asks for a channel that it may not subscribe");
            }
        }
    }
    Ok(subs)
}

/// Subscribes a connection; what it missed is in the results.
async fn subscribe(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    subs: impl Iterator<Item = ((String, SubClaims), Reserved)>,
    request: &ConnectRequest,
) -> Result<BTreeMap<String, SubscribeResult>, DisconnectCode> {
    let mut results = BTreeMap::new();
    for ((channel, sub), place) in subs {
        let asked = request.subs.get(&channel);
        let since = asked.filter(|asked| asked.recover);
        let since = since.map(|asked| (asked.offset, asked.epoch.clone()));
        let by_server = command::ByServer {
            info: claims::bytes(sub.info.as_deref(), &sub.b64info).unwrap_or_default(),
            data: claims::bytes(sub.data.as_deref(), &sub.b64data).unwrap_or_default(),
            since,
            answer: Answer::Connect,
            place: Some(place),
        };
        let rule = server.rules.of(&channel).and_then(|rule| sub.overrides.over_shared(rule));
        let subscribed = match rule {
            Ok(rule) => {
                let name = Arc::from(channel.as_str());
                command::subscribe_by_server(server, connection, &name, &rule, by_server).await
            }
            Err(error) => Err(error),
        };
        match subscribed {
            Ok(result) => results.extend([(channel, result)]),
            // The backend has taken it back meanwhile, or nobody waits for it any more.
            Err(error) if error.code == ErrorCode::NotAvailable => {}
            Err(error) => return Err(cannot_subscribe(&error, &channel)),
        }
    }
    Ok(results)
}

/// Takes the places of what a connection is subscribed to, in their order.
fn reserve(
    server: &Server,
    connection: &Arc<Connection>,
    subs: &BTreeMap<String, SubClaims>,
) -> Result<Vec<Reserved>, DisconnectCode> {
    let places = subs.keys().map(|channel| {
        let place = command::reserve(server, connection, &Arc::from(channel.as_str()));
        place.map_err(|error| cannot_subscribe(&error, channel))
    });
    places.collect()
}

fn cannot_subscribe(error: &RpcError, channel: &str) -> DisconnectCode {
    tracing::info!(%error, %channel, "a connection cannot be subscribed to a channel");
    match error.code {
        // Its client may come again.
        code if code.is_temporary() => DisconnectCode::ServerError,
        ErrorCode::LimitExceeded => DisconnectCode::ChannelLimit,
        _ => DisconnectCode::InvalidToken,
    }
}

enum Refused {
    Closed(DisconnectCode),
    Expired,
    /// By the backend.
    Asked(Refusal),
}

impl Refused {
    /// Tells the client, and says with which code to close.
    async fn tell(self, direction: Direction, opening: &Opening) -> DisconnectCode {
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
        if direction == Direction::ToClient {
            return without_reply(&error);
        }
        let reply = encode(opening.format, &Reply::failed(opening.id, error));
        opening.outbox.reply(reply).await;
        code
    }
}

/// What an error is for a client that gets no replies.
fn without_reply(error: &Error) -> DisconnectCode {
    match ErrorCode::from_code(error.code) {
        Some(ErrorCode::TokenExpired | ErrorCode::Expired) => DisconnectCode::Expired,
        Some(ErrorCode::TooManyRequests) => DisconnectCode::TooManyRequests,
        Some(ErrorCode::PermissionDenied) => DisconnectCode::PermissionDenied,
        _ => DisconnectCode::ServerError,
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
            if let Some(connected) = connected.map_err(Refused::Asked)? {
                if claims::is_over(Some(connected.expire_at)) {
                    return Err(Refused::Asked(ErrorCode::Expired.into()));
                }
                return Ok(connected.into());
            }
        }
        return match server.client.allow_anonymous_connect_without_token {
            true => Ok(ConnectionClaims::default()),
            false => Err(Refused::Closed(DisconnectCode::BadRequest)),
        };
    }
    connection_claims(server, &request.token).await.map_err(|error| match error {
        TokenError::Unknown => Refused::Asked(ErrorCode::Internal.into()),
        TokenError::Expired => Refused::Expired,
        TokenError::Invalid => Refused::Closed(DisconnectCode::InvalidToken),
    })
}

/// What a connection token says, if it is one.
pub(super) async fn connection_claims(
    server: &Server,
    token: &str,
) -> Result<ConnectionClaims, TokenError> {
    let claims = server.connection_tokens.verify::<ConnectionClaims>(token).await?;
    if !claims.channel.is_empty() {
        // The same key may sign both kinds, and one that opens a channel opens no connection.
        return Err(TokenError::Invalid);
    }
    if claims::is_over(claims.expire_at) {
        return Err(TokenError::Expired);
    }
    Ok(claims)
}

impl From<Connected> for ConnectionClaims {
    fn from(connected: Connected) -> Self {
        let data = connected.data();
        let Connected { user: sub, expire_at, info, b64info, channels, subs, meta, .. } = connected;
        let expire_at = Some(expire_at);
        Self { sub, expire_at, info, b64info, channels, subs, meta, data, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use folkmoot_gateway::Outbox;
    use folkmoot_protocol::Format;

    use super::*;
    use crate::api::on_users;
    use crate::nodes::{UserCommand, Whose};
    use crate::settings::Settings;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_is_unsubscribed_amid_its_connect_command_connects_without_that_channel() {
        let relay = crate::start(Settings::default(), SocketAddr::from(([127, 0, 0, 1], 0)));
        let relay = relay.await.unwrap();
        let server = relay.server();
        let outbox = Arc::new(Outbox::new(10_000));
        let connection =
            Connection::new("one".into(), "42".into(), Bytes::new(), Format::Json, outbox);
        let connection = Arc::new(connection);
        let subs = ["gone", "stays"].map(|channel| (channel.to_owned(), SubClaims::default()));
        let subs = BTreeMap::from(subs);
        let places = reserve(server, &connection, &subs).unwrap();
        enter(server, &connection).unwrap();
        let (text, spared) = (String::new, Vec::new());
        let whose = Whose { user: "42".to_owned(), client: text(), session: text(), spared };
        let command = UserCommand::Unsubscribe { whose, channel: "gone".into() };
        on_users(server, command).await.unwrap();
        let subs = subs.into_iter().zip(places);
        let results = subscribe(server, &connection, subs, &ConnectRequest::default()).await;
        assert_eq!(results.unwrap().into_keys().collect::<Vec<_>>(), ["stays"]);
        relay.stop().await;
    }
}
