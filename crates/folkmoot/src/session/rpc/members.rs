//! Methods on members: listing, leaving, roles, moderation.

use std::collections::HashMap;

use folkmoot_protocol::chat::MemberView;
use folkmoot_protocol::limits::MEMBERS_PAGE_MAX;
use folkmoot_protocol::rpc::{
    MembersPage, RoomBan, RoomKick, RoomLeave, RoomMembers, RoomMute, RoomSetRole, RpcError,
};

use super::error::{read_failure, room_answer};
use super::messages::apply;
use crate::room::{Command, RoomCalls};
use crate::session::Identity;
use crate::storage::UserId;

pub(crate) async fn list(by: &Identity, request: RoomMembers) -> Result<MembersPage, RpcError> {
    let limit = request.limit.unwrap_or(MEMBERS_PAGE_MAX) as usize;
    let room = by.server.room(request.room);
    let after = request.after;
    // One more than the page tells whether there is another page.
    let mut listed = room_answer(room.members(by.user, after, limit + 1).await)?;
    let is_more = listed.len() > limit;
    listed.truncate(limit);
    let next = listed.last().filter(|_| is_more).map(|member| member.user);
    let users = listed.iter().map(|member| member.user).collect();
    let accounts = by.server.store.accounts(users).await.map_err(|error| read_failure(&error))?;
    let mut names: HashMap<UserId, String> =
        accounts.into_iter().map(|account| (account.id, account.display_name)).collect();
    let members = listed
        .into_iter()
        .map(|member| MemberView {
            user: member.user,
            display_name: names.remove(&member.user).unwrap_or_else(|| member.name.clone()),
            name: member.name,
            role: member.role.into(),
            online: member.online,
            muted_until: member.muted_until,
        })
        .collect();
    Ok(MembersPage { members, next })
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
