//! Durable records as what subscribers get.

use bytes::Bytes;
use folkmoot_protocol::frame::ClientInfo;
use folkmoot_protocol::{Channel, rpc};

use super::{Place, Publication, Removed};
use crate::storage::{RoomEvent, RoomRecord, UserRecord};
use crate::wire;

/// The publication of a durable event of a room. By which connection a message was sent is known
/// only while the room is in memory.
pub(crate) fn of_room(record: &RoomRecord, client: Option<&str>) -> Publication {
    let data = rpc::encode_payload(&wire::room_event(record));
    let channel = Channel::Room(record.room);
    let mut publication = Publication::new(channel, Place::At(record.offset), data);
    if let RoomEvent::Left { user, .. } = &record.event {
        publication.removes = Some(Removed::User(*user));
    }
    if let RoomEvent::Message(message) = &record.event {
        let (user, client) = (message.user.to_string(), client.unwrap_or_default().to_owned());
        publication.by = Some(ClientInfo { user, client, ..ClientInfo::default() });
    }
    publication
}

/// The publication of a durable event of a user.
pub(crate) fn of_user(record: &UserRecord) -> Publication {
    let data = Bytes::copy_from_slice(record.data.as_bytes());
    Publication::new(Channel::User(record.user), Place::At(record.offset), data)
}
