//! The messages of the server API over gRPC, with the field numbers of Centrifugo's `api.proto`.
//! Fields of what is not offered are left out, unless to pass over them would do more than was asked
//! for; decoding skips what it does not know.

use std::collections::BTreeMap;

use folkmoot_protocol::frame::StreamPosition;
use prost::{Message, Oneof};

/// A call: in a batch, and as what a method's name and its message make together.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Call {
    #[prost(message, tag = "4")]
    Publish(Publish),
    #[prost(message, tag = "5")]
    Broadcast(Broadcast),
    #[prost(message, tag = "6")]
    Subscribe(Subscribe),
    #[prost(message, tag = "7")]
    Unsubscribe(Unsubscribe),
    #[prost(message, tag = "8")]
    Disconnect(Disconnect),
    #[prost(message, tag = "9")]
    Presence(Channel),
    #[prost(message, tag = "10")]
    PresenceStats(Channel),
    #[prost(message, tag = "11")]
    History(History),
    #[prost(message, tag = "12")]
    HistoryRemove(Channel),
    #[prost(message, tag = "13")]
    Info(Nothing),
    #[prost(message, tag = "14")]
    Rpc(Rpc),
    #[prost(message, tag = "15")]
    Refresh(Refresh),
    #[prost(message, tag = "16")]
    Channels(List),
}

/// What came of a call that was not refused.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Outcome {
    #[prost(message, tag = "4")]
    Publish(Published),
    #[prost(message, tag = "5")]
    Broadcast(Broadcasted),
    #[prost(message, tag = "6")]
    Subscribe(Nothing),
    #[prost(message, tag = "7")]
    Unsubscribe(Nothing),
    #[prost(message, tag = "8")]
    Disconnect(Nothing),
    #[prost(message, tag = "9")]
    Presence(Presence),
    #[prost(message, tag = "10")]
    PresenceStats(PresenceStats),
    #[prost(message, tag = "11")]
    History(Page),
    #[prost(message, tag = "12")]
    HistoryRemove(Nothing),
    #[prost(message, tag = "13")]
    Info(Nodes),
    #[prost(message, tag = "15")]
    Refresh(Nothing),
    #[prost(message, tag = "16")]
    Channels(Channels),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Batch {
    /// Each a `Command`.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) commands: Vec<bytes::Bytes>,
    #[prost(bool, tag = "2")]
    pub(super) parallel: bool,
}

