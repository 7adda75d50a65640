//! Methods on rooms: listing, making, changing.

use std::collections::HashMap;

use folkmoot_protocol::chat::RoomView;
use folkmoot_protocol::limits::{REPLY_BYTES_MAX, ROOMS_PAGE_MAX};
use folkmoot_protocol::rpc::{
    DirectHide, DirectOpen, RoomArchive, RoomCreate, RoomNotify, RoomUpdate, Rooms, RoomsList,
    RpcError, Sync, encode_payload,
};
use folkmoot_protocol::{ErrorCode, RoomId as WireRoom};
use futures_util::future::join_all;

use super::error::{control_failure, failure, read_failure, room_answer, user_answer};
use super::messages::apply;
use super::stream::len_within;
use crate::account::token::random_id;
use crate::chat::Identity;
use crate::room::view::Summary;
use crate::room::{Archivist, Command, Kind, RoomCalls, RoomError};
use crate::server::Server;
use crate::storage::contract::{Directory, UserLog};
use crate::storage::{Authority, NewDirectRoom, NewRoom, RoomId, Seq, UserId};
use crate::user::state::Membership;
use crate::user::{UserCalls, UserError, room_view, room_view_of};
use crate::wire;

/// A page of the caller's rooms.
pub(crate) async fn list(by: &Identity, request: RoomsList) -> Result<Rooms, RpcError> {
    let RoomsList { after, limit, archived } = request;
    let archived = archived.unwrap_or_default();
    page(by, after, limit.unwrap_or(ROOMS_PAGE_MAX), |room| room.archived == archived).await
}

/// The rooms that are not as the caller last saw them.
pub(crate) async fn sync(by: &Identity, request: &Sync) -> Result<Rooms, RpcError> {
    let is_news = |room: &RoomView| request.rooms.get(&room.id) != Some(&room.offset);
    page(by, request.after, ROOMS_PAGE_MAX, is_news).await
}

/// A page of at most `limit` rooms, of which those that are not wanted are left out.
async fn page(
    by: &Identity,
    after: Option<RoomId>,
    limit: u32,
    is_wanted: impl Fn(&RoomView) -> bool,
) -> Result<Rooms, RpcError> {
    let limit = limit as usize;
    // One more than the page tells whether there is another page.
    let memberships = by.server.user(by.user).memberships(after, limit + 1).await;
    let mut memberships = user_answer(memberships)?;
    let is_more = memberships.len() > limit;
    memberships.truncate(limit);
    let last = memberships.last().filter(|_| is_more).map(|(room, _)| *room);
    let mut rooms = views(by, memberships).await?;
    rooms.retain(is_wanted);
    let len = len_within(REPLY_BYTES_MAX, rooms.iter().map(|room| encode_payload(room).len()));
    let is_cut = len < rooms.len();
    rooms.truncate(len);
    let next = if is_cut { rooms.last().map(|room| room.id) } else { last };
    Ok(Rooms { rooms, next })
}

/// Rooms as the caller sees them, in the order of their ids. Those in memory are asked, the others
/// are read: a list wakes no room. So are those that do not answer; one that the caller has just
/// left is left out.
async fn views(
    by: &Identity,
    memberships: Vec<(RoomId, Membership)>,
) -> Result<Vec<RoomView>, RpcError> {
    let server = &by.server;
    let (awake, mut asleep): (Vec<_>, Vec<_>) =
        memberships.into_iter().partition(|(room, _)| server.room(*room).is_active());
    let asked = awake.iter().map(|(room, known)| told(by, *room, known));
    let told = join_all(asked).await;
    let mut views = Vec::new();
    for (membership, told) in awake.into_iter().zip(told) {
        match told {
            Told::View(view) => views.push(*view),
            Told::Nothing => asleep.push(membership),
            Told::NotIn => {}
        }
    }
    let wanted = asleep.iter().map(|(room, membership)| (*room, membership.read_seq)).collect();
    let heads = server.streams().room_heads(by.user, wanted).await;
    let memberships: HashMap<RoomId, Membership> = asleep.into_iter().collect();
    for head in heads.map_err(|error| read_failure(&error))? {
        let membership = memberships.get(&head.summary.id).cloned().unwrap_or_default();
        let (summary, peer) = Summary::of(head, by.user);
        let peer = peer.map(wire::user_view);
        views.push(room_view(&summary, &membership, server.epoch(), peer));
    }
    views.sort_by_key(|view| view.id);
    Ok(views)
}

