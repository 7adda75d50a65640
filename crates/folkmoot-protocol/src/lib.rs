//! What Folkmoot clients speak: the frames of the Centrifugo client protocol and the chat payloads
//! in them, with their ids, codes, limits and rules. No I/O and no async runtime, so that the
//! server, the load generator, the tests and the TypeScript generator share one definition.
//!
//! Reading order: a [`Format`] turns bytes into [`frame`]s, [`Rpc`](rpc::Rpc) turns a frame's
//! payload into a request, [`chat`] says what replies and events look like.

mod channel;
pub mod chat;
mod codec;
mod codes;
pub mod field;
pub mod frame;
mod id;
pub mod limits;
pub mod rpc;
#[cfg(feature = "wire")]
pub mod wire;

/// For `wire_as!`, in crates that may call it otherwise.
#[cfg(feature = "wire")]
#[doc(hidden)]
pub use althing;

pub use channel::{Channel, ParseChannelError};
pub use codec::{Commands, DecodeError, EncodeError, Format, PROTOBUF_SUBPROTOCOL};
pub use codes::{DisconnectCode, ErrorCode};
pub use id::{
    AttachmentId, DeviceId, ID_TEXT_LEN, Offset, ParseIdError, PictureId, RoomId, Seq, UnixMillis,
    UserId,
};
