//! Which connections look at a room now. Volatile: it is told again by every session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::storage::UserId;

/// One connection, as others may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnlineClient {
    /// The connection's id.
    pub(crate) client: Arc<str>,
    pub(crate) user: UserId,
    pub(crate) name: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct Online {
    clients: BTreeMap<Arc<str>, OnlineClient>,
    /// How many connections each user has here.
    users: HashMap<UserId, usize>,
}

impl Online {
    pub(crate) fn add(&mut self, client: OnlineClient) {
        let user = client.user;
        if self.clients.insert(client.client.clone(), client).is_none() {
            *self.users.entry(user).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, client: &str) {
        let Some(gone) = self.clients.remove(client) else { return };
        if let Some(count) = self.users.get_mut(&gone.user) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&gone.user);
            }
        }
    }

    pub(crate) fn remove_user(&mut self, user: UserId) {
        if self.users.remove(&user).is_some() {
            self.clients.retain(|_, client| client.user != user);
        }
    }

    pub(crate) fn has(&self, user: UserId) -> bool {
        self.users.contains_key(&user)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = &OnlineClient> {
        self.clients.values()
    }

    /// Connections and different users.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.clients.len(), self.users.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client: &str, user: u64) -> OnlineClient {
        OnlineClient { client: client.into(), user: UserId::from_u64(user), name: "anna".into() }
    }

    #[test]
    fn a_user_is_online_until_the_last_connection_goes() {
        let mut online = Online::default();
        online.add(client("a", 1));
        online.add(client("b", 1));
        online.add(client("b", 1));
        assert_eq!(online.counts(), (2, 1));
        online.remove("a");
        assert!(online.has(UserId::from_u64(1)));
        online.remove("b");
        online.remove("b");
        assert!(!online.has(UserId::from_u64(1)));
        assert!(online.is_empty());
    }

    #[test]
    fn who_is_removed_goes_with_all_connections() {
        let mut online = Online::default();
        online.add(client("a", 1));
        online.add(client("b", 1));
        online.add(client("c", 2));
        online.remove_user(UserId::from_u64(1));
        assert_eq!(online.counts(), (1, 1));
    }
}
