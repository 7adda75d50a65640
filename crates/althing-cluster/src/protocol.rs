//! What is said on the wires: between a node and the authority, and between two nodes.
//!
//! Each message is a frame: its length as four bytes, the highest first, then its body by `Wire`.
//! Both conversations begin with a greeting that names version and cluster, so a stranger is known
//! by its first frame. Bytes from elsewhere are never trusted: a frame that is too long, does not
//! decode or does not fit the conversation ends the connection.

use std::sync::Arc;

use althing::remote::{Control, Departing, Place};
use althing::{ActorId, AskError, Epoch, Sequence, Wire};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::capability::Capability;
use crate::label::Labels;
use crate::record::{Member, Record};
use crate::relay::Key;
use crate::roster::Entry;
use crate::tls::{RefusedFor, Untrusted};

/// Version of everything in this file.
pub(crate) const VERSION: u32 = 5;

/// The oldest version that is spoken, too, so that nodes can be replaced one after the other.
/// Version 5 has bundles of tells between nodes. What is said to the authority and by clients is the
/// same in both, so they greet with this one.
pub(crate) const WIRE_FLOOR: u32 = 4;

/// Whether whoever greets with that version is understood; others are refused.
pub(crate) fn is_spoken(version: u32) -> bool {
    (WIRE_FLOOR..=VERSION).contains(&version)
}

/// Longest frame of an authority's conversation: a record with thousands of members.
pub(crate) const RECORD_LEN_MAX: usize = 4 << 20;

/// Longest greeting: nobody is known yet.
pub(crate) const GREETING_LEN_MAX: usize = 1_024;

/// Stands for an incarnation in the greeting of somebody who is no node.
pub(crate) const CLIENT: u64 = u64::MAX;

/// The first frame of whoever connects.
#[derive(Debug, PartialEq, Eq, Wire)]
pub(crate) struct Greeting {
    pub(crate) version: u32,
    pub(crate) cluster: String,
    /// The node that connects; 0 to an authority, `CLIENT` of whoever is no node.
    pub(crate) from: u64,
    /// The node that is meant; 0 to an authority, and to any node.
    pub(crate) to: u64,
}

/// What a node answers to a greeting.
#[derive(Debug, PartialEq, Eq, Wire)]
pub(crate) enum Welcome {
    /// Go on behind this frame.
    Since { received: u64 },
    /// No.
    Refused { why: String },
    /// To somebody who is no node: this one answers, and so long may a frame be.
    Client { node: u64, name: String, capabilities: Vec<Capability>, frame_len_max: u64 },
}

/// Why a node is not welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    Version,
    Cluster,
    /// Another life of this node is dialled, or another node.
    NotMeant,
    /// The record that is known here does not have it yet, or no longer.
    Stranger,
    /// Its certificate is for another node.
    Certificate,
}

impl No {
    const ALL: [Self; 5] =
        [Self::Version, Self::Cluster, Self::NotMeant, Self::Stranger, Self::Certificate];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Version => "another version of the protocol",
            Self::Cluster => "another cluster",
            Self::NotMeant => "another node",
            Self::Stranger => "not known as a member",
            Self::Certificate => "the certificate is for another node",
        }
    }

    /// Whether these are the words.
    pub(crate) fn says(self, words: &str) -> bool {
        self.words() == words
    }

    /// For whoever says it.
    pub(crate) fn of_the_other(self) -> Broken {
        let reason = match self {
            Self::Version => RefusedFor::Version,
            Self::Cluster => RefusedFor::Cluster,
            Self::Certificate => RefusedFor::Node,
            // These pass, as records spread.
            Self::NotMeant | Self::Stranger => return Broken::Refused(self.words().to_owned()),
        };
        Untrusted::new(reason, self.words()).into()
    }

    /// For whoever hears it.
    pub(crate) fn heard(self) -> Broken {
        match self.of_the_other() {
            Broken::Untrusted(_) => {
                let why = format!("it does not trust this side: {}", self.words());
                Untrusted::new(RefusedFor::ByTheOther, why).into()
            }
            passing => passing,
        }
    }

    /// What these words mean.
    pub(crate) fn of_words(words: String) -> Broken {
        let known = Self::ALL.into_iter().find(|no| no.words() == words);
        known.map_or(Broken::Refused(words), Self::heard)
    }
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
        /// What the record does not say of its labels, or no longer: a kind has come, or an
        /// authority of a version without them had the lead.
        labels: Option<Labels>,
    },
    /// Nothing of these buckets runs here any more; each with the epoch that has ended.
    Released { incarnation: u64, buckets: Vec<u32>, epochs: Vec<u64> },
    /// These buckets are to live on those members, for as long as they are there.
    Pin { incarnation: u64, buckets: Vec<u32>, to: Vec<u64> },
    /// It wants to give its buckets away.
    Leave { incarnation: u64 },
    /// It has ended.
    Goodbye { incarnation: u64 },
}

impl Request {
    /// The name of the node that says it, as far as the record knows.
    pub(crate) fn speaks_for<'a>(&'a self, record: &'a Record) -> Option<&'a str> {
        let incarnation = match self {
            Self::Join { member, .. } => return Some(&member.name),
            Self::Renew { incarnation, .. }
            | Self::Released { incarnation, .. }
            | Self::Pin { incarnation, .. }
            | Self::Leave { incarnation }
            | Self::Goodbye { incarnation } => *incarnation,
        };
        record.member(incarnation).map(|member| &*member.name)
    }
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
    /// The certificate is for another node.
    Certificate,
}

