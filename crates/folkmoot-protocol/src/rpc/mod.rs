//! The rpc methods: for each a request type, its reply type and its rules. [`Rpc::decode`] is the
//! only way from a method's name and bytes to a typed request, so no unchecked field can reach an
//! actor.

mod directory;
mod error;
mod invite;
mod message;
mod pin;
mod room;
mod saved;
mod search;
mod thread;
mod user;

pub use directory::{
    ListedCursor, ListedRooms, RoomAccessGet, RoomAccessSet, RoomAccessView, RoomJoin, RoomsBrowse,
};
pub use error::RpcError;
pub use invite::{
    InviteAccept, InviteCreate, InviteCreated, InviteCursor, InviteGet, InviteList, InvitePreview,
    InviteRevoke, InvitedRoom, InvitesPage,
};
pub use message::{
    HistoryGet, HistoryPage, MessageDelete, MessageEdit, MessageEdited, MessageReact,
    MessageReactions, MessageSend, MessageSent, ReactionUsers, ReactionsPage, ReadSet, ReadState,
    RoomPublish, TypingSet,
};
pub use pin::{MessagePin, PinnedMessage, PinsPage, RoomPins};
pub use room::{
    DirectHide, DirectOpen, MembersPage, PresenceWatch, RoomAdd, RoomArchive, RoomBan, RoomCreate,
    RoomDelete, RoomGet, RoomKick, RoomLeave, RoomMembers, RoomMute, RoomNotify, RoomSetRole,
    RoomUpdate, Rooms, RoomsList, Sync,
};
pub use saved::{MessageSave, SavedList, SavedMarks, SavedMessage, SavedNumbers, SavedPage};
pub use search::{Search, SearchHit, SearchHits};
pub use thread::{MessageThread, ThreadPage};
pub use user::{
    DevicesList, DevicesPage, DevicesRevoke, ProfileUpdate, StatusSet, UserBlock, UserGet,
    UsersBlocked, UsersFind, UsersFound,
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chat::{RoomView, UserView};
use crate::codes::ErrorCode;
use crate::field::Checked;

/// A request that has a method name and one type of reply.
pub trait Method: Checked + Serialize + DeserializeOwned {
    /// Name of the method.
    const NAME: &'static str;
    /// What it answers.
    type Reply: Serialize + DeserializeOwned;
}

/// Sees the request and reply types of methods, for the TypeScript generator.
#[cfg(feature = "typescript")]
pub trait MethodVisitor {
    /// Sees one method.
    fn visit<M>(&mut self)
    where
        M: Method + ts_rs::TS + 'static,
        M::Reply: ts_rs::TS + 'static;
}

/// The reply of methods that have nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Record<string, never>"))]
pub struct Empty {}

/// Reads and checks a request from JSON. Nothing at all and `null` stand for `{}`.
///
/// # Errors
/// Names the field that is missing, of the wrong type or against its rule.
pub fn decode_request<T: Checked + DeserializeOwned>(data: &[u8]) -> Result<T, RpcError> {
    let data = match data {
        b"" | b"null" => b"{}",
        data => data,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    let request: T = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| RpcError::unreadable(&error))?;
    deserializer.end().map_err(|error| RpcError::new(ErrorCode::BadRequest, error.to_string()))?;
    request.check()?;
    Ok(request)
}

/// Writes a reply or an event as the JSON payload of a frame.
pub fn encode_payload<T: Serialize>(value: &T) -> Bytes {
    serde_json::to_vec(value).expect("chat payloads have string keys and no failing parts").into()
}

macro_rules! methods {
    ($($variant:ident = $name:literal => $reply:ty;)*) => {
        /// A typed, checked request.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is documented as the request of its name")]
        pub enum Rpc {
            $($variant($variant),)*
        }

        $(impl Method for $variant {
            const NAME: &'static str = $name;
            type Reply = $reply;
        })*

        impl Rpc {
            /// Every method name, in the order of `docs/protocol.md`.
            pub const METHODS: &'static [&'static str] = &[$($name,)*];

            /// Reads and checks the request of a method.
            ///
            /// # Errors
            /// [`ErrorCode::MethodNotFound`] for an unknown name; otherwise as [`decode_request`].
            pub fn decode(method: &str, data: &[u8]) -> Result<Self, RpcError> {
                match method {
                    $($name => decode_request(data).map(Self::$variant),)*
                    _ => Err(RpcError::method_not_found(method)),
                }
            }

            /// Name of the method, for metrics and logs.
            pub const fn method(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }

        /// Shows every method's types to a visitor, in the order of [`Rpc::METHODS`].
        #[cfg(feature = "typescript")]
        pub fn visit_methods(visitor: &mut impl MethodVisitor) {
            $(visitor.visit::<$variant>();)*
        }
    };
}

methods! {
    RoomsList = "rooms.list" => Rooms;
    RoomCreate = "room.create" => RoomView;
    RoomGet = "room.get" => RoomView;
    RoomUpdate = "room.update" => RoomView;
    RoomArchive = "room.archive" => RoomView;
    RoomDelete = "room.delete" => Empty;
    RoomLeave = "room.leave" => Empty;
    RoomMembers = "room.members" => MembersPage;
    RoomAdd = "room.add" => Empty;
    RoomSetRole = "room.set_role" => Empty;
    RoomKick = "room.kick" => Empty;
    RoomBan = "room.ban" => Empty;
    RoomMute = "room.mute" => Empty;
    RoomNotify = "room.notify" => Empty;
    DirectOpen = "direct.open" => RoomView;
    DirectHide = "direct.hide" => Empty;
    RoomsBrowse = "rooms.browse" => ListedRooms;
    RoomJoin = "room.join" => RoomView;
    RoomAccessGet = "room.access" => RoomAccessView;
    RoomAccessSet = "room.set_access" => Empty;
    InviteCreate = "invite.create" => InviteCreated;
    InviteList = "invite.list" => InvitesPage;
    InviteRevoke = "invite.revoke" => Empty;
    InviteGet = "invite.get" => InvitePreview;
    InviteAccept = "invite.accept" => RoomView;
    MessageSend = "message.send" => MessageSent;
    MessageEdit = "message.edit" => MessageEdited;
    MessageDelete = "message.delete" => Empty;
    MessageReact = "message.react" => Empty;
    MessageReactions = "message.reactions" => ReactionsPage;
    MessageThread = "message.thread" => ThreadPage;
    MessagePin = "message.pin" => Empty;
    RoomPins = "room.pins" => PinsPage;
    MessageSave = "message.save" => Empty;
    SavedList = "saved.list" => SavedPage;
    SavedMarks = "saved.marks" => SavedNumbers;
    HistoryGet = "history.get" => HistoryPage;
    ReadSet = "read.set" => ReadState;
    TypingSet = "typing.set" => Empty;
    PresenceWatch = "presence.watch" => Empty;
    UsersFind = "users.find" => UsersFound;
    UserGet = "user.get" => UserView;
    UserBlock = "user.block" => Empty;
    UsersBlocked = "users.blocked" => UsersFound;
    ProfileUpdate = "profile.update" => UserView;
    StatusSet = "status.set" => UserView;
    DevicesList = "devices.list" => DevicesPage;
    DevicesRevoke = "devices.revoke" => Empty;
    Search = "search" => SearchHits;
    Sync = "sync" => Rooms;
}

#[cfg(test)]
mod tests;
