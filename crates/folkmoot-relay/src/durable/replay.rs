//! What the entries of the log come to, one after the other: the channels as they are, and nothing
//! of what was cleared, forgotten or too much.

use std::collections::HashMap;
use std::sync::Arc;

use super::log::format::{self, Entry, Shared};
use super::rows::Rows;
use super::{Found, Restored};

pub(super) struct Replay<'a> {
    is_meant: &'a dyn Fn(&str) -> bool,
    channels: HashMap<Arc<str>, Restored>,
    rows: Rows,
    progress: HashMap<Arc<str>, u64>,
}

impl<'a> Replay<'a> {
    /// Of such channels only.
    pub(super) fn of(is_meant: &'a dyn Fn(&str) -> bool) -> Self {
        let (channels, rows, progress) = (HashMap::new(), Rows::default(), HashMap::new());
        Self { is_meant, channels, rows, progress }
    }

    /// Takes the entries of a frame in; false: it cannot be read.
    pub(super) fn frame(&mut self, body: &[u8]) -> bool {
        format::read(body, |entry| self.entry(entry)).is_ok()
    }

    /// Puts what was found elsewhere in place of what there is.
    pub(super) fn overlay(&mut self, found: &Found) {
        let channels = found.channels.iter().map(|(name, all)| (name.clone(), all.clone()));
        self.channels.extend(channels);
        found.rows.iter().for_each(|(row, channel)| self.rows.insert(row, channel));
        self.progress.extend(found.progress.iter().map(|(source, to)| (source.clone(), *to)));
    }

    fn entry(&mut self, entry: Entry) {
        match entry {
            Entry::Published { channel, offset, shared } => {
                if (self.is_meant)(&channel) {
                    self.published(channel, offset, &shared);
                }
            }
            Entry::Channel(name, all) => {
                if (self.is_meant)(&name) {
                    self.channels.insert(name.into(), all);
                }
            }
            Entry::Cleared { channel, up_to } => {
                if let Some(known) = self.channels.get_mut(&*channel) {
                    let cleared =
                        up_to.saturating_sub(known.top.saturating_sub(known.history.len() as u64));
                    let cleared = usize::try_from(cleared).unwrap_or(usize::MAX);
                    known.history.drain(..cleared.min(known.history.len()));
                }
            }
            Entry::Forgotten { channel, epoch } => {
                if self.channels.get(&*channel).is_some_and(|known| known.epoch == epoch) {
                    self.channels.remove(&*channel);
                }
            }
            Entry::Row(row, channel) => {
                if (self.is_meant)(&channel) {
                    self.rows.insert(&row, &channel.into());
                }
            }
            Entry::Confirmed(row) => {
                self.rows.remove(&row);
            }
            Entry::Advanced(source, to) => {
                self.rows.remove_before(&source, to);
                self.progress.insert(source.into(), to);
            }
        }
    }

    fn published(&mut self, channel: String, offset: u64, shared: &Shared) {
        let (name, known) = match self.channels.remove_entry(&*channel) {
            Some(known) => known,
            None => (channel.into(), Restored::default()),
        };
        if let Some(row) = &shared.row {
            self.rows.insert(row, &name);
        }
        self.channels.insert(name, known.after(offset, shared));
    }

    pub(super) fn found(self) -> Found {
        let rows = self.rows.all().map(|(row, channel)| (row.clone(), channel.clone())).collect();
        Found { channels: self.channels, rows, progress: self.progress }
    }
}

impl Restored {
    /// The channel with one publication more.
    fn after(self, offset: u64, shared: &Shared) -> Self {
        // Another life of a channel that was lost without a word to the disk, if it is not the next.
        let goes_on = self.epoch == shared.epoch && offset > 1;
        let mut all = if goes_on { self } else { Self { epoch: shared.epoch, ..Self::default() } };
        if offset != all.top + 1 {
            all.history.clear();
        }
        (all.top, all.at) = (offset, shared.at);
        all.history.push_back(shared.payload.clone());
        while all.history.len() > shared.len_max {
            all.history.pop_front();
        }
        // All are known for the same time, so the first to come is the first to go.
        while all.keys.front().is_some_and(|(_, _, until)| *until <= shared.at) {
            all.keys.pop_front();
        }
        if let Some((key, until)) = &shared.key {
            all.keys.push_back((key.clone(), offset, *until));
        }
        if shared.version.is_some() {
            all.version.clone_from(&shared.version);
        }
        all
    }
}