/// What goes from the node that connected to the one it connected to.
#[derive(Debug, Wire)]
#[allow(clippy::large_enum_variant, reason = "one at a time, and hardly ever a ping")]
pub(crate) enum Forth {
    /// One more; numbers are without gaps.
    Item { number: u64, view: u64, item: Item },
    /// Still there.
    Ping,
    /// Many tells; see `link::bundle`.
    Tells { first: u64, view: u64, tells: Vec<u8> },
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
        bucket: u32,
        origin: u64,
        token: u64,
        epoch: u64,
    },
    /// A marker has reached the bucket's owner.
    Flushed {
        bucket: u32,
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
    /// The sender has a subscriber of that topic, or no longer; see `relay`.
    Listens {
        topic: Arc<str>,
        event: Arc<str>,
        /// Rises with each time that it begins to listen; none if it does no longer.
        session: Option<u64>,
    },
    /// The answer to the former.
    Heard {
        topic: Arc<str>,
        event: Arc<str>,
        session: u64,
        hearing: Hearing,
    },
    Event(TopicEvent),
    /// The topic's owner of that epoch, which was the sender's, is no more.
    Released {
        topic: Arc<str>,
        event: Arc<str>,
        epoch: u64,
    },
    /// The topic has an owner of that epoch: has the other node sent all that is older?
    Drain {
        topic: Arc<str>,
        event: Arc<str>,
        epoch: u64,
    },
    /// The answer, behind all that.
    Drained {
        topic: Arc<str>,
        event: Arc<str>,
        epoch: u64,
    },
    /// The sender publishes nothing more.
    Quiet,
    /// An actor of the sender is in a group, or no longer; see `roster`.
    Group(Entry),
    /// What this number means in bundles from here on: tells of that name for that actor, which set
    /// out in that epoch.
    Route {
        route: u32,
        to: ActorId,
        name: String,
        epoch: u64,
    },
}

/// What a node says to another one that listens to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Hearing {
    /// What it publishes from now on comes; before, it has published nothing.
    All,
    /// What it publishes from now on comes.
    FromNowOn,
    /// It knows no events of that name.
    Unregistered,
    /// It remembers as many topics as it can.
    TooMany,
}

/// An event of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) struct TopicEvent {
    pub(crate) topic: Arc<str>,
    pub(crate) event: Arc<str>,
    /// Of the topic's owner; none if anybody published.
    pub(crate) epoch: Option<u64>,
    /// Means something only with an epoch.
    pub(crate) sequence: u64,
    /// The sender has left out some before it.
    pub(crate) gap: bool,
    pub(crate) body: Vec<u8>,
}

impl TopicEvent {
    pub(crate) fn new(key: &Key, event: &Departing, gap: bool) -> Self {
        Self {
            topic: key.topic.clone(),
            event: key.event.clone(),
            epoch: event.place.map(|place| place.epoch.0),
            sequence: event.place.map_or(0, |place| place.sequence.0),
            gap,
            body: event.body.clone(),
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key { topic: self.topic.clone(), event: self.event.clone() }
    }

    pub(crate) fn place(&self) -> Option<Place> {
        let sequence = Sequence(self.sequence);
        self.epoch.map(|epoch| Place { epoch: Epoch(epoch), sequence })
    }
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

/// Says on the wire that a reply was too long: without the name of an actor, as nothing else is.
/// Versions without `AskError::ReplyTooLong` read it, too.
pub(crate) fn reply_too_long(why: String) -> AskError {
    AskError::NotUnderstood(ActorId::named("", ""), why)
}

/// What the asker of an actor hears of a failure on the wire.
pub(crate) fn heard(why: AskError, of: ActorId) -> AskError {
    match why {
        AskError::NotUnderstood(id, why) if id.kind().as_str().is_empty() => {
            AskError::ReplyTooLong(of, why)
        }
        why => why,
    }
}

/// Why a conversation ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the connection ended: {0}")]
    Io(std::io::Error),
    #[error("a frame of {0} bytes is longer than allowed")]
    TooLong(usize),
    #[error("a frame cannot be read: {0}")]
    Unreadable(#[from] althing::WireError),
    #[error("{0}")]
    Refused(String),
    #[error("it is not trusted: {0}")]
    Untrusted(#[from] Untrusted),
    #[error("nothing was heard for too long")]
    Silent,
    #[error("another process is the authority: {0:?}")]
    Elsewhere(Option<String>),
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        let tls =
            error.get_ref().and_then(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>());
        tls.map(Untrusted::from).map_or_else(|| Self::Io(error), Self::Untrusted)
    }
}

impl Broken {
    /// Of a greeting that is longer than allowed, or a record of TLS instead of one.
    fn too_long(len: usize) -> Self {
        match len >> 16 {
            // A handshake and an alert begin so.
            0x1603 | 0x1503 => {
                let why = "it speaks TLS, and this side does not";
                Untrusted::new(RefusedFor::Encrypted, why).into()
            }
            _ => Self::TooLong(len),
        }
    }
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
        return Err(Broken::too_long(len));
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

#[cfg(test)]
mod golden;
