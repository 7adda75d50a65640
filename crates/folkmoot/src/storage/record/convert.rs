//! Between records and their bytes; the only place that knows both shapes.

use prost::Message as _;

use super::wire::{
    WireArchived, WireDeleted, WireDescribed, WireDetails, WireDeviceSeen, WireEdited, WireEffect,
    WireEvent, WireEventKind, WireExpired, WireJoined, WireKind, WireLeft, WireMessage, WireNotify,
    WirePinned, WireQuote, WireReaction, WireRecord, WireRoleSet, WireRoom, WireRoomSeq, WireUser,
};
use super::{
    LeaveReason, Message, MessageDetails, Notify, Quote, ReadCursor, Record, RecordError, Role,
    RoomEvent, RoomRecord, UserEffect, UserRecord, attachment,
};
use crate::storage::ids::{DeviceId, Offset, RoomId, Seq, UnixMillis, UserId};

impl Record {
    /// The bytes of this record, as they go into the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self {
            Self::Room(record) => WireKind::Room(WireRoom {
                room: record.room.as_u64(),
                offset: record.offset.as_u64(),
                at: record.at.as_u64(),
                event: Some(event_to_wire(&record.event)),
            }),
            Self::User(record) => WireKind::User(user_to_wire(record)),
            Self::Cursor(cursor) => WireKind::Cursor(WireRoomSeq {
                room: cursor.room.as_u64(),
                seq: cursor.seq.as_u64(),
                user: cursor.user.as_u64(),
            }),
            Self::DeviceSeen { device, at } => {
                WireKind::DeviceSeen(WireDeviceSeen { device: device.as_u64(), at: at.as_u64() })
            }
        };
        WireRecord { kind: Some(kind) }.encode_to_vec()
    }

    /// Reads a record back from its bytes.
    ///
    /// # Errors
    /// [`RecordError`] for bytes that are not a record known to this program.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let wire = WireRecord::decode(bytes).map_err(malformed)?;
        Ok(match wire.kind.ok_or(RecordError::UnknownKind)? {
            WireKind::Room(room) => Self::Room(RoomRecord {
                room: RoomId::from_u64(room.room),
                offset: Offset::from_u64(room.offset),
                at: UnixMillis::from_u64(room.at),
                event: event_from_wire(room.event.ok_or(RecordError::UnknownKind)?)?,
            }),
            WireKind::User(user) => Self::User(user_from_wire(user)?),
            WireKind::Cursor(cursor) => Self::Cursor(ReadCursor {
                user: UserId::from_u64(cursor.user),
                room: RoomId::from_u64(cursor.room),
                seq: Seq::from_u64(cursor.seq),
            }),
            WireKind::DeviceSeen(seen) => Self::DeviceSeen {
                device: DeviceId::from_u64(seen.device),
                at: UnixMillis::from_u64(seen.at),
            },
        })
    }
}

impl RoomEvent {
    /// The bytes of this event, as a row of `room_events` holds them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        event_to_wire(self).encode_to_vec()
    }

    /// Reads an event back from its row.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        event_from_wire(WireEvent::decode(bytes).map_err(malformed)?)
    }
}

impl MessageDetails {
    /// What few messages have, of a message.
    pub(crate) fn of(message: &Message) -> Self {
        Self {
            reply_to: message.reply_to.clone(),
            mentions: message.mentions.clone(),
            mention_all: message.mention_all,
            attachments: message.attachments.clone(),
        }
    }

    /// The bytes of the `details` column; `None` when there is nothing to keep.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        details_to_wire(self).map(|wire| wire.encode_to_vec())
    }

    /// Reads the `details` column back.
    pub(crate) fn decode(bytes: Option<&[u8]>) -> Result<Self, RecordError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        Ok(details_from_wire(WireDetails::decode(bytes).map_err(malformed)?))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn malformed(error: prost::DecodeError) -> RecordError {
    RecordError::Malformed(error.to_string())
}

fn user_ids(ids: &[UserId]) -> Vec<u64> {
    ids.iter().map(|id| id.as_u64()).collect()
}

