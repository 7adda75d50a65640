//! Methods on members: listing, leaving, roles, moderation.

use std::collections::HashSet;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::MemberView;
use folkmoot_protocol::limits::MEMBERS_PAGE_MAX;
use folkmoot_protocol::rpc::{
    MembersPage, RoomAdd, RoomBan, RoomKick, RoomLeave, RoomMembers, RoomMute, RoomSetRole,
    RpcError,
};

use super::error::{read_failure, refused, room_answer};
use super::messages::apply;
use super::users;
use crate::chat::Identity;
use crate::room::{Command, Kind, Refusal, RoomError};
use crate::storage::contract::{Directory, RoomLog};
use crate::storage::{Account, Role, RoomId, UserId};
use crate::text::folded;
use crate::wire;

/// A page comes by name from the store's index, so that a room of 100,000 does not sort its
/// members; the room itself says who is online.
pub(crate) async fn list(by: &Identity, request: RoomMembers) -> Result<MembersPage, RpcError> {
    let RoomMembers { room, after, prefix, limit } = request;
    // Also the check that the caller may see the members.
    room_answer(by.server.asked(room).online_among(by.user, Vec::new()).await)?;
    let limit = limit.unwrap_or(MEMBERS_PAGE_MAX) as usize;
    // One more than the page tells whether there is another page.
    let prefix = prefix.map(|prefix| folded(&prefix)).unwrap_or_default();
    let page = by.server.streams().members(room, after, &prefix, wire::count(limit + 1)).await;
    let mut listed = page.map_err(|error| read_failure(&error))?;
    let is_more = listed.len() > limit;
    listed.truncate(limit);
    let next = listed.last().filter(|_| is_more).map(|member| member.user);
    let users = listed.iter().map(|member| member.user).collect();
    let online = room_answer(by.server.asked(room).online_among(by.user, users).await)?;
    let online: HashSet<UserId> = online.into_iter().collect();
    let members = listed
        .into_iter()
        .map(|member| MemberView {
            user: member.user,
            name: member.name,
            display_name: member.display_name,
            role: member.role.into(),
            online: online.contains(&member.user),
            muted_until: member.muted_until,
            picture: member.picture,
            status: member.status,
        })
        .collect();
    Ok(MembersPage { members, next })
}

/// Lets the caller in as a member.
pub(crate) async fn admit(by: &Identity, room: RoomId) -> Result<(), RpcError> {
    let account = users::account(&by.server, by.user).await?;
    if account.is_deleted() {
        return Err(RpcError::new(ErrorCode::NotFound, "no such user"));
    }
    let Account { name, display_name, .. } = account;
    let admit = Command::Admit { name, display_name, role: Role::Member };
    apply(by, room, admit).await.map(drop)
}

/// Lets another user in: whoever may invite may also add, and a ban keeps out either way.
pub(crate) async fn add(by: &Identity, request: RoomAdd) -> Result<(), RpcError> {
    by.count(|limits| &limits.invites)?;
    let RoomAdd { room, user } = request;
    let summary = room_answer(by.server.asked(room).summary(by.user).await)?;
    if summary.kind == Kind::Direct {
        let text = "nobody can be added to a direct conversation";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    let answer = by.server.asked(room).may_join(user).await;
    if let Ok(Err(RoomError::Refused(Refusal::Banned))) = answer {
        let text = "this user is banned from the room";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    let added = Identity::new(by.server.clone(), user, by.device);
    if !room_answer(answer)? {
        return stay(&added, room).await;
    }
    let is_blocked = by.server.directory().has_blocked(user, by.user).await;
    if is_blocked.map_err(|error| read_failure(&error))? {
        return Err(refused(&Refusal::Blocked));
    }
    admit(&added, room).await
}

/// Answers once the caller, who is a member, is one for good: also who was let in a moment ago by
/// another request.
pub(super) async fn stay(by: &Identity, room: RoomId) -> Result<(), RpcError> {
    apply(by, room, Command::Stay).await.map(drop)
}

pub(crate) async fn leave(by: &Identity, request: RoomLeave) -> Result<(), RpcError> {
    apply(by, request.room, Command::Leave).await.map(drop)
}

pub(crate) async fn set_role(by: &Identity, request: RoomSetRole) -> Result<(), RpcError> {
    let RoomSetRole { room, user, role } = request;
    apply(by, room, Command::SetRole { user, role: role.into() }).await.map(drop)
}

pub(crate) async fn kick(by: &Identity, request: RoomKick) -> Result<(), RpcError> {
    apply(by, request.room, Command::Kick { user: request.user }).await.map(drop)
}

pub(crate) async fn ban(by: &Identity, request: RoomBan) -> Result<(), RpcError> {
    let RoomBan { room, user, on } = request;
    apply(by, room, Command::Ban { user, on }).await.map(drop)
}

pub(crate) async fn mute(by: &Identity, request: RoomMute) -> Result<(), RpcError> {
    let RoomMute { room, user, until } = request;
    apply(by, room, Command::Mute { user, until }).await.map(drop)
}
