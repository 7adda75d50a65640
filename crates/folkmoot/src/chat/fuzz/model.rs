//! A room as one would explain it: lists that are looked through, no actors, no store, no caches.
//! It says what has to come of each step, and how the room has to look afterwards.

use std::collections::{BTreeMap, BTreeSet};

use folkmoot_protocol::ErrorCode;

use super::step::{PEOPLE, Rank, Step, name};

/// How a step has to end.
pub(super) type Expected = Result<(), ErrorCode>;

const DENIED: Expected = Err(ErrorCode::PermissionDenied);
const NOT_FOUND: Expected = Err(ErrorCode::NotFound);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) rank: Rank,
    pub(super) is_muted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) by: usize,
    pub(super) body: String,
    pub(super) is_deleted: bool,
    pub(super) is_edited: bool,
    pub(super) is_pinned: bool,
    pub(super) reply_to: Option<u64>,
    pub(super) mentions: BTreeSet<usize>,
    pub(super) mentions_all: bool,
    /// Who has given which.
    pub(super) reactions: BTreeMap<&'static str, BTreeSet<usize>>,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) members: BTreeMap<usize, Member>,
    banned: BTreeSet<usize>,
    /// Who was muted when they left the last time.
    muted: BTreeSet<usize>,
    pub(super) messages: Vec<Message>,
    /// What was sent first under a key of somebody.
    keys: BTreeMap<(usize, u8), (String, Option<u64>)>,
    pub(super) name: &'static str,
    pub(super) is_archived: bool,
    /// Events in the room's stream.
    pub(super) events: u64,
    /// A wrong model, to see that it is noticed.
    pub(super) forgets_mutes: bool,
}

impl Model {
    /// The first of all has made the room.
    pub(super) fn new(name: &'static str) -> Self {
        let owner = Member { rank: Rank::Owner, is_muted: false };
        Self {
            members: BTreeMap::from([(0, owner)]),
            banned: BTreeSet::new(),
            muted: BTreeSet::new(),
            messages: Vec::new(),
            keys: BTreeMap::new(),
            name,
            is_archived: false,
            events: 1,
            forgets_mutes: false,
        }
    }

    pub(super) fn take(&mut self, step: &Step) -> Expected {
        let before = self.events;
        match step {
            Step::Send { by, key, body, reply_to } => self.send(*by, *key, body, *reply_to)?,
            Step::Edit { by, seq, body } => {
                self.may_speak(*by)?;
                let mentions = self.mentioned(*by, body);
                let message = self.message(*seq)?;
                if message.by != *by {
                    return DENIED;
                }
                (message.body, message.mentions, message.is_edited) =
                    (body.clone(), mentions, true);
                self.events += 1;
            }
            Step::Delete { by, seq } => {
                let rank = self.rank(*by)?;
                let message = self.message(*seq)?;
                if message.by != *by && !is_above_members(rank) {
                    return DENIED;
                }
                (message.is_deleted, message.is_pinned) = (true, false);
                self.events += 1;
            }
            Step::React { by, seq, emoji, on } => {
                self.may_speak(*by)?;
                let given = self.message(*seq)?.reactions.entry(*emoji).or_default();
                match on {
                    true => given.insert(*by),
                    false => given.remove(by),
                };
                self.events += 1;
            }
            Step::Pin { by, seq, on } => {
                self.may_speak(*by)?;
                if !is_above_members(self.rank(*by)?) {
                    return DENIED;
                }
                let message = self.message(*seq)?;
                if message.is_pinned != *on {
                    message.is_pinned = *on;
                    self.events += 1;
                }
            }
            Step::Rename { by, name } => {
                if !is_above_members(self.rank(*by)?) || self.is_archived {
                    return DENIED;
                }
                if self.name != *name {
                    (self.name, self.events) = (*name, self.events + 1);
                }
            }
            Step::Archive { by, on } => {
                if self.rank(*by)? != Rank::Owner {
                    return DENIED;
                }
                if self.is_archived != *on {
                    (self.is_archived, self.events) = (*on, self.events + 1);
                }
            }
            Step::Forget => {}
            about_people => self.change_people(about_people)?,
        }
        debug_assert!(self.events <= before + 1, "a step is one event at most");
        Ok(())
    }

