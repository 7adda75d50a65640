//! Publications as deltas: subscribers that want them get what has changed since the publication
//! that was pushed before. A delta is made once for all of them, and only if it saves something.
//!
//! In JSON, what such a subscriber gets is always a string: the text of the whole, or the delta.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{Publication, PushKind, SubscribeResult};
use serde_json::value::RawValue;

use super::Heard;
use super::channel::{Channel, Subscriber};
use crate::fossil::{self, VALUE_BYTES_MAX};
use crate::payload::{Encoded, NotJson, Payload};

/// What a subscriber gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deltas {
    /// Publications as they are.
    Unwanted,
    /// Deltas, once it has got one whole.
    AfterNext,
    /// Deltas: it has what was pushed last.
    Now,
}

impl Deltas {
    /// For a subscription that is about to begin with this result.
    pub(super) fn of(result: &SubscribeResult, channel: &mut Channel) -> Self {
        if !result.delta {
            return Self::Unwanted;
        }
        if channel.base.is_none() {
            channel.base = channel.newest().cloned();
        }
        let last = result.publications.last();
        let has_newest = last.is_some_and(|last| last.offset == result.offset);
        let is_base = match (&channel.base, channel.newest()) {
            (Some(base), Some(newest)) => Arc::ptr_eq(base, newest),
            _ => false,
        };
        if has_newest && is_base { Self::Now } else { Self::AfterNext }
    }
}

impl Channel {
    /// Pushes a publication to all subscribers.
    pub(super) fn publish(&mut self, name: &Arc<str>, heard: &Heard) {
        if !self.has_subscribers() {
            self.base = None;
            return;
        }
        let &Heard { ref payload, offset, may_be_delta } = heard;
        let mut plain = Encoded::new(name, PushKind::Pub(payload.at(offset)));
        if self.subscribers.iter().all(|one| one.deltas == Deltas::Unwanted) {
            self.base = None;
            return self.tell(&mut plain, |subscriber| subscriber.wants(heard));
        }
        let changed = self.base.as_ref().filter(|_| may_be_delta);
        let changed = changed.and_then(|base| changes(base, payload));
        let is_text = std::str::from_utf8(&payload.data).is_ok();
        let mut pushes =
            Pushes { name, payload, offset, is_text, changed, whole: None, delta: None };
        for subscriber in self.subscribers.iter_mut() {
            if !subscriber.wants(heard) {
                if subscriber.deltas == Deltas::Now {
                    // It has not what the next delta is made from.
                    subscriber.deltas = Deltas::AfterNext;
                }
                continue;
            }
            let connection = &subscriber.connection;
            let push = match subscriber.deltas {
                Deltas::Unwanted => plain.bytes(connection.format),
                Deltas::AfterNext => {
                    subscriber.deltas = Deltas::Now;
                    pushes.whole(connection.format)
                }
                Deltas::Now => pushes.delta(connection.format),
            };
            connection.push(push);
        }
        self.base = Some(payload.clone());
    }
}

/// Pushes a publication to one subscriber, whole.
pub(super) fn push_whole(subscriber: &Subscriber, name: &Arc<str>, heard: &Heard) {
    if !subscriber.wants(heard) {
        return;
    }
    let connection = &subscriber.connection;
    let publication = heard.payload.at(heard.offset);
    connection.push(match subscriber.deltas {
        Deltas::Unwanted => Encoded::new(name, PushKind::Pub(publication)).bytes(connection.format),
        Deltas::AfterNext | Deltas::Now => Variant::new(name, publication).bytes(connection.format),
    });
}

/// The delta between two payloads, if it is worth it.
fn changes(base: &Payload, payload: &Payload) -> Option<Bytes> {
    let (old, new) = (&base.data, &payload.data);
    if old.len().max(new.len()) > VALUE_BYTES_MAX {
        return None;
    }
    let delta = fossil::delta(old, new);
    (delta.len() < new.len()).then(|| delta.into())
}

/// A publication as subscribers to deltas get it, encoded at most once each.
struct Pushes<'a> {
    name: &'a Arc<str>,
    payload: &'a Payload,
    offset: u64,
    /// Whether it may be JSON. A delta can be text though what it makes is none.
    is_text: bool,
    /// `None`: it goes out whole.
    changed: Option<Bytes>,
    whole: Option<Variant>,
    delta: Option<Variant>,
}

/// By format, because in JSON the data is a string.
struct Variant {
    json: Result<Encoded, NotJson>,
    protobuf: Encoded,
}

impl Variant {
    fn new(name: &Arc<str>, publication: Publication) -> Self {
        let protobuf = Encoded::new(name, PushKind::Pub(publication.clone()));
        let json = quoted(publication);
        let json = json.map(|publication| Encoded::new(name, PushKind::Pub(publication)));
        Self { json, protobuf }
    }

    fn bytes(&mut self, format: Format) -> Result<Bytes, NotJson> {
        match format {
            Format::Json => self.json.as_mut().map_err(|error| *error)?.bytes(format),
            Format::Protobuf => self.protobuf.bytes(format),
        }
    }
}

impl Pushes<'_> {
    fn whole(&mut self, format: Format) -> Result<Bytes, NotJson> {
        let publication = || self.payload.at(self.offset);
        let whole = self.whole.get_or_insert_with(|| Variant::new(self.name, publication()));
        whole.bytes(format)
    }

    fn delta(&mut self, format: Format) -> Result<Bytes, NotJson> {
        let Some(changed) = &self.changed else { return self.whole(format) };
        if format == Format::Json && !self.is_text {
            return Err(NotJson);
        }
        let publication =
            || Publication { data: changed.clone(), delta: true, ..self.payload.at(self.offset) };
        let delta = self.delta.get_or_insert_with(|| Variant::new(self.name, publication()));
        delta.bytes(format)
    }
}

/// The data as a string of JSON.
fn quoted(publication: Publication) -> Result<Publication, NotJson> {
    let text = std::str::from_utf8(&publication.data).map_err(|_| NotJson)?;
    // Whoever makes the whole of it reads JSON.
    if !publication.delta && serde_json::from_str::<&RawValue>(text).is_err() {
        return Err(NotJson);
    }
    let data = serde_json::to_vec(text).map_err(|_| NotJson)?.into();
    Ok(Publication { data, ..publication })
}

/// A result as its client reads it.
pub(super) fn told(result: SubscribeResult, format: Format) -> Result<SubscribeResult, NotJson> {
    if !result.delta || format == Format::Protobuf {
        return Ok(result);
    }
    let publications = result.publications.into_iter().map(quoted).collect::<Result<_, _>>()?;
    Ok(SubscribeResult { publications, ..result })
}

#[cfg(test)]
mod tests;
