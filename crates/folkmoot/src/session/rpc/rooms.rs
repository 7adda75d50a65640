//! Methods on rooms: listing, making, changing.

use folkmoot_protocol::RoomId as WireRoom;
use folkmoot_protocol::chat::RoomView;
use folkmoot_protocol::rpc::{
    DirectOpen, RoomCreate, RoomNotify, RoomUpdate, Rooms, RpcError, Sync,
};
use futures_util::future::join_all;

use super::error::{control_failure, failure, room_answer, user_answer};
use super::messages::apply;
use crate::account::token::random_id;
use crate::room::{Command, RoomCalls};
use crate::session::Identity;
use crate::storage::{NewDirectRoom, NewRoom, RoomId, Seq};
use crate::user::UserCalls;
use crate::user::state::Membership;

/// The caller's rooms.
pub(crate) async fn list(by: &Identity) -> Result<Rooms, RpcError> {
    let memberships = user_answer(by.server.user(by.user).memberships().await)?;
    let views = memberships.into_iter().map(|(room, membership)| view(by, room, membership));
    // A room one has just left is no longer there to be seen; the others are.
    let rooms = join_all(views).await.into_iter().filter_map(Result::ok).collect();
    Ok(Rooms { rooms })
}

/// The rooms that are not as the caller last saw them.
pub(crate) async fn sync(by: &Identity, request: &Sync) -> Result<Rooms, RpcError> {
    let mut all = list(by).await?;
    all.rooms.retain(|room| request.rooms.get(&room.id) != Some(&room.offset));
    Ok(all)
}

pub(crate) async fn get(by: &Identity, room: WireRoom) -> Result<RoomView, RpcError> {
    let membership = user_answer(by.server.user(by.user).membership(room).await);
    view(by, room, membership.unwrap_or_default()).await
}

async fn view(by: &Identity, room: RoomId, known: Membership) -> Result<RoomView, RpcError> {
    let summary = room_answer(by.server.room(room).summary(by.user).await)?;
    Ok(by.server.room_view(&summary, &known).await)
}

pub(crate) async fn create(by: &Identity, request: RoomCreate) -> Result<RoomView, RpcError> {
    by.count(|limits| &limits.rooms)?;
    let id = RoomId::from_u64(random_id());
    let topic = request.topic.unwrap_or_default();
    let new = NewRoom { id, name: request.name, topic, owner: by.user, at: by.server.now() };
    by.server.store.create_room(new).await.map_err(|error| control_failure(&error))?;
    let told = by.server.user(by.user).joined(id, Seq::from_u64(0)).await;
    told.map_err(|error| failure(&error))?;
    get(by, id).await
}

pub(crate) async fn update(by: &Identity, request: RoomUpdate) -> Result<RoomView, RpcError> {
    let RoomUpdate { room, name, topic } = request;
    apply(by, room, Command::Update { name, topic }).await?;
    get(by, room).await
}

pub(crate) async fn notify(by: &Identity, request: RoomNotify) -> Result<(), RpcError> {
    let RoomNotify { room, notify } = request;
    user_answer(by.server.user(by.user).set_notify(room, notify.into()).await)
}

/// The conversation with another user, made by whoever opens it first.
pub(crate) async fn open_direct(by: &Identity, request: DirectOpen) -> Result<RoomView, RpcError> {
    let peer = request.user;
    if peer == by.user {
        return Err(RpcError::invalid("user", "must be somebody else"));
    }
    by.count(|limits| &limits.rooms)?;
    let id = RoomId::from_u64(random_id());
    let new = NewDirectRoom { id, opener: by.user, peer, at: by.server.now() };
    let direct = by.server.store.open_direct_room(new).await;
    let direct = direct.map_err(|error| control_failure(&error))?;
    if direct.is_new {
        for user in [by.user, peer] {
            let told = by.server.user(user).joined(direct.room, Seq::from_u64(0)).await;
            told.map_err(|error| failure(&error))?;
        }
    }
    get(by, direct.room).await
}
