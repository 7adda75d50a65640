//! One room as a value: its numbers, members and rules. `decide` judges a request without changing
//! anything, `commit` gives the change its numbers, `apply` folds an event in.
//!
//! No clock, no store, no socket. `apply` is the only way state changes, live and on activation,
//! so a room that was reloaded is the room that was.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::command::{Decision, Refusal, Request};
use super::idempotency::{ContentHash, FirstSend, SeenKeys};
use super::uploads::Uploads;
use crate::storage::record::{LeaveReason, Message, Quote, Role, RoomEvent, RoomRecord};
use crate::storage::{Offset, RoomId, Seq, UnixMillis, UserId};
use crate::wire::excerpt;

/// Messages whose author is kept in memory, so that edits, replies and reactions to what is on
/// people's screens need no read. About 200 bytes each.
pub(crate) const RECENT_LEN: usize = 512;
/// Numbers of `@everyone` messages kept for counting; who is further behind sees this many.
pub(crate) const EVERYONE_LEN: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Room,
    Direct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Of the account; by it one is mentioned.
    pub(crate) name: String,
    /// Goes with everything one says.
    pub(crate) display_name: String,
    pub(crate) role: Role,
    pub(crate) muted_until: Option<UnixMillis>,
}

/// What the rules need to know of an earlier message to edit, delete, react or reply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: RoomId,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) topic: String,
    pub(crate) offset: Offset,
    pub(crate) last_seq: Seq,
    pub(crate) members: HashMap<UserId, Member>,
    pub(crate) banned: HashSet<UserId>,
    /// Who of the two in a direct conversation has blocked the other.
    pub(crate) blockers: HashSet<UserId>,
    pub(crate) keys: SeenKeys,
    /// Numbers of the `@everyone` messages, rising. Shared with every view of the room, and copied
    /// only when one changes while another is out.
    pub(crate) everyone: Arc<VecDeque<Seq>>,
    /// Files that wait for a message of this room.
    pub(crate) uploads: Uploads,
    names: HashMap<String, UserId>,
    owners: usize,
    recent: VecDeque<Original>,
}

impl RoomState {
    pub(crate) fn new(id: RoomId, kind: Kind, name: String, topic: String) -> Self {
        Self {
            id,
            kind,
            name,
            topic,
            offset: Offset::from_u64(0),
            last_seq: Seq::from_u64(0),
            members: HashMap::new(),
            banned: HashSet::new(),
            blockers: HashSet::new(),
            keys: SeenKeys::default(),
            everyone: Arc::default(),
            uploads: Uploads::default(),
            names: HashMap::new(),
            owners: 0,
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
            RoomEvent::Deleted { seq, .. } if self.everyone.contains(seq) => {
                Arc::make_mut(&mut self.everyone).retain(|mention| mention != seq);
            }
            RoomEvent::Deleted { .. } => {}
            RoomEvent::Edited { .. } | RoomEvent::Reaction { .. } => {}
            RoomEvent::Joined { user, name, display_name, role } => {
                let member = Member {
                    name: name.clone(),
                    display_name: display_name.clone(),
                    role: *role,
                    muted_until: None,
                };
                self.insert_member(*user, member);
                self.banned.remove(user);
            }
            RoomEvent::Left { user, reason, .. } => {
                self.remove_member(*user);
                if *reason == LeaveReason::Banned {
                    self.banned.insert(*user);
                }
            }
            RoomEvent::RoleSet { user, role, muted_until, .. } => {
                if let Some(member) = self.members.get(user) {
                    let (role, muted_until) = (*role, *muted_until);
                    self.insert_member(*user, Member { role, muted_until, ..member.clone() });
                }
            }
            RoomEvent::Described { name, topic, .. } => {
                self.name = name.clone();
                self.topic = topic.clone();
            }
        }
    }

    /// Adds or replaces a member; on activation also how the member list gets in.
    pub(crate) fn insert_member(&mut self, user: UserId, member: Member) {
        self.remove_member(user);
        self.owners += usize::from(member.role == Role::Owner);
        self.names.insert(member.name.clone(), user);
        self.members.insert(user, member);
    }

    /// Takes a member's new name to show, which is no event of the stream.
    pub(crate) fn rename(&mut self, user: UserId, display_name: String) -> bool {
        let member = self.members.get_mut(&user);
        member.map(|member| member.display_name = display_name).is_some()
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
                if let Some(original) = self.recent_mut(*seq)
                    && !original.reactions.contains(emoji)
                {
                    original.reactions.push(emoji.clone());
                }
            }
            _ => {}
        }
    }

    /// Bans somebody who is no member, or lifts a ban: neither is an event of the stream.
    pub(crate) fn set_banned(&mut self, user: UserId, on: bool) {
        match on {
            true => self.banned.insert(user),
            false => self.banned.remove(&user),
        };
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

    pub(crate) fn member(&self, user: UserId) -> Result<&Member, Refusal> {
        self.members.get(&user).ok_or(Refusal::NotMember)
    }

    /// The member `user`, unless muted at `now`.
    pub(crate) fn speaker(&self, user: UserId, now: UnixMillis) -> Result<&Member, Refusal> {
        super::rules::speaker(self, user, now)
    }

    pub(crate) fn user_named(&self, name: &str) -> Option<UserId> {
        self.names.get(name).copied()
    }

    pub(crate) fn owners(&self) -> usize {
        self.owners
    }

    fn apply_message(&mut self, message: &Message, record: &RoomRecord) {
        debug_assert_eq!(message.seq, self.last_seq.next(), "a message was skipped");
        self.last_seq = message.seq;
        let content = ContentHash(message.content_hash);
        let first = FirstSend { content, seq: message.seq, offset: record.offset, at: record.at };
        self.keys.record(message.user, &message.key, first);
        self.uploads.remove(&message.attachments);
        if message.mention_all {
            self.remember_everyone(message.seq);
        }
    }

    fn remove_member(&mut self, user: UserId) {
        if let Some(member) = self.members.remove(&user) {
            self.owners -= usize::from(member.role == Role::Owner);
            self.names.remove(&member.name);
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

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
