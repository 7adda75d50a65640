//! What stands in the log: entries, one behind the other, in the body of a frame. A payload stands
//! once for all publications of a frame that share it, and what neighbours have in common (the
//! payload, the time, the epoch, a key) stands once before them, so that a publication in one more
//! channel is the channel's name and an offset.
//!
//! Numbers are LEB128, texts have their length in front. Whatever does not read is damage.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::frame::Publication;
use prost::Message;

use crate::durable::{Record, Restored, RowKey};
use crate::epoch::Epoch;
use crate::payload::Payload;
use crate::version::Version;

const PAYLOAD: u8 = 1;
const SHARED: u8 = 2;
const PUBLISHED: u8 = 3;
const CHANNEL: u8 = 4;
const CLEARED: u8 = 5;
const FORGOTTEN: u8 = 6;
const ROW: u8 = 7;
const CONFIRMED: u8 = 8;
const ADVANCED: u8 = 9;

/// Publications before which one of these stands have it in common.
#[derive(Debug, Clone)]
pub(in crate::durable) struct Shared {
    pub(in crate::durable) payload: Arc<Payload>,
    pub(in crate::durable) epoch: Epoch,
    pub(in crate::durable) at: u64,
    /// How many publications the channel keeps with this one.
    pub(in crate::durable) len_max: usize,
    pub(in crate::durable) key: Option<(Arc<str>, u64)>,
    pub(in crate::durable) row: Option<RowKey>,
    pub(in crate::durable) version: Option<Arc<Version>>,
}

impl Shared {
    fn of(record: &Record) -> Self {
        let Record { epoch, post, keep, at, key_until, .. } = record;
        Self {
            payload: post.payload.clone(),
            epoch: *epoch,
            at: *at,
            len_max: keep.len_max.max(1),
            key: post.key.clone().map(|key| (key, *key_until)),
            row: post.row.clone(),
            version: post.version.clone(),
        }
    }

    fn fits(&self, record: &Record) -> bool {
        let Record { epoch, post, keep, at, key_until, .. } = record;
        let key = self.key.as_ref().map(|(key, until)| (key, *until));
        Arc::ptr_eq(&self.payload, &post.payload)
            && self.epoch == *epoch
            && self.at == *at
            && self.len_max == keep.len_max.max(1)
            && key == post.key.as_ref().map(|key| (key, *key_until))
            && self.row == post.row
            && self.version == post.version
    }
}

/// One entry as it is read.
#[derive(Debug)]
pub(in crate::durable) enum Entry {
    Published {
        channel: String,
        offset: u64,
        shared: Arc<Shared>,
    },
    /// All there is of a channel, in place of what was before.
    Channel(String, Restored),
    Cleared {
        channel: String,
        up_to: u64,
    },
    Forgotten {
        channel: String,
        epoch: Epoch,
    },
    Row(RowKey, String),
    Confirmed(RowKey),
    Advanced(String, u64),
}

/// Makes up the body of a frame.
#[derive(Debug, Default)]
pub(in crate::durable) struct Body {
    bytes: Vec<u8>,
    /// The number of each payload in this frame, by where it lies. It is held, so that no other one
    /// can come to lie there meanwhile.
    payloads: HashMap<usize, (u64, Arc<Payload>)>,
    shared: Option<Shared>,
}

impl Body {
    pub(in crate::durable) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(in crate::durable) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins the next frame; what stood in the one before is not there.
    pub(in crate::durable) fn clear(&mut self) {
        self.bytes.clear();
        self.payloads.clear();
        self.shared = None;
    }

    pub(in crate::durable) fn published(&mut self, record: &Record) {
        if !self.shared.as_ref().is_some_and(|shared| shared.fits(record)) {
            self.share(Shared::of(record));
        }
        self.bytes.push(PUBLISHED);
        self.text(&record.channel);
        self.number(record.offset);
    }

