//! What an owner of channels keeps, in parts of which each fits into a message between nodes: so it
//! travels to the node that the owner moves to, however much it is.

use super::MovedChannel;
use crate::nodes::Page;
use crate::payload::publication_len;

/// What one message with a part of the state has about, in bytes.
const PAGE_BYTES: usize = 1 << 20;
/// What stands around a channel and around one of its keys, with their numbers, at most.
const CHANNEL_BYTES: usize = 128;
const KEY_BYTES: usize = 64;

/// What an owner keeps, in parts.
pub(super) struct Pages<I> {
    moved: I,
    /// Of a channel that did not fit into the last one.
    rest: Option<MovedChannel>,
    life: u64,
    epochs: u64,
}

impl<I: Iterator<Item = MovedChannel>> Pages<I> {
    pub(super) fn new(moved: I, life: u64, epochs: u64) -> Self {
        Self { moved, rest: None, life, epochs }
    }

    /// The next part, and whether it is the last one.
    pub(super) fn next(&mut self, number: u32) -> (Page, bool) {
        let (mut channels, mut len, mut is_last) = (Vec::new(), 0, false);
        while len <= PAGE_BYTES {
            let Some(mut moved) = self.rest.take().or_else(|| self.moved.next()) else {
                is_last = true;
                break;
            };
            let version = moved.version.as_ref().map_or(0, |version| version.epoch.len());
            len += moved.name.len() + version + CHANNEL_BYTES;
            self.rest = cut(&mut moved, &mut len);
            channels.push(moved);
        }
        let (life, epochs) = (self.life, self.epochs);
        (Page { number, is_last, life, epochs, channels }, is_last)
    }
}

/// Takes away from a channel what of its keys and of its history does not fit into a page any more;
/// all else of the channel comes with the first part.
fn cut(moved: &mut MovedChannel, len: &mut usize) -> Option<MovedChannel> {
    let keys = cut_off(&mut moved.keys, len, |one| one.key.len() + KEY_BYTES);
    let history = cut_off(&mut moved.history, len, publication_len);
    if keys.is_empty() && history.is_empty() {
        return None;
    }
    let (name, position, version) = (moved.name.clone(), moved.position, None);
    let MovedChannel { history_until, numbers_until, .. } = *moved;
    Some(MovedChannel { name, position, history, history_until, numbers_until, keys, version })
}

fn cut_off<T>(all: &mut Vec<T>, len: &mut usize, len_of: impl Fn(&T) -> usize) -> Vec<T> {
    let mut fits = 0;
    while *len <= PAGE_BYTES && fits < all.len() {
        *len += len_of(&all[fits]);
        fits += 1;
    }
    all.split_off(fits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use althing::Wire;

    use super::super::{MovedKey, Position};
    use super::*;
    use crate::payload::Payload;

    fn channel(name: &str, publications: u64, keys: u64) -> MovedChannel {
        let tags = BTreeMap::from([("tag".to_owned(), "x".repeat(10_000))]);
        let payload = Payload { tags, ..Payload::default() };
        let key = |number: u64| MovedKey {
            key: format!("{name} {number:030}").into(),
            position: Position { offset: number, ..Position::default() },
            until: 7,
        };
        MovedChannel {
            name: name.into(),
            position: Some(Position { offset: publications, ..Position::default() }),
            history: (1..=publications).map(|offset| payload.at(offset)).collect(),
            history_until: 7,
            numbers_until: 7,
            keys: (0..keys).map(key).collect(),
            version: None,
        }
    }

    #[test]
    fn each_part_has_a_bound_whatever_fills_it_and_all_come_to_what_there_was() {
        let all = [("tags", 500, 3), ("keys", 2, 50_000), ("few", 1, 1)];
        let channels = all.map(|(name, publications, keys)| channel(name, publications, keys));
        let mut pages = Pages::new(channels.into_iter(), 1, 7);
        let mut came: BTreeMap<String, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
        for number in 0.. {
            let (page, is_last) = pages.next(number);
            let mut bytes = Vec::new();
            page.encode(&mut bytes);
            assert!(bytes.len() <= PAGE_BYTES + 20_000, "part {number} has {}", bytes.len());
            for part in page.channels {
                let (history, keys) = came.entry(part.name.to_string()).or_default();
                history.extend(part.history.iter().map(|one| one.offset));
                keys.extend(part.keys.iter().map(|one| one.position.offset));
            }
            if is_last {
                break;
            }
        }
        for (name, publications, keys) in all {
            let wanted: (Vec<u64>, Vec<u64>) = ((1..=publications).collect(), (0..keys).collect());
            assert_eq!(came.remove(name), Some(wanted), "{name}");
        }
    }
}
