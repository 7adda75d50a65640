//! Looks after all connections by turns, so that none needs a timer: views that wait, acts without
//! an answer, signs of life.
//!
//! Connections are spread over the turns, so that their writes do not all fall into one moment.

use std::convert::Infallible;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::connection::Shared;
use crate::limits::{PING_EVERY, VIEW_LINGER};
use crate::world::World;

/// Each connection is visited once in so many turns.
const TURNS: usize = 20;

/// All connections, by turns.
#[derive(Default)]
pub(super) struct Patrol {
    turns: [Mutex<Vec<Weak<Shared>>>; TURNS],
}

impl Patrol {
    /// Looks after a connection from now on, until it ends.
    pub(super) fn watch(&self, connection: &Arc<Shared>) {
        self.turns[connection.turn(TURNS)].lock().push(Arc::downgrade(connection));
    }

    /// Goes round until dropped.
    pub(super) async fn walk(&self, world: &World) -> Infallible {
        // A view waits for at most this long before its turn comes once more.
        let period = VIEW_LINGER.end - VIEW_LINGER.start;
        let pause = period / u32::try_from(TURNS).expect("a few turns");
        let mut pinged_at = world.node().elapsed();
        loop {
            let is_ping_due = world.node().elapsed().saturating_sub(pinged_at) >= PING_EVERY;
            if is_ping_due {
                pinged_at = world.node().elapsed();
            }
            for turn in &self.turns {
                let connections: Vec<_> = {
                    let mut turn = turn.lock();
                    turn.retain(|connection| connection.strong_count() > 0);
                    turn.iter().filter_map(Weak::upgrade).collect()
                };
                for connection in connections {
                    connection.patrol();
                    if is_ping_due {
                        connection.ping();
                    }
                }
                world.node().sleep(pause).await;
            }
        }
    }
}

impl std::fmt::Debug for Patrol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patrol").finish_non_exhaustive()
    }
}
