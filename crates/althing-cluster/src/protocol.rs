//! What is said on the wires: between a node and the authority, and between two nodes.
//!
//! Each message is a frame: its length as four bytes, the highest first, then its body by `Wire`.
//! Both conversations begin with a greeting that names version and cluster, so a stranger is known
//! by its first frame. Bytes from elsewhere are never trusted: a frame that is too long, does not
//! decode or does not fit the conversation ends the connection.

use althing::remote::Control;
use althing::{ActorId, AskError, Wire};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::record::{Member, Record};

/// Version of everything in this file; nodes of another one are refused.
pub(crate) const VERSION: u32 = 2;

/// Longest frame of an authority's conversation: a record with thousands of members.
pub(crate) const RECORD_LEN_MAX: usize = 4 << 20;

/// Longest greeting: nobody is known yet.
pub(crate) const GREETING_LEN_MAX: usize = 1_024;

/// The first frame of whoever connects.
#[derive(Debug, PartialEq, Eq, Wire)]
pub(crate) struct Greeting {
    pub(crate) version: u32,
    pub(crate) cluster: String,
    /// The node that connects; 0 to an authority.
    pub(crate) from: u64,
    /// The node that is meant; 0 to an authority.
    pub(crate) to: u64,
}

/// What a node answers to a greeting.
#[derive(Debug, PartialEq, Eq, Wire)]
pub(crate) enum Welcome {
    /// Go on behind this frame.
    Since { received: u64 },
    /// No.
    Refused { why: String },
}

/// What a node wants of the authority.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Request {
    /// It wants to be a member.
    Join {
        member: Member,
        /// The latest view that the authority has told it; 0 if none.
        known: u64,
    },
    Renew {
        incarnation: u64,
        counter: u64,
        view: u64,
    },
    /// Nothing of these buckets runs here any more; each with the epoch that has ended.
    Released {
        incarnation: u64,
        buckets: Vec<u16>,
        epochs: Vec<u64>,
    },
    /// It wants to give its buckets away.
    Leave {
        incarnation: u64,
    },
    /// It has ended.
    Goodbye {
        incarnation: u64,
    },
}

/// What the authority says.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Answer {
    Joined {
        lease_ms: u64,
        record: Record,
    },
    Renewed {
        counter: u64,
        record: Option<Record>,
    },
    /// Unasked: there is a newer record.
    News {
        record: Record,
    },
    Done,
    Refused {
        why: Refusal,
    },
    /// Somebody has gone since the view that a request to join knew. A node that is still there
    /// asks again and names this view; a request that was merely late is not repeated.
    Outdated {
        view: u64,
    },
    /// This is not the authority now. The conversation ends.
    Elsewhere {
        leader: Option<String>,
    },
}

/// Why the authority does not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Refusal {
    /// A member has that name.
    NameTaken,
    /// The node is no member any more.
    Evicted,
}

/// What goes from the node that connected to the one it connected to.
#[derive(Debug, Wire)]
#[allow(clippy::large_enum_variant, reason = "one at a time, and hardly ever a ping")]
pub(crate) enum Forth {
    /// One more; numbers are without gaps.
    Item { number: u64, view: u64, item: Item },
    /// Still there.
    Ping,
}

/// What comes back on the same connection.
#[derive(Debug, PartialEq, Eq, Wire)]
pub(crate) struct Back {
    /// All items up to this one have come.
    pub(crate) received: u64,
    /// So many of them wait for nobody any more.
    pub(crate) taken: u64,
}

/// What one node sends to another.
#[derive(Debug, Wire)]
pub(crate) enum Item {
    Parcel(Packed),
    /// Behind all that `origin` has sent about a bucket this way; see `router`.
    Marker {
        bucket: u16,
        origin: u64,
        token: u64,
        epoch: u64,
    },
    /// A marker has reached the bucket's owner.
    Flushed {
        bucket: u16,
        token: u64,
    },
    /// The sender owns nothing any more and is about to leave.
    Closing,
    /// The answer: behind it comes nothing that is to be passed on.
    Closed,
    Reply {
        ask: u64,
        outcome: Outcome,
    },
}

/// A parcel; `control` or a message.
#[derive(Debug, Wire)]
pub(crate) struct Packed {
    /// The epoch of its bucket when it set out; 0 where it is for a certain node.
    pub(crate) epoch: u64,
    pub(crate) to: ActorId,
    pub(crate) node: Option<u64>,
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
    pub(crate) priority: u32,
    pub(crate) chain: Vec<ActorId>,
    pub(crate) ask: Option<u64>,
    pub(crate) control: Option<Control>,
}

/// What became of an ask.
#[derive(Debug, Wire)]
pub(crate) enum Outcome {
    Replied(Vec<u8>),
    Failed(AskError),
}

/// Why a conversation ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the connection ended: {0}")]
    Io(#[from] std::io::Error),
    #[error("a frame of {0} bytes is longer than allowed")]
    TooLong(usize),
    #[error("a frame cannot be read: {0}")]
    Unreadable(#[from] althing::WireError),
    #[error("{0}")]
    Refused(String),
    #[error("nothing was heard for too long")]
    Silent,
    #[error("another process is the authority: {0:?}")]
    Elsewhere(Option<String>),
}

/// A value as a frame.
pub(crate) fn framed(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_framed(value, &mut bytes);
    bytes
}

/// Appends a value as a frame.
pub(crate) fn append_framed(value: &impl Wire, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend([0; 4]);
    value.encode(bytes);
    let len = u32::try_from(bytes.len() - start - 4).unwrap_or(u32::MAX);
    bytes[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

/// Reads one frame.
pub(crate) async fn read<T: Wire>(
    from: &mut (impl AsyncRead + Unpin),
    len_max: usize,
) -> Result<T, Broken> {
    let len = from.read_u32().await? as usize;
    if len > len_max {
        return Err(Broken::TooLong(len));
    }
    let mut bytes = vec![0; len];
    from.read_exact(&mut bytes).await?;
    Ok(T::decode(&bytes)?)
}

/// Writes one frame.
pub(crate) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    value: &impl Wire,
) -> Result<(), Broken> {
    to.write_all(&framed(value)).await?;
    to.flush().await?;
    Ok(())
}
