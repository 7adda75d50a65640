//! When each connection is told that the server stops. A server alone tells all at once. A node of
//! several tells them wave by wave and serves the others meanwhile: each connection is away only for
//! as long as it takes to come in elsewhere, and not until thousands of others have, too.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// Parts of the connections that are told at a time: of 10,000 some 80.
const WAVES: usize = 128;

/// How long one connection keeps the other nodes busy that it goes to. On two cores, which also run
/// the database and the clients, coming in takes a millisecond of each.
const EACH: Duration = Duration::from_micros(1_500);

/// With more connections than fit in, they are told faster.
const LONGEST: Duration = Duration::from_secs(10);

/// The waves of a server's connections.
#[derive(Debug)]
pub(crate) struct Goodbye {
    waves: Vec<watch::Sender<bool>>,
    next: AtomicUsize,
}

impl Goodbye {
    pub(crate) fn new() -> Self {
        let waves = (0..WAVES).map(|_| watch::Sender::new(false)).collect();
        Self { waves, next: AtomicUsize::new(0) }
    }

    /// Turns true when a new connection is to be told.
    pub(crate) fn of_next(&self) -> watch::Receiver<bool> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % WAVES;
        self.waves[next].subscribe()
    }

    /// Turns true when all are told.
    pub(crate) fn of_last(&self) -> watch::Receiver<bool> {
        self.waves[WAVES - 1].subscribe()
    }

    /// Tells all connections at once.
    pub(crate) fn say(&self) {
        self.waves.iter().for_each(|wave| _ = wave.send_replace(true));
    }

    /// Tells so many connections one after the other.
    pub(crate) async fn say_in_turn(&self, connections: usize) {
        let pause = takes(connections) / WAVES as u32;
        for wave in &self.waves {
            wave.send_replace(true);
            sleep(pause).await;
        }
    }
}

/// How long it takes to tell so many.
fn takes(connections: usize) -> Duration {
    EACH.saturating_mul(u32::try_from(connections).unwrap_or(u32::MAX)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_in_turn_and_however_many_they_are_within_a_bound() {
        let goodbye = Goodbye::new();
        let [first, second] = [goodbye.of_next(), goodbye.of_next()];
        goodbye.waves[0].send_replace(true);
        assert_eq!([*first.borrow(), *second.borrow()], [true, false]);
        goodbye.say();
        assert!(*second.borrow() && *goodbye.of_last().borrow());
        assert!(*goodbye.of_next().borrow(), "who comes late is told at once");
        assert_eq!(takes(0), Duration::ZERO);
        assert_eq!(takes(usize::MAX), LONGEST);
    }
}