    fn share(&mut self, shared: Shared) {
        let payload = self.payload(&shared.payload);
        self.bytes.push(SHARED);
        self.number(payload);
        self.number(shared.epoch.number());
        self.number(shared.at);
        self.number(shared.len_max as u64);
        self.maybe(shared.key.as_ref(), |body, (key, until)| {
            body.text(key);
            body.number(*until);
        });
        self.maybe(shared.row.as_ref(), Self::row_key);
        self.maybe(shared.version.as_deref(), Self::version);
        self.shared = Some(shared);
    }

    pub(in crate::durable) fn channel(&mut self, name: &str, all: &Restored) {
        let history: Vec<u64> = all.history.iter().map(|one| self.payload(one)).collect();
        self.bytes.push(CHANNEL);
        self.text(name);
        self.number(all.epoch.number());
        self.number(all.top);
        self.number(all.at);
        self.number(history.len() as u64);
        history.into_iter().for_each(|payload| self.number(payload));
        self.number(all.keys.len() as u64);
        for (key, offset, until) in &all.keys {
            self.text(key);
            self.number(*offset);
            self.number(*until);
        }
        self.maybe(all.version.as_deref(), Self::version);
    }

    pub(in crate::durable) fn cleared(&mut self, channel: &str, up_to: u64) {
        self.bytes.push(CLEARED);
        self.text(channel);
        self.number(up_to);
    }

    pub(in crate::durable) fn forgotten(&mut self, channel: &str, epoch: Epoch) {
        self.bytes.push(FORGOTTEN);
        self.text(channel);
        self.number(epoch.number());
    }

    pub(in crate::durable) fn row(&mut self, row: &RowKey, channel: &str) {
        self.bytes.push(ROW);
        self.row_key(row);
        self.text(channel);
    }

    pub(in crate::durable) fn confirmed(&mut self, row: &RowKey) {
        self.bytes.push(CONFIRMED);
        self.row_key(row);
    }

    pub(in crate::durable) fn advanced(&mut self, source: &str, to: u64) {
        self.bytes.push(ADVANCED);
        self.text(source);
        self.number(to);
    }

    /// The number of a payload, which is written if it is not there yet.
    fn payload(&mut self, payload: &Arc<Payload>) -> u64 {
        let (next, place) = (self.payloads.len() as u64, Arc::as_ptr(payload).addr());
        if let Some((number, _)) = self.payloads.get(&place) {
            return *number;
        }
        self.payloads.insert(place, (next, payload.clone()));
        let publication = payload.at(0);
        self.bytes.push(PAYLOAD);
        self.number(publication.encoded_len() as u64);
        publication.encode_raw(&mut self.bytes);
        next
    }

    fn row_key(&mut self, RowKey { source, id, part }: &RowKey) {
        self.text(source);
        self.number(*id);
        self.number(*part);
    }

    fn version(&mut self, Version { number, epoch }: &Version) {
        self.number(*number);
        self.text(epoch);
    }

    fn maybe<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.bytes.push(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        prost::encoding::encode_varint(number, &mut self.bytes);
    }
}

/// The body of a frame is not what this version writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::durable) struct Unknown;

/// Hands the entries of a body on, in their order.
pub(in crate::durable) fn read(body: &[u8], mut take: impl FnMut(Entry)) -> Result<(), Unknown> {
    let mut reading = Reading { bytes: body, payloads: Vec::new(), shared: None };
    while let Some(entry) = reading.next()? {
        take(entry);
    }
    Ok(())
}

struct Reading<'body> {
    bytes: &'body [u8],
    payloads: Vec<Arc<Payload>>,
    shared: Option<Arc<Shared>>,
}

