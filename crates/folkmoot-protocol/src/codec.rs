//! The two formats of a connection and how frames are read and written in them.
//!
//! JSON: one command or reply per line of a text message. Protobuf: each preceded by its length as a varint, in
//! a binary message. A WebSocket message may hold several. Decoding arbitrary bytes gives an error naming the
//! command and the reason, never a panic. An encoded frame may be shared between connections of one format.

use bytes::{Buf, Bytes};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codes::DisconnectCode;
use crate::frame::{Command, Push, Reply};
use crate::limits::{COMMANDS_PER_FRAME_MAX, FRAME_BYTES_MAX};

/// WebSocket sub-protocol by which a client asks for protobuf.
pub const PROTOBUF_SUBPROTOCOL: &str = "centrifuge-protobuf";

/// How a connection writes its frames.
///
/// ```
/// use folkmoot_protocol::frame::{Outcome, Reply, Request, RpcResult};
/// use folkmoot_protocol::rpc::{Rpc, Rooms, encode_payload};
/// use folkmoot_protocol::Format;
///
/// let commands = Format::Json.decode_commands(br#"{"id":1,"rpc":{"method":"rooms.list"}}"#)?;
/// let Some(Request::Rpc(call)) = &commands[0].request else { unreachable!() };
/// assert!(matches!(Rpc::decode(&call.method, &call.data)?, Rpc::RoomsList(_)));
///
/// let data = encode_payload(&Rooms { rooms: Vec::new() });
/// let mut message = Vec::new();
/// Format::Json.encode_reply(&Reply::ok(1, Outcome::Rpc(RpcResult { data })), &mut message)?;
/// assert_eq!(message, br#"{"id":1,"rpc":{"data":{"rooms":[]}}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lines of JSON in text messages.
    Json,
    /// Length-prefixed protobuf in binary messages.
    Protobuf,
}

/// Why a WebSocket message could not be read; the connection is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is over [`FRAME_BYTES_MAX`].
    #[error("frame of {len} bytes is over the limit of {FRAME_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        len: usize,
    },
    /// The message holds more commands than [`COMMANDS_PER_FRAME_MAX`].
    #[error("frame holds more than {COMMANDS_PER_FRAME_MAX} commands")]
    TooMany,
    /// A command is not one.
    #[error("command {index} of the frame: {reason}")]
    Malformed {
        /// Which one, counted from 0.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl DecodeError {
    /// The code to close the connection with.
    pub fn disconnect_code(&self) -> DisconnectCode {
        match self {
            Self::TooLarge { .. } => DisconnectCode::FrameTooLarge,
            Self::TooMany | Self::Malformed { .. } => DisconnectCode::BadRequest,
        }
    }
}

/// Says that a payload is not JSON and so cannot be written into a JSON frame; nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("frame cannot be written: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

impl Format {
    /// Reads the commands of one WebSocket message of a client.
    ///
    /// # Errors
    /// When the message or its count of commands is over its limit, or a command is not one.
    pub fn decode_commands(self, frame: &[u8]) -> Result<Vec<Command>, DecodeError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(DecodeError::TooLarge { len: frame.len() });
        }
        self.decode(frame, COMMANDS_PER_FRAME_MAX)
    }

    /// Reads the replies of one WebSocket message of a server, for clients.
    ///
    /// # Errors
    /// When a reply is not one.
    pub fn decode_replies(self, frame: &[u8]) -> Result<Vec<Reply>, DecodeError> {
        // A server we chose to connect to is trusted with the number of its replies.
        self.decode(frame, usize::MAX)
    }

    /// Appends a reply to a WebSocket message under construction.
    ///
    /// # Errors
    /// When a payload is not JSON; `message` is as before.
    pub fn encode_reply(self, reply: &Reply, message: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encode(reply, message)
    }

    /// Appends a command to a WebSocket message under construction, for clients.
    ///
    /// # Errors
    /// When a payload is not JSON; `message` is as before.
    pub fn encode_command(
        self,
        command: &Command,
        message: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.encode(command, message)
    }

    /// Encodes a push once, for any number of connections.
    ///
    /// # Errors
    /// When its payload is not JSON.
    pub fn encode_push(self, push: Push) -> Result<Bytes, EncodeError> {
        let mut frame = Vec::new();
        self.encode(&Reply::from(push), &mut frame)?;
        Ok(frame.into())
    }

    /// Appends an encoded frame to a WebSocket message under construction.
    pub fn append(self, frame: &[u8], message: &mut Vec<u8>) {
        self.separate(message);
        message.extend_from_slice(frame);
    }

    fn separate(self, message: &mut Vec<u8>) {
        if self == Self::Json && !message.is_empty() {
            message.push(b'\n');
        }
    }

    fn encode<T: Message + Serialize>(
        self,
        value: &T,
        message: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let before = message.len();
        self.separate(message);
        match self {
            Self::Json => serde_json::to_writer(&mut *message, value).map_err(|error| {
                message.truncate(before);
                EncodeError(error)
            }),
            Self::Protobuf => {
                value.encode_length_delimited(message).expect("a vector grows as needed");
                Ok(())
            }
        }
    }

    fn decode<T>(self, frame: &[u8], count_max: usize) -> Result<Vec<T>, DecodeError>
    where
        T: Message + Default + DeserializeOwned,
    {
        let mut values = Vec::new();
        match self {
            Self::Json => decode_json(frame, count_max, &mut values)?,
            Self::Protobuf => decode_protobuf(frame, count_max, &mut values)?,
        }
        if values.is_empty() {
            return Err(DecodeError::Malformed { index: 0, reason: "frame is empty".into() });
        }
        Ok(values)
    }
}

fn decode_json<T: DeserializeOwned>(
    frame: &[u8],
    count_max: usize,
    values: &mut Vec<T>,
) -> Result<(), DecodeError> {
    let malformed = |index, reason: String| DecodeError::Malformed { index, reason };
    let text = std::str::from_utf8(frame).map_err(|error| malformed(0, error.to_string()))?;
    // Reads values rather than lines, so that a client may also break lines inside a command.
    for value in serde_json::Deserializer::from_str(text).into_iter::<T>() {
        if values.len() == count_max {
            return Err(DecodeError::TooMany);
        }
        values.push(value.map_err(|error| malformed(values.len(), error.to_string()))?);
    }
    Ok(())
}

fn decode_protobuf<T: Message + Default>(
    mut frame: &[u8],
    count_max: usize,
    values: &mut Vec<T>,
) -> Result<(), DecodeError> {
    while frame.has_remaining() {
        if values.len() == count_max {
            return Err(DecodeError::TooMany);
        }
        let value = T::decode_length_delimited(&mut frame).map_err(|error| {
            DecodeError::Malformed { index: values.len(), reason: error.to_string() }
        })?;
        values.push(value);
    }
    Ok(())
}
