//! Answers the commands of an open connection.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::frame::{
    Error, FilterNode, HistoryRequest, Outcome, PingResult, PublishRequest, PublishResult,
    RefreshRequest, RefreshResult, Reply, Request, SubRefreshRequest, SubRefreshResult,
    SubscribeRequest, SubscribeResult, UnsubscribeResult,
};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};

use super::opening::connection_claims;
use super::{Caller, Refusal, expiry, proxied};
use crate::channels::{Answer, ChannelsCalls, Join, NotMade, Post};
use crate::claims::{self, SubscriptionClaims};
use crate::connection::{Connection, Full, Reserved};
use crate::payload::Payload;
use crate::question;
use crate::rules::{Action, Asker, Rule};
use crate::server::{Server, not_published, now_ms, seconds_left, unavailable};
use crate::tags::Filter;
use crate::token::TokenError;

/// Answers a command. `None`: its reply is queued already.
pub(super) async fn answer(caller: &Caller, id: u32, request: Request) -> Option<Reply> {
    let outcome = match request {
        Request::Subscribe(request) => match subscribe(caller, id, request).await {
            Ok(()) => return None,
            Err(refusal) => Err(refusal),
        },
        Request::Unsubscribe(request) => {
            unsubscribe(caller, request.channel.into()).await.map_err(Refusal::from)
        }
        Request::Publish(request) => publish(caller, request).await,
        Request::History(request) => history(caller, request).await.map_err(Refusal::from),
        Request::Presence(request) => {
            presence(caller, request.channel.into()).await.map_err(Refusal::from)
        }
        Request::PresenceStats(request) => {
            presence_stats(caller, request.channel.into()).await.map_err(Refusal::from)
        }
        Request::Ping(_) => Ok(Outcome::Ping(PingResult {})),
        Request::Rpc(request) => proxied::rpc(caller, &request).await.map(Outcome::Rpc),
        Request::Refresh(request) => match refresh(caller, &request).await {
            Ok(outcome) => outcome.map_err(Refusal::from),
            Err(code) => Err(Refusal::Disconnect(code.into())),
        },
        Request::SubRefresh(request) => sub_refresh(caller, request).await.map_err(not_renewed),
        Request::Connect(_) | Request::Send(_) => Err(ErrorCode::BadRequest.into()),
    };
    Some(match outcome {
        Ok(outcome) => Reply::ok(id, outcome),
        Err(Refusal::Error(error)) => Reply::failed(id, error),
        Err(Refusal::Disconnect(close)) => {
            caller.connection.outbox.close(close);
            return None;
        }
    })
}

/// A subscription whose token is over goes on until its own end, and may be renewed with another one:
/// after an error that is not a temporary one, its client would be without it for good.
fn not_renewed(error: RpcError) -> Refusal {
    let is_over = error.code == ErrorCode::TokenExpired;
    let error = Error::from(error);
    Refusal::Error(Error { temporary: error.temporary || is_over, ..error })
}

/// How the server subscribes a connection.
#[derive(Debug)]
pub(crate) struct ByServer {
    pub(crate) info: Bytes,
    pub(crate) data: Bytes,
    pub(crate) since: Option<(u64, String)>,
    pub(crate) answer: Answer,
    /// Its place in the connection; `None`: it is taken now.
    pub(crate) place: Option<Reserved>,
}

/// Subscribes a connection without being asked by it.
pub(crate) async fn subscribe_by_server(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    channel: &Arc<str>,
    rule: &Rule,
    by_server: ByServer,
) -> Result<SubscribeResult, RpcError> {
    let ByServer { info, data, since, answer, place } = by_server;
    let result = SubscribeResult {
        positioned: rule.is_positioned(false),
        recoverable: rule.is_recoverable(false),
        data,
        ..SubscribeResult::default()
    };
    let (needs_all, wants_comings, filter) = (false, false, None);
    let wanted = Wanted { info, since, needs_all, wants_comings, filter, result, answer, place };
    join(server, connection, channel.clone(), rule, wanted).await
}

