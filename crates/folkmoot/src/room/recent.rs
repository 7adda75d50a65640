//! The newest messages of a room as they are now, so that opening a busy room reads nothing.
//!
//! Only what is durable is in here, and it changes with each event as the database will a moment
//! later: a page from here and one from there are the same. What is not here is not guessed.

use std::collections::{BTreeSet, VecDeque};

use crate::storage::record::{Message, RoomEvent, RoomRecord};
use crate::storage::{
    HistoryPage, Offset, PageAnchor, Reaction, Seq, StoredMessage, UnixMillis, UserId,
};

/// Messages kept: the largest page, and some beside it.
const LEN_MAX: usize = 128;
/// Bytes of text kept; the longest messages leave room for a handful.
const BYTES_MAX: usize = 128 * 1024;
/// Reactions of one message that are kept one by one; who asks for more is read to.
const REACTIONS_MAX: usize = 100;

/// A reaction, with when it was given: the emoji given first is shown first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    emoji: String,
    user: UserId,
    at: UnixMillis,
}

#[derive(Debug, Clone)]
struct Remembered {
    message: Message,
    offset: Offset,
    at: UnixMillis,
    edited_at: Option<UnixMillis>,
    deleted: Option<(UnixMillis, UserId)>,
    /// `None`: too many, or not known.
    reactions: Option<Vec<Given>>,
}

/// Messages without gaps; the last one is the room's newest.
#[derive(Debug)]
pub(crate) struct Recent {
    messages: VecDeque<Remembered>,
    bytes: usize,
    /// The first message that the room keeps; all before it were deleted for good.
    first_kept: u64,
    /// Which messages are pinned, also those that are not here.
    pins: BTreeSet<Seq>,
}

impl Default for Recent {
    fn default() -> Self {
        Self::of(Seq::from_u64(1))
    }
}

impl Recent {
    /// Nothing yet, of a room that keeps messages from this one on.
    pub(crate) fn of(first_kept: Seq) -> Self {
        let (messages, pins) = (VecDeque::new(), BTreeSet::new());
        Self { messages, bytes: 0, first_kept: first_kept.as_u64(), pins }
    }

    /// The same, of a room in which these messages are pinned.
    pub(crate) fn with_pins(self, pins: BTreeSet<Seq>) -> Self {
        Self { pins, ..self }
    }

    /// Begins with the newest message, of which the reactions are not known.
    pub(crate) fn after(record: &RoomRecord, first_kept: Seq) -> Self {
        let mut recent = Self::of(first_kept);
        recent.apply(record);
        if let Some(newest) = recent.messages.back_mut() {
            newest.reactions = None;
        }
        recent
    }

    /// The first message that the room keeps.
    pub(crate) fn first_kept(&self) -> Seq {
        Seq::from_u64(self.first_kept)
    }

    /// The newest message, and when it was sent.
    pub(crate) fn newest(&self) -> Option<(UnixMillis, &Message)> {
        self.messages.back().map(|newest| (newest.at, &newest.message))
    }

    /// Takes in an event that is durable; they come in order.
    pub(crate) fn apply(&mut self, record: &RoomRecord) {
        match &record.event {
            RoomEvent::Message(message) => self.push(record, message.clone()),
            RoomEvent::Edited { seq, body, mentions } => {
                let Some(known) = find(&mut self.messages, *seq) else { return };
                if known.deleted.is_some() {
                    return;
                }
                self.bytes = self.bytes + body.len() - known.message.body.len();
                known.message.body.clone_from(body);
                known.message.mentions.clone_from(mentions);
                known.edited_at = Some(record.at);
            }
            RoomEvent::Deleted { seq, by } => self.delete(*seq, (record.at, *by)),
            RoomEvent::Reaction { seq, user, emoji, on } => {
                if let Some(known) = find(&mut self.messages, *seq) {
                    let given = Given { emoji: emoji.clone(), user: *user, at: record.at };
                    known.react(given, *on);
                }
            }
            RoomEvent::Pinned { seq, on, .. } => match on {
                true => drop(self.pins.insert(*seq)),
                false => drop(self.pins.remove(seq)),
            },
            RoomEvent::Expired { up_to } => self.expire(*up_to),
            RoomEvent::Joined { .. }
            | RoomEvent::Left { .. }
            | RoomEvent::RoleSet { .. }
            | RoomEvent::Archived { .. }
            | RoomEvent::Described { .. } => {}
        }
    }

    /// Forgets the name of a user whose account is deleted, also where they are quoted.
    pub(crate) fn unname(&mut self, gone: UserId) {
        for Remembered { message, .. } in &mut self.messages {
            if message.user == gone {
                message.name.clear();
            }
            if let Some(quote) = message.reply_to.as_mut().filter(|quote| quote.user == gone) {
                quote.name.clear();
            }
        }
    }

    /// Forgets the reactions of a user whose account is deleted with them.
    pub(crate) fn unreact(&mut self, gone: UserId) {
        for reactions in self.messages.iter_mut().filter_map(|known| known.reactions.as_mut()) {
            reactions.retain(|given| given.user != gone);
        }
    }

