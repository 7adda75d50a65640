//! Actors that leave the first letter of their life on this node, and whose older ones may be in
//! the store from another node: they are read before any of theirs is sent. Pure, without clock or
//! input.
//!
//! An owner arrives before its first letter is committed, and is held from then on until a look at
//! the store has found everything that it had left before. So nothing that it leaves here
//! overtakes.

use std::collections::BTreeMap;

use althing::{ActorId, Timestamp};

use super::reading::{STORE_PAUSE, later};
use crate::delivery::Delivery;

/// Owners of one look, at most.
const OWNERS_MAX: usize = 256;
/// Letters that one look finds, at most.
const FOUND_MAX: usize = 1_000;
/// Owners that wait for a look, at most; beyond, the store is read as a whole.
const WAITING_MAX: usize = 131_072;

/// Owners and the names of the first letters that they leave here.
type Firsts = BTreeMap<ActorId, String>;

pub(super) struct Arrivals {
    found_max: usize,
    waiting: Firsts,
    /// Those of the look that is on its way.
    asked: Option<Firsts>,
    /// The store has failed, and is not asked before.
    not_before: Timestamp,
}

/// What to ask of the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LookWanted {
    pub(super) firsts: Vec<(ActorId, String)>,
    pub(super) limit: usize,
}

/// What a look came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// All that the owners below have left before.
    pub(super) left: Vec<Delivery>,
    /// Owners that are held no longer.
    pub(super) free: Vec<ActorId>,
    /// One of them has left more than a look finds: the store is to be read as a whole.
    pub(super) is_too_much: bool,
}

impl Arrivals {
    pub(super) fn new(in_memory_max: usize) -> Self {
        let found_max = FOUND_MAX.min(in_memory_max).max(1);
        let (waiting, asked, not_before) = (Firsts::new(), None, Timestamp(0));
        Self { found_max, waiting, asked, not_before }
    }

    /// An owner is about to leave its first letter here, under that name.
    pub(super) fn came(&mut self, owner: ActorId, first: String) {
        self.waiting.insert(owner, first);
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.len() > WAITING_MAX
    }

    pub(super) fn is_look_on_its_way(&self) -> bool {
        self.asked.is_some()
    }

    /// When the store is to be asked next.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        (self.asked.is_none() && !self.waiting.is_empty()).then_some(self.not_before)
    }

    /// The look to take now.
    pub(super) fn look(&mut self, now: Timestamp) -> Option<LookWanted> {
        // Set by a clock that has stepped back since, otherwise.
        self.not_before = self.not_before.min(later(now, STORE_PAUSE));
        self.next_look().filter(|at| *at <= now)?;
        let rest = match self.waiting.keys().nth(OWNERS_MAX).cloned() {
            Some(next) => self.waiting.split_off(&next),
            None => Firsts::new(),
        };
        let asked = std::mem::replace(&mut self.waiting, rest);
        let firsts = asked.iter().map(|(owner, first)| (owner.clone(), first.clone())).collect();
        self.asked = Some(asked);
        Some(LookWanted { firsts, limit: self.found_max })
    }

    /// Takes what was found, in the order of owners.
    pub(super) fn look_came(&mut self, mut found: Vec<Delivery>) -> Arrived {
        let asked = self.asked.take().filter(|asked| !asked.is_empty());
        let Some(mut asked) = asked else { return Arrived::default() };
        if found.len() >= self.found_max
            && let Some(cut) = found.last().map(|last| last.owner.clone())
        {
            // Of the last one, and of those behind it, there may be more.
            found.retain(|delivery| delivery.owner != cut);
            for (owner, first) in asked.split_off(&cut) {
                self.waiting.entry(owner).or_insert(first);
            }
            if asked.is_empty() {
                return Arrived { is_too_much: true, ..Arrived::default() };
            }
        }
        // Who has come once more since is asked for once more.
        let free = asked.into_keys().filter(|owner| !self.waiting.contains_key(owner)).collect();
        Arrived { left: found, free, is_too_much: false }
    }

    pub(super) fn look_failed(&mut self, now: Timestamp) {
        for (owner, first) in self.asked.take().into_iter().flatten() {
            self.waiting.entry(owner).or_insert(first);
        }
        self.not_before = later(now, STORE_PAUSE);
    }

    /// Forgets all: the store is read as a whole.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        // Its answer still comes, and says nothing any more.
        self.asked.iter_mut().for_each(Firsts::clear);
    }
}

