//! What a client sends: commands, numbered by the client from 1. A command without a number expects
//! no reply; one without a request is the answer to the server's ping.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{Message, Oneof};
use serde::{Deserialize, Serialize};

use super::envelope::{deserialize_envelope, is_default};
use super::payload;
use crate::field::null_as_absent;

/// One command of a client.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Command {
    /// Matches the reply; 0 for `send` and for a pong.
    #[prost(uint32, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    pub id: u32,
    /// What is asked; absent in a pong.
    #[prost(oneof = "Request", tags = "4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    #[serde(flatten)]
    pub request: Option<Request>,
}

impl Request {
    /// The channel that the command is about; `None` for one that names none.
    pub fn channel(&self) -> Option<&str> {
        match self {
            Self::Subscribe(request) => Some(&request.channel),
            Self::Unsubscribe(request) => Some(&request.channel),
            Self::Publish(request) => Some(&request.channel),
            Self::Presence(request) => Some(&request.channel),
            Self::PresenceStats(request) => Some(&request.channel),
            Self::History(request) => Some(&request.channel),
            Self::SubRefresh(request) => Some(&request.channel),
            Self::Connect(_) | Self::Ping(_) | Self::Send(_) | Self::Rpc(_) | Self::Refresh(_) => {
                None
            }
        }
    }
}

/// What a command asks for.
#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Opens the session; the first command of every connection.
    #[prost(message, tag = "4")]
    Connect(ConnectRequest),
    /// Subscribes to a channel.
    #[prost(message, tag = "5")]
    Subscribe(SubscribeRequest),
    /// Ends a subscription.
    #[prost(message, tag = "6")]
    Unsubscribe(UnsubscribeRequest),
    /// Publishes into a channel.
    #[prost(message, tag = "7")]
    Publish(PublishRequest),
    /// Asks who is online in a channel.
    #[prost(message, tag = "8")]
    Presence(PresenceRequest),
    /// Asks how many are online in a channel.
    #[prost(message, tag = "9")]
    PresenceStats(PresenceStatsRequest),
    /// Asks for events of a channel.
    #[prost(message, tag = "10")]
    History(HistoryRequest),
    /// Asks for a sign of life.
    #[prost(message, tag = "11")]
    Ping(PingRequest),
    /// Sends data that expects no reply.
    #[prost(message, tag = "12")]
    Send(SendRequest),
    /// Calls a chat method.
    #[prost(message, tag = "13")]
    Rpc(RpcRequest),
    /// Renews the connection's token.
    #[prost(message, tag = "14")]
    Refresh(RefreshRequest),
    /// Renews a subscription's token.
    #[prost(message, tag = "15")]
    SubRefresh(SubRefreshRequest),
}

deserialize_envelope!(Command, head { id }, request: Request {
    "connect" => Connect,
    "subscribe" => Subscribe,
    "unsubscribe" => Unsubscribe,
    "publish" => Publish,
    "presence" => Presence,
    "presence_stats" => PresenceStats,
    "history" => History,
    "ping" => Ping,
    "send" => Send,
    "rpc" => Rpc,
    "refresh" => Refresh,
    "sub_refresh" => SubRefresh,
});

/// Opens the session.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectRequest {
    /// The device's session token.
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub token: String,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Positions of server-side subscriptions to recover.
    #[prost(btree_map = "string, message", tag = "3")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub subs: BTreeMap<String, SubscribeRequest>,
    /// Name of the client software.
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub name: String,
    /// Version of the client software.
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub version: String,
    /// Emulated HTTP headers, from clients that cannot set real ones.
    #[prost(btree_map = "string, string", tag = "6")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub headers: BTreeMap<String, String>,
}

/// Subscribes to a channel, optionally recovering from a position.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeRequest {
    /// The channel; empty inside `ConnectRequest::subs`, where the key names it.
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub channel: String,
    /// Token of the subscription; membership decides here, so it is not used.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub token: String,
    /// Whether the events after `offset` are wanted.
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub recover: bool,
    /// Epoch in which `offset` counts.
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub epoch: String,
    /// Last offset the client has seen.
    #[prost(uint64, tag = "7")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub offset: u64,
    /// Custom data of the application.
    #[prost(bytes = "bytes", tag = "8")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Whether the client wants positions.
    #[prost(bool, tag = "9")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub positioned: bool,
    /// Whether the client wants recovery.
    #[prost(bool, tag = "10")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub recoverable: bool,
    /// Whether the client wants join and leave pushes.
    #[prost(bool, tag = "11")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub join_leave: bool,
    /// Kind of deltas that the client would take.
    #[prost(string, tag = "12")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub delta: String,
    /// Filter over the tags of publications; refused by the chat, whose events have none.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tf: Option<FilterNode>,
    /// Bits of what the client can do or wants; see [`SubscribeRequest::REJECT_UNRECOVERED`].
    #[prost(int64, tag = "14")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub flag: i64,
}

impl SubscribeRequest {
    /// In `flag`: whoever cannot be given all that was missed wants no subscription, but error 112.
    pub const REJECT_UNRECOVERED: i64 = 1 << 1;
}

/// A node of a filter over tags: a comparison, or what its children say together. Which fields
/// belong together is for who applies the filter to check.
#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterNode {
    /// `and`, `or`, `not`; empty in a comparison.
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub op: String,
    /// The tag that is compared.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub key: String,
    /// How it is compared, such as `eq`.
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub cmp: String,
    /// With what it is compared.
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub val: String,
    /// With which of these, for `in` and `nin`.
    #[prost(string, repeated, tag = "5")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub vals: Vec<String>,
    /// What `and`, `or` and `not` are about.
    #[prost(message, repeated, tag = "6")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub nodes: Vec<Self>,
}

/// Ends a subscription.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UnsubscribeRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
}

/// Publishes into a channel.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
    /// What to publish: in a room, the fields of `message.send` without the room.
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "payload")]
    pub data: Bytes,
}

/// Asks who is online in a channel.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
}

/// Asks how many are online in a channel.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PresenceStatsRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
}

/// A place in a channel's stream.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamPosition {
    /// Offset of the last event seen.
    #[prost(uint64, tag = "1")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub offset: u64,
    /// Epoch in which the offset counts.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub epoch: String,
}

/// Asks for events of a channel.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
    /// Largest number of events: 0 asks only for the position, a negative one for all there are.
    #[prost(int32, tag = "7")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub limit: i32,
    /// Where to start; absent: at the stream's beginning, or at its end in reverse.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<StreamPosition>,
    /// Whether to walk from newer to older.
    #[prost(bool, tag = "9")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub reverse: bool,
}

/// Asks for a sign of life.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
pub struct PingRequest {}

/// Sends data that expects no reply.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    /// The data.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
}

/// Calls a chat method.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcRequest {
    /// Arguments of the method.
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "payload", skip_serializing_if = "Bytes::is_empty")]
    pub data: Bytes,
    /// Name of the method.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_absent")]
    pub method: String,
}

/// Renews the connection's token.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshRequest {
    /// The new token.
    #[prost(string, tag = "1")]
    pub token: String,
}

/// Renews a subscription's token.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SubRefreshRequest {
    /// The channel.
    #[prost(string, tag = "1")]
    pub channel: String,
    /// The new token.
    #[prost(string, tag = "2")]
    pub token: String,
}