    /// A page as `viewer` sees it, if all of it is here.
    pub(crate) fn page(
        &self,
        anchor: PageAnchor,
        limit: u32,
        viewer: UserId,
    ) -> Option<HistoryPage> {
        let first = self.messages.front()?.message.seq.as_u64();
        let last = self.messages.back()?.message.seq.as_u64();
        let (from, to) = range(anchor, u64::from(limit), last);
        let from = match anchor {
            PageAnchor::Latest | PageAnchor::Before(_) => from.max(self.first_kept),
            // Less before the middle is more behind it: the store counts that.
            PageAnchor::After(_) | PageAnchor::Around(_) => from,
        };
        if from < first {
            return None;
        }
        let mut messages = Vec::new();
        for seq in from..=to.min(last) {
            let known = self.messages.get(usize::try_from(seq - first).ok()?)?;
            let is_pinned = self.pins.contains(&known.message.seq);
            messages.push(StoredMessage { is_pinned, ..known.seen_by(viewer)? });
        }
        // A message that somebody has deleted keeps its number.
        let (first_seq, last_seq) = (Seq::from_u64(self.first_kept), Seq::from_u64(last));
        Some(HistoryPage { messages, first_seq, last_seq })
    }

    fn push(&mut self, record: &RoomRecord, message: Message) {
        self.bytes += message.body.len();
        let (offset, at) = (record.offset, record.at);
        let (edited_at, deleted, reactions) = (None, None, Some(Vec::new()));
        let remembered = Remembered { message, offset, at, edited_at, deleted, reactions };
        self.messages.push_back(remembered);
        while self.messages.len() > LEN_MAX || (self.bytes > BYTES_MAX && self.messages.len() > 1) {
            let Some(oldest) = self.messages.pop_front() else { return };
            self.bytes -= oldest.message.body.len();
        }
    }

    /// Forgets the oldest messages, and their texts in quotes.
    fn expire(&mut self, up_to: Seq) {
        self.first_kept = self.first_kept.max(up_to.next().as_u64());
        self.pins = self.pins.split_off(&up_to.next());
        while self.messages.front().is_some_and(|oldest| oldest.message.seq <= up_to) {
            let Some(oldest) = self.messages.pop_front() else { return };
            self.bytes -= oldest.message.body.len();
        }
        for known in &mut self.messages {
            if let Some(quote) = known.message.reply_to.as_mut().filter(|quote| quote.seq <= up_to)
            {
                quote.body.clear();
            }
        }
    }

    fn delete(&mut self, seq: Seq, deleted: (UnixMillis, UserId)) {
        self.pins.remove(&seq);
        for known in &mut self.messages {
            if let Some(quote) = known.message.reply_to.as_mut().filter(|quote| quote.seq == seq) {
                quote.body.clear();
            }
        }
        let Some(known) = find(&mut self.messages, seq) else { return };
        let message = &mut known.message;
        self.bytes -= message.body.len();
        (message.body, message.reply_to) = (String::new(), None);
        (message.mentions, message.attachments) = (Vec::new(), Vec::new());
        message.mention_all = false;
        (known.deleted, known.reactions) = (Some(deleted), Some(Vec::new()));
    }
}

impl Remembered {
    fn react(&mut self, given: Given, on: bool) {
        let Some(reactions) = &mut self.reactions else { return };
        let is_same = |known: &Given| known.emoji == given.emoji && known.user == given.user;
        let place = reactions.iter().position(is_same);
        match (place, on) {
            (Some(place), false) => drop(reactions.remove(place)),
            (None, true) if reactions.len() >= REACTIONS_MAX => self.reactions = None,
            (None, true) => reactions.push(given),
            (Some(_), true) | (None, false) => {}
        }
    }

    fn seen_by(&self, viewer: UserId) -> Option<StoredMessage> {
        let mut tallies: Vec<(UnixMillis, Reaction)> = Vec::new();
        for Given { emoji, user, at } in self.reactions.as_ref()? {
            let is_mine = *user == viewer;
            match tallies.iter_mut().find(|(_, tally)| tally.emoji == *emoji) {
                Some((first, tally)) => {
                    *first = (*first).min(*at);
                    tally.count += 1;
                    tally.is_mine |= is_mine;
                }
                None => tallies.push((*at, Reaction { emoji: emoji.clone(), count: 1, is_mine })),
            }
        }
        tallies.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.emoji.cmp(&other.emoji)));
        Some(StoredMessage {
            message: self.message.clone(),
            offset: self.offset,
            at: self.at,
            edited_at: self.edited_at,
            deleted: self.deleted,
            reactions: tallies.into_iter().map(|(_, tally)| tally).collect(),
            is_pinned: false,
        })
    }
}

/// The first and the last number of a page in a room whose newest message is `last`.
fn range(anchor: PageAnchor, limit: u64, last: u64) -> (u64, u64) {
    let before = |seq: u64, limit: u64| {
        let to = seq.saturating_sub(1).min(last);
        (to.saturating_sub(limit) + 1, to)
    };
    match anchor {
        PageAnchor::Latest => before(last + 1, limit),
        PageAnchor::Before(seq) => before(seq.as_u64(), limit),
        PageAnchor::After(seq) => {
            (seq.as_u64().saturating_add(1), seq.as_u64().saturating_add(limit))
        }
        PageAnchor::Around(seq) => {
            let (from, to) = before(seq.as_u64(), limit / 2);
            let earlier = (to + 1).saturating_sub(from);
            (from, seq.as_u64().saturating_sub(1).saturating_add(limit - earlier))
        }
    }
}

/// Messages have no gaps, so a number is an index.
fn find(messages: &mut VecDeque<Remembered>, seq: Seq) -> Option<&mut Remembered> {
    let first = messages.front()?.message.seq.as_u64();
    messages.get_mut(usize::try_from(seq.as_u64().checked_sub(first)?).ok()?)
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
