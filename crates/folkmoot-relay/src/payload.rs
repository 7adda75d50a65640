//! What was published, held once however many channels it went into.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{ClientInfo, Publication, Push, PushKind};
use prost::Message as _;

/// What stands around a publication and its numbers where it is encoded, at most; and around a tag.
const PUBLICATION_BYTES: usize = 64;
const TAG_BYTES: usize = 24;

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

    /// How many bytes it takes in a message between nodes or on disk, at most.
    pub(crate) fn encoded_len(&self) -> usize {
        encoded_len(&self.data, &self.tags, self.info.as_ref())
    }
}

/// The same of a publication in its place.
pub(crate) fn publication_len(publication: &Publication) -> usize {
    let Publication { data, tags, info, .. } = publication;
    encoded_len(data, tags, info.as_ref())
}

/// By this all count that bound what is sent or held: tags may be longer than the data.
fn encoded_len(data: &[u8], tags: &BTreeMap<String, String>, info: Option<&ClientInfo>) -> usize {
    let tags = tags.iter().map(|(name, value)| name.len() + value.len() + TAG_BYTES);
    let info = info.map_or(0, |info| info.encoded_len());
    data.len() + tags.sum::<usize>() + info + PUBLICATION_BYTES
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_never_longer_than_it_is_counted() {
        for len in [0, 1, 200, 70_000] {
            let text = "x".repeat(len);
            let tags = (0..9).map(|number| (format!("{number}{text}"), text.clone()));
            let (conn_info, chan_info) = (Bytes::from(text.clone()), Bytes::from(text.clone()));
            let info =
                ClientInfo { user: text.clone(), client: text.clone(), conn_info, chan_info };
            let (data, tags) = (Bytes::from(text.clone()), tags.collect());
            let payload = Payload { data, tags, info: Some(info), time: -1 };
            let publication = payload.at(u64::MAX);
            let (encoded, counted) = (publication.encoded_len(), payload.encoded_len());
            assert!((encoded..encoded + 300).contains(&counted), "{counted} for {encoded}");
            assert_eq!(publication_len(&publication), counted);
        }
    }
}
