//! Answers the commands of the client protocol: subscribing, publishing, history, presence, rpc.

use folkmoot_gateway::encode;
use folkmoot_protocol::frame::{
    HistoryRequest, HistoryResult, Outcome, PingResult, PresenceResult, PresenceStatsResult,
    PublishRequest, PublishResult, RefreshRequest, RefreshResult, Reply, Request, RpcRequest,
    RpcResult, SubRefreshRequest, SubRefreshResult, SubscribeRequest, UnsubscribeResult,
};
use folkmoot_protocol::rpc::{
    self as methods, Empty, MessageSend, PresenceWatch, RoomPublish, Rpc, RpcError, encode_payload,
};
use folkmoot_protocol::{Channel, DisconnectCode, ErrorCode, RoomId};

use super::{Caller, Comings, SessionCalls};
use crate::account::token::Token;
use crate::chat::{self, failure};
use crate::room::Screen;
use crate::storage::Offset;
use crate::stream::Since;
use crate::user::UserCalls;
use crate::wire;

/// Events in one `history` reply; a client pages on from there.
const HISTORY_EVENTS_MAX: u32 = 1_000;
/// The kind of deltas that the SDKs know. Asking for it is no error: the answer says that there
/// are none, and publications come whole.
const KNOWN_DELTA: &str = "fossil";

/// Runs a command. `None`: its reply is out already.
pub(crate) async fn run(caller: &Caller, id: u32, request: Request) -> Option<Reply> {
    let outcome = match request {
        Request::Subscribe(request) => match subscribe(caller, id, request).await {
            Ok(()) => return None,
            Err(error) => Err(error),
        },
        Request::Unsubscribe(request) => match parse(&request.channel) {
            Ok(channel) => unsubscribe(caller, channel).await,
            Err(error) => Err(error),
        },
        Request::Publish(request) => publish(caller, request).await,
        Request::Presence(request) => presence(caller, &request.channel).await,
        Request::PresenceStats(request) => presence_stats(caller, &request.channel).await,
        Request::History(request) => Box::pin(history(caller, request)).await,
        Request::Ping(_) => Ok(Outcome::Ping(PingResult {})),
        Request::Rpc(request) => call(caller, &request).await,
        Request::Refresh(request) => match Box::pin(refresh(caller, &request)).await {
            Ok(result) => result,
            Err(code) => {
                caller.outbox.close(code);
                return None;
            }
        },
        Request::SubRefresh(request) => sub_refresh(caller, &request).await,
        Request::Connect(_) | Request::Send(_) => Err(ErrorCode::BadRequest.into()),
    };
    Some(match outcome {
        Ok(outcome) => Reply::ok(id, outcome),
        Err(error) => Reply::failed(id, error),
    })
}

fn parse(channel: &str) -> Result<Channel, RpcError> {
    channel.parse().map_err(|error| RpcError::new(ErrorCode::UnknownChannel, format!("{error}")))
}

fn parse_room(channel: &str) -> Result<RoomId, RpcError> {
    match parse(channel)? {
        Channel::Room(room) => Ok(room),
        Channel::User(_) => Err(RpcError::new(
            ErrorCode::NotAvailable,
            "a user's channel offers no publishing and no presence",
        )),
    }
}

