//! What was published, held once however many channels it went into.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{ClientInfo, Publication, Push, PushKind};

/// A publication without its place in a channel.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    /// JSON, or any bytes if all subscribers speak protobuf.
    pub(crate) data: Bytes,
    pub(crate) tags: BTreeMap<String, String>,
    /// Who published it, if a client did.
    pub(crate) info: Option<ClientInfo>,
    /// Milliseconds since 1970.
    pub(crate) time: i64,
}

impl Payload {
    /// As clients see it at `offset`; 0: in no history.
    pub(crate) fn at(&self, offset: u64) -> Publication {
        Publication {
            data: self.data.clone(),
            info: self.info.clone(),
            offset,
            tags: self.tags.clone(),
            time: self.time,
            delta: false,
        }
    }
}

/// One that was kept on disk.
impl From<Publication> for Payload {
    fn from(publication: Publication) -> Self {
        let Publication { data, info, tags, time, .. } = publication;
        Self { data, tags, info, time }
    }
}

/// A push to the subscribers of a channel: encoded at most once in each format, and only if
/// somebody speaks it.
pub(crate) struct Encoded {
    push: Push,
    json: Option<Result<Bytes, NotJson>>,
    protobuf: Option<Bytes>,
}

/// The payload cannot be sent to clients that speak JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotJson;

impl Encoded {
    pub(crate) fn new(channel: &Arc<str>, kind: PushKind) -> Self {
        let push = Push { channel: channel.to_string(), kind: Some(kind) };
        Self { push, json: None, protobuf: None }
    }

    pub(crate) fn bytes(&mut self, format: Format) -> Result<Bytes, NotJson> {
        let push = &self.push;
        match format {
            Format::Json => self
                .json
                .get_or_insert_with(|| format.encode_push(push.clone()).map_err(|_| NotJson))
                .clone(),
            Format::Protobuf => Ok(self
                .protobuf
                .get_or_insert_with(|| {
                    format.encode_push(push.clone()).expect("protobuf carries any bytes")
                })
                .clone()),
        }
    }
}