/// What a room says of itself.
enum Told {
    View(Box<RoomView>),
    NotIn,
    /// It does not answer, or cannot say.
    Nothing,
}

async fn told(by: &Identity, room: RoomId, known: &Membership) -> Told {
    match by.server.asked(room).summary(by.user).await {
        Ok(Ok(summary)) => {
            Told::View(Box::new(room_view_of(by.server.streams(), &summary, known).await))
        }
        Ok(Err(RoomError::NoSuchRoom | RoomError::Refused(_))) => Told::NotIn,
        Ok(Err(error)) => {
            tracing::warn!(%room, %error, "a room is listed as it was stored");
            Told::Nothing
        }
        Err(error) => {
            tracing::warn!(%room, %error, "a room is listed as it was stored");
            Told::Nothing
        }
    }
}

pub(crate) async fn get(by: &Identity, room: WireRoom) -> Result<RoomView, RpcError> {
    let membership = match by.server.user(by.user).membership(room).await {
        // The room has words for strangers.
        Ok(Err(UserError::NotMember)) => Membership::default(),
        answer => user_answer(answer)?,
    };
    view(by, room, membership).await
}

async fn view(by: &Identity, room: RoomId, known: Membership) -> Result<RoomView, RpcError> {
    let summary = room_answer(by.server.asked(room).summary(by.user).await)?;
    Ok(room_view_of(by.server.streams(), &summary, &known).await)
}

pub(crate) async fn create(by: &Identity, request: RoomCreate) -> Result<RoomView, RpcError> {
    by.count(|limits| &limits.rooms)?;
    let id = RoomId::from_u64(random_id());
    let topic = request.topic.unwrap_or_default();
    let new = NewRoom { id, name: request.name, topic, owner: by.user, at: by.server.now() };
    by.server.directory().create_room(new).await.map_err(|error| control_failure(&error))?;
    let told = by.server.user(by.user).joined(id, Seq::from_u64(0)).await;
    told.map_err(|error| failure(&error))?;
    get(by, id).await
}

pub(crate) async fn update(by: &Identity, request: RoomUpdate) -> Result<RoomView, RpcError> {
    let RoomUpdate { room, name, topic } = request;
    apply(by, room, Command::Update { name, topic }).await?;
    get(by, room).await
}

/// Makes a room read-only, or opens it again.
pub(crate) async fn archive(by: &Identity, request: RoomArchive) -> Result<RoomView, RpcError> {
    let RoomArchive { room, on } = request;
    apply(by, room, Command::Archive { on, by: Archivist::Owner }).await?;
    get(by, room).await
}

/// Deletes a room; answers once nobody can reach it any more, and the rest follows.
pub(crate) async fn delete(by: &Identity, room: WireRoom) -> Result<(), RpcError> {
    by.count(|limits| &limits.changes)?;
    // Strangers are refused in the words of every other method.
    room_answer(by.server.asked(room).readable(by.user).await)?;
    delete_as(&by.server, room, by.user, Authority::Owner).await
}

/// Decides that a room is deleted, in somebody's right.
pub(crate) async fn delete_as(
    server: &Server,
    room: WireRoom,
    by: UserId,
    authority: Authority,
) -> Result<(), RpcError> {
    let begun = server.directory().begin_room_deletion(room, by, authority, server.now()).await;
    begun.map_err(|error| control_failure(&error))?;
    let closed = server.room(room).close().await;
    // Whatever becomes of the answer, it is decided.
    server.deletions.wake();
    closed.map_err(|error| failure(&error))
}

pub(crate) async fn notify(by: &Identity, request: RoomNotify) -> Result<(), RpcError> {
    let RoomNotify { room, notify } = request;
    user_answer(by.server.user(by.user).set_notify(room, notify.into()).await)
}

