//! The bytes of a record: protobuf with explicit tags, so that later fields can be added.
//!
//! Never reuse or renumber a tag: logs and event rows written by older programs must keep decoding.
//! Conversions are in `convert`. An unknown kind is an error, because skipping it would silently
//! lose an acknowledged record.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireRecord {
    #[prost(oneof = "WireKind", tags = "1, 2, 3, 4")]
    pub(super) kind: Option<WireKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum WireKind {
    #[prost(message, tag = "1")]
    Room(WireRoom),
    #[prost(message, tag = "2")]
    User(WireUser),
    #[prost(message, tag = "3")]
    Cursor(WireRoomSeq),
    #[prost(message, tag = "4")]
    DeviceSeen(WireDeviceSeen),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireRoom {
    #[prost(fixed64, tag = "1")]
    pub(super) room: u64,
    #[prost(uint64, tag = "2")]
    pub(super) offset: u64,
    #[prost(uint64, tag = "3")]
    pub(super) at: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) event: Option<WireEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireEvent {
    #[prost(oneof = "WireEventKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")]
    pub(super) kind: Option<WireEventKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum WireEventKind {
    #[prost(message, tag = "1")]
    Message(WireMessage),
    #[prost(message, tag = "2")]
    Edited(WireEdited),
    #[prost(message, tag = "3")]
    Deleted(WireDeleted),
    #[prost(message, tag = "4")]
    Reaction(WireReaction),
    #[prost(message, tag = "5")]
    Joined(WireJoined),
    #[prost(message, tag = "6")]
    Left(WireLeft),
    #[prost(message, tag = "7")]
    RoleSet(WireRoleSet),
    #[prost(message, tag = "8")]
    Described(WireDescribed),
    #[prost(message, tag = "9")]
    Archived(WireArchived),
    #[prost(message, tag = "10")]
    Expired(WireExpired),
    #[prost(message, tag = "11")]
    Pinned(WirePinned),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireMessage {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "2")]
    pub(super) user: u64,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) key: String,
    #[prost(fixed64, tag = "5")]
    pub(super) content_hash: u64,
    #[prost(string, tag = "6")]
    pub(super) body: String,
    #[prost(message, optional, tag = "7")]
    pub(super) details: Option<WireDetails>,
}

/// What few messages have; a column of its own in SQLite, absent for most.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireDetails {
    #[prost(message, optional, tag = "1")]
    pub(super) reply_to: Option<WireQuote>,
    #[prost(fixed64, repeated, tag = "2")]
    pub(super) mentions: Vec<u64>,
    #[prost(bool, tag = "3")]
    pub(super) mention_all: bool,
    #[prost(message, repeated, tag = "4")]
    pub(super) attachments: Vec<WireAttachment>,
}

/// Without pixels: not an image.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireAttachment {
    #[prost(fixed64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) media_type: String,
    #[prost(uint64, tag = "4")]
    pub(super) size: u64,
    #[prost(uint32, tag = "5")]
    pub(super) width: u32,
    #[prost(uint32, tag = "6")]
    pub(super) height: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireQuote {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "2")]
    pub(super) user: u64,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) body: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireEdited {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(string, tag = "2")]
    pub(super) body: String,
    #[prost(fixed64, repeated, tag = "3")]
    pub(super) mentions: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireDeleted {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "2")]
    pub(super) by: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireReaction {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "2")]
    pub(super) user: u64,
    #[prost(string, tag = "3")]
    pub(super) emoji: String,
    #[prost(bool, tag = "4")]
    pub(super) on: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireJoined {
    #[prost(fixed64, tag = "1")]
    pub(super) user: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(uint32, tag = "3")]
    pub(super) role: u32,
    /// Absent in records of older versions.
    #[prost(string, tag = "4")]
    pub(super) display_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireLeft {
    #[prost(fixed64, tag = "1")]
    pub(super) user: u64,
    #[prost(fixed64, optional, tag = "2")]
    pub(super) by: Option<u64>,
    #[prost(uint32, tag = "3")]
    pub(super) reason: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireRoleSet {
    #[prost(fixed64, tag = "1")]
    pub(super) user: u64,
    #[prost(uint32, tag = "2")]
    pub(super) role: u32,
    #[prost(uint64, optional, tag = "3")]
    pub(super) muted_until: Option<u64>,
    #[prost(fixed64, tag = "4")]
    pub(super) by: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WireArchived {
    #[prost(bool, tag = "1")]
    pub(super) on: bool,
    #[prost(fixed64, tag = "2")]
    pub(super) by: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WireExpired {
    #[prost(uint64, tag = "1")]
    pub(super) up_to: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WirePinned {
    #[prost(uint64, tag = "1")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "2")]
    pub(super) by: u64,
    #[prost(bool, tag = "3")]
    pub(super) on: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireDescribed {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) topic: String,
    #[prost(fixed64, tag = "3")]
    pub(super) by: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WireUser {
    #[prost(fixed64, tag = "1")]
    pub(super) user: u64,
    #[prost(uint64, tag = "2")]
    pub(super) offset: u64,
    #[prost(uint64, tag = "3")]
    pub(super) at: u64,
    #[prost(string, tag = "4")]
    pub(super) data: String,
    #[prost(oneof = "WireEffect", tags = "5, 6, 7")]
    pub(super) effect: Option<WireEffect>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum WireEffect {
    #[prost(message, tag = "5")]
    Mention(WireRoomSeq),
    #[prost(message, tag = "6")]
    Read(WireRoomSeq),
    #[prost(message, tag = "7")]
    Notify(WireNotify),
}

/// A place in a room; `user` is used by a bare cursor only.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WireRoomSeq {
    #[prost(fixed64, tag = "1")]
    pub(super) room: u64,
    #[prost(uint64, tag = "2")]
    pub(super) seq: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) user: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WireNotify {
    #[prost(fixed64, tag = "1")]
    pub(super) room: u64,
    #[prost(uint32, tag = "2")]
    pub(super) notify: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct WireDeviceSeen {
    #[prost(fixed64, tag = "1")]
    pub(super) device: u64,
    #[prost(uint64, tag = "2")]
    pub(super) at: u64,
}
