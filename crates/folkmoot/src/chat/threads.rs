//! The method on what grew out of one message.

use folkmoot_protocol::limits::{HISTORY_PAGE_DEFAULT, REPLY_BYTES_MAX};
use folkmoot_protocol::rpc::{MessageThread, RpcError, ThreadPage, encode_payload};

use super::error::{read_failure, room_answer};
use super::stream::len_within;
use crate::chat::Identity;
use crate::storage::contract::RoomLog;
use crate::wire;

/// A message and all that answers it, oldest first.
pub(crate) async fn thread(by: &Identity, request: MessageThread) -> Result<ThreadPage, RpcError> {
    let MessageThread { room, seq, after, limit } = request;
    // Also the check that the caller may read here.
    room_answer(by.server.asked(room).readable(by.user).await)?;
    let limit = limit.unwrap_or(HISTORY_PAGE_DEFAULT);
    // One more than the page tells whether there is another page.
    let found = by.server.streams().thread(room, seq, after, limit + 1, by.user).await;
    let found = found.map_err(|error| read_failure(&error))?.into_iter();
    let mut messages: Vec<_> =
        found.map(|stored| wire::stored_message(room, stored, by.user)).collect();
    let sizes = messages.iter().take(limit as usize).map(|message| encode_payload(message).len());
    let len = len_within(REPLY_BYTES_MAX, sizes);
    let is_cut = len < messages.len();
    messages.truncate(len);
    let next = messages.last().map(|message| message.seq).filter(|_| is_cut);
    Ok(ThreadPage { messages, next })
}