fn details_to_wire(details: &MessageDetails) -> Option<WireDetails> {
    let has_any = *details != MessageDetails::default();
    has_any.then(|| WireDetails {
        reply_to: details.reply_to.as_ref().map(|quote| WireQuote {
            seq: quote.seq.as_u64(),
            user: quote.user.as_u64(),
            name: quote.name.clone(),
            body: quote.body.clone(),
        }),
        mentions: user_ids(&details.mentions),
        mention_all: details.mention_all,
        attachments: details.attachments.iter().map(attachment::to_wire).collect(),
    })
}

fn details_from_wire(wire: WireDetails) -> MessageDetails {
    MessageDetails {
        reply_to: wire.reply_to.map(|quote| Quote {
            seq: Seq::from_u64(quote.seq),
            user: UserId::from_u64(quote.user),
            name: quote.name,
            body: quote.body,
        }),
        mentions: wire.mentions.into_iter().map(UserId::from_u64).collect(),
        mention_all: wire.mention_all,
        attachments: wire.attachments.into_iter().map(attachment::from_wire).collect(),
    }
}

fn message_to_wire(message: &Message) -> WireMessage {
    WireMessage {
        seq: message.seq.as_u64(),
        user: message.user.as_u64(),
        name: message.name.clone(),
        key: message.key.clone(),
        content_hash: message.content_hash,
        body: message.body.clone(),
        details: details_to_wire(&MessageDetails::of(message)),
    }
}

fn event_to_wire(event: &RoomEvent) -> WireEvent {
    let kind = match event {
        RoomEvent::Message(message) => WireEventKind::Message(message_to_wire(message)),
        RoomEvent::Edited { seq, body, mentions } => WireEventKind::Edited(WireEdited {
            seq: seq.as_u64(),
            body: body.clone(),
            mentions: user_ids(mentions),
        }),
        RoomEvent::Deleted { seq, by } => {
            WireEventKind::Deleted(WireDeleted { seq: seq.as_u64(), by: by.as_u64() })
        }
        RoomEvent::Reaction { seq, user, emoji, on } => WireEventKind::Reaction(WireReaction {
            seq: seq.as_u64(),
            user: user.as_u64(),
            emoji: emoji.clone(),
            on: *on,
        }),
        RoomEvent::Joined { user, name, display_name, role } => WireEventKind::Joined(WireJoined {
            user: user.as_u64(),
            name: name.clone(),
            display_name: display_name.clone(),
            role: role.number().into(),
        }),
        RoomEvent::Left { user, by, reason } => WireEventKind::Left(WireLeft {
            user: user.as_u64(),
            by: by.map(|by| by.as_u64()),
            reason: reason.number().into(),
        }),
        RoomEvent::RoleSet { user, role, muted_until, by } => WireEventKind::RoleSet(WireRoleSet {
            user: user.as_u64(),
            role: role.number().into(),
            muted_until: muted_until.map(|at| at.as_u64()),
            by: by.as_u64(),
        }),
        RoomEvent::Archived { on, by } => {
            WireEventKind::Archived(WireArchived { on: *on, by: by.as_u64() })
        }
        RoomEvent::Expired { up_to } => {
            WireEventKind::Expired(WireExpired { up_to: up_to.as_u64() })
        }
        RoomEvent::Pinned { seq, by, on } => {
            WireEventKind::Pinned(WirePinned { seq: seq.as_u64(), by: by.as_u64(), on: *on })
        }
        RoomEvent::Described { name, topic, by } => WireEventKind::Described(WireDescribed {
            name: name.clone(),
            topic: topic.clone(),
            by: by.as_u64(),
        }),
    };
    WireEvent { kind: Some(kind) }
}

