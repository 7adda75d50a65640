//! The messages of a client that are under way on one connection, and who waits until there is room
//! for another.
//!
//! Each actor has room for as many messages as there is room for beside it. So one that takes nothing
//! leaves half of all, a second one half of that, and others go on.
//!
//! Invariant: for no actor that somebody waits for is there room.

use std::collections::HashMap;
use std::task::Waker;

use althing::ActorId;

use crate::waiters::Waiters;

/// Messages under way; fewer than a node reads ahead.
const MESSAGES_MAX: usize = 512;

#[derive(Default)]
pub(super) struct UnderWay {
    messages: Messages,
    waiters: HashMap<ActorId, Waiters>,
}

#[derive(Default)]
struct Messages {
    count: usize,
    by_actor: HashMap<ActorId, usize>,
}

impl UnderWay {
    pub(super) fn has_room(&self, to: &ActorId) -> bool {
        self.messages.has_room(to)
    }

    /// Somebody waits for room, of which there is none.
    pub(super) fn wait(&mut self, to: &ActorId, waker: &Waker) {
        self.waiters.entry(to.clone()).or_default().add(waker);
    }

    pub(super) fn add(&mut self, to: &ActorId) {
        self.messages.count += 1;
        *self.messages.by_actor.entry(to.clone()).or_default() += 1;
    }

    /// A message is under way no more; returns the senders that look again.
    pub(super) fn took(&mut self, to: &ActorId) -> Vec<Waker> {
        self.messages.remove(to);
        let Self { messages, waiters } = self;
        let called = waiters.extract_if(|to, _| messages.has_room(to));
        called.flat_map(|(_, mut waiters)| waiters.take()).collect()
    }

    /// All senders that wait.
    pub(super) fn take_waiters(&mut self) -> Vec<Waker> {
        self.waiters.drain().flat_map(|(_, mut waiters)| waiters.take()).collect()
    }
}

impl Messages {
    fn to_one(&self, to: &ActorId) -> usize {
        self.by_actor.get(to).copied().unwrap_or_default()
    }

    fn has_room(&self, to: &ActorId) -> bool {
        self.to_one(to) < MESSAGES_MAX.saturating_sub(self.count)
    }

    fn remove(&mut self, to: &ActorId) {
        self.count -= 1;
        match self.by_actor.get_mut(to) {
            Some(messages) if *messages > 1 => *messages -= 1,
            _ => _ = self.by_actor.remove(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(key: usize) -> ActorId {
        ActorId::named("test.echo", key.to_string())
    }

    /// As many as there is room for.
    fn fill(under_way: &mut UnderWay, to: &ActorId) -> usize {
        let before = under_way.messages.count;
        while under_way.has_room(to) {
            under_way.add(to);
        }
        under_way.messages.count - before
    }

    #[test]
    fn actors_that_take_nothing_leave_room_for_others() {
        let mut under_way = UnderWay::default();
        let taken: Vec<usize> = (0..8).map(|n| fill(&mut under_way, &actor(n))).collect();
        assert_eq!(taken, [256, 128, 64, 32, 16, 8, 4, 2]);
        assert!(under_way.has_room(&actor(8)));
    }

    #[test]
    fn who_waits_is_called_when_there_is_room_and_no_actor_is_remembered() {
        let [clogged, other] = [0, 1].map(actor);
        let mut under_way = UnderWay::default();
        let messages = fill(&mut under_way, &clogged);
        under_way.wait(&clogged, Waker::noop());
        under_way.add(&other);
        assert!(under_way.took(&other).is_empty(), "there is none for one that takes nothing");
        assert_eq!(under_way.took(&clogged).len(), 1, "one was taken");
        under_way.add(&clogged);
        (0..messages).for_each(|_| under_way.add(&clogged));
        under_way.wait(&other, Waker::noop());
        under_way.wait(&clogged, Waker::noop());
        assert_eq!(under_way.took(&clogged).len(), 1, "there is room for one to somebody else");
        (1..2 * messages).for_each(|_| drop(under_way.took(&clogged)));
        assert_eq!(under_way.messages.count, 0);
        assert!(under_way.messages.by_actor.is_empty() && under_way.waiters.is_empty());
    }
}
