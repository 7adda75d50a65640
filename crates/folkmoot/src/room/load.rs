//! Brings a room into memory, and reads what memory does not hold.

use super::people::{Facts, Missing};
use super::recent::Recent;
use super::state::{Original, RoomState};
use super::{TAIL_LEN, TAIL_LOADED};
use crate::account::token::random_id;
use crate::storage::contract::{Directory, RoomLog};
use crate::storage::record::{Message, Quote, RoomEvent};
use crate::storage::{ReadError, RoomId, RoomSnapshot, Seq, UnixMillis, UserId, WriteEpoch};
use crate::stream::{Tail, of_room};
use crate::wire;

/// A room as the store has it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) state: RoomState,
    pub(super) tail: Tail,
    /// Begins with the newest message, if it is among the newest events.
    pub(super) recent: Recent,
    pub(crate) epoch: WriteEpoch,
}

/// Loads a room; `None` if there is no such room.
pub(crate) async fn load(
    store: &impl RoomLog,
    id: RoomId,
    now: UnixMillis,
) -> Result<Option<Loaded>, ReadError> {
    let tail_len = u32::try_from(TAIL_LOADED).expect("a small constant");
    let snapshot = store.load_room(id, tail_len, now).await?;
    Ok(snapshot.map(Loaded::from))
}

impl From<RoomSnapshot> for Loaded {
    fn from(snapshot: RoomSnapshot) -> Self {
        let RoomSnapshot { summary, owners, pair, blockers, uploads, pins, tail, epoch, .. } =
            snapshot;
        let kind = summary.kind.into();
        let mut state = RoomState::new(summary.id, kind, summary.name, summary.topic, random_id());
        (state.members, state.owners, state.pair) = (summary.member_count, owners, pair);
        state.blockers = blockers.into_iter().collect();
        for upload in uploads {
            // Only those that have not expired are loaded.
            state.uploads.add(upload, UnixMillis::from_u64(0));
        }
        snapshot.everyone_mentions.into_iter().rev().for_each(|seq| state.remember_everyone(seq));
        state.pins = pins.into_iter().collect();
        state.is_archived = snapshot.is_archived;
        state.offset = summary.last_offset;
        (state.first_seq, state.last_seq) = (summary.first_seq, summary.last_seq);
        tail.iter().for_each(|record| state.remember_event(&record.event));
        let publications = tail.iter().map(|record| of_room(record, None));
        let publications = Tail::ending(summary.last_offset, TAIL_LEN, publications);
        let newest = tail.iter().rev().find(|record| matches!(record.event, RoomEvent::Message(_)));
        let first_kept = summary.first_seq;
        let recent = match newest {
            Some(newest) => Recent::after(newest, first_kept),
            None => Recent::of(first_kept),
        };
        let recent = recent.with_pins(state.pins.clone());
        Self { state, tail: publications, recent, epoch }
    }
}

/// What a room asked for before it judges a request of `by`.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) facts: Facts,
    pub(super) named: Vec<(String, UserId)>,
    pub(super) original: Option<Original>,
    /// The message asked for, if there is none of this number.
    pub(super) gone: Option<Seq>,
}

/// Reads what a room asked for.
pub(super) async fn bring(
    store: &(impl RoomLog + Directory),
    room: RoomId,
    by: UserId,
    missing: Missing,
    now: UnixMillis,
) -> Result<Brought, ReadError> {
    let Missing { as_of, mut people, keys_of, names, original: wanted } = missing;
    let named = match names.is_empty() {
        true => Vec::new(),
        false => store.users_named(names).await?,
    };
    people.extend(named.iter().map(|(_, user)| *user));
    let people = store.standings(room, people).await?;
    let keys = match keys_of {
        Some(sender) => Some((sender, store.keys_of(room, sender, now).await?)),
        None => None,
    };
    let original = match wanted {
        Some(seq) => original(store, room, seq, by).await?,
        None => None,
    };
    let gone = wanted.filter(|_| original.is_none());
    Ok(Brought { facts: Facts { as_of, people, keys }, named, original, gone })
}

/// Reads an earlier message as the rules look at it; `None` if there is no such message.
async fn original(
    store: &impl RoomLog,
    room: RoomId,
    seq: Seq,
    viewer: UserId,
) -> Result<Option<Original>, ReadError> {
    let Some(stored) = store.message(room, seq, viewer).await? else { return Ok(None) };
    let deleted = stored.deleted.is_some();
    let reactions = stored.reactions.into_iter().map(|reaction| reaction.emoji).collect();
    let Message { seq, user, name, body, mentions, .. } = stored.message;
    let body = wire::excerpt(&body).to_owned();
    Ok(Some(Original { quote: Quote { seq, user, name, body }, deleted, reactions, mentions }))
}