#[cfg(test)]
mod tests {
    use althing::remote::Letter;

    use super::*;

    fn id(key: &str) -> ActorId {
        ActorId::named("test", key)
    }

    fn left(owner: &str, name: &str) -> Delivery {
        let letter = Letter { to: id("to"), message: "m".to_owned(), body: vec![] };
        let (owner, name) = (id(owner), name.to_owned());
        Delivery { owner, name, due: Timestamp(1), cron: None, letter }
    }

    fn arrivals(found_max: usize, owners: &[&str]) -> Arrivals {
        let mut arrivals = Arrivals::new(found_max);
        owners.iter().for_each(|owner| arrivals.came(id(owner), ">9".to_owned()));
        arrivals
    }

    fn asked(arrivals: &mut Arrivals, now: u64) -> Vec<ActorId> {
        let look = arrivals.look(Timestamp(now));
        look.into_iter().flat_map(|look| look.firsts).map(|(owner, _)| owner).collect()
    }

    #[test]
    fn one_look_is_on_its_way_and_frees_those_of_whom_it_has_found_all() {
        let mut arrivals = arrivals(3, &["a", "b", "c"]);
        assert_eq!(asked(&mut arrivals, 0), [id("a"), id("b"), id("c")]);
        arrivals.came(id("d"), ">1".to_owned());
        assert_eq!(asked(&mut arrivals, 0), [], "one at a time");
        let arrived = arrivals.look_came(vec![left("a", ">1"), left("b", ">1"), left("b", ">2")]);
        let free = vec![id("a")];
        let first = vec![left("a", ">1")];
        assert_eq!(arrived, Arrived { left: first, free, is_too_much: false });
        assert_eq!(asked(&mut arrivals, 0), [id("b"), id("c"), id("d")]);
        let arrived = arrivals.look_came(vec![left("b", ">1"), left("b", ">2")]);
        assert_eq!(arrived.free, [id("b"), id("c"), id("d")]);
        assert_eq!(arrived.left.len(), 2);
        assert_eq!(arrivals.next_look(), None);
    }

    #[test]
    fn who_has_left_more_than_a_look_finds_is_not_freed() {
        let mut arrivals = arrivals(2, &["a"]);
        asked(&mut arrivals, 0);
        let arrived = arrivals.look_came(vec![left("a", ">1"), left("a", ">2")]);
        assert_eq!(arrived, Arrived { is_too_much: true, ..Arrived::default() });
    }

    #[test]
    fn who_comes_again_while_a_look_is_on_its_way_is_asked_for_again() {
        let mut arrivals = arrivals(9, &["a", "b"]);
        asked(&mut arrivals, 0);
        arrivals.came(id("a"), ">12".to_owned());
        assert_eq!(arrivals.look_came(vec![]).free, [id("b")]);
        let again = arrivals.look(Timestamp(0)).expect("it is asked for");
        assert_eq!(again.firsts, [(id("a"), ">12".to_owned())]);
    }

    #[test]
    fn a_look_that_fails_is_taken_again_after_a_pause_and_frees_nobody() {
        let mut arrivals = arrivals(9, &["a"]);
        asked(&mut arrivals, 5);
        arrivals.came(id("a"), ">12".to_owned());
        arrivals.look_failed(Timestamp(5));
        assert_eq!(asked(&mut arrivals, 1_004), []);
        let again = arrivals.look(Timestamp(1_005)).expect("it is time");
        assert_eq!(again.firsts, [(id("a"), ">12".to_owned())], "the later one");
    }

    #[test]
    fn the_answer_of_a_look_that_was_forgotten_frees_nobody() {
        let mut arrivals = arrivals(9, &["a"]);
        asked(&mut arrivals, 0);
        arrivals.clear();
        arrivals.came(id("a"), ">12".to_owned());
        assert_eq!(asked(&mut arrivals, 0), [], "it is still on its way");
        assert_eq!(arrivals.look_came(vec![left("a", ">1")]).free, []);
        assert_eq!(asked(&mut arrivals, 0), [id("a")]);
    }
}
