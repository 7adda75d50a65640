//! What the owner of a channel and the nodes with its subscribers say to each other, and how it
//! travels. A payload that goes into many channels travels once in a message.

use std::sync::Arc;

use althing::{ActorRef, Wire, WireError};
use bytes::Bytes;
use folkmoot_protocol::frame::{ClientInfo, Publication};
use folkmoot_protocol::wire_as;

use super::{Position, Post, Posts};
use crate::nodes::Site;
use crate::payload::Payload;
use crate::stream::Keep;
use crate::version::Version;

/// A publication on its way to subscribers.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) payload: Arc<Payload>,
    /// 0: it is in no history.
    pub(crate) offset: u64,
    /// Whether it may go out as what has changed since the one before it.
    pub(crate) may_be_delta: bool,
}

/// Something that has happened in a channel.
#[derive(Debug, Clone)]
pub(crate) struct News {
    pub(crate) channel: Arc<str>,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Published(Heard),
    /// Somebody subscribes, and others may hear of it.
    Came(ClientInfo),
    Left(ClientInfo),
    /// What a node has of the channel does not go on: this is where the channel is now.
    Anew(Position),
}

/// What stands around news and their numbers in a message, at most.
const NEWS_BYTES: usize = 64;

impl News {
    /// How many bytes they take in a message beside a payload, at most.
    pub(super) fn encoded_len(&self) -> usize {
        self.channel.len() + self.what.encoded_len() + NEWS_BYTES
    }
}

impl What {
    /// The payload, which neighbours in a message may share.
    pub(super) fn payload(&self) -> Option<&Arc<Payload>> {
        match self {
            Self::Published(heard) => Some(&heard.payload),
            Self::Came(_) | Self::Left(_) | Self::Anew(_) => None,
        }
    }

    /// How many bytes it takes beside its payload.
    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Came(info) | Self::Left(info) => prost::Message::encoded_len(info),
            Self::Published(_) | Self::Anew(_) => 0,
        }
    }
}

/// News in their order.
#[derive(Debug, Clone)]
pub(crate) struct Bulletin(pub(crate) Vec<News>);

/// Publications with their channels, on their way to an owner.
#[derive(Debug)]
pub(crate) struct Shipment(pub(crate) Posts);

/// A node asks to hear of a channel from now on, and what one of its clients has missed.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Attach {
    pub(crate) site: ActorRef<Site>,
    pub(crate) channel: Arc<str>,
    /// Rises with each question of the node about this owner's channels.
    pub(crate) number: u64,
    pub(crate) keep: Option<Keep>,
    pub(crate) missed: Missing,
}

/// What a client that subscribes wants of what was published before.
#[derive(Debug, Clone, Wire)]
pub(crate) enum Missing {
    Nothing,
    /// All since a position, if it is so many at most.
    Since {
        offset: u64,
        epoch: String,
        len_max: usize,
    },
    /// The newest one.
    Newest,
    /// All there is, so that a filter can find its newest one.
    All,
}

/// Where a channel is, and what was missed.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Found {
    /// In which life of the owner.
    pub(crate) life: u64,
    /// `None`: the channel has no history.
    pub(crate) position: Option<Position>,
    pub(crate) missed: Vec<Publication>,
    /// Whether that is all that was asked for.
    pub(crate) is_all: bool,
}

/// The channels of one owner that a node has subscribers in.
#[derive(Debug, Clone, Default, Wire)]
pub(crate) struct Enlisted {
    /// The number of the node's last question.
    pub(crate) number: u64,
    pub(crate) channels: Vec<EnlistedChannel>,
}

#[derive(Debug, Clone, Wire)]
pub(crate) struct EnlistedChannel {
    pub(crate) name: Arc<str>,
    pub(crate) keep: Option<Keep>,
    /// The last that was pushed there; `None`: nothing that has a position.
    pub(crate) position: Option<Position>,
}

/// A part of a history, and the position.
#[derive(Debug, Wire)]
pub(crate) struct HistoryPage {
    pub(crate) publications: Vec<Publication>,
    pub(crate) epoch: String,
    pub(crate) offset: u64,
}

/// A channel on its way from one owner to the next.
#[derive(Debug, Clone, Wire)]
pub(crate) struct MovedChannel {
    pub(crate) name: Arc<str>,
    pub(crate) position: Option<Position>,
    pub(crate) history: Vec<Publication>,
    /// Milliseconds since 1970.
    pub(crate) history_until: u64,
    pub(crate) numbers_until: u64,
    /// Idempotency keys with what they were answered, and until when they are known.
    pub(crate) keys: Vec<MovedKey>,
    pub(crate) version: Option<Version>,
}

#[derive(Debug, Clone, Wire)]
pub(crate) struct MovedKey {
    pub(crate) key: Arc<str>,
    pub(crate) position: Position,
    pub(crate) until: u64,
}

#[derive(Wire)]
struct PayloadThere {
    data: Bytes,
    tags: std::collections::BTreeMap<String, String>,
    info: Option<ClientInfo>,
    time: i64,
}

impl PayloadThere {
    fn of(payload: &Payload) -> Self {
        let Payload { data, tags, info, time } = payload;
        Self { data: data.clone(), tags: tags.clone(), info: info.clone(), time: *time }
    }