impl<'body> Reading<'body> {
    fn next(&mut self) -> Result<Option<Entry>, Unknown> {
        while let Some((kind, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            let entry = match *kind {
                PAYLOAD => {
                    let publication = Publication::decode(self.slice()?).map_err(|_| Unknown)?;
                    self.payloads.push(Arc::new(publication.into()));
                    continue;
                }
                SHARED => {
                    self.shared = Some(Arc::new(self.shared()?));
                    continue;
                }
                PUBLISHED => Entry::Published {
                    channel: self.text()?.to_owned(),
                    offset: self.number()?,
                    shared: self.shared.clone().ok_or(Unknown)?,
                },
                CHANNEL => Entry::Channel(self.text()?.to_owned(), self.channel()?),
                CLEARED => {
                    Entry::Cleared { channel: self.text()?.to_owned(), up_to: self.number()? }
                }
                FORGOTTEN => {
                    let channel = self.text()?.to_owned();
                    Entry::Forgotten { channel, epoch: Epoch::from_number(self.number()?) }
                }
                ROW => Entry::Row(self.row_key()?, self.text()?.to_owned()),
                CONFIRMED => Entry::Confirmed(self.row_key()?),
                ADVANCED => Entry::Advanced(self.text()?.to_owned(), self.number()?),
                _ => return Err(Unknown),
            };
            return Ok(Some(entry));
        }
        Ok(None)
    }

    fn shared(&mut self) -> Result<Shared, Unknown> {
        Ok(Shared {
            payload: self.payload()?,
            epoch: Epoch::from_number(self.number()?),
            at: self.number()?,
            len_max: usize::try_from(self.number()?).map_err(|_| Unknown)?,
            key: self.maybe(|reading| Ok((reading.text()?.into(), reading.number()?)))?,
            row: self.maybe(Self::row_key)?,
            version: self.maybe(Self::version)?,
        })
    }

    fn channel(&mut self) -> Result<Restored, Unknown> {
        Ok(Restored {
            epoch: Epoch::from_number(self.number()?),
            top: self.number()?,
            at: self.number()?,
            history: self.many(Self::payload)?,
            keys: self.many(|reading| {
                Ok((reading.text()?.into(), reading.number()?, reading.number()?))
            })?,
            version: self.maybe(Self::version)?,
        })
    }

    fn payload(&mut self) -> Result<Arc<Payload>, Unknown> {
        let number = usize::try_from(self.number()?).map_err(|_| Unknown)?;
        self.payloads.get(number).cloned().ok_or(Unknown)
    }

    fn row_key(&mut self) -> Result<RowKey, Unknown> {
        Ok(RowKey { source: self.text()?.into(), id: self.number()?, part: self.number()? })
    }

    fn version(&mut self) -> Result<Arc<Version>, Unknown> {
        Ok(Arc::new(Version { number: self.number()?, epoch: self.text()?.into() }))
    }

    fn many<T, All: FromIterator<T>>(
        &mut self,
        get: impl Fn(&mut Self) -> Result<T, Unknown>,
    ) -> Result<All, Unknown> {
        (0..self.number()?).map(|_| get(self)).collect()
    }

    fn maybe<T>(
        &mut self,
        get: impl FnOnce(&mut Self) -> Result<T, Unknown>,
    ) -> Result<Option<T>, Unknown> {
        let (is_there, rest) = self.bytes.split_first().ok_or(Unknown)?;
        self.bytes = rest;
        match is_there {
            0 => Ok(None),
            1 => get(self).map(Some),
            _ => Err(Unknown),
        }
    }

    fn slice(&mut self) -> Result<&'body [u8], Unknown> {
        let len = usize::try_from(self.number()?).map_err(|_| Unknown)?;
        let (slice, rest) = self.bytes.split_at_checked(len).ok_or(Unknown)?;
        self.bytes = rest;
        Ok(slice)
    }

    fn text(&mut self) -> Result<&'body str, Unknown> {
        std::str::from_utf8(self.slice()?).map_err(|_| Unknown)
    }

    fn number(&mut self) -> Result<u64, Unknown> {
        prost::encoding::decode_varint(&mut self.bytes).map_err(|_| Unknown)
    }
}
