//! Which other nodes a node believes to be there, as it says in its log.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Said of another node, between its address and the end of the line.
const UP: &str = " is now UP";
const DOWN: &str = " is now DOWN";

/// Nodes hear of each other within seconds; on a machine that is busy it takes longer.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);

/// The peers of one node; a clone is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers(Arc<(Mutex<BTreeSet<String>>, Condvar)>);

impl Peers {
    /// Takes notice of a line of the node's log.
    pub(super) fn hear(&self, line: &str) {
        let (up, changed) = &*self.0;
        let mut up = up.lock().expect("nobody panics with it");
        if let Some(peer) = subject(line, UP) {
            up.insert(peer.to_owned());
        } else if let Some(peer) = subject(line, DOWN) {
            up.remove(peer);
        }
        changed.notify_all();
    }

    /// A node that starts knows nobody.
    pub(super) fn forget(&self) {
        self.0.0.lock().expect("nobody panics with it").clear();
    }

    /// Waits until the node believes in another one, or no longer does.
    ///
    /// # Panics
    /// If it does not come to that.
    pub(super) fn wait_until(&self, peer: &str, is_up: bool) {
        let (up, changed) = &*self.0;
        let until = Instant::now() + KNOWN_WITHIN;
        let mut up = up.lock().expect("nobody panics with it");
        while up.contains(peer) != is_up {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{peer} is not {}", if is_up { "known" } else { "missed" });
            up = changed.wait_timeout(up, left).expect("nobody panics with it").0;
        }
    }
}

/// Whom a line is about: `… InetAddress /127.0.0.2:7000 is now UP`.
fn subject<'l>(line: &'l str, said: &str) -> Option<&'l str> {
    line.trim_end().strip_suffix(said)?.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_knows_those_that_it_has_said_to_be_up() {
        let peers = Peers::default();
        let line = "2025-11-25 16:00:00,001 INFO  Gossiper InetAddress /127.0.0.2:7000 is now UP";
        peers.hear(line);
        peers.wait_until("127.0.0.2:7000", true);
        peers.hear(&line.replace("UP", "DOWN"));
        peers.wait_until("127.0.0.2:7000", false);
        assert_eq!(subject("something is now UP to date", UP), None);
    }
}