fn event_from_wire(wire: WireEvent) -> Result<RoomEvent, RecordError> {
    Ok(match wire.kind.ok_or(RecordError::UnknownKind)? {
        WireEventKind::Message(wire) => {
            let details = details_from_wire(wire.details.unwrap_or_default());
            RoomEvent::Message(Message {
                seq: Seq::from_u64(wire.seq),
                user: UserId::from_u64(wire.user),
                name: wire.name,
                key: wire.key,
                content_hash: wire.content_hash,
                body: wire.body,
                reply_to: details.reply_to,
                mentions: details.mentions,
                mention_all: details.mention_all,
                attachments: details.attachments,
            })
        }
        WireEventKind::Edited(wire) => RoomEvent::Edited {
            seq: Seq::from_u64(wire.seq),
            body: wire.body,
            mentions: wire.mentions.into_iter().map(UserId::from_u64).collect(),
        },
        WireEventKind::Deleted(wire) => {
            RoomEvent::Deleted { seq: Seq::from_u64(wire.seq), by: UserId::from_u64(wire.by) }
        }
        WireEventKind::Reaction(wire) => RoomEvent::Reaction {
            seq: Seq::from_u64(wire.seq),
            user: UserId::from_u64(wire.user),
            emoji: wire.emoji,
            on: wire.on,
        },
        WireEventKind::Joined(wire) => RoomEvent::Joined {
            user: UserId::from_u64(wire.user),
            display_name: match wire.display_name.is_empty() {
                true => wire.name.clone(),
                false => wire.display_name,
            },
            name: wire.name,
            role: Role::from_number(wire.role)?,
        },
        WireEventKind::Left(wire) => RoomEvent::Left {
            user: UserId::from_u64(wire.user),
            by: wire.by.map(UserId::from_u64),
            reason: LeaveReason::from_number(wire.reason)?,
        },
        WireEventKind::RoleSet(wire) => RoomEvent::RoleSet {
            user: UserId::from_u64(wire.user),
            role: Role::from_number(wire.role)?,
            muted_until: wire.muted_until.map(UnixMillis::from_u64),
            by: UserId::from_u64(wire.by),
        },
        WireEventKind::Archived(wire) => {
            RoomEvent::Archived { on: wire.on, by: UserId::from_u64(wire.by) }
        }
        WireEventKind::Expired(wire) => RoomEvent::Expired { up_to: Seq::from_u64(wire.up_to) },
        WireEventKind::Pinned(wire) => RoomEvent::Pinned {
            seq: Seq::from_u64(wire.seq),
            by: UserId::from_u64(wire.by),
            on: wire.on,
        },
        WireEventKind::Described(wire) => RoomEvent::Described {
            name: wire.name,
            topic: wire.topic,
            by: UserId::from_u64(wire.by),
        },
    })
}

fn user_to_wire(record: &UserRecord) -> WireUser {
    let place =
        |room: RoomId, seq: Seq| WireRoomSeq { room: room.as_u64(), seq: seq.as_u64(), user: 0 };
    WireUser {
        user: record.user.as_u64(),
        offset: record.offset.as_u64(),
        at: record.at.as_u64(),
        data: record.data.clone(),
        effect: record.effect.map(|effect| match effect {
            UserEffect::Mention { room, seq } => WireEffect::Mention(place(room, seq)),
            UserEffect::Read { room, seq } => WireEffect::Read(place(room, seq)),
            UserEffect::Notify { room, notify } => WireEffect::Notify(WireNotify {
                room: room.as_u64(),
                notify: notify.number().into(),
            }),
        }),
    }
}

fn user_from_wire(wire: WireUser) -> Result<UserRecord, RecordError> {
    let effect = match wire.effect {
        None => None,
        Some(WireEffect::Mention(place)) => Some(UserEffect::Mention {
            room: RoomId::from_u64(place.room),
            seq: Seq::from_u64(place.seq),
        }),
        Some(WireEffect::Read(place)) => Some(UserEffect::Read {
            room: RoomId::from_u64(place.room),
            seq: Seq::from_u64(place.seq),
        }),
        Some(WireEffect::Notify(wire)) => Some(UserEffect::Notify {
            room: RoomId::from_u64(wire.room),
            notify: Notify::from_number(wire.notify)?,
        }),
    };
    Ok(UserRecord {
        user: UserId::from_u64(wire.user),
        offset: Offset::from_u64(wire.offset),
        at: UnixMillis::from_u64(wire.at),
        data: wire.data,
        effect,
    })
}
