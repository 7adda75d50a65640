//! The messages of `proto/read_states.proto`, and their frames.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest request.
pub const FRAME_LEN_MAX: u32 = 1 << 20;
/// The longest reply: the read states of a user in as many rooms as may be, with the largest numbers,
/// have 1,966,050 bytes.
pub const REPLY_LEN_MAX: u32 = 2 << 20;

/// What is sent in a frame.
pub trait Framed: prost::Message + Default {
    /// The longest one.
    const LEN_MAX: u32;
}

impl Framed for Request {
    const LEN_MAX: u32 = FRAME_LEN_MAX;
}

impl Framed for Reply {
    const LEN_MAX: u32 = REPLY_LEN_MAX;
}

/// What a client asks for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Nothing is a malformed request.
    #[prost(oneof = "Command", tags = "1, 2, 3, 4, 5")]
    pub command: Option<Command>,
}

/// See `proto/read_states.proto`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Command {
    /// The user has read up to a message.
    #[prost(message, tag = "1")]
    Acknowledge(Acknowledge),
    /// A message mentions users.
    #[prost(message, tag = "2")]
    Mention(Mention),
    /// The user has left the room.
    #[prost(message, tag = "3")]
    Forget(Place),
    /// All of a user.
    #[prost(message, tag = "4")]
    All(All),
    /// One of a user.
    #[prost(message, tag = "5")]
    One(Place),
}

/// The user has read up to a message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Acknowledge {
    /// Who.
    #[prost(uint64, tag = "1")]
    pub user: u64,
    /// Where.
    #[prost(uint64, tag = "2")]
    pub room: u64,
    /// The last message that was read.
    #[prost(uint64, tag = "3")]
    pub message: u64,
    /// Mentions after it.
    #[prost(uint32, tag = "4")]
    pub mentions_left: u32,
}

/// A message mentions users.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Mention {
    /// Whom.
    #[prost(uint64, repeated, tag = "1")]
    pub users: Vec<u64>,
    /// Where.
    #[prost(uint64, tag = "2")]
    pub room: u64,
    /// The message.
    #[prost(uint64, tag = "3")]
    pub message: u64,
}

/// A user in a room.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Place {
    /// Who.
    #[prost(uint64, tag = "1")]
    pub user: u64,
    /// Where.
    #[prost(uint64, tag = "2")]
    pub room: u64,
}

/// A user.
#[derive(Clone, PartialEq, prost::Message)]
pub struct All {
    /// Who.
    #[prost(uint64, tag = "1")]
    pub user: u64,
}

/// What the server answers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    /// Always there.
    #[prost(oneof = "Outcome", tags = "1, 2, 3")]
    pub outcome: Option<Outcome>,
}

/// See `proto/read_states.proto`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Outcome {
    /// Changed, and safe from a crash.
    #[prost(message, tag = "1")]
    Done(Done),
    /// What was asked for.
    #[prost(message, tag = "2")]
    States(States),
    /// Refused.
    #[prost(message, tag = "3")]
    Failure(Failure),
}

/// Nothing more to say.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Done {}

/// Read states of a user.
#[derive(Clone, PartialEq, prost::Message)]
pub struct States {
    /// In no particular order.
    #[prost(message, repeated, tag = "1")]
    pub states: Vec<State>,
}

/// A read state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct State {
    /// Where.
    #[prost(uint64, tag = "1")]
    pub room: u64,
    /// The last message that was read.
    #[prost(uint64, tag = "2")]
    pub last_read: u64,
    /// Mentions after it.
    #[prost(uint32, tag = "3")]
    pub mentions: u32,
}

/// Why not.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// A word for programs.
    #[prost(string, tag = "1")]
    pub code: String,
    /// A sentence for people.
    #[prost(string, tag = "2")]
    pub text: String,
}

/// Appends a message with its length.
pub fn put<M: prost::Message>(message: &M, out: &mut Vec<u8>) {
    let len = u32::try_from(message.encoded_len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&message.encode_to_vec());
}

/// The next message; `None` at the end of the connection.
///
/// # Errors
/// The connection broke, ended within a message, or carried something that is none: `InvalidData`,
/// with what is wrong.
pub async fn get<M: Framed>(
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<M>> {
    let malformed = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    let mut len = [0; 4];
    if from.read(&mut len[..1]).await? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut len[1..]).await?;
    let len = u32::from_le_bytes(len);
    if len > M::LEN_MAX {
        return Err(malformed(format!("a message of {len} bytes; the limit is {}", M::LEN_MAX)));
    }
    buffer.clear();
    let got = (&mut *from).take(u64::from(len)).read_to_end(buffer).await?;
    if got < len as usize {
        return Err(malformed(format!("the connection ended after {got} of {len} bytes")));
    }
    M::decode(&**buffer).map(Some).map_err(|error| malformed(error.to_string()))
}
