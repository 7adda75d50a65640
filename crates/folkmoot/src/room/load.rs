//! Brings a room into memory, and reads what memory does not hold.

use std::sync::Arc;

use folkmoot_protocol::frame::{ClientInfo, Publication as Frame};
use folkmoot_protocol::limits::RECOVERED_EVENTS_MAX;
use folkmoot_protocol::{Channel, rpc};

use super::idempotency::{ContentHash, FirstSend};
use super::state::{Kind, Member, RoomState};
use super::{RoomError, TAIL_LEN};
use crate::publication::{Place, Publication, Removed};
use crate::recovery::Missed;
use crate::storage;
use crate::storage::ReadError;
use crate::storage::RoomKind;
use crate::storage::RoomSnapshot;
use crate::storage::record::{Message, RoomEvent, RoomRecord};
use crate::storage::{Offset, RoomId, Store, UnixMillis, WriteEpoch};
use crate::tail::Tail;
use crate::wire;

/// A room as the store has it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) state: RoomState,
    pub(super) tail: Tail,
    /// The newest message, if it is among the newest events.
    pub(super) last: Option<(UnixMillis, Message)>,
    pub(crate) epoch: WriteEpoch,
}

/// Loads a room; `None` if there is no such room.
pub(crate) async fn load(
    store: &Store,
    id: RoomId,
    now: UnixMillis,
) -> Result<Option<Loaded>, ReadError> {
    let tail_len = u32::try_from(TAIL_LEN).expect("a small constant");
    let snapshot = store.load_room(id, tail_len, now).await?;
    Ok(snapshot.map(Loaded::from))
}

impl From<RoomSnapshot> for Loaded {
    fn from(snapshot: RoomSnapshot) -> Self {
        let RoomSnapshot { summary, members, bans, blockers, keys, uploads, tail, epoch, .. } =
            snapshot;
        let kind = match summary.kind {
            RoomKind::Room => Kind::Room,
            RoomKind::Direct => Kind::Direct,
        };
        let mut state = RoomState::new(summary.id, kind, summary.name, summary.topic);
        for member in members {
            let storage::Member { user, name, display_name, role, muted_until, .. } = member;
            state.insert_member(user, Member { name, display_name, role, muted_until });
        }
        bans.into_iter().for_each(|user| state.set_banned(user, true));
        state.blockers = blockers.into_iter().collect();
        for key in keys {
            let content = ContentHash(key.content_hash);
            let first = FirstSend { content, seq: key.seq, offset: key.offset, at: key.at };
            state.keys.record(key.user, &key.key, first);
        }
        for upload in uploads {
            // Only those that have not expired are loaded.
            state.uploads.add(upload, UnixMillis::from_u64(0));
        }
        snapshot.everyone_mentions.into_iter().rev().for_each(|seq| state.remember_everyone(seq));
        state.is_archived = snapshot.is_archived;
        state.offset = summary.last_offset;
        state.last_seq = summary.last_seq;
        let first = Offset::from_u64(summary.last_offset.as_u64() - tail.len() as u64);
        let mut publications = Tail::new(first, TAIL_LEN);
        for record in &tail {
            state.remember_event(&record.event);
            publications.push(Arc::new(publication(record, None)));
        }
        let last = tail.into_iter().rev().find_map(|record| match record.event {
            RoomEvent::Message(message) => Some((record.at, message)),
            _ => None,
        });
        Self { state, tail: publications, last, epoch }
    }
}

/// The publication of a durable event. By which connection a message was sent is known only while
/// the room is in memory.
pub(super) fn publication(record: &RoomRecord, client: Option<&str>) -> Publication {
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

/// The events after `since` up to `last`, for a client further behind than memory reaches.
pub(super) async fn missed(
    store: &Store,
    room: RoomId,
    since: Offset,
    last: Offset,
) -> Result<Missed, RoomError> {
    let missing = last.as_u64().checked_sub(since.as_u64());
    let Some(limit) = missing.filter(|missing| *missing <= RECOVERED_EVENTS_MAX as u64) else {
        return Ok(Missed::TooMuch);
    };
    let limit = u32::try_from(limit).expect("bounded above");
    let events = store.room_events(room, since, limit).await.map_err(RoomError::Read)?;
    Ok(match events {
        Some(events) => Missed::within_limit(frames(&events)),
        None => Missed::TooMuch,
    })
}

/// Events as entries of a recovery or history reply.
pub(crate) fn frames(events: &[RoomRecord]) -> Vec<Frame> {
    events.iter().map(|record| publication(record, None).frame()).collect()
}
