//! Puts together what a room knows and what the user knows into the room as the user sees it.

use folkmoot_protocol::chat::{RoomKind, RoomView, UserEvent, UserView};
use folkmoot_protocol::rpc::ReadState;

use super::state::Membership;
use crate::room::Kind;
use crate::room::view::Summary;
use crate::storage::RoomId;
use crate::storage::contract::{Directory, StreamLog};
use crate::wire;

/// The room as one user sees it.
pub(crate) fn room_view(
    summary: &Summary,
    membership: &Membership,
    epoch: &str,
    peer: Option<UserView>,
) -> RoomView {
    let mentions = membership.mentions.len() + summary.everyone_after(membership.read_seq);
    RoomView {
        id: summary.id,
        name: summary.name.clone(),
        topic: summary.topic.clone(),
        kind: match summary.kind {
            Kind::Room => RoomKind::Room,
            Kind::Direct => RoomKind::Direct,
        },
        role: summary.role.into(),
        members: wire::count(summary.members),
        last_seq: summary.last_seq,
        offset: summary.offset,
        epoch: epoch.to_owned(),
        read_seq: membership.read_seq,
        unread: wire::count(membership.unread(summary.first_seq, summary.last_seq)),
        mentions: wire::count(mentions),
        notify: membership.notify.into(),
        peer,
        last: summary.last.clone().map(Box::new),
        muted_until: summary.muted_until,
        archived: summary.is_archived,
    }
}

/// The same, with the other one of a direct conversation read from the store.
pub(crate) async fn room_view_of(
    store: &(impl StreamLog + Directory),
    summary: &Summary,
    membership: &Membership,
) -> RoomView {
    let peer = match summary.peer {
        // A view without its peer is still a view; the next one has it again.
        Some(peer) => store.account(peer).await.ok().flatten().map(wire::user_view),
        None => None,
    };
    room_view(summary, membership, store.stream_epoch(), peer)
}

/// A cursor as the user's devices are told of it.
pub(super) fn read_event(room: RoomId, state: &ReadState) -> UserEvent {
    let ReadState { read_seq, unread, mentions } = *state;
    UserEvent::Read { room, read_seq, unread, mentions }
}

/// How much of a room is left to read.
pub(super) fn read_state(membership: &Membership, summary: &Summary) -> ReadState {
    let mentions = membership.mentions.len() + summary.everyone_after(membership.read_seq);
    ReadState {
        read_seq: membership.read_seq,
        unread: wire::count(membership.unread(summary.first_seq, summary.last_seq)),
        mentions: wire::count(mentions),
    }
}
