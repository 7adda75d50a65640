//! A call by gRPC and its answer, as messages: the methods are those of the API over HTTP.
//!
//! What goes over the wire for a call alone is what a batch has behind a key and a length, so both
//! are read as one type. Likewise an answer alone is a batch's reply under other keys.

use bytes::{Buf, Bytes, BytesMut};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use prost::encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field};
use prost::{DecodeError, Message};
use serde::de::IgnoredAny;

use super::framing::Status;
use super::messages::{
    Batch, Broadcasted, Call, Code, Command, Error, Nodes, Nothing, Outcome, PublishResponse,
    Refresh, Replies, Reply,
};
use crate::api::batch::COMMANDS_LEN_MAX;
use crate::api::caller::Caller;
use crate::api::in_turn;
use crate::api::method::{self, Subscription};
use crate::api::mode;
use crate::api::params;
use crate::api::publish;
use crate::claims;
use crate::settings::ErrorMode;

/// Of many calls in one.
const BATCH: &str = "Batch";
/// The methods, with the keys that their calls and answers have in a batch.
const METHODS: [(&str, u32); 13] = [
    ("Publish", 4),
    ("Broadcast", 5),
    ("Subscribe", 6),
    ("Unsubscribe", 7),
    ("Disconnect", 8),
    ("Presence", 9),
    ("PresenceStats", 10),
    ("History", 11),
    ("HistoryRemove", 12),
    ("Info", 13),
    ("RPC", 14),
    ("Refresh", 15),
    ("Channels", 16),
];
/// The key of the first method in a command; those before it were its number, name and parameters.
const FIRST_METHOD: u32 = 4;
/// The keys of an answer alone.
const ERROR: u32 = 1;
const RESULT: u32 = 2;

/// A command of a batch, or why it is none.
type Asked = Result<Call, RpcError>;

/// Whether there is such a method.
pub(super) fn is_known(method: &str) -> bool {
    method == BATCH || METHODS.iter().any(|(name, _)| *name == method)
}

/// Runs a method that is known; returns its answer.
pub(super) async fn run(
    caller: &Caller,
    method: &str,
    message: Bytes,
    mode: ErrorMode,
) -> Result<Vec<u8>, Status> {
    let answered = if method == BATCH {
        let (commands, parallel) = commands(message).map_err(|error| unreadable(&error))?;
        let replies = batch(caller, commands, parallel).await;
        replies.map(|replies| Replies { replies }.encode_to_vec())
    } else {
        match alone(method, message).map_err(|error| unreadable(&error))? {
            Some(call) => one(caller, call).await.map(|outcome| done(&outcome)),
            None => Err(RpcError::method_not_found(method)),
        }
    };
    match (answered, mode) {
        (Err(refused), ErrorMode::Transport) => {
            Err(Status::new(mode::grpc_status(refused.code), refused.message))
        }
        // The answer to a batch has no place for an error but in the replies to its commands.
        (Err(refused), _) if method == BATCH => {
            Ok(Replies { replies: vec![reply(Err(refused))] }.encode_to_vec())
        }
        (Err(refused), _) => Ok(failed(refused)),
        (Ok(answer), _) => Ok(answer),
    }
}

fn unreadable(error: &DecodeError) -> Status {
    Status::new(Status::INTERNAL, format!("the message cannot be read: {error}"))
}

/// Reads a call that comes by itself.
fn alone(method: &str, message: Bytes) -> Result<Option<Call>, DecodeError> {
    let Some((_, key)) = METHODS.iter().find(|(name, _)| *name == method) else { return Ok(None) };
    let mut head = BytesMut::new();
    encode_key(*key, WireType::LengthDelimited, &mut head);
    encode_varint(message.len() as u64, &mut head);
    Ok(Command::decode(head.freeze().chain(message))?.call)
}

/// Reads the commands of a batch, and whether they may run beside each other.
fn commands(message: Bytes) -> Result<(Vec<Asked>, bool), DecodeError> {
    let Batch { commands, parallel } = Batch::decode(message)?;
    Ok((commands.into_iter().map(asked).collect::<Result<_, _>>()?, parallel))
}