    fn shared(self) -> Arc<Payload> {
        let Self { data, tags, info, time } = self;
        Arc::new(Payload { data, tags, info, time })
    }
}

/// Payloads, each once for all neighbours that share it.
#[derive(Default)]
struct Payloads {
    there: Vec<PayloadThere>,
    last: Option<Arc<Payload>>,
}

impl Payloads {
    /// The place of a payload.
    fn place(&mut self, payload: &Arc<Payload>) -> u32 {
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, payload)) {
            self.there.push(PayloadThere::of(payload));
            self.last = Some(payload.clone());
        }
        u32::try_from(self.there.len() - 1).expect("a message has fewer payloads")
    }
}

fn payload_at(payloads: &[Arc<Payload>], place: u32) -> Result<Arc<Payload>, WireError> {
    let payload = payloads.get(place as usize).cloned();
    payload.ok_or_else(|| WireError::new("a publication without its payload"))
}

#[derive(Wire)]
struct PostThere {
    channel: Arc<str>,
    payload: u32,
    keep: Option<Keep>,
    key: Option<Arc<str>>,
    version: Option<Version>,
    may_be_delta: bool,
}

#[derive(Wire)]
struct ShipmentThere {
    payloads: Vec<PayloadThere>,
    posts: Vec<PostThere>,
}

wire_as!(
    Shipment as ShipmentThere,
    |shipment| {
        let mut payloads = Payloads::default();
        let there = |(channel, post): &(Arc<str>, Post)| PostThere {
            channel: channel.clone(),
            payload: payloads.place(&post.payload),
            keep: post.keep,
            key: post.key.clone(),
            version: post.version.as_deref().cloned(),
            may_be_delta: post.may_be_delta,
        };
        let posts = shipment.0.iter().map(there).collect();
        ShipmentThere { payloads: payloads.there, posts }
    },
    |there| {
        let payloads: Vec<_> = there.payloads.into_iter().map(PayloadThere::shared).collect();
        let post = |there: PostThere| {
            let PostThere { channel, payload, keep, key, version, may_be_delta } = there;
            let (payload, version) = (payload_at(&payloads, payload)?, version.map(Arc::new));
            // Rows are known again by durable channels only, which have one node.
            Ok((channel, Post { payload, keep, key, row: None, version, may_be_delta }))
        };
        Ok(Self(there.posts.into_iter().map(post).collect::<Result<_, _>>()?))
    }
);

#[derive(Wire)]
enum WhatThere {
    Published { payload: u32, offset: u64, may_be_delta: bool },
    Came(ClientInfo),
    Left(ClientInfo),
    Anew(Position),
}

#[derive(Wire)]
struct NewsThere {
    channel: Arc<str>,
    what: WhatThere,
}

#[derive(Wire)]
struct BulletinThere {
    payloads: Vec<PayloadThere>,
    news: Vec<NewsThere>,
}

wire_as!(
    Bulletin as BulletinThere,
    |bulletin| {
        let mut payloads = Payloads::default();
        let there = |News { channel, what }: &News| {
            let what = match what {
                What::Published(Heard { payload, offset, may_be_delta }) => WhatThere::Published {
                    payload: payloads.place(payload),
                    offset: *offset,
                    may_be_delta: *may_be_delta,
                },
                What::Came(info) => WhatThere::Came(info.clone()),
                What::Left(info) => WhatThere::Left(info.clone()),
                What::Anew(position) => WhatThere::Anew(*position),
            };
            NewsThere { channel: channel.clone(), what }
        };
        let news = bulletin.0.iter().map(there).collect();
        BulletinThere { payloads: payloads.there, news }
    },
    |there| {
        let payloads: Vec<_> = there.payloads.into_iter().map(PayloadThere::shared).collect();
        let news = |NewsThere { channel, what }: NewsThere| {
            let what = match what {
                WhatThere::Published { payload, offset, may_be_delta } => {
                    let payload = payload_at(&payloads, payload)?;
                    What::Published(Heard { payload, offset, may_be_delta })
                }
                WhatThere::Came(info) => What::Came(info),
                WhatThere::Left(info) => What::Left(info),
                WhatThere::Anew(position) => What::Anew(position),
            };
            Ok(News { channel, what })
        };
        Ok(Self(there.news.into_iter().map(news).collect::<Result<_, _>>()?))
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_travels_once_however_many_channels_it_goes_into() {
        let data = Bytes::from(vec![b'7'; 1_000]);
        let payload = Arc::new(Payload { data, ..Payload::default() });
        let news = (0..100_u32).map(|number| News {
            channel: number.to_string().into(),
            what: What::Published(Heard {
                payload: payload.clone(),
                offset: number.into(),
                may_be_delta: false,
            }),
        });
        let mut bytes = Vec::new();
        Bulletin(news.collect()).encode(&mut bytes);
        assert!(bytes.len() < 3_000, "{}", bytes.len());
        let there = Bulletin::decode(&bytes).unwrap().0;
        let payloads = there.iter().map(|news| match &news.what {
            What::Published(heard) => heard.payload.clone(),
            other => panic!("{other:?}"),
        });
        let payloads: Vec<_> = payloads.collect();
        assert_eq!(payloads.len(), 100);
        assert!(payloads.iter().all(|one| Arc::ptr_eq(one, &payloads[0])));
        assert_eq!(payloads[0].data, payload.data);
    }
}
