//! When a room leaves memory: nobody looks at it, nothing is under way, and nobody has asked it
//! anything for a while.

use althing::{Context, Handler};

use super::CheckIdle;
use super::actor::Room;
use crate::nodes::Moved;

impl Room {
    /// Forgets connections of nodes that are gone.
    pub(super) fn forget_lost(&mut self, moved: &Moved, ctx: &mut Context<Self>) {
        let gone = self.online.remove_lost(|node| moved.has(node));
        self.note_online();
        for lost in gone {
            self.tell_leaving(lost.user, std::slice::from_ref(&lost), ctx);
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
