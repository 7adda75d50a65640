//! What a room knows of the people who act in it: their standing and the keys they have sent under.
//! Nobody is known until they act, and who has not acted for long is forgotten, so a room costs
//! what its active people cost and not what its members would.
//!
//! What is not known is asked of the store before a command is judged. Between the question
//! and the answer the room may have changed its mind: so every question has a number, every change
//! raises it, and an answer older than a change that was forgotten is not believed.

use althing::Wire;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::idempotency::{FirstSend, SentKeys};
use crate::storage::record::Role;
use crate::storage::{RecentKey, Rights, Seq, Standing, UnixMillis, UserId};

/// People remembered beside those who are online: more than one message can name, times five.
pub(crate) const PEOPLE_KEPT: usize = 256;
/// Roles remembered beside twice those of who is online: some 64 KiB.
const ROLES_KEPT: usize = 4_096;
/// Keys remembered in one room; about 10 MiB. Beyond it, whoever sent the longest ago is forgotten.
const KEYS_KEPT_IN_ALL: usize = 100_000;

/// When a question was asked: in which life of the room, and after how many changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Wire)]
pub(crate) struct AsOf {
    life: u64,
    changes: u64,
}

/// What a room has to be told before it can judge.
#[derive(Debug, Clone, PartialEq, Eq, Wire)]
pub(crate) struct Missing {
    pub(crate) as_of: AsOf,
    pub(crate) people: Vec<UserId>,
    /// Whose keys.
    pub(crate) keys_of: Option<UserId>,
    /// Names, of which it is asked whose they are and what those are to the room.
    pub(crate) names: Vec<String>,
    /// An earlier message.
    pub(crate) original: Option<Seq>,
}

