//! Methods on the messages that a user has saved for later.

use std::collections::BTreeMap;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::limits::{HISTORY_PAGE_DEFAULT, REPLY_BYTES_MAX, SAVED_MAX};
use folkmoot_protocol::rpc::{
    MessageSave, RpcError, SavedList, SavedMessage, SavedNumbers, SavedPage, encode_payload,
};

use super::error::{control_failure, read_failure, room_answer, user_answer};
use super::stream::len_within;
use crate::chat::Identity;
use crate::storage::contract::{Directory, UserLog};
use crate::storage::{NewSaved, RoomId, Saving, Seq};
use crate::user::UserCalls;
use crate::wire;

/// Saves a message, or takes it off the list; the user's other devices hear of it.
pub(crate) async fn save(by: &Identity, request: MessageSave) -> Result<(), RpcError> {
    let MessageSave { room, seq, on } = request;
    let (server, user) = (&by.server, by.user);
    if on {
        room_answer(server.asked(room).readable(user).await)?;
        let new = NewSaved { user, room, seq, at: server.now() };
        let saving = server.directory().save_message(new, SAVED_MAX).await;
        if saving.map_err(|error| control_failure(&error))? == Saving::Full {
            let text =
                format!("at most {SAVED_MAX} messages are saved; take another one off first");
            let limit = Some(u64::from(SAVED_MAX));
            return Err(RpcError { limit, ..RpcError::new(ErrorCode::LimitExceeded, text) });
        }
    } else {
        let removed = server.directory().unsave_message(user, room, seq).await;
        removed.map_err(|error| control_failure(&error))?;
    }
    // Told also if it was so before: whoever asks again may have lost the first answer.
    user_answer(server.user(user).saved(room, seq, on).await)
}

/// A page of the caller's saved messages, the one saved last first.
pub(crate) async fn list(by: &Identity, request: SavedList) -> Result<SavedPage, RpcError> {
    let SavedList { after, limit } = request;
    let limit = limit.unwrap_or(HISTORY_PAGE_DEFAULT);
    // One more than the page tells whether there is another page.
    let found = by.server.streams().saved(by.user, after, limit + 1).await;
    let mut found = found.map_err(|error| read_failure(&error))?;
    let is_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let places: Vec<_> = found.iter().map(|saved| saved.number).collect();
    let mut saved: Vec<_> = found
        .into_iter()
        .map(|saved| SavedMessage {
            message: wire::stored_message(saved.room, saved.message, by.user),
            at: saved.at,
        })
        .collect();
    let len = len_within(REPLY_BYTES_MAX, saved.iter().map(|one| encode_payload(one).len()));
    let is_cut = len < saved.len();
    saved.truncate(len);
    let last = len.checked_sub(1).and_then(|last| places.get(last)).copied();
    Ok(SavedPage { saved, next: last.filter(|_| is_cut || is_more) })
}

/// Which messages the caller has saved.
pub(crate) async fn marks(by: &Identity) -> Result<SavedNumbers, RpcError> {
    let numbers = by.server.streams().saved_numbers(by.user).await;
    let mut rooms: BTreeMap<RoomId, Vec<Seq>> = BTreeMap::new();
    for (room, seq) in numbers.map_err(|error| read_failure(&error))? {
        rooms.entry(room).or_default().push(seq);
    }
    Ok(SavedNumbers { rooms })
}
