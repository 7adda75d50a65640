//! Whom each connection of a room has on screen, and so which connections to tell when somebody
//! comes or goes: those that look, however many are online.
//!
//! Pure; `room/presence` tells them. `T` is how a connection is told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::storage::UserId;

#[derive(Debug)]
pub(super) struct Watchers<T> {
    by_client: HashMap<Arc<str>, Watcher<T>>,
    /// The connections that look at each user; nobody is in here whom no connection looks at.
    by_user: HashMap<UserId, HashSet<Arc<str>>>,
}

/// A connection that looks at somebody.
#[derive(Debug)]
pub(super) struct Watcher<T> {
    pub(super) told: T,
    /// Nobody, once the connection has said that it shows nobody any more.
    pub(super) users: Vec<UserId>,
    /// Which of the connection's screens this is.
    number: u64,
    /// Could not be told something, so that everything is to be told again.
    pub(super) is_behind: bool,
}

impl<T> Default for Watchers<T> {
    fn default() -> Self {
        Self { by_client: HashMap::new(), by_user: HashMap::new() }
    }
}

impl<T> Watchers<T> {
    /// Takes whom a connection looks at from now on, instead of those before. A screen that was
    /// overtaken by a newer one on its way here changes nothing, which is why one without anybody
    /// is remembered too, until the connection is gone.
    pub(super) fn set(&mut self, client: &Arc<str>, number: u64, told: T, mut users: Vec<UserId>) {
        if self.by_client.get(client).is_some_and(|newest| newest.number > number) {
            return;
        }
        self.remove(client);
        users.sort_unstable();
        users.dedup();
        for user in &users {
            self.by_user.entry(*user).or_default().insert(client.clone());
        }
        let watcher = Watcher { told, users, number, is_behind: false };
        self.by_client.insert(client.clone(), watcher);
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, client: &str) {
        let Some(watcher) = self.by_client.remove(client) else { return };
        for user in watcher.users {
            if let Some(clients) = self.by_user.get_mut(&user) {
                clients.remove(client);
                if clients.is_empty() {
                    self.by_user.remove(&user);
                }
            }
        }
    }

    /// Calls `tell` for each connection that looks at `user`.
    pub(super) fn each_of(&mut self, user: UserId, mut tell: impl FnMut(&mut Watcher<T>)) {
        for client in self.by_user.get(&user).into_iter().flatten() {
            if let Some(watcher) = self.by_client.get_mut(client) {
                tell(watcher);
            }
        }
    }

    /// Calls `tell` for each connection that looks at anybody.
    pub(super) fn each(&mut self, tell: impl FnMut(&mut Watcher<T>)) {
        let watchers = self.by_client.values_mut();
        watchers.filter(|watcher| !watcher.users.is_empty()).for_each(tell);
    }

    /// The connections that could not be told something.
    pub(super) fn behind(&self) -> Vec<Arc<str>> {
        let behind = self.by_client.iter().filter(|(_, watcher)| watcher.is_behind);
        behind.map(|(client, _)| client.clone()).collect()
    }

    pub(super) fn get(&self, client: &str) -> Option<&Watcher<T>> {
        self.by_client.get(client)
    }

    pub(super) fn get_mut(&mut self, client: &str) -> Option<&mut Watcher<T>> {
        self.by_client.get_mut(client)
    }

    /// Whether anybody looks at `user`.
    pub(super) fn has(&self, user: UserId) -> bool {
        self.by_user.contains_key(&user)
    }

    /// Connections, and users at whom one of them looks.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.by_client.len(), self.by_user.len())
    }

    /// Whether no connection looks at anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.by_user.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u64) -> UserId {
        UserId::from_u64(id)
    }

    fn users(ids: &[u64]) -> Vec<UserId> {
        ids.iter().copied().map(user).collect()
    }

    /// Who is told of a user.
    fn told(watchers: &mut Watchers<u32>, id: u64) -> Vec<u32> {
        let mut told = Vec::new();
        watchers.each_of(user(id), |watcher| told.push(watcher.told));
        told.sort_unstable();
        told
    }

    #[test]
    fn those_are_told_of_somebody_who_look_at_them() {
        let mut watchers = Watchers::default();
        watchers.set(&"a".into(), 1, 1, users(&[7, 8, 8]));
        watchers.set(&"b".into(), 1, 2, users(&[8]));
        assert_eq!(told(&mut watchers, 7), [1]);
        assert_eq!(told(&mut watchers, 8), [1, 2]);
        assert!(told(&mut watchers, 9).is_empty());
        watchers.set(&"a".into(), 2, 3, users(&[9]));
        assert_eq!((told(&mut watchers, 7), told(&mut watchers, 8)), (vec![], vec![2]));
        assert_eq!(told(&mut watchers, 9), [3]);
    }

    #[test]
    fn nothing_is_kept_of_connections_that_are_gone() {
        let mut watchers = Watchers::default();
        watchers.set(&"a".into(), 1, 1, users(&[7, 8]));
        watchers.set(&"b".into(), 1, 2, users(&[8]));
        watchers.set(&"b".into(), 2, 2, Vec::new());
        watchers.remove("a");
        watchers.remove("never seen");
        assert!(watchers.is_empty(), "{watchers:?}");
        let mut told = 0;
        watchers.each(|_| told += 1);
        assert_eq!(told, 0, "who looks at nobody is told nothing");
        watchers.remove("b");
        assert!(watchers.by_client.is_empty(), "{watchers:?}");
    }

    #[test]
    fn a_screen_that_was_overtaken_by_a_newer_one_changes_nothing() {
        let mut watchers = Watchers::default();
        watchers.set(&"a".into(), 2, 1, users(&[7]));
        watchers.set(&"a".into(), 1, 1, users(&[8]));
        assert_eq!((told(&mut watchers, 7), told(&mut watchers, 8)), (vec![1], vec![]));
        watchers.set(&"a".into(), 4, 1, Vec::new());
        watchers.set(&"a".into(), 3, 1, users(&[8]));
        assert!(watchers.is_empty(), "{watchers:?}");
    }

    #[test]
    fn one_who_comes_costs_as_much_as_look_however_many_are_there() {
        let mut watchers = Watchers::default();
        for id in 1..=10_000 {
            // Each has ten others on screen.
            let screen = (0..10).map(|n| user((id + n) % 10_000)).collect();
            watchers.set(&id.to_string().into(), 1, 0, screen);
        }
        let mut asked = 0;
        watchers.each_of(user(5_000), |_| asked += 1);
        assert_eq!(asked, 10);
    }
}
