//! The application: the chat methods, one file per subject, under sessions, HTTP and the demo. Each
//! asks the actors it needs and puts the answer together; rules live in the actors, limits of
//! fields were checked when the request was decoded.

pub(crate) mod directory;
pub(crate) mod error;
#[cfg(test)]
mod fuzz;
mod identity;
pub(crate) mod invites;
pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod pins;
pub(crate) mod profiles;
pub(crate) mod rooms;
pub(crate) mod saved;
pub(crate) mod search;
mod sends;
pub(crate) mod signed_out;
pub(crate) mod stream;
pub(crate) mod threads;
pub(crate) mod users;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::{Empty, Rpc, RpcError, encode_payload};

pub(crate) use error::{
    append_failure, control_failure, failure, read_failure, room_answer, user_answer, user_failure,
};
pub(crate) use identity::Identity;

/// Counts a method that has no limit of its own, so that there is none without one.
fn count(by: &Identity, method: &Rpc) -> Result<(), RpcError> {
    match method {
        // Counted where HTTP comes by too.
        Rpc::MessageSend(_)
        | Rpc::MessageEdit(_)
        | Rpc::MessageDelete(_)
        | Rpc::MessageReact(_)
        | Rpc::TypingSet(_)
        | Rpc::RoomAdd(_)
        | Rpc::RoomCreate(_)
        | Rpc::RoomDelete(_)
        | Rpc::DirectOpen(_)
        | Rpc::InviteCreate(_)
        | Rpc::ProfileUpdate(_)
        | Rpc::StatusSet(_)
        | Rpc::RoomsBrowse(_)
        | Rpc::Search(_)
        | Rpc::PresenceWatch(_) => Ok(()),
        Rpc::ReadSet(_) => by.count(|limits| &limits.cursors),
        Rpc::HistoryGet(_)
        | Rpc::MessageReactions(_)
        | Rpc::MessageThread(_)
        | Rpc::RoomPins(_)
        | Rpc::SavedList(_)
        | Rpc::SavedMarks(_)
        | Rpc::RoomsList(_)
        | Rpc::RoomGet(_)
        | Rpc::RoomMembers(_)
        | Rpc::RoomAccessGet(_)
        | Rpc::Sync(_)
        | Rpc::InviteList(_)
        | Rpc::InviteGet(_)
        | Rpc::UsersFind(_)
        | Rpc::UserGet(_)
        | Rpc::UsersBlocked(_)
        | Rpc::DevicesList(_) => by.count(|limits| &limits.questions),
        Rpc::RoomUpdate(_)
        | Rpc::MessagePin(_)
        | Rpc::MessageSave(_)
        | Rpc::RoomArchive(_)
        | Rpc::RoomNotify(_)
        | Rpc::RoomLeave(_)
        | Rpc::RoomSetRole(_)
        | Rpc::RoomKick(_)
        | Rpc::RoomBan(_)
        | Rpc::RoomMute(_)
        | Rpc::DirectHide(_)
        | Rpc::InviteRevoke(_)
        | Rpc::InviteAccept(_)
        | Rpc::RoomJoin(_)
        | Rpc::RoomAccessSet(_)
        | Rpc::UserBlock(_)
        | Rpc::DevicesRevoke(_) => by.count(|limits| &limits.changes),
    }
}

/// Calls a method; the reply is JSON.
pub(crate) async fn call(by: &Identity, method: Rpc) -> Result<Bytes, RpcError> {
    count(by, &method)?;
    match method {
        Rpc::MessageSend(request) => reply(messages::send(by, request).await),
        // Boxed: the greediest method needs many times the room, and each command of a connection
        // would take as much for as long as it is under way.
        other => Box::pin(call_any(by, other)).await,
    }
}

