//! The leader board: the best players of those in the world.

use std::collections::HashMap;
use std::sync::Arc;

use althing::actor;
use serde::Serialize;

use crate::limits::BOARD_LEN;
use crate::place::PlayerId;

/// Keeps the points of everybody who has some.
#[derive(Debug, Default)]
pub struct BoardActor {
    points: HashMap<PlayerId, (u32, Arc<str>)>,
}

/// One line of the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Who.
    pub player: u32,
    /// Their name.
    pub name: String,
    /// Their points.
    pub score: u32,
}

#[actor(name = "hunt.board")]
impl BoardActor {
    /// Notes a player's points; a late message never takes points away.
    pub async fn scored(&mut self, player: PlayerId, name: Arc<str>, score: u32) {
        let line = self.points.entry(player).or_insert((0, name));
        line.0 = line.0.max(score);
    }

    /// Takes a player off the board.
    pub async fn left(&mut self, player: PlayerId) {
        self.points.remove(&player);
    }

    /// The best, first the most points.
    pub async fn best(&self) -> Vec<Standing> {
        let mut lines: Vec<_> = self.points.iter().collect();
        let order = |line: &(&PlayerId, &(u32, Arc<str>))| (u32::MAX - line.1.0, *line.0);
        if lines.len() > BOARD_LEN {
            lines.select_nth_unstable_by_key(BOARD_LEN, order);
            lines.truncate(BOARD_LEN);
        }
        lines.sort_unstable_by_key(order);
        let standing = |(player, (score, name)): (&PlayerId, &(u32, Arc<str>))| Standing {
            player: player.0,
            name: name.to_string(),
            score: *score,
        };
        lines.into_iter().map(standing).collect()
    }
}
