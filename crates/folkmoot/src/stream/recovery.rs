//! What a subscriber that was away gets: the position of the stream, and what it missed.

use althing::Wire;
use std::sync::Arc;

use folkmoot_protocol::Channel;
use folkmoot_protocol::frame::{Publication as Frame, SubscribeResult};
use folkmoot_protocol::limits::{RECOVERED_EVENTS_MAX, REPLY_BYTES_MAX};

use super::Publication;
use super::{of_room, of_user};
use crate::storage::contract::StreamLog;
use crate::storage::{Offset, ReadError};

/// Where a client stands that wants to go on rather than begin.
#[derive(Debug, Clone, PartialEq, Eq, Wire)]
pub(crate) struct Since {
    pub(crate) offset: Offset,
    /// Empty: the client does not know it, and asks for what comes after the offset all the same.
    pub(crate) epoch: String,
}

impl Since {
    /// Whether the offset counts in another epoch than this one.
    pub(crate) fn is_elsewhere(&self, epoch: &str) -> bool {
        !self.epoch.is_empty() && self.epoch != epoch
    }
}

/// What there is to send before the live events.
#[derive(Debug, Wire)]
pub(crate) enum Missed {
    /// The client did not ask.
    NotAsked,
    /// All of it, oldest first.
    All(Vec<Frame>),
    /// Too much, or of another data directory: the client has to fetch history.
    TooMuch,
}

impl Missed {
    /// All of these, unless they are too many bytes for one reply: a client that got them would be
    /// disconnected as slow, recover, and be disconnected again without end.
    pub(crate) fn within_limit(publications: Vec<Frame>) -> Self {
        let bytes: usize = publications.iter().map(|publication| publication.data.len()).sum();
        if bytes > REPLY_BYTES_MAX { Self::TooMuch } else { Self::All(publications) }
    }

    pub(crate) fn from_memory(publications: &[Arc<Publication>]) -> Self {
        Self::within_limit(publications.iter().map(|publication| publication.frame()).collect())
    }
}

/// The events of a stream after `since` up to `last`, for a client further behind than memory
/// reaches.
pub(crate) async fn missed(
    store: &impl StreamLog,
    stream: Channel,
    since: Offset,
    last: Offset,
) -> Result<Missed, ReadError> {
    let missing = last.as_u64().checked_sub(since.as_u64());
    let Some(limit) = missing.filter(|missing| *missing <= RECOVERED_EVENTS_MAX as u64) else {
        return Ok(Missed::TooMuch);
    };
    let limit = u32::try_from(limit).expect("bounded above");
    let events = events(store, stream, since, limit).await?;
    Ok(events.map_or(Missed::TooMuch, Missed::within_limit))
}

/// Events of a stream after an offset, as entries of a recovery or history reply; `None` if some of
/// them are kept no more.
pub(crate) async fn events(
    store: &impl StreamLog,
    stream: Channel,
    after: Offset,
    limit: u32,
) -> Result<Option<Vec<Frame>>, ReadError> {
    Ok(match stream {
        Channel::Room(room) => {
            let events = store.room_events(room, after, limit).await?;
            events.map(|events| events.iter().map(|event| of_room(event, None).frame()).collect())
        }
        Channel::User(user) => {
            let events = store.user_events(user, after, limit).await?;
            events.map(|events| events.iter().map(|event| of_user(event).frame()).collect())
        }
    })
}

/// A subscription as its stream accepted it: live events follow after `offset`.
#[derive(Debug, Wire)]
pub(crate) struct Attached {
    pub(crate) offset: Offset,
    pub(crate) missed: Missed,
}

impl Attached {
    /// The reply for the client.
    pub(crate) fn into_result(self, epoch: &str) -> SubscribeResult {
        let (was_recovering, recovered, publications) = match self.missed {
            Missed::NotAsked => (false, false, Vec::new()),
            Missed::All(publications) => (true, true, publications),
            Missed::TooMuch => (true, false, Vec::new()),
        };
        SubscribeResult {
            recoverable: true,
            positioned: true,
            epoch: epoch.to_owned(),
            offset: self.offset.as_u64(),
            publications,
            recovered,
            was_recovering,
            ..SubscribeResult::default()
        }
    }
}
