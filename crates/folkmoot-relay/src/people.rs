//! Who is connected: the connections of each user.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::DisconnectCode;
use parking_lot::Mutex;

use crate::connection::Connection;

#[derive(Debug, Default)]
pub(crate) struct People {
    by_user: Mutex<HashMap<Arc<str>, Vec<Arc<Connection>>>>,
}

impl People {
    /// Lets a connection in, unless its user has `len_max` already. Anonymous ones are not counted.
    pub(crate) fn enter(&self, connection: &Arc<Connection>, len_max: usize) -> bool {
        let mut by_user = self.by_user.lock();
        let connections = by_user.entry(connection.user.clone()).or_default();
        let is_counted = !connection.user.is_empty() && len_max > 0;
        let has_room = !is_counted || connections.len() < len_max;
        if has_room {
            connections.push(connection.clone());
        }
        has_room
    }

    /// Lets a connection in that takes the place of all others of its user, which it returns.
    pub(crate) fn replace(&self, connection: &Arc<Connection>) -> Vec<Arc<Connection>> {
        let mut by_user = self.by_user.lock();
        let connections = by_user.entry(connection.user.clone()).or_default();
        let others = connections.clone();
        connections.push(connection.clone());
        others
    }

    pub(crate) fn leave(&self, connection: &Connection) {
        let mut by_user = self.by_user.lock();
        let Some(connections) = by_user.get_mut(&connection.user) else { return };
        if let Some(place) = connections.iter().position(|one| one.id == connection.id) {
            connections.swap_remove(place);
        }
        if connections.is_empty() {
            by_user.remove(&connection.user);
        }
    }

    /// The connections of a user; only the one with the id `client` and that with the name
    /// `session`, where they are not empty.
    pub(crate) fn of(&self, user: &str, client: &str, session: &str) -> Vec<Arc<Connection>> {
        let by_user = self.by_user.lock();
        let connections = by_user.get(user).into_iter().flatten();
        connections.filter(|one| one.is(client, session)).cloned().collect()
    }

    /// Disconnects all who are subscribed to some channel that is lost, so that they come back;
    /// says how many.
    pub(crate) fn lose(&self, is_lost: impl Fn(&str) -> bool) -> usize {
        let by_user = self.by_user.lock();
        let connections = by_user.values().flatten();
        let losers = connections.filter(|one| one.is_in(&is_lost));
        losers.map(|one| one.outbox.close(DisconnectCode::InsufficientState)).count()
    }

    /// How many connections there are, and how many users.
    pub(crate) fn count(&self) -> (usize, usize) {
        let by_user = self.by_user.lock();
        (by_user.values().map(Vec::len).sum(), by_user.len())
    }
}