impl Missing {
    /// Nothing but these people.
    pub(crate) fn people(as_of: AsOf, people: Vec<UserId>) -> Self {
        Self { as_of, people, keys_of: None, names: Vec::new(), original: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { people, keys_of, names, original, .. } = self;
        people.is_empty() && keys_of.is_none() && names.is_empty() && original.is_none()
    }
}

/// The answer to a [`Missing`].
#[derive(Debug, Clone, Wire)]
pub(crate) struct Facts {
    pub(crate) as_of: AsOf,
    pub(crate) people: Vec<Standing>,
    pub(crate) keys: Option<(UserId, Vec<RecentKey>)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Person {
    standing: Standing,
    /// `None`: not asked for yet. Apart, because most people of a room listen.
    keys: Option<Box<SentKeys>>,
    /// After which change of the room this is how it is.
    changed: u64,
    /// For forgetting those who were needed the longest ago.
    used: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct People {
    life: u64,
    changes: u64,
    /// Somebody was forgotten who changed with this; older answers may be about them.
    forgotten: u64,
    uses: u64,
    /// Boxed: a table has room for nearly twice as many as are in it.
    known: HashMap<UserId, Box<Person>>,
    /// Members who may speak and of whom nothing more was needed yet: most people only listen. It
    /// is as the store has it, because whatever changes somebody takes them out.
    roles: BTreeMap<UserId, Role>,
    keys: usize,
    kept_max: usize,
}

impl People {
    /// Nobody is known. `life` is another one each time a room comes into memory.
    pub(crate) fn new(life: u64) -> Self {
        Self {
            life,
            changes: 0,
            forgotten: 0,
            uses: 0,
            known: HashMap::new(),
            roles: BTreeMap::new(),
            keys: 0,
            kept_max: PEOPLE_KEPT,
        }
    }

    /// So many are online, and remembered beside the others.
    pub(crate) fn set_online(&mut self, users: usize) {
        self.kept_max = PEOPLE_KEPT + users;
    }

    pub(crate) fn as_of(&self) -> AsOf {
        AsOf { life: self.life, changes: self.changes }
    }

    pub(crate) fn standing(&self, user: UserId) -> Option<&Standing> {
        self.known.get(&user).map(|person| &person.standing)
    }

    /// What somebody may do, if it is known; inside, `None` is no member.
    pub(crate) fn rights(&self, user: UserId) -> Option<Option<Rights>> {
        if let Some(standing) = self.standing(user) {
            return Some(standing.rights);
        }
        let role = *self.roles.get(&user)?;
        Some(Some(Rights { role, muted_until: None }))
    }

    /// The keys a user has sent under, if they are known.
    pub(crate) fn keys(&self, user: UserId) -> Option<&SentKeys> {
        self.known.get(&user)?.keys.as_deref()
    }

    /// Notes that these are needed now.
    pub(crate) fn touch(&mut self, user: UserId) {
        self.uses += 1;
        if let Some(person) = self.known.get_mut(&user) {
            person.used = self.uses;
        }
    }

    /// Takes in what was asked for, as far as the room does not know better.
    pub(crate) fn take_in(&mut self, facts: Facts) {
        let Facts { as_of, people, keys } = facts;
        if !self.believes(as_of) {
            return;
        }
        people.into_iter().for_each(|standing| self.know(standing));
        if let Some((sender, recent)) = keys
            && let Some(person) = self.known.get_mut(&sender)
            && person.keys.is_none()
        {
            let keys = SentKeys::from(recent);
            self.keys += keys.len();
            person.keys = Some(Box::new(keys));
        }
        self.forget_some();
    }

    /// The same about people who only read: of members who may speak no more than that is kept.
    pub(crate) fn take_in_readers(&mut self, facts: Facts) {
        let Facts { as_of, people, .. } = facts;
        if !self.believes(as_of) {
            return;
        }
        for standing in people {
            match standing.rights {
                Some(Rights { role, muted_until: None })
                    if !self.known.contains_key(&standing.user) =>
                {
                    self.roles.insert(standing.user, role);
                }
                _ => self.know(standing),
            }
        }
        if self.roles.len() > ROLES_KEPT + 2 * self.kept_max {
            self.roles.clear();
        }
        self.forget_some();
    }

    fn believes(&self, as_of: AsOf) -> bool {
        as_of.life == self.life && as_of.changes >= self.forgotten
    }

    fn know(&mut self, standing: Standing) {
        let (user, changed) = (standing.user, self.changes);
        self.roles.remove(&user);
        let person = || Box::new(Person { standing, keys: None, changed, used: 0 });
        self.known.entry(user).or_insert_with(person);
        self.touch(user);
    }

    /// From now on somebody stands so.
    pub(crate) fn set(&mut self, standing: Standing) {
        self.changes += 1;
        self.uses += 1;
        self.roles.remove(&standing.user);
        let (changed, used) = (self.changes, self.uses);
        match self.known.get_mut(&standing.user) {
            Some(person) => {
                (person.standing, person.changed, person.used) = (standing, changed, used);
            }
            None => {
                let user = standing.user;
                let person = Person { standing, keys: None, changed, used };
                self.known.insert(user, Box::new(person));
            }
        }
        self.forget_some();
    }

    /// Changes what is known of somebody. Of whom nothing is known, no older answer is believed.
    pub(crate) fn change(&mut self, user: UserId, change: impl FnOnce(&mut Standing)) {
        self.changes += 1;
        self.roles.remove(&user);
        match self.known.get_mut(&user) {
            Some(person) => {
                change(&mut person.standing);
                person.changed = self.changes;
            }
            None => self.forgotten = self.changes,
        }
    }

    /// Remembers the key of a send.
    pub(crate) fn sent(&mut self, user: UserId, key: &str, send: FirstSend) {
        if key.is_empty() {
            return;
        }
        self.changes += 1;
        match self.known.get_mut(&user).map(|person| &mut **person) {
            Some(Person { keys: Some(keys), changed, .. }) => {
                let before = keys.len();
                keys.record(key, send);
                *changed = self.changes;
                self.keys = (self.keys + keys.len()).saturating_sub(before);
                self.forget_some();
            }
            // Its keys are asked for before the next send is judged.
            _ => self.forgotten = self.changes,
        }
    }

    /// Forgets those who were needed the longest ago, when they are twice as many as are kept.
    fn forget_some(&mut self) {
        let too_many = self.known.len() > 2 * self.kept_max;
        if !too_many && self.keys <= KEYS_KEPT_IN_ALL {
            return;
        }
        let kept = self.kept_max.min(self.known.len() / 2).max(1);
        let mut used: Vec<u64> = self.known.values().map(|person| person.used).collect();
        // Highest first, so that the first `kept` are the ones needed last.
        let (_, oldest_kept, _) = used.select_nth_unstable_by(kept - 1, |a, b| b.cmp(a));
        let oldest_kept = *oldest_kept;
        let (known, forgotten) = (&mut self.known, &mut self.forgotten);
        known.retain(|_, person| {
            if person.used < oldest_kept {
                *forgotten = (*forgotten).max(person.changed);
            }
            person.used >= oldest_kept
        });
        self.keys =
            known.values().filter_map(|person| person.keys.as_deref()).map(SentKeys::len).sum();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len() + self.roles.len()
    }
}

/// A standing in a few words.
pub(crate) trait Stands {
    fn role(&self) -> Option<Role>;
    fn muted_until(&self) -> Option<UnixMillis>;
}

impl Stands for Standing {
    fn role(&self) -> Option<Role> {
        self.rights.map(|rights| rights.role)
    }

    fn muted_until(&self) -> Option<UnixMillis> {
        self.rights.and_then(|rights| rights.muted_until)
    }
}

/// A member with these rights.
pub(crate) fn member(user: UserId, name: String, display_name: String, rights: Rights) -> Standing {
    Standing { user, name, display_name, rights: Some(rights), is_banned: false, kept_mute: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outsider(user: u64) -> Standing {
        let user = UserId::from_u64(user);
        let (name, display_name) = (format!("u{user}"), String::new());
        let (rights, is_banned, kept_mute) = (None, false, None);
        Standing { user, name, display_name, rights, is_banned, kept_mute }
    }

    fn facts(as_of: AsOf, user: u64) -> Facts {
        Facts { as_of, people: vec![outsider(user)], keys: None }
    }

    fn banned(people: &People, user: u64) -> Option<bool> {
        people.standing(UserId::from_u64(user)).map(|standing| standing.is_banned)
    }

    #[test]
    fn an_answer_never_takes_back_what_changed_after_the_question() {
        let mut people = People::new(1);
        let asked = people.as_of();
        people.set(Standing { is_banned: true, ..outsider(7) });
        people.take_in(facts(asked, 7));
        assert_eq!(banned(&people, 7), Some(true));
    }

    #[test]
    fn an_answer_from_before_a_forgotten_change_is_not_believed() {
        let mut people = People::new(1);
        let asked = people.as_of();
        people.set(Standing { is_banned: true, ..outsider(7) });
        for other in 1_000..1_000 + 3 * PEOPLE_KEPT as u64 {
            people.set(outsider(other));
        }
        assert_eq!(banned(&people, 7), None, "forgotten by now");
        people.take_in(facts(asked, 7));
        assert_eq!(banned(&people, 7), None, "the answer is older than the ban");
        people.take_in(facts(people.as_of(), 7));
        assert_eq!(banned(&people, 7), Some(false));
    }

    #[test]
    fn an_answer_to_an_earlier_life_of_the_room_is_not_believed() {
        let asked = People::new(1).as_of();
        let mut people = People::new(2);
        people.take_in(facts(asked, 7));
        assert_eq!(banned(&people, 7), None);
    }

    #[test]
    fn a_change_of_somebody_unknown_makes_older_answers_worthless() {
        let mut people = People::new(1);
        let asked = people.as_of();
        people.change(UserId::from_u64(7), |standing| standing.is_banned = true);
        people.take_in(facts(asked, 7));
        assert_eq!(banned(&people, 7), None);
    }

    fn member_of_role(user: u64, role: Role) -> Standing {
        Standing { rights: Some(Rights { role, muted_until: None }), ..outsider(user) }
    }

    /// Takes in somebody who reads, as asked at `as_of`; absent: just now.
    fn read(people: &mut People, as_of: Option<AsOf>, standing: Standing) {
        let as_of = as_of.unwrap_or(people.as_of());
        people.take_in_readers(Facts { as_of, people: vec![standing], keys: None });
    }

    #[test]
    fn of_who_only_reads_the_role_is_known_and_the_rest_is_asked_for() {
        let (mut people, reader) = (People::new(1), UserId::from_u64(7));
        let asked = people.as_of();
        read(&mut people, Some(asked), member_of_role(7, Role::Moderator));
        let rights = Rights { role: Role::Moderator, muted_until: None };
        assert_eq!((people.rights(reader), people.standing(reader)), (Some(Some(rights)), None));
        people.take_in(Facts {
            as_of: people.as_of(),
            people: vec![member_of_role(7, Role::Moderator)],
            keys: None,
        });
        assert!(people.standing(reader).is_some());
        assert_eq!(people.len(), 1, "once is enough");
        let muted = Some(Rights { role: Role::Member, muted_until: Some(UnixMillis::from_u64(9)) });
        read(&mut people, Some(asked), Standing { rights: muted, ..outsider(8) });
        read(&mut people, Some(asked), outsider(9));
        let of = |user| people.rights(UserId::from_u64(user));
        assert_eq!([of(8), of(9), of(10)], [Some(muted), Some(None), None]);
    }

    #[test]
    fn a_reader_who_changed_is_asked_for_again_and_older_answers_are_not_believed() {
        let (mut people, reader) = (People::new(1), UserId::from_u64(7));
        let asked = people.as_of();
        read(&mut people, Some(asked), member_of_role(7, Role::Member));
        people.change(reader, |standing| standing.rights = None);
        assert_eq!(people.rights(reader), None);
        read(&mut people, Some(asked), member_of_role(7, Role::Member));
        assert_eq!(people.rights(reader), None, "it was a member when that was asked");
        people.set(Standing { is_banned: true, ..outsider(7) });
        read(&mut people, None, member_of_role(7, Role::Member));
        assert_eq!(people.rights(reader), Some(None), "the room knows better");
    }

    #[test]
    fn a_hundred_thousand_who_read_once_leave_no_more_than_are_kept() {
        let mut people = People::new(1);
        for user in 0..100_000 {
            read(&mut people, None, member_of_role(user, Role::Member));
        }
        assert!(people.len() <= ROLES_KEPT + 2 * PEOPLE_KEPT, "{}", people.len());
    }

    #[test]
    fn a_hundred_thousand_who_act_once_leave_no_more_than_are_kept() {
        let mut people = People::new(1);
        for user in 0..100_000 {
            people.take_in(facts(people.as_of(), user));
        }
        assert!(people.len() <= 2 * PEOPLE_KEPT, "{}", people.len());
        assert_eq!(banned(&people, 99_999), Some(false), "the last ones are still known");
    }
}
