//! The two formats of a connection and how frames are read and written in them.
//!
//! JSON: one command or reply per line of a text message. Protobuf: each preceded by its length as
//! a varint, in a binary message. A WebSocket message may hold several; a server reads them one by
//! one, so that those before a malformed one still count and a frame of thousands costs no more
//! memory than its bytes. Decoding arbitrary bytes gives an error naming the command and the
//! reason, never a panic. An encoded frame may be shared between connections of one format.

use bytes::{Buf, Bytes};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codes::DisconnectCode;
use crate::frame::{Command, Push, Reply};
use crate::limits::FRAME_BYTES_MAX;

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
/// let data = encode_payload(&Rooms { rooms: Vec::new(), next: None });
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
            Self::Malformed { .. } => DisconnectCode::BadRequest,
        }
    }
}

/// Says that a payload is not JSON and so cannot be written into a JSON frame; nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("frame cannot be written: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

impl Format {
    /// Reads the commands of one WebSocket message of a client, each when it is asked for.
    ///
    /// # Errors
    /// When the message is over its limit, empty, or no text in JSON. What of it is no command is
    /// an error of the iterator, which ends with it.
    pub fn commands(self, frame: Bytes) -> Result<Commands, DecodeError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(DecodeError::TooLarge { len: frame.len() });
        }
        Frames::new(self, frame).map(Commands)
    }

    /// Reads all commands of one WebSocket message of a client at once.
    ///
    /// # Errors
    /// When the message is over its limit, or a command is not one.
    pub fn decode_commands(self, frame: &[u8]) -> Result<Vec<Command>, DecodeError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(DecodeError::TooLarge { len: frame.len() });
        }
        self.commands(Bytes::copy_from_slice(frame))?.collect()
    }

    /// Reads the replies of one WebSocket message of a server, for clients.
    ///
    /// # Errors
    /// When a reply is not one.
    pub fn decode_replies(self, frame: &[u8]) -> Result<Vec<Reply>, DecodeError> {
        // A server we chose to connect to is trusted with the length of its messages.
        let mut frames = Frames::new(self, Bytes::copy_from_slice(frame))?;
        std::iter::from_fn(|| frames.next()).collect()
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
}

/// The commands of one WebSocket message, in their order; ends after the first that is none.
#[derive(Debug)]
pub struct Commands(Frames);

impl Commands {
    /// Whether nothing is left to read.
    pub fn is_over(&self) -> bool {
        self.0.rest.iter().all(u8::is_ascii_whitespace)
            && (self.0.format == Format::Json || self.0.rest.is_empty())
    }
}

impl Iterator for Commands {
    type Item = Result<Command, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// A WebSocket message on its way to being read.
#[derive(Debug)]
struct Frames {
    format: Format,
    rest: Bytes,
    /// How many values were read.
    count: usize,
}

impl Frames {
    fn new(format: Format, frame: Bytes) -> Result<Self, DecodeError> {
        let frames = Self { format, rest: frame, count: 0 };
        let is_blank = match format {
            Format::Json => {
                let text = std::str::from_utf8(&frames.rest);
                text.map_err(|error| frames.malformed(&error))?.trim().is_empty()
            }
            Format::Protobuf => frames.rest.is_empty(),
        };
        if is_blank { Err(frames.malformed(&"frame is empty")) } else { Ok(frames) }
    }

    fn next<T: Message + Default + DeserializeOwned>(&mut self) -> Option<Result<T, DecodeError>> {
        let value = match self.format {
            Format::Json => self.next_json()?,
            Format::Protobuf if self.rest.is_empty() => return None,
            Format::Protobuf => {
                T::decode_length_delimited(&mut self.rest).map_err(|error| self.malformed(&error))
            }
        };
        match &value {
            Ok(_) => self.count += 1,
            // Where the next one would begin is not known.
            Err(_) => self.rest.clear(),
        }
        Some(value)
    }

    /// Reads values rather than lines, so that a client may also break lines inside a command.
    fn next_json<T: DeserializeOwned>(&mut self) -> Option<Result<T, DecodeError>> {
        let mut values = serde_json::Deserializer::from_slice(&self.rest).into_iter::<T>();
        let value = values.next()?;
        let read = values.byte_offset();
        let value = value.map_err(|error| self.malformed(&error));
        self.rest.advance(read);
        Some(value)
    }

    fn malformed(&self, reason: &dyn std::fmt::Display) -> DecodeError {
        DecodeError::Malformed { index: self.count, reason: reason.to_string() }
    }
}
