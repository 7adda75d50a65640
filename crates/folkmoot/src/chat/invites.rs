//! Methods on invites: links by which strangers become members.

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{InviteView, RoomView};
use folkmoot_protocol::limits::INVITES_PAGE_MAX;
use folkmoot_protocol::rpc::{
    InviteCreate, InviteCreated, InviteCursor, InviteList, InvitePreview, InvitedRoom, InvitesPage,
    RpcError,
};

use super::error::{control_failure, read_failure, room_answer};
use super::{members, rooms};
use crate::account::token::random_invite_code;
use crate::chat::Identity;
use crate::room::view::Summary;
use crate::room::{Kind, RoomCalls};
use crate::server::Server;
use crate::storage::contract::Directory;
use crate::storage::record::Role;
use crate::storage::{Invite, NewInvite, Redeemed, RoomId, UnixMillis};
use crate::wire;

pub(crate) async fn create(
    by: &Identity,
    request: InviteCreate,
) -> Result<InviteCreated, RpcError> {
    by.count(|limits| &limits.invites)?;
    let InviteCreate { room, expires_in_s, uses_max } = request;
    let summary = member_summary(by, room).await?;
    if summary.kind == Kind::Direct {
        let text = "nobody can be invited to a direct conversation";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    let at = by.server.now();
    let new = NewInvite {
        code: random_invite_code(),
        room,
        by: by.user,
        at,
        expires_at: expires_in_s
            .map(|seconds| UnixMillis::from_u64(at.as_u64() + u64::from(seconds) * 1_000)),
        uses_max: uses_max.map(u64::from),
    };
    let invite = by.server.directory().create_invite(new).await;
    let invite = invite.map_err(|error| control_failure(&error))?;
    let expires_at = invite.expires_at;
    Ok(InviteCreated { code: invite.code, room, expires_at, uses_max })
}

pub(crate) async fn list(by: &Identity, request: InviteList) -> Result<InvitesPage, RpcError> {
    let InviteList { room, after, limit } = request;
    member_summary(by, room).await?;
    let limit = limit.unwrap_or(INVITES_PAGE_MAX);
    let after = after.map(|after| (after.created_at, after.code));
    // One more than the page tells whether there is another page.
    let invites = by.server.directory().invites(room, after, limit + 1).await;
    let mut invites = invites.map_err(|error| read_failure(&error))?;
    let is_more = invites.len() > limit as usize;
    invites.truncate(limit as usize);
    let last = invites.last().filter(|_| is_more);
    let next =
        last.map(|last| InviteCursor { created_at: last.created_at, code: last.code.clone() });
    Ok(InvitesPage { invites: invites.into_iter().map(view).collect(), next })
}

fn view(invite: Invite) -> InviteView {
    InviteView {
        code: invite.code,
        expires_at: invite.expires_at,
        uses: wire::count(invite.uses),
        uses_max: invite.uses_max.map(wire::count),
        by: invite.by,
    }
}

/// Ends an invite: its maker may, and the room's moderators.
pub(crate) async fn revoke(by: &Identity, code: String) -> Result<(), RpcError> {
    let invite = find(&by.server, code).await?;
    let summary = member_summary(by, invite.room).await?;
    if invite.by != by.user && summary.role < Role::Moderator {
        let text = "only its maker or a moderator may revoke an invite";
        return Err(RpcError::new(ErrorCode::PermissionDenied, text));
    }
    let revoked = by.server.directory().revoke_invite(invite.code, by.user, by.server.now()).await;
    revoked.map_err(|error| control_failure(&error))?;
    Ok(())
}

/// Where an invite leads; whoever has the code may know.
pub(crate) async fn get(server: &Server, code: String) -> Result<InvitePreview, RpcError> {
    let Invite { code, room, .. } = usable(server, find(server, code).await?)?;
    let preview = room_answer(server.room(room).preview().await)?;
    let (name, topic) = (preview.name, preview.topic);
    let members = wire::count(preview.members);
    Ok(InvitePreview { code, room: InvitedRoom { id: room, name, topic, members } })
}

pub(crate) async fn accept(by: &Identity, code: String) -> Result<RoomView, RpcError> {
    let invite = find(&by.server, code).await?;
    // Before a use is taken: members and the banned do not use it up.
    if !room_answer(by.server.asked(invite.room).may_join(by.user).await)? {
        members::stay(by, invite.room).await?;
        return rooms::get(by, invite.room).await;
    }
    let redeemed = by.server.directory().redeem_invite(invite.code, by.user, by.server.now()).await;
    let refused = match redeemed.map_err(|error| control_failure(&error))? {
        Redeemed::Yes(_) => {
            members::admit(by, invite.room).await?;
            return rooms::get(by, invite.room).await;
        }
        Redeemed::Unknown => unknown(),
        Redeemed::Expired => expired(),
        Redeemed::UsedUp => used_up(),
    };
    // Unless another request of the same user has come in by the last use meanwhile.
    members::stay(by, invite.room).await.map_err(|_| refused)?;
    rooms::get(by, invite.room).await
}

async fn member_summary(by: &Identity, room: RoomId) -> Result<Summary, RpcError> {
    room_answer(by.server.asked(room).summary(by.user).await)
}

async fn find(server: &Server, code: String) -> Result<Invite, RpcError> {
    let invite = server.directory().invite(code).await.map_err(|error| read_failure(&error))?;
    invite.ok_or_else(unknown)
}

fn usable(server: &Server, invite: Invite) -> Result<Invite, RpcError> {
    if invite.expires_at.is_some_and(|at| at <= server.now()) {
        return Err(expired());
    }
    if invite.uses_max.is_some_and(|max| invite.uses >= max) {
        return Err(used_up());
    }
    Ok(invite)
}

fn unknown() -> RpcError {
    RpcError::new(ErrorCode::NotFound, "no such invite")
}

fn expired() -> RpcError {
    RpcError::new(ErrorCode::NotFound, "this invite has expired")
}

fn used_up() -> RpcError {
    RpcError::new(ErrorCode::NotFound, "this invite has been used as often as it may")
}