/// One call of a batch; `None`: one that is not known.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Command {
    #[prost(oneof = "Call", tags = "4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16")]
    pub(super) call: Option<Call>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Replies {
    #[prost(message, repeated, tag = "1")]
    pub(super) replies: Vec<Reply>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Reply {
    #[prost(message, optional, tag = "2")]
    pub(super) error: Option<Error>,
    #[prost(oneof = "Outcome", tags = "4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16")]
    pub(super) outcome: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Error {
    #[prost(uint32, tag = "1")]
    pub(super) code: u32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Publish {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: bytes::Bytes,
    #[prost(string, tag = "3")]
    pub(super) b64data: String,
    #[prost(bool, tag = "4")]
    pub(super) skip_history: bool,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(super) tags: BTreeMap<String, String>,
    #[prost(string, tag = "6")]
    pub(super) idempotency_key: String,
    #[prost(bool, tag = "7")]
    pub(super) delta: bool,
    #[prost(uint64, tag = "8")]
    pub(super) version: u64,
    #[prost(string, tag = "9")]
    pub(super) version_epoch: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Broadcast {
    #[prost(string, repeated, tag = "1")]
    pub(super) channels: Vec<String>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: bytes::Bytes,
    #[prost(string, tag = "3")]
    pub(super) b64data: String,
    #[prost(bool, tag = "4")]
    pub(super) skip_history: bool,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(super) tags: BTreeMap<String, String>,
    #[prost(string, tag = "6")]
    pub(super) idempotency_key: String,
    #[prost(bool, tag = "7")]
    pub(super) delta: bool,
    #[prost(uint64, tag = "8")]
    pub(super) version: u64,
    #[prost(string, tag = "9")]
    pub(super) version_epoch: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Published {
    #[prost(uint64, tag = "1")]
    pub(super) offset: u64,
    #[prost(string, tag = "2")]
    pub(super) epoch: String,
}

/// One of the answers of a broadcast.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PublishResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) error: Option<Error>,
    #[prost(message, optional, tag = "2")]
    pub(super) result: Option<Published>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Broadcasted {
    #[prost(message, repeated, tag = "1")]
    pub(super) responses: Vec<PublishResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Subscribe {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(string, tag = "2")]
    pub(super) user: String,
    #[prost(int64, tag = "3")]
    pub(super) expire_at: i64,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) info: bytes::Bytes,
    #[prost(string, tag = "5")]
    pub(super) b64info: String,
    #[prost(string, tag = "6")]
    pub(super) client: String,
    #[prost(bytes = "bytes", tag = "7")]
    pub(super) data: bytes::Bytes,
    #[prost(string, tag = "8")]
    pub(super) b64data: String,
    #[prost(message, optional, tag = "9")]
    pub(super) recover_since: Option<StreamPosition>,
    #[prost(message, optional, tag = "10")]
    pub(super) overrides: Option<Overrides>,
    #[prost(string, tag = "11")]
    pub(super) session: String,
    #[prost(message, optional, tag = "12")]
    pub(super) label_filter: Option<Nothing>,
    #[prost(bool, tag = "13")]
    pub(super) all_users: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Overrides {
    #[prost(message, optional, tag = "1")]
    pub(super) presence: Option<Switch>,
    #[prost(message, optional, tag = "2")]
    pub(super) join_leave: Option<Switch>,
    #[prost(message, optional, tag = "3")]
    pub(super) force_recovery: Option<Switch>,
    #[prost(message, optional, tag = "4")]
    pub(super) force_positioning: Option<Switch>,
    #[prost(message, optional, tag = "5")]
    pub(super) force_push_join_leave: Option<Switch>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Switch {
    #[prost(bool, tag = "1")]
    pub(super) value: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Unsubscribe {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(string, tag = "2")]
    pub(super) user: String,
    #[prost(string, tag = "3")]
    pub(super) client: String,
    #[prost(string, tag = "4")]
    pub(super) session: String,
    #[prost(message, optional, tag = "5")]
    pub(super) label_filter: Option<Nothing>,
    #[prost(bool, tag = "6")]
    pub(super) all_users: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Disconnect {
    #[prost(string, tag = "1")]
    pub(super) user: String,
    #[prost(message, optional, tag = "2")]
    pub(super) disconnect: Option<Code>,
    #[prost(string, tag = "3")]
    pub(super) client: String,
    #[prost(string, repeated, tag = "4")]
    pub(super) whitelist: Vec<String>,
    #[prost(string, tag = "5")]
    pub(super) session: String,
    #[prost(message, optional, tag = "6")]
    pub(super) label_filter: Option<Nothing>,
    #[prost(bool, tag = "7")]
    pub(super) all_users: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Code {
    #[prost(uint32, tag = "1")]
    pub(super) code: u32,
    #[prost(string, tag = "2")]
    pub(super) reason: String,
}

/// All that some methods ask for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Channel {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClientInfo {
    #[prost(string, tag = "1")]
    pub(super) user: String,
    #[prost(string, tag = "2")]
    pub(super) client: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) conn_info: bytes::Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) chan_info: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Presence {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) presence: BTreeMap<String, ClientInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PresenceStats {
    #[prost(uint32, tag = "1")]
    pub(super) num_clients: u32,
    #[prost(uint32, tag = "2")]
    pub(super) num_users: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct History {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(int32, tag = "2")]
    pub(super) limit: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) since: Option<StreamPosition>,
    #[prost(bool, tag = "4")]
    pub(super) reverse: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Publication {
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: bytes::Bytes,
    #[prost(message, optional, tag = "3")]
    pub(super) info: Option<ClientInfo>,
    #[prost(uint64, tag = "4")]
    pub(super) offset: u64,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(super) tags: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Page {
    #[prost(message, repeated, tag = "1")]
    pub(super) publications: Vec<Publication>,
    #[prost(string, tag = "2")]
    pub(super) epoch: String,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Refresh {
    #[prost(string, tag = "1")]
    pub(super) user: String,
    #[prost(string, tag = "2")]
    pub(super) client: String,
    #[prost(bool, tag = "3")]
    pub(super) expired: bool,
    #[prost(int64, tag = "4")]
    pub(super) expire_at: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) info: bytes::Bytes,
    #[prost(string, tag = "6")]
    pub(super) session: String,
    #[prost(message, optional, tag = "7")]
    pub(super) label_filter: Option<Nothing>,
    #[prost(bool, tag = "8")]
    pub(super) all_users: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Rpc {
    #[prost(string, tag = "1")]
    pub(super) method: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct List {
    #[prost(string, tag = "1")]
    pub(super) pattern: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Channels {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) channels: BTreeMap<String, Subscribers>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Subscribers {
    #[prost(uint32, tag = "1")]
    pub(super) num_clients: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Nodes {
    #[prost(message, repeated, tag = "1")]
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, tag = "1")]
    pub(super) uid: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) version: String,
    #[prost(uint32, tag = "4")]
    pub(super) num_clients: u32,
    #[prost(uint32, tag = "5")]
    pub(super) num_users: u32,
    #[prost(uint32, tag = "6")]
    pub(super) num_channels: u32,
    #[prost(uint32, tag = "7")]
    pub(super) uptime: u32,
    #[prost(uint32, tag = "10")]
    pub(super) num_subs: u32,
}
