//! Which connections look at a room now. Volatile: it is told again by every session.

use althing::Wire;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use folkmoot_protocol::chat::ConnInfo;
use folkmoot_protocol::frame::ClientInfo;
use folkmoot_protocol::rpc::encode_payload;

use crate::storage::UserId;

/// One connection, as others may see it.
#[derive(Debug, Clone, PartialEq, Eq, Wire)]
pub(crate) struct OnlineClient {
    /// The connection's id.
    pub(crate) client: Arc<str>,
    pub(crate) user: UserId,
    pub(crate) name: Arc<str>,
    /// The life of the node that has its socket; 0 on a server alone.
    pub(crate) node: u64,
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

/// In one tree by user and connection, which costs each of them some sixty bytes.
#[derive(Debug, Default)]
pub(crate) struct Online {
    /// The names to show.
    clients: BTreeMap<(UserId, Arc<str>), Arc<str>>,
    /// Different users.
    users: usize,
    /// The nodes of connections, where there are several.
    nodes: HashMap<Arc<str>, (UserId, u64)>,
}

impl Online {
    /// Returns whether it was not here before.
    pub(crate) fn add(&mut self, client: OnlineClient) -> bool {
        let OnlineClient { client, user, name, node } = client;
        let is_first = !self.has(user);
        if node != 0 {
            self.nodes.insert(client.clone(), (user, node));
        }
        let is_new = self.clients.insert((user, client), name).is_none();
        self.users += usize::from(is_first);
        is_new
    }

    /// Returns it, if it was here.
    pub(crate) fn remove(&mut self, user: UserId, client: Arc<str>) -> Option<OnlineClient> {
        let ((user, client), name) = self.clients.remove_entry(&(user, client))?;
        self.users -= usize::from(!self.has(user));
        let node = self.nodes.remove(&client).map_or(0, |(_, node)| node);
        Some(OnlineClient { client, user, name, node })
    }

    /// Returns the user's connections that were here.
    pub(crate) fn remove_user(&mut self, user: UserId) -> Vec<OnlineClient> {
        let gone: Vec<Arc<str>> = self.of(user).cloned().collect();
        gone.into_iter().filter_map(|client| self.remove(user, client)).collect()
    }

    /// Returns the connections of nodes that are gone.
    pub(crate) fn remove_lost(&mut self, is_there: impl Fn(u64) -> bool) -> Vec<OnlineClient> {
        let lost = self.nodes.iter().filter(|(_, (_, node))| !is_there(*node));
        let lost: Vec<_> = lost.map(|(client, (user, _))| (*user, client.clone())).collect();
        lost.into_iter().filter_map(|(user, client)| self.remove(user, client)).collect()
    }

    pub(crate) fn has(&self, user: UserId) -> bool {
        self.of(user).next().is_some()
    }

    pub(crate) fn has_client(&self, user: UserId, client: &Arc<str>) -> bool {
        self.clients.contains_key(&(user, client.clone()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = OnlineClient> {
        self.clients.iter().map(|((user, client), name)| OnlineClient {
            client: client.clone(),
            user: *user,
            name: name.clone(),
            node: self.nodes.get(client).map_or(0, |(_, node)| *node),
        })
    }

    /// Connections and different users.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.clients.len(), self.users)
    }

    /// The connections of a user.
    fn of(&self, user: UserId) -> impl Iterator<Item = &Arc<str>> {
        let from = (user, Arc::default());
        let ids = self.clients.range(from..).map(|((of, client), _)| (of, client));
        ids.take_while(move |(of, _)| **of == user).map(|(_, client)| client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client: &str, user: u64) -> OnlineClient {
        OnlineClient {
            client: client.into(),
            user: UserId::from_u64(user),
            name: "anna".into(),
            node: 0,
        }
    }

    #[test]
    fn the_connections_of_a_node_that_is_gone_go_with_it() {
        let mut online = Online::default();
        for (id, user, node) in [("a", 1, 7), ("b", 1, 8), ("c", 2, 7)] {
            assert!(online.add(OnlineClient { node, ..client(id, user) }));
        }
        let mut gone: Vec<_> =
            online.remove_lost(|node| node == 8).into_iter().map(|lost| lost.client).collect();
        gone.sort();
        assert_eq!(gone, ["a".into(), "c".into()]);
        assert_eq!(online.counts(), (1, 1));
        assert!(online.remove_lost(|node| node == 8).is_empty());
    }

    #[test]
    fn a_user_is_online_until_the_last_connection_goes() {
        let mut online = Online::default();
        assert!(online.add(client("a", 1)));
        assert!(online.add(client("b", 1)));
        assert!(!online.add(client("b", 1)));
        assert_eq!(online.counts(), (2, 1));
        assert!(online.remove(UserId::from_u64(1), "a".into()).is_some());
        assert!(online.has(UserId::from_u64(1)));
        assert!(online.remove(UserId::from_u64(1), "b".into()).is_some());
        assert!(online.remove(UserId::from_u64(1), "b".into()).is_none());
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