/// Reads a command of a batch. Decoding alone would keep the last of several methods, and nobody
/// would hear of the others.
fn asked(command: Bytes) -> Result<Asked, DecodeError> {
    let (mut fields, mut methods) = (command.clone(), 0);
    while fields.has_remaining() {
        let (key, kind) = decode_key(&mut fields)?;
        skip_field(kind, key, &mut fields, DecodeContext::default())?;
        methods += usize::from(key >= FIRST_METHOD);
    }
    if methods != 1 {
        return Ok(Err(RpcError::new(ErrorCode::BadRequest, "a command has one method")));
    }
    let unknown = || RpcError::new(ErrorCode::MethodNotFound, "a command that is not offered");
    Ok(Command::decode(command)?.call.ok_or_else(unknown))
}

/// Writes the answer to a call that came by itself and was refused.
fn failed(refused: RpcError) -> Vec<u8> {
    let mut answer = Vec::new();
    prost::encoding::message::encode(ERROR, &Error::from(refused), &mut answer);
    answer
}

/// The same of one that was not.
fn done(outcome: &Outcome) -> Vec<u8> {
    let (mut field, mut answer) = (Vec::new(), Vec::new());
    outcome.encode(&mut field);
    let mut behind_key = field.as_slice();
    decode_key(&mut behind_key).expect("it was written just now");
    encode_key(RESULT, WireType::LengthDelimited, &mut answer);
    answer.extend_from_slice(behind_key);
    answer
}