/// The part of a subscription that differs between who asks for it.
struct Wanted {
    info: Bytes,
    since: Option<(u64, String)>,
    /// Whether it wants no subscription without what it missed.
    needs_all: bool,
    wants_comings: bool,
    filter: Option<Box<Filter>>,
    result: SubscribeResult,
    answer: Answer,
    place: Option<Reserved>,
}

/// Takes the place of a subscription in a connection, or says why it gets none.
pub(super) fn reserve(
    server: &Server,
    connection: &Arc<Connection>,
    channel: &Arc<str>,
) -> Result<Reserved, RpcError> {
    let limit = server.client.channel_limit;
    connection.reserve(channel, limit).map_err(|full| match full {
        Full::Already => ErrorCode::AlreadySubscribed.into(),
        Full::Ended => ErrorCode::NotAvailable.into(),
        Full::TooMany => {
            RpcError::new(ErrorCode::LimitExceeded, format!("channel_limit is {limit}"))
        }
    })
}

async fn join(
    server: &Arc<Server>,
    connection: &Arc<Connection>,
    channel: Arc<str>,
    rule: &Rule,
    wanted: Wanted,
) -> Result<SubscribeResult, RpcError> {
    let Wanted { info, since, needs_all, wants_comings, filter, result, answer, place } = wanted;
    let reserved = match place {
        Some(reserved) => reserved,
        None => reserve(server, connection, &channel)?,
    };
    let join = Join {
        channel: channel.clone(),
        connection: connection.clone(),
        info,
        has_presence: rule.has_presence(),
        tells_coming: rule.tells_comings(),
        wants_comings: rule.wants_comings(wants_comings),
        keep: rule.keep(),
        since,
        recovery_limit: server.rules.recovery_limit,
        recovers_newest: rule.recovers_newest(),
        needs_all,
        filter,
        result,
        answer,
    };
    let joined = server.hub.join(join).await;
    drop(reserved);
    joined.map_err(|error| unavailable(&error))?.map_err(RpcError::from)
}

impl From<NotMade> for RpcError {
    fn from(why: NotMade) -> Self {
        Self::from(match why {
            NotMade::Unwanted => ErrorCode::NotAvailable,
            NotMade::GivenUp => ErrorCode::TooManyRequests,
            NotMade::Unrecoverable => ErrorCode::UnrecoverablePosition,
        })
    }
}

async fn subscribe(caller: &Caller, id: u32, mut request: SubscribeRequest) -> Result<(), Refusal> {
    let Caller { server, connection } = caller;
    let mut rule = server.rules.of(&request.channel)?.clone();
    let filter = filter(&rule, request.tf.take())?;
    let (info, data, ends_at) = match request.token.as_str() {
        "" if rule.asks_to_subscribe(&request.channel) => {
            rule.fits(&request.channel)?;
            let answer = proxied::subscribe(caller, &request).await?;
            if claims::is_over(Some(answer.expire_at)) {
                return Err(ErrorCode::Expired.into());
            }
            rule = answer.overrides.over_shared(&rule)?;
            (answer.info(), answer.data(), answer.expire_at)
        }
        "" => {
            rule.may_subscribe(&request.channel, &connection.user)?;
            (Bytes::new(), Bytes::new(), 0)
        }
        token => {
            rule.fits(&request.channel)?;
            let claims = subscription_claims(caller, token, &request.channel).await?;
            let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
            let info = info.ok_or(ErrorCode::PermissionDenied)?;
            rule = claims.overrides.over_shared(&rule)?;
            (info, Bytes::new(), claims::ends_at(claims.exp, claims.expire_at))
        }
    };
    let asks = rule.asks_to_renew();
    let positioned = rule.is_positioned(request.positioned);
    let recoverable = rule.is_recoverable(request.recoverable || request.recover);
    let result = SubscribeResult {
        // Where the backend is asked, the client need not ask for more time.
        expires: ends_at > 0 && !asks,
        ttl: if asks { 0 } else { seconds_left(ends_at) },
        data,
        positioned,
        recoverable,
        delta: rule.gives_deltas(&request.delta, positioned || recoverable),
        ..SubscribeResult::default()
    };
    let wanted = Wanted {
        info,
        since: request.recover.then(|| (request.offset, request.epoch.clone())),
        needs_all: request.flag & SubscribeRequest::REJECT_UNRECOVERED != 0,
        wants_comings: request.join_leave,
        filter,
        result,
        answer: Answer::Reply(id),
        place: None,
    };
    let channel: Arc<str> = request.channel.into();
    join(server, connection, channel.clone(), &rule, wanted).await?;
    expiry::end_subscription_at(server, connection, &channel, ends_at);
    Ok(())
}