async fn subscribe(caller: &Caller, id: u32, request: SubscribeRequest) -> Result<(), RpcError> {
    caller.identity.count(|limits| &limits.subscriptions)?;
    if request.tf.is_some() {
        let text = "tf: events here have no tags to filter by";
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    if !request.delta.is_empty() && request.delta != KNOWN_DELTA {
        let text = format!("delta: no kind of deltas is called {}", request.delta);
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let room = match parse(&request.channel)? {
        Channel::Room(room) => room,
        // One's own stream is subscribed by the server, anybody else's is private.
        Channel::User(user) if user == caller.identity.user => {
            return Err(ErrorCode::AlreadySubscribed.into());
        }
        Channel::User(_) => return Err(ErrorCode::PermissionDenied.into()),
    };
    let channel = Channel::Room(room);
    let comings = match request.join_leave {
        true => Comings::Wanted,
        false => Comings::Unwanted,
    };
    caller.session.join(channel, comings).await.map_err(|error| failure(&error))??;
    let server = &caller.identity.server;
    if let Err(error) = server.heard(channel).await {
        tracing::warn!(%channel, %error, "other nodes do not hear of a subscriber");
        let _ = caller.session.leave(channel).await;
        return Err(ErrorCode::Internal.into());
    }
    let since = request
        .recover
        .then(|| Since { offset: Offset::from_u64(request.offset), epoch: request.epoch.clone() });
    let client = caller.online.clone();
    let attached = match chat::room_answer(server.asked(room).attach(client, since).await) {
        Ok(attached) => attached,
        Err(error) => {
            let _ = caller.session.leave(channel).await;
            return Err(error);
        }
    };
    let position = attached.offset;
    let result = attached.into_result(server.epoch());
    let reply = Reply::ok(id, Outcome::Subscribe(result));
    caller.outbox.reply(encode(caller.format, &reply)).await;
    // Only now, so that no publication overtakes the reply.
    caller.session.go_live(channel, position).await.map_err(|error| failure(&error))
}

async fn unsubscribe(caller: &Caller, channel: Channel) -> Result<Outcome, RpcError> {
    caller.identity.count(|limits| &limits.subscriptions)?;
    if matches!(channel, Channel::User(_)) {
        return Err(ErrorCode::PermissionDenied.into());
    }
    caller.session.leave(channel).await.map_err(|error| failure(&error))?;
    Ok(Outcome::Unsubscribe(UnsubscribeResult {}))
}

/// Takes a token of the same user for the rest of the connection; any other ends it.
async fn refresh(
    caller: &Caller,
    request: &RefreshRequest,
) -> Result<Result<Outcome, RpcError>, DisconnectCode> {
    if request.token.is_empty() {
        return Err(DisconnectCode::BadRequest);
    }
    if let Err(refused) = caller.identity.count(|limits| &limits.questions) {
        return Ok(Err(refused));
    }
    let token = Token::parse(&request.token).ok_or(DisconnectCode::InvalidToken)?;
    let found = match caller.identity.server.signed_in(&token).await {
        Ok(found) => found,
        Err(error) => return Ok(Err(chat::read_failure(&error))),
    };
    if found.is_none_or(|signed_in| signed_in.account.id != caller.identity.user) {
        return Err(DisconnectCode::InvalidToken);
    }
    let (client, version) =
        (caller.online.client.to_string(), env!("CARGO_PKG_VERSION").to_owned());
    Ok(Ok(Outcome::Refresh(RefreshResult { client, version, ..RefreshResult::default() })))
}

/// Subscriptions last as long as the membership, so there is nothing to renew; but the SDKs ask.
async fn sub_refresh(caller: &Caller, request: &SubRefreshRequest) -> Result<Outcome, RpcError> {
    caller.identity.count(|limits| &limits.subscriptions)?;
    let channel = parse(&request.channel)?;
    let has_joined = caller.session.has_joined(channel).await.map_err(|error| failure(&error))?;
    match has_joined {
        true => Ok(Outcome::SubRefresh(SubRefreshResult::default())),
        false => Err(RpcError::new(ErrorCode::PermissionDenied, "not subscribed to this channel")),
    }
}

async fn publish(caller: &Caller, request: PublishRequest) -> Result<Outcome, RpcError> {
    let room = parse_room(&request.channel)?;
    let RoomPublish { key, body, reply_to, attachments } = methods::decode_request(&request.data)?;
    // Without a key it is a message of its own, however often the same words come.
    let key = key.unwrap_or_default();
    let message = MessageSend { room, key, body, reply_to, attachments };
    chat::messages::send(&caller.identity, message).await?;
    Ok(Outcome::Publish(PublishResult {}))
}

async fn presence(caller: &Caller, channel: &str) -> Result<Outcome, RpcError> {
    caller.identity.count(|limits| &limits.questions)?;
    let room = caller.identity.server.asked(parse_room(channel)?);
    let online = chat::room_answer(room.presence(caller.identity.user).await)?;
    let presence = online.iter().map(|online| (online.client.to_string(), online.info())).collect();
    Ok(Outcome::Presence(PresenceResult { presence }))
}

async fn presence_stats(caller: &Caller, channel: &str) -> Result<Outcome, RpcError> {
    caller.identity.count(|limits| &limits.questions)?;
    let room = caller.identity.server.asked(parse_room(channel)?);
    let (clients, users) = chat::room_answer(room.presence_stats(caller.identity.user).await)?;
    let (num_clients, num_users) = (wire::count(clients), wire::count(users));
    Ok(Outcome::PresenceStats(PresenceStatsResult { num_clients, num_users }))
}

async fn history(caller: &Caller, request: HistoryRequest) -> Result<Outcome, RpcError> {
    caller.identity.count(|limits| &limits.questions)?;
    let server = &caller.identity.server;
    let (offset, stream) = match parse(&request.channel)? {
        Channel::Room(room) => {
            let offset = server.asked(room).readable(caller.identity.user).await;
            (chat::room_answer(offset)?, Channel::Room(room))
        }
        Channel::User(user) if user == caller.identity.user => {
            let position = server.user(user).position().await;
            (position.map_err(|error| failure(&error))?, Channel::User(user))
        }
        Channel::User(_) => return Err(ErrorCode::PermissionDenied.into()),
    };
    let publications = match request.limit {
        0 => Vec::new(),
        _ => chat::stream::page(server, stream, &request, offset, HISTORY_EVENTS_MAX).await?,
    };
    let epoch = server.epoch().to_owned();
    Ok(Outcome::History(HistoryResult { publications, epoch, offset: offset.as_u64() }))
}

async fn call(caller: &Caller, request: &RpcRequest) -> Result<Outcome, RpcError> {
    let method = Rpc::decode(&request.method, &request.data)?;
    if let Rpc::PresenceWatch(request) = method {
        let data = Box::pin(watch(caller, request)).await.map(|()| encode_payload(&Empty {}))?;
        return Ok(Outcome::Rpc(RpcResult { data }));
    }
    let data = chat::call(&caller.identity, method).await?;
    Ok(Outcome::Rpc(RpcResult { data }))
}

/// Has the connection told of those on its screen.
async fn watch(caller: &Caller, request: PresenceWatch) -> Result<(), RpcError> {
    caller.identity.count(|limits| &limits.questions)?;
    let PresenceWatch { room, users } = request;
    // A room that moves forgets them; on a server alone none does.
    let kept = if caller.ear.is_some() { users.clone() } else { Vec::new() };
    let number = caller.session.watches(Channel::Room(room), users.len(), kept).await;
    let number = number.map_err(|error| failure(&error))??;
    let (client, told) = (caller.online.client.clone(), caller.told());
    let screen = Screen { client, number, told, users };
    let room = caller.identity.server.asked(room);
    chat::room_answer(room.watch(caller.identity.user, screen).await)
}
