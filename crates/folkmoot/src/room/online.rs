//! Which connections look at a room now. Volatile: it is told again by every session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use folkmoot_protocol::chat::ConnInfo;
use folkmoot_protocol::frame::ClientInfo;
use folkmoot_protocol::rpc::encode_payload;

use crate::storage::UserId;

/// One connection, as others may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnlineClient {
    /// The connection's id.
    pub(crate) client: Arc<str>,
    pub(crate) user: UserId,
    pub(crate) name: Arc<str>,
}

impl OnlineClient {
    /// As the client protocol tells of it.
    pub(crate) fn info(&self) -> ClientInfo {
        ClientInfo {
            user: self.user.to_string(),
            client: self.client.to_string(),
            conn_info: encode_payload(&ConnInfo { name: self.name.to_string() }),
            ..ClientInfo::default()
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Online {
    clients: BTreeMap<Arc<str>, OnlineClient>,
    /// The connections that each user has here; nobody without one.
    users: HashMap<UserId, Vec<Arc<str>>>,
}

impl Online {
    /// Returns whether it was not here before.
    pub(crate) fn add(&mut self, client: OnlineClient) -> bool {
        let (user, id) = (client.user, client.client.clone());
        let is_new = self.clients.insert(id.clone(), client).is_none();
        if is_new {
            self.users.entry(user).or_default().push(id);
        }
        is_new
    }

    /// Returns it, if it was here.
    pub(crate) fn remove(&mut self, client: &str) -> Option<OnlineClient> {
        let gone = self.clients.remove(client)?;
        if let Some(clients) = self.users.get_mut(&gone.user) {
            clients.retain(|kept| **kept != *client);
            if clients.is_empty() {
                self.users.remove(&gone.user);
            }
        }
        Some(gone)
    }

    /// Returns the user's connections that were here.
    pub(crate) fn remove_user(&mut self, user: UserId) -> Vec<OnlineClient> {
        let clients = self.users.remove(&user).unwrap_or_default();
        clients.iter().filter_map(|client| self.clients.remove(client)).collect()
    }

    pub(crate) fn has(&self, user: UserId) -> bool {
        self.users.contains_key(&user)
    }

    pub(crate) fn has_client(&self, client: &str) -> bool {
        self.clients.contains_key(client)
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
        assert!(online.add(client("a", 1)));
        assert!(online.add(client("b", 1)));
        assert!(!online.add(client("b", 1)));
        assert_eq!(online.counts(), (2, 1));
        assert!(online.remove("a").is_some());
        assert!(online.has(UserId::from_u64(1)));
        assert!(online.remove("b").is_some());
        assert!(online.remove("b").is_none());
        assert!(!online.has(UserId::from_u64(1)));
        assert!(online.is_empty());
    }

    #[test]
    fn who_is_removed_goes_with_all_connections() {
        let mut online = Online::default();
        assert!(online.add(client("a", 1)));
        assert!(online.add(client("b", 1)));
        assert!(online.add(client("c", 2)));
        assert_eq!(online.remove_user(UserId::from_u64(1)).len(), 2);
        assert_eq!(online.counts(), (1, 1));
    }
}