/// Which publications a client wants, as it says.
fn filter(rule: &Rule, asked: Option<FilterNode>) -> Result<Option<Box<Filter>>, RpcError> {
    let Some(asked) = asked else { return Ok(None) };
    let wrong = |text| RpcError::new(ErrorCode::BadRequest, format!("tf: {text}"));
    if !rule.takes_filters() {
        return Err(wrong("allow_tags_filter is off".to_owned()));
    }
    let filter = Filter::new(asked).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(Box::new(filter)))
}

/// What a subscription token says, if it is for this connection and this channel.
async fn subscription_claims(
    caller: &Caller,
    token: &str,
    channel: &str,
) -> Result<SubscriptionClaims, RpcError> {
    let claims = caller.server.subscription_tokens.verify::<SubscriptionClaims>(token).await;
    let claims = claims.map_err(|error| match error {
        TokenError::Expired => RpcError::from(ErrorCode::TokenExpired),
        TokenError::Unknown => RpcError::from(ErrorCode::Internal),
        TokenError::Invalid => RpcError::new(ErrorCode::PermissionDenied, "token is invalid"),
    })?;
    let Connection { user, id, .. } = &*caller.connection;
    let is_for_it = claims.client.is_empty() || claims.client == **id;
    if claims.channel != channel || claims.sub != **user || !is_for_it {
        let text = "token is for another channel, user or connection";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    if claims::is_over(claims.expire_at) {
        return Err(ErrorCode::TokenExpired.into());
    }
    Ok(claims)
}

async fn unsubscribe(caller: &Caller, channel: Arc<str>) -> Result<Outcome, RpcError> {
    let Caller { server, connection } = caller;
    server.rules.of(&channel)?;
    connection.take_back(&channel);
    let parted = server.hub.of(&channel).part(channel.clone(), connection.id.clone()).await;
    parted.map_err(|error| unavailable(&error))?;
    Ok(Outcome::Unsubscribe(UnsubscribeResult {}))
}

/// Whether the caller may do something in a channel; its rule.
fn allowed(caller: &Caller, channel: &str, action: Action) -> Result<Arc<Rule>, RpcError> {
    let Caller { server, connection } = caller;
    let rule = server.rules.of(channel)?;
    rule.fits(channel)?;
    let is_subscribed = connection.is_subscribed(channel);
    rule.may(action, Asker { user: &connection.user, is_subscribed })?;
    Ok(rule.clone())
}

async fn publish(caller: &Caller, request: PublishRequest) -> Result<Outcome, Refusal> {
    let Caller { server, connection } = caller;
    let rule = server.rules.of(&request.channel)?;
    if request.data.is_empty() {
        return Err(RpcError::new(ErrorCode::BadRequest, "data is empty").into());
    }
    let (data, keep) = match rule.asks_to_publish() {
        false => {
            allowed(caller, &request.channel, Action::Publish)?;
            (request.data, rule.keep())
        }
        true => {
            rule.fits(&request.channel)?;
            let answer = proxied::publish(caller, &request).await?;
            let data = Some(answer.data()).filter(|data| !data.is_empty());
            (data.unwrap_or(request.data), rule.keep().filter(|_| !answer.skip_history))
        }
    };
    let payload = Payload {
        data,
        info: Some(connection.seen(&Bytes::new())),
        time: now_ms(),
        ..Payload::default()
    };
    let may_be_delta = rule.publishes_deltas();
    let payload = Arc::new(payload);
    let post = Post { payload, keep, key: None, row: None, version: None, may_be_delta };
    let published = server.hub.publish(request.channel.into(), post).await;
    let published = published.map_err(|refused| not_published(&refused));
    server.metrics.by_clients.count(&published);
    published?;
    Ok(Outcome::Publish(PublishResult {}))
}

async fn history(caller: &Caller, request: HistoryRequest) -> Result<Outcome, RpcError> {
    let rule = allowed(caller, &request.channel, Action::History)?;
    question::history(&caller.server, &rule, &request).await.map(Outcome::History)
}

async fn presence(caller: &Caller, channel: Arc<str>) -> Result<Outcome, RpcError> {
    allowed(caller, &channel, Action::Presence)?;
    question::presence(&caller.server, channel).await.map(Outcome::Presence)
}

async fn presence_stats(caller: &Caller, channel: Arc<str>) -> Result<Outcome, RpcError> {
    allowed(caller, &channel, Action::Presence)?;
    question::presence_stats(&caller.server, channel).await.map(Outcome::PresenceStats)
}

/// Takes a token of the same user for the rest of the connection; any other ends it.
async fn refresh(
    caller: &Caller,
    request: &RefreshRequest,
) -> Result<Result<Outcome, RpcError>, DisconnectCode> {
    let Caller { server, connection } = caller;
    let claims = match connection_claims(server, &request.token).await {
        Ok(claims) => claims,
        // After an error, its client would be gone for good; so it comes again with a new one.
        Err(TokenError::Expired) => return Err(DisconnectCode::Expired),
        Err(TokenError::Unknown) => return Ok(Err(ErrorCode::Internal.into())),
        Err(TokenError::Invalid) => return Err(DisconnectCode::InvalidToken),
    };
    if claims.sub != *connection.user {
        return Err(DisconnectCode::InvalidToken);
    }
    let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
    let info = info.ok_or(DisconnectCode::InvalidToken)?;
    if connection.differs(&claims.named()) {
        // It connects with this token, and is subscribed to what that names.
        return Err(DisconnectCode::InsufficientState);
    }
    if !info.is_empty() {
        connection.set_info(info);
    }
    if claims.meta.is_some() {
        connection.set_meta(claims.meta);
    }
    let ends_at = claims::ends_at(claims.exp, claims.expire_at);
    expiry::end_connection_at(server, connection, ends_at);
    Ok(Ok(Outcome::Refresh(RefreshResult {
        client: connection.id.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        expires: ends_at > 0,
        ttl: seconds_left(ends_at),
    })))
}

async fn sub_refresh(caller: &Caller, request: SubRefreshRequest) -> Result<Outcome, RpcError> {
    let Caller { server, connection } = caller;
    let claims = subscription_claims(caller, &request.token, &request.channel).await?;
    let channel: Arc<str> = request.channel.into();
    if !connection.is_subscribed(&channel) {
        return Err(RpcError::new(ErrorCode::PermissionDenied, "not subscribed to this channel"));
    }
    let info = claims::bytes(claims.info.as_deref(), &claims.b64info);
    let info = info.ok_or(ErrorCode::PermissionDenied)?;
    if !info.is_empty() {
        expiry::inform(server, connection, &channel, info).await;
    }
    let ends_at = claims::ends_at(claims.exp, claims.expire_at);
    expiry::end_subscription_at(server, connection, &channel, ends_at);
    Ok(Outcome::SubRefresh(SubRefreshResult { expires: ends_at > 0, ttl: seconds_left(ends_at) }))
}
