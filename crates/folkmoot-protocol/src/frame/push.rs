//! What the server sends unasked: publications of channels, comings and goings, and news about the
//! connection itself. A push travels inside a reply without a number.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{Message as ProstMessage, Oneof};
use serde::{Deserialize, Serialize};

use super::envelope::{deserialize_envelope, is_default};
use super::{SubscribeResult, payload};

/// One push of the server.
#[derive(Clone, PartialEq, ProstMessage, Serialize)]
pub struct Push {
    /// The channel it belongs to; empty for news about the connection.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub channel: String,
    /// What happened.
    #[prost(oneof = "PushKind", tags = "4, 5, 6, 7, 8, 9, 10, 11, 12")]
    #[serde(flatten)]
    pub kind: Option<PushKind>,
}

/// What a push tells.
#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PushKind {
    /// An event of the channel.
    #[prost(message, tag = "4")]
    Pub(Publication),
    /// A client came online in the channel.
    #[prost(message, tag = "5")]
    Join(Join),
    /// A client left the channel.
    #[prost(message, tag = "6")]
    Leave(Leave),
    /// The server ended the subscription.
    #[prost(message, tag = "7")]
    Unsubscribe(Unsubscribe),
    /// Data outside of any channel.
    #[prost(message, tag = "8")]
    Message(Message),
    /// The server subscribed the connection.
    #[prost(message, tag = "9")]
    Subscribe(Subscribe),
    /// The session is open, on transports without commands.
    #[prost(message, tag = "10")]
    Connect(Connect),
    /// The server is about to close the connection.
    #[prost(message, tag = "11")]
    Disconnect(Disconnect),
    /// The connection's time has changed.
    #[prost(message, tag = "12")]
    Refresh(Refresh),
}

deserialize_envelope!(Push, head { channel }, kind: PushKind {
    "pub" => Pub,
    "join" => Join,
    "leave" => Leave,
    "unsubscribe" => Unsubscribe,
    "message" => Message,
    "subscribe" => Subscribe,
    "connect" => Connect,
    "disconnect" => Disconnect,
    "refresh" => Refresh,
});

/// Who a connection is, as others may see it.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientInfo {
    /// The user's id.
    #[prost(string, tag = "1")]
    pub user: String,
    /// The connection's id.
    #[prost(string, tag = "2")]
    pub client: String,
    /// What the server tells about the connection: `{"name": …}`.
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub conn_info: Bytes,
    /// What the server tells about the connection in this channel.
    #[prost(bytes = "bytes", tag = "4")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub chan_info: Bytes,
}

/// An event of a channel.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Publication {
    /// The event, one of `RoomEvent` or `UserEvent`.
    #[prost(bytes = "bytes", tag = "4")]
    #[serde(with = "payload")]
    pub data: Bytes,
    /// Who published it, when a client did so directly.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<ClientInfo>,
    /// Place in the stream; 0 for what is never recovered.
    #[prost(uint64, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub offset: u64,
    /// Tags for filters of the application.
    #[prost(btree_map = "string, string", tag = "7")]
    #[serde(skip_serializing_if = "is_default")]
    pub tags: BTreeMap<String, String>,
    /// Whether `data` is how the one before it becomes this one.
    #[prost(bool, tag = "8")]
    #[serde(skip_serializing_if = "is_default")]
    pub delta: bool,
    /// When it was published, in milliseconds since 1970 in UTC.
    #[prost(int64, tag = "9")]
    #[serde(skip_serializing_if = "is_default")]
    pub time: i64,
}

/// A client came online in the channel.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Join {
    /// Who came.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<ClientInfo>,
}

/// A client left the channel.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Leave {
    /// Who left.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<ClientInfo>,
}

/// The server ended the subscription.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    /// Why; from 2500 the SDKs subscribe again by themselves.
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub code: u32,
    /// Why, in words.
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
}

/// The server subscribed the connection.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribe {
    /// Whether missed events can be recovered.
    #[prost(bool, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub recoverable: bool,
    /// Epoch in which offsets count.
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub epoch: String,
    /// The stream's last offset.
    #[prost(uint64, tag = "5")]
    #[serde(skip_serializing_if = "is_default")]
    pub offset: u64,
    /// Whether the server watches the position.
    #[prost(bool, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub positioned: bool,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "7")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
}

/// Data outside of any channel.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The data.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "payload")]
    pub data: Bytes,
}

/// The session is open, on transports without commands.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Connect {
    /// The connection's id.
    #[prost(string, tag = "1")]
    pub client: String,
    /// Version of the server.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub version: String,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Subscriptions made by the server.
    #[prost(btree_map = "string, message", tag = "4")]
    #[serde(skip_serializing_if = "is_default")]
    pub subs: BTreeMap<String, SubscribeResult>,
    /// Whether the session ends by itself.
    #[prost(bool, tag = "5")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "6")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
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

/// The server is about to close the connection.
#[derive(Clone, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Disconnect {
    /// Why, one of `DisconnectCode`.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Why, in words.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Whether to connect again.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default")]
    pub reconnect: bool,
}

/// The connection's time has changed.
#[derive(Clone, Copy, PartialEq, ProstMessage, Serialize, Deserialize)]
#[serde(default)]
pub struct Refresh {
    /// Whether the session ends by itself.
    #[prost(bool, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub expires: bool,
    /// Seconds until it ends.
    #[prost(uint32, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: u32,
}
