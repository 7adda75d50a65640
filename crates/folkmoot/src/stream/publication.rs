//! What rooms and users tell on its way to sockets: encoded at most once per format, then shared.
//!
//! A topic hands the same `Publication` to every session, so the cost of an event for each further
//! subscriber is a reference count and a push into its queue. A `Coming` has a topic of its own,
//! because few ask for it and a crowd that reconnects would tell everybody of everybody.

use althing::Wire;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use folkmoot_protocol::frame::{ClientInfo, Join, Leave, Publication as Frame, Push, PushKind};
use folkmoot_protocol::rpc::encode_payload;
use folkmoot_protocol::{Channel, Format};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::storage::{Offset, UserId};

/// Whether an event has a place in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Wire)]
pub(crate) enum Place {
    /// Recoverable, at this offset.
    At(Offset),
    /// Typing: true for seconds only, so never recovered.
    Fleeting,
}

/// Whose subscription ends with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Wire)]
pub(crate) enum Removed {
    /// That of somebody who left or was removed.
    User(UserId),
    /// All: the room is deleted.
    Everybody,
}

#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) channel: Channel,
    pub(crate) place: Place,
    /// Who may not read on after this event.
    pub(crate) removes: Option<Removed>,
    /// Who caused it, for events that somebody publishes.
    pub(crate) by: Option<ClientInfo>,
    pub(super) data: Bytes,
    encoded: Encoded,
}

/// A connection came to a room or went, for those who asked to hear of it.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) channel: Channel,
    pub(super) kind: PushKind,
    encoded: Encoded,
}

/// What one connection alone is told about who is there.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Presence(pub(crate) Arc<Publication>);

/// A push in the formats that somebody needed so far.
#[derive(Debug, Default)]
struct Encoded {
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl Encoded {
    fn get(&self, format: Format, push: impl FnOnce() -> Push) -> &Bytes {
        let slot = match format {
            Format::Json => &self.json,
            Format::Protobuf => &self.protobuf,
        };
        slot.get_or_init(|| {
            format.encode_push(push()).expect("what a push carries is JSON that we wrote")
        })
    }
}

impl Coming {
    pub(crate) fn join(channel: Channel, info: ClientInfo) -> Self {
        let kind = PushKind::Join(Join { info: Some(info) });
        Self { channel, kind, encoded: Encoded::default() }
    }

    pub(crate) fn leave(channel: Channel, info: ClientInfo) -> Self {
        let kind = PushKind::Leave(Leave { info: Some(info) });
        Self { channel, kind, encoded: Encoded::default() }
    }

    /// The push, ready for a socket.
    pub(crate) fn encoded(&self, format: Format) -> &Bytes {
        self.encoded.get(format, || Push {
            channel: self.channel.to_string(),
            kind: Some(self.kind.clone()),
        })
    }
}

impl Publication {
    /// `data` is the event as JSON.
    pub(crate) fn new(channel: Channel, place: Place, data: Bytes) -> Self {
        Self { channel, place, removes: None, by: None, data, encoded: Encoded::default() }
    }

    /// What happened; `None` if it is of another type.
    pub(crate) fn event<E: DeserializeOwned>(&self) -> Option<E> {
        serde_json::from_slice(&self.data).ok()
    }

    /// The same place with another event.
    pub(crate) fn with_event<E: Serialize>(&self, event: &E) -> Self {
        let data = encode_payload(event);
        let (removes, by) = (self.removes, self.by.clone());
        Self { removes, by, ..Self::new(self.channel, self.place, data) }
    }

    /// The event as one entry of a recovery or history reply.
    pub(crate) fn frame(&self) -> Frame {
        let offset = match self.place {
            Place::At(offset) => offset.as_u64(),
            Place::Fleeting => 0,
        };
        Frame { data: self.data.clone(), info: self.by.clone(), offset, ..Frame::default() }
    }

    /// The push that carries the event, ready for a socket.
    pub(crate) fn encoded(&self, format: Format) -> &Bytes {
        self.encoded.get(format, || Push {
            channel: self.channel.to_string(),
            kind: Some(PushKind::Pub(self.frame())),
        })
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_protocol::RoomId;

    use super::*;

    #[test]
    fn an_event_is_encoded_once_per_format_and_shared() {
        let channel = Channel::Room(RoomId::from_u64(1));
        let data = Bytes::from_static(b"{\"type\":\"typing\"}");
        let publication = Publication::new(channel, Place::At(Offset::from_u64(7)), data);
        let first = publication.encoded(Format::Json);
        assert_eq!(first.as_ptr(), publication.encoded(Format::Json).as_ptr());
        let text = std::str::from_utf8(first).unwrap();
        let expected = r#"{"push":{"channel":"room:0000000000001","pub":{"data":{"type":"typing"},"offset":7}}}"#;
        assert_eq!(text, expected);
        let binary = publication.encoded(Format::Protobuf);
        let replies = Format::Protobuf.decode_replies(binary).unwrap();
        assert_eq!(replies, Format::Json.decode_replies(first).unwrap());
    }
}