async fn batch(
    caller: &Caller,
    commands: Vec<Asked>,
    parallel: bool,
) -> Result<Vec<Reply>, RpcError> {
    caller.rights.may("batch")?;
    if commands.len() > COMMANDS_LEN_MAX {
        let text = format!("commands: more than {COMMANDS_LEN_MAX} in one batch");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let mut replies = Vec::with_capacity(commands.len());
    if parallel {
        let running = commands.into_iter().map(|command| {
            let caller = caller.clone();
            tokio::spawn(async move { reply(command_of(&caller, command).await) })
        });
        for running in running.collect::<Vec<_>>() {
            replies.push(running.await.expect("a command does not panic"));
        }
    } else {
        for run in in_turn::runs(commands, publishes) {
            if publishes(&run[0]) {
                replies.extend(publish(caller, run).await);
                continue;
            }
            for command in run {
                replies.push(reply(command_of(caller, command).await));
            }
        }
    }
    Ok(replies)
}

fn publishes(command: &Asked) -> bool {
    matches!(command, Ok(Call::Publish(_)))
}

async fn publish(caller: &Caller, commands: Vec<Asked>) -> impl Iterator<Item = Reply> {
    let asked = commands.into_iter().filter_map(|command| match command {
        Ok(Call::Publish(it)) => Some(it.into()),
        _ => None,
    });
    let read = |(channel, content): (String, params::Content)| {
        publish::publication(caller, channel, &content)
    };
    let published = in_turn::publish(caller, asked.map(read).collect()).await;
    published.into_iter().map(|outcome| reply(outcome.map(|it| Outcome::Publish(it.into()))))
}

async fn command_of(caller: &Caller, command: Asked) -> Result<Outcome, RpcError> {
    one(caller, command?).await
}

fn reply(outcome: Result<Outcome, RpcError>) -> Reply {
    match outcome {
        Ok(outcome) => Reply { error: None, outcome: Some(outcome) },
        Err(refused) => Reply { error: Some(refused.into()), outcome: None },
    }
}

/// Runs one call.
async fn one(caller: &Caller, call: Call) -> Result<Outcome, RpcError> {
    caller.rights.may(name(&call))?;
    Ok(match call {
        Call::Publish(it) => {
            let (channel, content) = it.into();
            let publication = publish::publication(caller, channel, &content);
            let published = publish::publish(caller, publication).await;
            caller.server.metrics.by_api.count(&published);
            Outcome::Publish(published?.into())
        }
        Call::Broadcast(it) => {
            let (channels, content) = it.into();
            let outcomes = publish::broadcast(caller, channels, || Ok(content)).await;
            caller.server.metrics.by_api.count(&outcomes);
            let responses = outcomes?.into_iter().map(PublishResponse::from).collect();
            Outcome::Broadcast(Broadcasted { responses })
        }
        Call::Subscribe(it) => {
            let subscription = Subscription {
                channel: it.channel,
                info: bytes(it.info, &it.b64info, "b64info")?,
                data: bytes(it.data, &it.b64data, "b64data")?,
                since: it.recover_since,
                ends_at: it.expire_at,
                overrides: it.overrides.map(Into::into).unwrap_or_default(),
            };
            let of = of(it.user, it.client, it.session, (it.label_filter, it.all_users));
            method::subscribe(caller, &of, subscription).await?;
            Outcome::Subscribe(Nothing {})
        }
        Call::Unsubscribe(it) => {
            let of = of(it.user, it.client, it.session, (it.label_filter, it.all_users));
            method::unsubscribe(caller, &of, it.channel.into()).await?;
            Outcome::Unsubscribe(Nothing {})
        }
        Call::Disconnect(it) => {
            let of = of(it.user, it.client, it.session, (it.label_filter, it.all_users));
            let of = params::Of { whitelist: it.whitelist, ..of };
            let why = it.disconnect.map(|Code { code, reason }| params::Code { code, reason });
            method::disconnect(caller, &of, why).await?;
            Outcome::Disconnect(Nothing {})
        }
        Call::Refresh(it) => {
            let Refresh { expired, expire_at, info, .. } = it;
            let of = of(it.user, it.client, it.session, (it.label_filter, it.all_users));
            method::refresh(caller, &of, &params::Refresh::raw(expired, expire_at, info)).await?;
            Outcome::Refresh(Nothing {})
        }
        Call::Presence(it) => {
            Outcome::Presence(method::presence(caller, it.channel.into()).await?.into())
        }
        Call::PresenceStats(it) => {
            Outcome::PresenceStats(method::presence_stats(caller, it.channel.into()).await?.into())
        }
        Call::History(it) => Outcome::History(method::history(caller, &it.into()).await?.into()),
        Call::HistoryRemove(it) => {
            method::history_remove(caller, it.channel.into()).await?;
            Outcome::HistoryRemove(Nothing {})
        }
        Call::Channels(it) => {
            Outcome::Channels(method::channels(caller, &it.pattern).await?.into())
        }
        Call::Info(Nothing {}) => {
            let infos = method::infos(caller).await?;
            let nodes = infos.into_iter().map(Into::into).collect();
            Outcome::Info(Nodes { nodes })
        }
        Call::Rpc(it) => return Err(method::rpc(&it.method)),
    })
}

/// What rights call it: the name over HTTP.
fn name(call: &Call) -> &'static str {
    match call {
        Call::Publish(_) => "publish",
        Call::Broadcast(_) => "broadcast",
        Call::Subscribe(_) => "subscribe",
        Call::Unsubscribe(_) => "unsubscribe",
        Call::Disconnect(_) => "disconnect",
        Call::Presence(_) => "presence",
        Call::PresenceStats(_) => "presence_stats",
        Call::History(_) => "history",
        Call::HistoryRemove(_) => "history_remove",
        Call::Info(_) => "info",
        Call::Rpc(_) => "rpc",
        Call::Refresh(_) => "refresh",
        Call::Channels(_) => "channels",
    }
}

fn of(
    user: String,
    client: String,
    session: String,
    (label_filter, all_users): (Option<Nothing>, bool),
) -> params::Of {
    let label_filter = label_filter.map(|Nothing {}| IgnoredAny);
    let session = Some(session);
    params::Of { user, client, session, label_filter, all_users, whitelist: Vec::new() }
}

/// Bytes as they stand, or in base64.
fn bytes(raw: Bytes, base64: &str, field: &str) -> Result<Bytes, RpcError> {
    if base64.is_empty() {
        return Ok(raw);
    }
    claims::bytes(None, base64)
        .ok_or_else(|| RpcError::new(ErrorCode::BadRequest, format!("{field} is no base64")))
}
