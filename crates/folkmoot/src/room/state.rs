//! One room as a value: its numbers and rules. `decide` judges a request without changing
//! anything, `commit` gives the change its numbers, `apply` folds an event in.
//!
//! No clock, no store, no socket, and no list of members: `people` knows who acts here, everything
//! else about members is two counts. Whoever is judged is known, and so is whoever goes.

use althing::Wire;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Decision, Refusal, Request};
use super::idempotency::{ContentHash, FirstSend};
use super::people::{Missing, People, member};
use super::uploads::Uploads;
use crate::storage::record::{LeaveReason, Message, Quote, Role, RoomEvent, RoomRecord};
use crate::storage::{Offset, Rights, RoomId, RoomKind, Seq, Standing, UnixMillis, UserId};
use crate::wire::excerpt;

/// Messages whose author is kept in memory, so that edits, replies and reactions to what is on
/// people's screens need no read. About 200 bytes each.
pub(crate) const RECENT_LEN: usize = 512;
/// Numbers of `@everyone` messages kept for counting; who is further behind sees this many.
pub(crate) const EVERYONE_LEN: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub(crate) enum Kind {
    Room,
    Direct,
}

impl From<RoomKind> for Kind {
    fn from(kind: RoomKind) -> Self {
        match kind {
            RoomKind::Room => Self::Room,
            RoomKind::Direct => Self::Direct,
        }
    }
}

/// What the rules need to know of an earlier message to edit, delete, react or reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub(crate) struct Original {
    /// As a reply would quote it: its author and the beginning of its text.
    pub(crate) quote: Quote,
    pub(crate) deleted: bool,
    /// The different reactions given to it. Those taken back meanwhile stay counted: telling
    /// whether somebody else still gives one would take a read.
    pub(crate) reactions: Vec<String>,
    /// Whom it mentions by name, as its text is now.
    pub(crate) mentions: Vec<UserId>,
}

impl Original {
    fn of(message: &Message) -> Self {
        let Message { seq, user, name, body, .. } = message;
        let body = excerpt(body).to_owned();
        let quote = Quote { seq: *seq, user: *user, name: name.clone(), body };
        let mentions = message.mentions.clone();
        Self { quote, deleted: false, reactions: Vec::new(), mentions }
    }

