//! What the server answers. A reply carries its command's number and either an error or an outcome;
//! one without a number is a push, and one with nothing at all is a ping.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{Message, Oneof};
use serde::{Deserialize, Serialize};

use super::envelope::{deserialize_envelope, is_default};
use super::{ClientInfo, Publication, Push, payload};

/// One reply or push of the server.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Reply {
    /// The command's number; 0 in a push and a ping.
    #[prost(uint32, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub id: u32,
    /// Why the command failed.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// What came of the command.
    #[prost(oneof = "Outcome", tags = "4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
}

impl Reply {
    /// Answers command `id` with its outcome.
    pub fn ok(id: u32, outcome: Outcome) -> Self {
        Self { id, error: None, outcome: Some(outcome) }
    }

    /// Answers command `id` with an error.
    pub fn failed(id: u32, error: impl Into<Error>) -> Self {
        Self { id, error: Some(error.into()), outcome: None }
    }

    /// Asks the client for a sign of life.
    pub fn ping() -> Self {
        Self::default()
    }

    /// Whether this is the server's ping.
    pub fn is_ping(&self) -> bool {
        self.id == 0 && self.error.is_none() && self.outcome.is_none()
    }
}

impl From<Push> for Reply {
    fn from(push: Push) -> Self {
        Self { id: 0, error: None, outcome: Some(Outcome::Push(push)) }
    }
}

/// What came of a command, or a push.
#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not an answer: something happened.
    #[prost(message, tag = "4")]
    Push(Push),
    /// The session is open.
    #[prost(message, tag = "5")]
    Connect(ConnectResult),
    /// The subscription is made.
    #[prost(message, tag = "6")]
    Subscribe(SubscribeResult),
    /// The subscription is ended.
    #[prost(message, tag = "7")]
    Unsubscribe(UnsubscribeResult),
    /// The publication is durable.
    #[prost(message, tag = "8")]
    Publish(PublishResult),
    /// Who is online.
    #[prost(message, tag = "9")]
    Presence(PresenceResult),
    /// How many are online.
    #[prost(message, tag = "10")]
    PresenceStats(PresenceStatsResult),
    /// Events of a channel.
    #[prost(message, tag = "11")]
    History(HistoryResult),
    /// A sign of life.
    #[prost(message, tag = "12")]
    Ping(PingResult),
    /// What a chat method returned.
    #[prost(message, tag = "13")]
    Rpc(RpcResult),
    /// The connection is renewed.
    #[prost(message, tag = "14")]
    Refresh(RefreshResult),
    /// The subscription is renewed.
    #[prost(message, tag = "15")]
    SubRefresh(SubRefreshResult),
}

deserialize_envelope!(Reply, head { id, error }, outcome: Outcome {
    "push" => Push,
    "connect" => Connect,
    "subscribe" => Subscribe,
    "unsubscribe" => Unsubscribe,
    "publish" => Publish,
    "presence" => Presence,
    "presence_stats" => PresenceStats,
    "history" => History,
    "ping" => Ping,
    "rpc" => Rpc,
    "refresh" => Refresh,
    "sub_refresh" => SubRefresh,
});

/// Why a command failed.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Error {
    /// One of `ErrorCode`.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Names the field or limit.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Whether the same command may succeed later.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub temporary: bool,
}

/// The session is open.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectResult {
    /// The connection's id.
    #[prost(string, tag = "1")]
    pub client: String,
    /// Version of the server.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub version: String,
    /// Whether the session ends by itself.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "5")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Subscriptions made by the server: the user's stream.
    #[prost(btree_map = "string, message", tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub subs: BTreeMap<String, SubscribeResult>,
    /// Seconds between the server's pings.
    #[prost(uint32, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub ping: u32,
    /// Whether pings must be answered.
    #[prost(bool, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub pong: bool,
    /// Id of the session, on emulated transports.
    #[prost(string, tag = "9")]
    #[serde(skip_serializing_if = "is_default")]
    pub session: String,
    /// The node, on emulated transports.
    #[prost(string, tag = "10")]
    #[serde(skip_serializing_if = "is_default")]
    pub node: String,
}

/// The subscription is made.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeResult {
    /// Whether the subscription ends by itself.
    #[prost(bool, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
    /// Whether missed events can be recovered.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub recoverable: bool,
    /// Epoch in which offsets count.
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub epoch: String,
    /// The events after the position the client named, oldest first.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub publications: Vec<Publication>,
    /// Whether `publications` is all that was missed.
    #[prost(bool, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub recovered: bool,
    /// The stream's last offset.
    #[prost(uint64, tag = "9")]
    #[serde(skip_serializing_if = "is_default")]
    pub offset: u64,
    /// Whether the server watches the position.
    #[prost(bool, tag = "10")]
    #[serde(skip_serializing_if = "is_default")]
    pub positioned: bool,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "11")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Whether the client asked to recover.
    #[prost(bool, tag = "12")]
    #[serde(skip_serializing_if = "is_default")]
    pub was_recovering: bool,
    /// Whether publications may be deltas.
    #[prost(bool, tag = "13")]
    #[serde(skip_serializing_if = "is_default")]
    pub delta: bool,
}

/// The subscription is ended.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub struct UnsubscribeResult {}

/// The publication is durable.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub struct PublishResult {}

/// Who is online, by connection id.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceResult {
    /// The connections.
    #[prost(btree_map = "string, message", tag = "1")]
    pub presence: BTreeMap<String, ClientInfo>,
}

/// How many are online.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceStatsResult {
    /// Connections.
    #[prost(uint32, tag = "1")]
    pub num_clients: u32,
    /// Different users.
    #[prost(uint32, tag = "2")]
    pub num_users: u32,
}

/// Events of a channel, and the stream's position.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryResult {
    /// The events, in the order asked for.
    #[prost(message, repeated, tag = "1")]
    pub publications: Vec<Publication>,
    /// Epoch in which offsets count.
    #[prost(string, tag = "2")]
    pub epoch: String,
    /// The stream's last offset.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
}

/// A sign of life.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub struct PingResult {}

/// What a chat method returned.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcResult {
    /// The method's reply.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
}

/// The connection is renewed.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshResult {
    /// The connection's id.
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub client: String,
    /// Version of the server.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub version: String,
    /// Whether the session ends by itself.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
}

/// The subscription is renewed.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubRefreshResult {
    /// Whether the subscription ends by itself.
    #[prost(bool, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
}