/// The conversation with another user, made by whoever opens it first.
pub(crate) async fn open_direct(by: &Identity, request: DirectOpen) -> Result<RoomView, RpcError> {
    by.count(|limits| &limits.rooms)?;
    let peer = request.user;
    if peer == by.user {
        return Err(RpcError::invalid("user", "must be somebody else"));
    }
    let id = RoomId::from_u64(random_id());
    let new = NewDirectRoom { id, opener: by.user, peer, at: by.server.now() };
    let direct = by.server.directory().open_direct_room(new).await;
    let direct = direct.map_err(|error| control_failure(&error))?;
    if direct.is_new {
        // Both are told, whatever becomes of the other: nobody else would tell them.
        let told = [peer, by.user].map(|user| {
            let user = by.server.user(user);
            async move { user.joined(direct.room, Seq::from_u64(0)).await }
        });
        for told in join_all(told).await {
            told.map_err(|error| failure(&error))?;
        }
    }
    user_answer(by.server.user(by.user).show(direct.room).await)?;
    get(by, direct.room).await
}

/// Takes a direct conversation off the caller's list.
pub(crate) async fn hide(by: &Identity, request: DirectHide) -> Result<(), RpcError> {
    let room = request.room;
    let summary = room_answer(by.server.asked(room).summary(by.user).await)?;
    if summary.kind != Kind::Direct {
        let text = "only direct conversations can be hidden; a room can be left";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    user_answer(by.server.user(by.user).hide(room, summary.last_seq).await)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::attachment::Attachments;
    use crate::config::{Config, Flags};
    use crate::server::Beginning;
    use crate::storage::{DeviceId, NewAccount, NewDevice, Store, StoreOptions};

    /// Anna, at a server of her own.
    async fn anna(directory: &Path) -> Identity {
        let store = Store::open(&StoreOptions::small(directory)).unwrap();
        let data = Some(directory.to_owned());
        let config = Config::load(Flags { data, ..Flags::default() }).unwrap();
        let attachments = Attachments::open(&config.attachments).unwrap();
        let server = Server::new(config, store, None, attachments, Beginning::default());
        account(server, 1, "anna").await
    }

    async fn account(server: Arc<Server>, number: u8, name: &str) -> Identity {
        let (user, id) = (UserId::from_u64(number.into()), DeviceId::from_u64(number.into()));
        let (at, password_hash) = (server.now(), String::new());
        let (name, display_name) = (name.to_owned(), name.to_owned());
        let account = NewAccount { id: user, name, display_name, password_hash, at };
        let device = NewDevice { id, user, label: "a".into(), token_hash: [number; 32], at };
        server.embedded().create_account(account, device).await.unwrap();
        Identity::new(server, user, id)
    }

    async fn tea(by: &Identity) -> RoomId {
        create(by, RoomCreate { name: "Tea".into(), topic: None }).await.unwrap().id
    }

    #[tokio::test]
    async fn a_room_that_does_not_answer_is_listed_as_it_was_stored() {
        let directory = tempfile::tempdir().unwrap();
        let anna = anna(directory.path()).await;
        let room = anna.server.room(tea(&anna).await);
        assert!(room.is_active());
        let sealed = anna.server.node().seal(&room.id()).await.expect("it is in memory");
        let listed = list(&anna, RoomsList::default()).await.unwrap();
        assert_eq!(listed.rooms.iter().map(|room| &*room.name).collect::<Vec<_>>(), ["Tea"]);
        drop(sealed);
        anna.server.close().await;
    }

    #[tokio::test]
    async fn a_user_who_does_not_answer_is_nobody_who_has_read_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let anna = anna(directory.path()).await;
        let room = tea(&anna).await;
        let user = anna.server.user(anna.user).id();
        let sealed = anna.server.node().seal(&user).await.expect("it is in memory");
        assert_eq!(get(&anna, room).await.unwrap_err().code, ErrorCode::Internal);
        drop(sealed);
        anna.server.close().await;
    }

    #[tokio::test]
    async fn a_conversation_that_does_not_answer_is_opened_by_who_tries_again() {
        let directory = tempfile::tempdir().unwrap();
        let anna = anna(directory.path()).await;
        let bob = account(anna.server.clone(), 2, "bob").await;
        let request = || DirectOpen { user: bob.user };
        let room = open_direct(&anna, request()).await.unwrap().id;
        hide(&anna, DirectHide { room }).await.unwrap();
        let sealed = anna.server.node().seal(&anna.server.room(room).id()).await.unwrap();
        let error = open_direct(&anna, request()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal, "{error}");
        drop(sealed);
        assert_eq!(open_direct(&anna, request()).await.unwrap().id, room);
        anna.server.close().await;
    }
}