    /// Counts reactions that were given to it.
    pub(super) fn note_reactions(&mut self, emoji: impl IntoIterator<Item = String>) {
        for emoji in emoji {
            if !self.reactions.contains(&emoji) {
                self.reactions.push(emoji);
            }
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RoomState {
    pub(crate) id: RoomId,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) topic: String,
    /// Nobody may write in it.
    pub(crate) is_archived: bool,
    pub(crate) offset: Offset,
    pub(crate) last_seq: Seq,
    /// The first message that is kept; above the last one if none is.
    pub(crate) first_seq: Seq,
    /// How many members there are, and how many of them own the room.
    pub(crate) members: u64,
    pub(crate) owners: u64,
    /// The two of a direct conversation.
    pub(crate) pair: Option<(UserId, UserId)>,
    pub(crate) people: People,
    /// Who of the two in a direct conversation has blocked the other.
    pub(crate) blockers: HashSet<UserId>,
    /// Numbers of the `@everyone` messages, rising. Shared with every view of the room, and copied
    /// only when one changes while another is out.
    #[serde(with = "shared")]
    pub(crate) everyone: Arc<VecDeque<Seq>>,
    /// Messages that everybody is to see; none that is deleted.
    pub(crate) pins: BTreeSet<Seq>,
    /// Files that wait for a message of this room.
    pub(crate) uploads: Uploads,
    recent: VecDeque<Original>,
}

impl RoomState {
    /// A room without members. `life` is another number each time it comes into memory.
    pub(crate) fn new(id: RoomId, kind: Kind, name: String, topic: String, life: u64) -> Self {
        Self {
            id,
            kind,
            name,
            topic,
            is_archived: false,
            offset: Offset::from_u64(0),
            last_seq: Seq::from_u64(0),
            first_seq: Seq::from_u64(1),
            members: 0,
            owners: 0,
            pair: None,
            people: People::new(life),
            blockers: HashSet::new(),
            everyone: Arc::default(),
            pins: BTreeSet::new(),
            uploads: Uploads::default(),
            recent: VecDeque::new(),
        }
    }

    /// Judges a request at the time `now`. Changes nothing.
    pub(crate) fn decide(&self, request: &Request, now: UnixMillis) -> Result<Decision, Refusal> {
        super::rules::decide(self, request, now)
    }

    /// Gives a change its place in the stream and folds it in.
    pub(crate) fn commit(&mut self, event: RoomEvent, at: UnixMillis) -> RoomRecord {
        let record = RoomRecord { room: self.id, offset: self.offset.next(), at, event };
        self.apply(&record);
        record
    }

    /// Folds an event in. Events come in order and without gaps.
    pub(crate) fn apply(&mut self, record: &RoomRecord) {
        debug_assert_eq!(record.offset, self.offset.next(), "an event was skipped");
        self.offset = record.offset;
        self.remember_event(&record.event);
        match &record.event {
            RoomEvent::Message(message) => self.apply_message(message, record),
            RoomEvent::Deleted { seq, .. } => {
                self.pins.remove(seq);
                if self.everyone.contains(seq) {
                    Arc::make_mut(&mut self.everyone).retain(|mention| mention != seq);
                }
            }
            RoomEvent::Pinned { seq, on, .. } => match on {
                true => drop(self.pins.insert(*seq)),
                false => drop(self.pins.remove(seq)),
            },
            RoomEvent::Edited { .. } | RoomEvent::Reaction { .. } => {}
            RoomEvent::Joined { user, name, display_name, role } => {
                self.members += 1;
                self.owners += u64::from(*role == Role::Owner);
                // Whoever is muted stays so, though they leave and come back.
                let kept = self.people.standing(*user).and_then(|standing| standing.kept_mute);
                let muted_until = kept.filter(|until| *until > record.at);
                let rights = Rights { role: *role, muted_until };
                let (name, display_name) = (name.clone(), display_name.clone());
                self.people.set(member(*user, name, display_name, rights));
            }
            RoomEvent::Left { user, reason, .. } => {
                let was_owner = self.role(*user) == Some(Role::Owner);
                self.members = self.members.saturating_sub(1);
                self.owners = self.owners.saturating_sub(u64::from(was_owner));
                let is_banned = *reason == LeaveReason::Banned;
                self.people.change(*user, |standing| {
                    let rights = standing.rights.take();
                    let muted_until = rights.and_then(|rights| rights.muted_until);
                    standing.kept_mute = muted_until.filter(|until| *until > record.at);
                    standing.is_banned = is_banned;
                });
            }
            RoomEvent::RoleSet { user, role, muted_until, .. } => {
                let was_owner = self.role(*user) == Some(Role::Owner);
                let is_owner = *role == Role::Owner;
                self.owners = (self.owners + u64::from(is_owner)) - u64::from(was_owner);
                let rights = Rights { role: *role, muted_until: *muted_until };
                self.people.change(*user, |standing| standing.rights = Some(rights));
            }
            RoomEvent::Archived { on, .. } => self.is_archived = *on,
            RoomEvent::Expired { up_to } => {
                self.first_seq = self.first_seq.max(up_to.next());
                self.pins = self.pins.split_off(&up_to.next());
                Arc::make_mut(&mut self.everyone).retain(|mention| mention > up_to);
            }
            RoomEvent::Described { name, topic, .. } => {
                self.name = name.clone();
                self.topic = topic.clone();
            }
        }
    }

    /// Takes a member's new name to show, which is no event of the stream.
    pub(crate) fn rename(&mut self, user: UserId, display_name: String) {
        self.people.change(user, |standing| standing.display_name = display_name);
    }

    /// Forgets the names of a user whose account is deleted.
    pub(crate) fn unname(&mut self, user: UserId) {
        self.people.change(user, |standing| {
            standing.name.clear();
            standing.display_name.clear();
        });
        for original in self.recent.iter_mut().filter(|original| original.quote.user == user) {
            original.quote.name.clear();
        }
    }

    /// Keeps what the rules will ask about the messages of an event; the events come in order.
    pub(crate) fn remember_event(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Message(message) => {
                if self.recent.len() == RECENT_LEN {
                    self.recent.pop_front();
                }
                self.recent.push_back(Original::of(message));
            }
            RoomEvent::Deleted { seq, .. } => {
                if let Some(original) = self.recent_mut(*seq) {
                    original.deleted = true;
                    original.quote.body.clear();
                    original.mentions.clear();
                }
            }
            RoomEvent::Edited { seq, body, mentions } => {
                if let Some(original) = self.recent_mut(*seq) {
                    original.quote.body = excerpt(body).to_owned();
                    original.mentions.clone_from(mentions);
                }
            }
            RoomEvent::Reaction { seq, emoji, on: true, .. } => {
                if let Some(original) = self.recent_mut(*seq) {
                    original.note_reactions([emoji.clone()]);
                }
            }
            RoomEvent::Expired { up_to } => {
                while self.recent.front().is_some_and(|original| original.quote.seq <= *up_to) {
                    self.recent.pop_front();
                }
            }
            _ => {}
        }
    }

    /// Deletes all messages up to one; `None`: they are gone already. Changes nothing.
    pub(crate) fn expire(&self, up_to: Seq) -> Option<RoomEvent> {
        let up_to = up_to.min(self.last_seq);
        (up_to >= self.first_seq).then_some(RoomEvent::Expired { up_to })
    }

    /// Bans somebody who is no member, or lifts a ban: neither is an event of the stream.
    pub(crate) fn set_banned(&mut self, user: UserId, on: bool) {
        self.people.change(user, |standing| standing.is_banned = on);
    }

    /// Counts an `@everyone` message, oldest first.
    pub(crate) fn remember_everyone(&mut self, seq: Seq) {
        let everyone = Arc::make_mut(&mut self.everyone);
        if everyone.len() == EVERYONE_LEN {
            everyone.pop_front();
        }
        everyone.push_back(seq);
    }

    /// What is known of message `seq`, from memory.
    pub(crate) fn recent(&self, seq: Seq) -> Option<&Original> {
        self.recent_index(seq).and_then(|index| self.recent.get(index))
    }

    /// The member `user`; refuses who is none, and asks for facts about who is not known.
    pub(crate) fn member(&self, user: UserId) -> Result<&Standing, Refusal> {
        let standing = self.standing(user)?;
        standing.rights.map(|_| standing).ok_or(Refusal::NotMember)
    }

    /// What a member may do who only reads; asks for it if it is not known.
    pub(crate) fn reader(&self, user: UserId) -> Result<Rights, Refusal> {
        let rights = self.people.rights(user).ok_or_else(|| self.unloaded(user))?;
        rights.ok_or(Refusal::NotMember)
    }

    /// What is known of a user; asks for it if it is nothing.
    pub(crate) fn standing(&self, user: UserId) -> Result<&Standing, Refusal> {
        self.people.standing(user).ok_or_else(|| self.unloaded(user))
    }

    fn unloaded(&self, user: UserId) -> Refusal {
        Refusal::Unloaded(Box::new(Missing::people(self.people.as_of(), vec![user])))
    }

    /// The role of a member who is known.
    pub(crate) fn role(&self, user: UserId) -> Option<Role> {
        self.people.rights(user).flatten().map(|rights| rights.role)
    }

    /// The member `user`, unless muted at `now`.
    pub(crate) fn speaker(&self, user: UserId, now: UnixMillis) -> Result<&Standing, Refusal> {
        super::rules::speaker(self, user, now)
    }

    /// Refuses who is no member and may not become one.
    pub(crate) fn may_come(&self, user: UserId) -> Result<(), Refusal> {
        super::rules::may_come(self, user)
    }

    fn apply_message(&mut self, message: &Message, record: &RoomRecord) {
        debug_assert_eq!(message.seq, self.last_seq.next(), "a message was skipped");
        self.last_seq = message.seq;
        let content = ContentHash(message.content_hash);
        let first = FirstSend { content, seq: message.seq, offset: record.offset, at: record.at };
        self.people.sent(message.user, &message.key, first);
        self.uploads.remove(&message.attachments);
        if message.mention_all {
            self.remember_everyone(message.seq);
        }
    }

    fn recent_mut(&mut self, seq: Seq) -> Option<&mut Original> {
        self.recent_index(seq).and_then(|index| self.recent.get_mut(index))
    }

    /// Messages have no gaps, so a number is an index.
    fn recent_index(&self, seq: Seq) -> Option<usize> {
        let first = self.recent.front()?.quote.seq.as_u64();
        usize::try_from(seq.as_u64().checked_sub(first)?).ok()
    }
}

/// What is shared is written down as what it is.
mod shared {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::storage::Seq;

    pub(super) fn serialize<S: Serializer>(
        seqs: &Arc<VecDeque<Seq>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        seqs.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<VecDeque<Seq>>, D::Error> {
        VecDeque::deserialize(deserializer).map(Arc::new)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "pin_tests.rs"]
mod pin_tests;
