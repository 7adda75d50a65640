//! Which connections look at a room now. Volatile: it is told again by every session.

use althing::Wire;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
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
    fn id(&self) -> (UserId, Arc<str>) {
        (self.user, self.client.clone())
    }

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

/// Who is there. What a room keeps of a connection is little more than a pointer, because a
/// connection tells all its rooms the same.
#[derive(Debug, Default)]
pub(crate) struct Online {
    /// One connection of each user.
    first: HashSet<ByUser>,
    /// The other ones of users who have several.
    further: BTreeMap<(UserId, Arc<str>), Arc<OnlineClient>>,
}

/// A connection that is found by its user.
#[derive(Debug)]
struct ByUser(Arc<OnlineClient>);

impl Borrow<UserId> for ByUser {
    fn borrow(&self) -> &UserId {
        &self.0.user
    }
}

impl Hash for ByUser {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.user.hash(state);
    }
}

impl PartialEq for ByUser {
    fn eq(&self, other: &Self) -> bool {
        self.0.user == other.0.user
    }
}

impl Eq for ByUser {}

impl Online {
    /// Returns whether it was not here before.
    pub(crate) fn add(&mut self, client: Arc<OnlineClient>) -> bool {
        let user = client.user;
        match self.first_of(user) {
            Some(first) if first.client != client.client => {
                self.further.insert((user, client.client.clone()), client).is_none()
            }
            _ => self.first.replace(ByUser(client)).is_none(),
        }
    }

    /// Returns it, if it was here.
    pub(crate) fn remove(&mut self, user: UserId, client: Arc<str>) -> Option<Arc<OnlineClient>> {
        if self.first_of(user).is_none_or(|first| first.client != client) {
            return self.further.remove(&(user, client));
        }
        let next = self.further_of(user).next().map(|next| next.client.clone());
        match next {
            Some(next) => {
                let next = self.further.remove(&(user, next))?;
                self.first.replace(ByUser(next))
            }
            None => self.first.take(&user),
        }
        .map(|ByUser(gone)| gone)
    }

    /// Returns the user's connections that were here.
    pub(crate) fn remove_user(&mut self, user: UserId) -> Vec<Arc<OnlineClient>> {
        let further: Vec<_> = self.further_of(user).map(|client| client.client.clone()).collect();
        let further = further.into_iter().filter_map(|client| self.further.remove(&(user, client)));
        let mut gone: Vec<_> = further.collect();
        gone.extend(self.first.take(&user).map(|ByUser(first)| first));
        gone
    }

    /// Returns the connections of nodes that are gone.
    pub(crate) fn remove_lost(&mut self, is_there: impl Fn(u64) -> bool) -> Vec<Arc<OnlineClient>> {
        let is_lost = |client: &&OnlineClient| client.node != 0 && !is_there(client.node);
        let lost: Vec<_> = self.all().filter(is_lost).map(OnlineClient::id).collect();
        lost.into_iter().filter_map(|(user, client)| self.remove(user, client)).collect()
    }

    pub(crate) fn has(&self, user: UserId) -> bool {
        self.first.contains(&user)
    }

    pub(crate) fn has_client(&self, user: UserId, client: &Arc<str>) -> bool {
        self.first_of(user).is_some_and(|first| first.client == *client)
            || self.further.contains_key(&(user, client.clone()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = OnlineClient> {
        self.all().cloned()
    }

    /// Connections and different users.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.first.len() + self.further.len(), self.first.len())
    }

    fn all(&self) -> impl Iterator<Item = &OnlineClient> {
        let first = self.first.iter().map(|ByUser(client)| client);
        first.chain(self.further.values()).map(|client| &**client)
    }

    fn first_of(&self, user: UserId) -> Option<&OnlineClient> {
        self.first.get(&user).map(|ByUser(first)| &**first)
    }

    fn further_of(&self, user: UserId) -> impl Iterator<Item = &Arc<OnlineClient>> {
        let from = self.further.range((user, Arc::default())..);
        from.take_while(move |((of, _), _)| *of == user).map(|(_, client)| client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client: &str, user: u64) -> Arc<OnlineClient> {
        of_node(client, user, 0)
    }

    fn of_node(client: &str, user: u64, node: u64) -> Arc<OnlineClient> {
        let (user, name) = (UserId::from_u64(user), "anna".into());
        Arc::new(OnlineClient { client: client.into(), user, name, node })
    }

    #[test]
    fn the_connections_of_a_node_that_is_gone_go_with_it() {
        let mut online = Online::default();
        for (id, user, node) in [("a", 1, 7), ("b", 1, 8), ("c", 2, 7)] {
            assert!(online.add(of_node(id, user, node)));
        }
        let mut gone: Vec<_> = online
            .remove_lost(|node| node == 8)
            .into_iter()
            .map(|lost| lost.client.clone())
            .collect();
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
    fn each_of_many_connections_of_a_user_goes_by_itself_in_whatever_order() {
        let ids = ["a", "b", "c"];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut online = Online::default();
            assert!(online.add(client("x", 2)));
            assert!(ids.iter().all(|id| online.add(client(id, 1))));
            assert!(ids.iter().all(|id| !online.add(client(id, 1))), "they are here already");
            for (gone, place) in order.into_iter().enumerate() {
                let user = UserId::from_u64(1);
                assert!(online.has_client(user, &ids[place].into()));
                let removed = online.remove(user, ids[place].into()).unwrap();
                assert_eq!((&*removed.client, removed.user), (ids[place], user));
                assert!(!online.has_client(user, &ids[place].into()));
                assert_eq!(online.counts(), (3 - gone, if gone < 2 { 2 } else { 1 }));
                assert_eq!(online.clients().count(), 3 - gone);
            }
        }
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
