//! Frames of the Centrifugo client protocol: what a connection carries, before any chat meaning.
//! Field names and numbers are those of its `client.proto`, so that existing SDKs work unmodified.
//! Fields of features we do not offer (maps, shared polls) are left out; decoders skip what they do
//! not know. JSON leaves empty fields out exactly where the original server does.

mod command;
mod envelope;
mod payload;
mod push;
mod reply;

pub use command::{
    Command, ConnectRequest, FilterNode, HistoryRequest, PingRequest, PresenceRequest,
    PresenceStatsRequest, PublishRequest, RefreshRequest, Request, RpcRequest, SendRequest,
    StreamPosition, SubRefreshRequest, SubscribeRequest, UnsubscribeRequest,
};
pub use push::{
    ClientInfo, Connect, Disconnect, Join, Leave, Message, Publication, Push, PushKind, Refresh,
    Subscribe, Unsubscribe,
};
pub use reply::{
    ConnectResult, Error, HistoryResult, Outcome, PingResult, PresenceResult, PresenceStatsResult,
    PublishResult, RefreshResult, Reply, RpcResult, SubRefreshResult, SubscribeResult,
    UnsubscribeResult,
};
