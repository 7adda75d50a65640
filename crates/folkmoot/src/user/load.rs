//! Brings a user into memory, and reads what memory does not hold.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::Channel;
use folkmoot_protocol::frame::Publication as Frame;
use folkmoot_protocol::limits::RECOVERED_EVENTS_MAX;

use super::state::{Membership, UserState};
use super::{TAIL_LEN, UserError};
use crate::publication::{Place, Publication};
use crate::recovery::Missed;
use crate::storage::Account;
use crate::storage::ReadError;
use crate::storage::record::UserRecord;
use crate::storage::{Offset, Store, UserId, WriteEpoch};
use crate::storage::{UserRoom, UserSnapshot};
use crate::tail::Tail;

/// A user as the store has it.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) account: Account,
    pub(super) state: UserState,
    pub(super) tail: Tail,
    pub(super) epoch: WriteEpoch,
}

/// Loads a user; `None` if there is no such user.
pub(super) async fn load(store: &Store, id: UserId) -> Result<Option<Loaded>, ReadError> {
    let tail_len = u32::try_from(TAIL_LEN).expect("a small constant");
    Ok(store.load_user(id, tail_len).await?.map(Loaded::from))
}

impl From<UserSnapshot> for Loaded {
    fn from(snapshot: UserSnapshot) -> Self {
        let UserSnapshot { account, last_offset, tail, rooms, blocked, epoch } = snapshot;
        let mut state = UserState::new(last_offset);
        state.blocked = blocked.into_iter().collect();
        for room in rooms {
            let mentions = room.mentions.into_iter().collect();
            let UserRoom { read_seq, notify, is_hidden, .. } = room;
            let membership = Membership { read_seq, mentions, notify, is_hidden };
            state.rooms.insert(room.summary.id, membership);
        }
        let first = Offset::from_u64(last_offset.as_u64() - tail.len() as u64);
        let mut publications = Tail::new(first, TAIL_LEN);
        for record in &tail {
            publications.push(Arc::new(publication(record)));
        }
        Self { account, state, tail: publications, epoch }
    }
}

/// The publication of a durable event.
pub(super) fn publication(record: &UserRecord) -> Publication {
    let data = Bytes::copy_from_slice(record.data.as_bytes());
    Publication::new(Channel::User(record.user), Place::At(record.offset), data)
}

/// The events after `since` up to `last`, for a device further behind than memory reaches.
pub(super) async fn missed(
    store: &Store,
    user: UserId,
    since: Offset,
    last: Offset,
) -> Result<Missed, UserError> {
    let missing = last.as_u64().checked_sub(since.as_u64());
    let Some(limit) = missing.filter(|missing| *missing <= RECOVERED_EVENTS_MAX as u64) else {
        return Ok(Missed::TooMuch);
    };
    let limit = u32::try_from(limit).expect("bounded above");
    let events = store.user_events(user, since, limit).await.map_err(UserError::Read)?;
    Ok(match events {
        Some(events) => Missed::within_limit(frames(&events)),
        None => Missed::TooMuch,
    })
}

/// Events as entries of a recovery or history reply.
pub(crate) fn frames(events: &[UserRecord]) -> Vec<Frame> {
    events.iter().map(|record| publication(record).frame()).collect()
}
