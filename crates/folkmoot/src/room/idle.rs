//! When a room leaves memory: nobody looks at it, nothing is under way, and nobody has asked it
//! anything for a while.

use althing::{Context, Handler};

use super::CheckIdle;
use super::actor::Room;
use crate::nodes::Moved;
use crate::storage::UserId;
use crate::storage::contract::Directory;

impl Room {
    /// Forgets connections of nodes that are gone.
    pub(super) fn forget_lost(&mut self, moved: &Moved, ctx: &mut Context<Self>) {
        let gone = self.online.remove_lost(|node| moved.has(node));
        self.note_online();
        for lost in gone {
            self.tell_leaving(lost.user, std::slice::from_ref(&lost), ctx);
        }
    }

    /// A node was lost, which may have stored that one of the two in a direct conversation has
    /// blocked the other, and have told nobody.
    pub(super) async fn look_for_blocks(&mut self) {
        let Some((low, high)) = self.state.as_ref().and_then(|state| state.pair) else { return };
        for (by, other) in [(low, high), (high, low)] {
            match self.ports.streams().blocked(by).await {
                Ok(blocked) => {
                    let on = blocked.iter().any(|account| account.id == other);
                    self.set_block(by, on);
                }
                Err(error) => tracing::warn!(room = %self.id, %error, "blocks are as they were"),
            }
        }
    }

    /// One of the two has blocked the other, or lifted it. Two devices that do both at once are told
    /// of in any order, so what is stored counts.
    pub(super) async fn take_block(&mut self, by: UserId, told: bool) {
        let Some((low, high)) = self.state.as_ref().and_then(|state| state.pair) else { return };
        let other = if by == low { high } else { low };
        let stored = self.ports.streams().has_blocked(by, other).await;
        self.set_block(by, stored.unwrap_or(told));
    }

    /// One of the two in a direct conversation blocks the other, or lifts the block.
    fn set_block(&mut self, by: UserId, on: bool) {
        if let Some(state) = &mut self.state {
            match on {
                true => state.blockers.insert(by),
                false => state.blockers.remove(&by),
            };
        }
    }
}

impl Handler<CheckIdle> for Room {
    type Reply = ();

    /// Leaves memory after two quiet checks; presence is kept here only, so not while anyone looks.
    async fn handle(&mut self, _: CheckIdle, ctx: &mut Context<Self>) {
        self.idle_ticks += 1;
        let is_idle = self.online.is_empty()
            && self.stream.is_settled()
            && self.pending_bans.is_empty()
            && self.waiting.is_empty();
        if is_idle && self.idle_ticks > 2 || self.state.is_none() {
            ctx.passivate();
        }
    }
}