    fn change_people(&mut self, step: &Step) -> Expected {
        match step {
            Step::Add { by, user } => {
                self.rank(*by)?;
                if self.banned.contains(user) {
                    return DENIED;
                }
                if self.members.contains_key(user) {
                    return Ok(());
                }
                if self.is_archived {
                    return DENIED;
                }
                let is_muted = self.muted.remove(user);
                self.members.insert(*user, Member { rank: Rank::Member, is_muted });
            }
            Step::Leave { by } => {
                if self.rank(*by)? == Rank::Owner && self.owners() == 1 && self.members.len() > 1 {
                    return DENIED;
                }
                self.remove(*by);
            }
            Step::Kick { by, user } => {
                self.stands_above(*by, *user)?;
                self.remove(*user);
            }
            Step::Ban { by, user, on } => {
                if !is_above_members(self.rank(*by)?) {
                    return DENIED;
                }
                if self.banned.contains(user) == *on {
                    return Ok(());
                }
                if !self.members.contains_key(user) {
                    // Strangers are no part of the stream.
                    match on {
                        true => self.banned.insert(*user),
                        false => self.banned.remove(user),
                    };
                    return Ok(());
                }
                self.stands_above(*by, *user)?;
                self.banned.insert(*user);
                self.remove(*user);
            }
            Step::Mute { by, user, on } => {
                self.stands_above(*by, *user)?;
                let member = self.members.get_mut(user).expect("somebody stands above them");
                if member.is_muted == *on {
                    return Ok(());
                }
                member.is_muted = *on;
            }
            Step::SetRole { by, user, rank } => {
                if self.rank(*by)? != Rank::Owner {
                    return DENIED;
                }
                let owners = self.owners();
                let Some(member) = self.members.get_mut(user) else { return NOT_FOUND };
                if member.rank == *rank {
                    return Ok(());
                }
                if member.rank == Rank::Owner && owners == 1 {
                    return DENIED;
                }
                member.rank = *rank;
            }
            _ => return Ok(()),
        }
        self.events += 1;
        Ok(())
    }

    /// Whoever leaves takes a mute along.
    fn remove(&mut self, user: usize) {
        if self.members.remove(&user).is_some_and(|member| member.is_muted) {
            self.muted.insert(user);
        }
    }

    fn send(&mut self, by: usize, key: Option<u8>, body: &str, reply_to: Option<u64>) -> Expected {
        let rank = self.rank(by)?;
        let content = (body.to_owned(), reply_to);
        if let Some(first) = key.and_then(|key| self.keys.get(&(by, key))) {
            return if *first == content { Ok(()) } else { Err(ErrorCode::KeyReused) };
        }
        self.may_speak(by)?;
        if let Some(seq) = reply_to {
            self.message(seq)?;
        }
        let message = Message {
            by,
            body: body.to_owned(),
            is_deleted: false,
            is_edited: false,
            is_pinned: false,
            reply_to,
            mentions: self.mentioned(by, body),
            mentions_all: body.contains("@everyone") && is_above_members(rank),
            reactions: BTreeMap::new(),
        };
        self.messages.push(message);
        if let Some(key) = key {
            self.keys.insert((by, key), content);
        }
        self.events += 1;
        Ok(())
    }

    fn rank(&self, user: usize) -> Result<Rank, ErrorCode> {
        Ok(self.members.get(&user).ok_or(ErrorCode::PermissionDenied)?.rank)
    }

    fn may_speak(&self, user: usize) -> Expected {
        let member = self.members.get(&user).ok_or(ErrorCode::PermissionDenied)?;
        let is_silenced = member.is_muted && !self.forgets_mutes;
        if self.is_archived || is_silenced { DENIED } else { Ok(()) }
    }

    /// A moderator stands above members, an owner above both; nobody above their like.
    fn stands_above(&self, by: usize, user: usize) -> Expected {
        let rank = self.rank(by)?;
        if !is_above_members(rank) {
            return DENIED;
        }
        let Some(other) = self.members.get(&user) else { return NOT_FOUND };
        match (rank, other.rank) {
            (Rank::Owner, Rank::Owner) => DENIED,
            (Rank::Moderator, Rank::Moderator | Rank::Owner) => DENIED,
            _ => Ok(()),
        }
    }

    fn owners(&self) -> usize {
        self.members.values().filter(|member| member.rank == Rank::Owner).count()
    }

    fn message(&mut self, seq: u64) -> Result<&mut Message, ErrorCode> {
        let index = seq.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let message = index.and_then(|index| self.messages.get_mut(index));
        message.filter(|message| !message.is_deleted).ok_or(ErrorCode::NotFound)
    }

    fn mentioned(&self, by: usize, body: &str) -> BTreeSet<usize> {
        let names = |user: &usize| body.split(' ').any(|word| word == format!("@{}", name(*user)));
        let named = (0..PEOPLE).filter(names);
        named.filter(|user| *user != by && self.members.contains_key(user)).collect()
    }
}

fn is_above_members(rank: Rank) -> bool {
    rank != Rank::Member
}
