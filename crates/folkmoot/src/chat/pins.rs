//! Methods on the messages that a room keeps in sight for everybody.

use folkmoot_protocol::limits::{PINS_PER_ROOM_MAX, REPLY_BYTES_MAX};
use folkmoot_protocol::rpc::{
    MessagePin, PinnedMessage, PinsPage, RoomPins, RpcError, encode_payload,
};

use super::error::{read_failure, room_answer};
use super::messages::apply;
use super::stream::len_within;
use crate::chat::Identity;
use crate::room::Command;
use crate::storage::contract::RoomLog;
use crate::wire;

pub(crate) async fn pin(by: &Identity, request: MessagePin) -> Result<(), RpcError> {
    let MessagePin { room, seq, on } = request;
    apply(by, room, Command::Pin { seq, on }).await.map(drop)
}

/// A page of the pinned messages, the one pinned last first.
pub(crate) async fn list(by: &Identity, request: RoomPins) -> Result<PinsPage, RpcError> {
    let RoomPins { room, after, limit } = request;
    // Also the check that the caller may read here.
    room_answer(by.server.asked(room).readable(by.user).await)?;
    let limit = limit.unwrap_or(PINS_PER_ROOM_MAX);
    // One more than the page tells whether there is another page.
    let found = by.server.streams().pins(room, after, limit + 1, by.user).await;
    let mut found = found.map_err(|error| read_failure(&error))?;
    let is_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let places: Vec<_> = found.iter().map(|pin| pin.offset).collect();
    let mut pins: Vec<_> = found
        .into_iter()
        .map(|pin| PinnedMessage {
            message: wire::stored_message(room, pin.message, by.user),
            by: wire::user_view(pin.by),
            at: pin.at,
        })
        .collect();
    let len = len_within(REPLY_BYTES_MAX, pins.iter().map(|pin| encode_payload(pin).len()));
    let is_cut = len < pins.len();
    pins.truncate(len);
    let last = len.checked_sub(1).and_then(|last| places.get(last)).copied();
    Ok(PinsPage { pins, next: last.filter(|_| is_cut || is_more) })
}
