//! Methods on the directory: finding rooms without an invite, coming in, and saying who may.

use folkmoot_protocol::chat::{RoomAccess, RoomView};
use folkmoot_protocol::limits::ROOMS_PAGE_MAX;
use folkmoot_protocol::rpc::{
    ListedCursor, ListedRooms, RoomAccessSet, RoomAccessView, RoomsBrowse, RpcError,
};
use folkmoot_protocol::{ErrorCode, RoomId};

use super::error::{control_failure, read_failure, room_answer};
use super::{members, rooms};
use crate::chat::Identity;
use crate::room::Kind;
use crate::storage::ListedPage;
use crate::storage::contract::Directory;
use crate::storage::record::Role;

/// A page of the rooms that are listed for everybody.
pub(crate) async fn browse(by: &Identity, request: RoomsBrowse) -> Result<ListedRooms, RpcError> {
    let RoomsBrowse { search, after, limit } = request;
    match &search {
        Some(_) => by.count(|limits| &limits.searches)?,
        None => by.count(|limits| &limits.questions)?,
    }
    let after = after.map(|after| (after.name, after.id));
    let limit = limit.unwrap_or(ROOMS_PAGE_MAX) as usize;
    let search = search.unwrap_or_default();
    let page = by.server.directory().listed_rooms(by.user, search, after, limit).await;
    let ListedPage { rooms, next } = page.map_err(|error| read_failure(&error))?;
    Ok(ListedRooms { rooms, next: next.map(|(name, id)| ListedCursor { name, id }) })
}

/// Makes the caller a member of an open room.
pub(crate) async fn join(by: &Identity, room: RoomId) -> Result<RoomView, RpcError> {
    match access_of(by, room).await? {
        Some(RoomAccess::Open) => {
            match room_answer(by.server.asked(room).may_join(by.user).await)? {
                true => members::admit(by, room).await?,
                false => members::stay(by, room).await?,
            }
        }
        Some(RoomAccess::Invite) => {
            if room_answer(by.server.asked(room).may_join(by.user).await)? {
                let text = "members of this room let others in: ask one for an invite";
                return Err(RpcError::new(ErrorCode::PermissionDenied, text));
            }
            members::stay(by, room).await?;
        }
        // A hidden room refuses strangers in the words of every other method.
        Some(RoomAccess::Hidden) | None => {
            members::stay(by, room).await?;
        }
    }
    rooms::get(by, room).await
}

/// Who may find a room and come in, for its members.
pub(crate) async fn access(by: &Identity, room: RoomId) -> Result<RoomAccessView, RpcError> {
    room_answer(by.server.asked(room).readable(by.user).await)?;
    let access = access_of(by, room).await?.unwrap_or_default();
    Ok(RoomAccessView { access })
}

/// Says who may find a room and come in: for its owners.
pub(crate) async fn set_access(by: &Identity, request: RoomAccessSet) -> Result<(), RpcError> {
    let RoomAccessSet { room, access } = request;
    let summary = room_answer(by.server.asked(room).summary(by.user).await)?;
    if summary.kind == Kind::Direct {
        let text = "a direct conversation is for two";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    if summary.role < Role::Owner {
        let text = "only owners may say who finds the room and comes in";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    let set = by.server.directory().set_room_access(room, access, by.user, by.server.now()).await;
    set.map_err(|error| control_failure(&error))
}

async fn access_of(by: &Identity, room: RoomId) -> Result<Option<RoomAccess>, RpcError> {
    by.server.directory().room_access(room).await.map_err(|error| read_failure(&error))
}