async fn call_any(by: &Identity, method: Rpc) -> Result<Bytes, RpcError> {
    match method {
        Rpc::MessageSend(request) => reply(messages::send(by, request).await),
        Rpc::MessageEdit(request) => reply(messages::edit(by, request).await),
        Rpc::MessageDelete(request) => empty(messages::delete(by, request).await),
        Rpc::MessageReact(request) => empty(messages::react(by, request).await),
        Rpc::MessageReactions(request) => reply(messages::reactions(by, request).await),
        Rpc::MessageThread(request) => reply(threads::thread(by, request).await),
        Rpc::MessagePin(request) => empty(pins::pin(by, request).await),
        Rpc::RoomPins(request) => reply(pins::list(by, request).await),
        Rpc::MessageSave(request) => empty(saved::save(by, request).await),
        Rpc::SavedList(request) => reply(saved::list(by, request).await),
        Rpc::SavedMarks(_) => reply(saved::marks(by).await),
        Rpc::HistoryGet(request) => reply(messages::history(by, request).await),
        Rpc::ReadSet(request) => reply(messages::read(by, request).await),
        Rpc::TypingSet(request) => empty(messages::typing(by, request).await),
        Rpc::RoomsList(request) => reply(rooms::list(by, request).await),
        Rpc::RoomCreate(request) => reply(rooms::create(by, request).await),
        Rpc::RoomGet(request) => reply(rooms::get(by, request.room).await),
        Rpc::RoomUpdate(request) => reply(rooms::update(by, request).await),
        Rpc::RoomArchive(request) => reply(rooms::archive(by, request).await),
        Rpc::RoomDelete(request) => empty(rooms::delete(by, request.room).await),
        Rpc::RoomNotify(request) => empty(rooms::notify(by, request).await),
        Rpc::DirectOpen(request) => reply(rooms::open_direct(by, request).await),
        Rpc::DirectHide(request) => empty(rooms::hide(by, request).await),
        Rpc::Sync(request) => reply(rooms::sync(by, &request).await),
        Rpc::RoomsBrowse(request) => reply(directory::browse(by, request).await),
        Rpc::RoomJoin(request) => reply(directory::join(by, request.room).await),
        Rpc::RoomAccessGet(request) => reply(directory::access(by, request.room).await),
        Rpc::RoomAccessSet(request) => empty(directory::set_access(by, request).await),
        Rpc::RoomLeave(request) => empty(members::leave(by, request).await),
        Rpc::RoomMembers(request) => reply(members::list(by, request).await),
        Rpc::RoomAdd(request) => empty(members::add(by, request).await),
        Rpc::RoomSetRole(request) => empty(members::set_role(by, request).await),
        Rpc::RoomKick(request) => empty(members::kick(by, request).await),
        Rpc::RoomBan(request) => empty(members::ban(by, request).await),
        Rpc::RoomMute(request) => empty(members::mute(by, request).await),
        Rpc::InviteCreate(request) => reply(invites::create(by, request).await),
        Rpc::InviteList(request) => reply(invites::list(by, request).await),
        Rpc::InviteRevoke(request) => empty(invites::revoke(by, request.code).await),
        Rpc::InviteGet(request) => reply(invites::get(&by.server, request.code).await),
        Rpc::InviteAccept(request) => reply(invites::accept(by, request.code).await),
        Rpc::UsersFind(request) => reply(users::find(by, request).await),
        Rpc::UserGet(request) => reply(users::get(by, request.user).await),
        Rpc::UserBlock(request) => empty(users::block(by, request).await),
        Rpc::UsersBlocked(_) => reply(users::blocked(by).await),
        Rpc::ProfileUpdate(request) => reply(profiles::rename(by, request).await),
        Rpc::StatusSet(request) => reply(profiles::set_status(by, request).await),
        Rpc::DevicesList(_) => reply(users::devices(by).await),
        Rpc::DevicesRevoke(request) => empty(users::revoke_device(by, request.id).await),
        // Sessions answer it: only a connection can be told.
        Rpc::PresenceWatch(_) => Err(ErrorCode::NotAvailable.into()),
        Rpc::Search(request) => reply(search::find(by, request).await),
    }
}

fn reply<T: serde::Serialize>(result: Result<T, RpcError>) -> Result<Bytes, RpcError> {
    result.map(|value| encode_payload(&value))
}

fn empty(result: Result<(), RpcError>) -> Result<Bytes, RpcError> {
    reply(result.map(|()| Empty {}))
}
