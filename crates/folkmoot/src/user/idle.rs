//! When a user leaves memory: after two quiet checks without a connection.

use althing::{Context, Handler, TimerId};

use super::CheckIdle;
use super::actor::User;
use crate::nodes::Moved;

/// How long nobody has been connected.
#[derive(Debug, Default)]
pub(super) struct Idle {
    checks: u32,
    /// Only while nobody is connected: it weighs more than the rest of an idle user.
    timer: Option<TimerId>,
}

impl User {
    /// Looks from now on whether the user may leave memory.
    pub(super) fn check_idle(&mut self, ctx: &mut Context<Self>) {
        self.idle.checks = 0;
        if self.idle.timer.is_none() {
            self.idle.timer = Some(ctx.every(self.ports.limits().user_idle / 2, CheckIdle));
        }
    }

    /// Somebody is connected: the user stays.
    pub(super) fn stay(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.idle.timer.take() {
            ctx.cancel(timer);
        }
    }
}

impl User {
    /// Forgets connections of nodes that are gone.
    pub(super) async fn forget_lost(&mut self, moved: &Moved, ctx: &mut Context<Self>) {
        let before = self.connections.len();
        let is_there = |node: Option<u64>| node.is_none_or(|node| moved.has(node));
        self.connections.retain(|connection| is_there(connection.line.node()));
        if self.connections.is_empty() && before > 0 {
            self.check_idle(ctx);
        }
        // A room there may have let the user in or out, and have told nobody before it was lost.
        if moved.has_lost && self.stream.is_settled() && self.reload().await.is_err() {
            ctx.passivate();
        }
    }
}

impl Handler<CheckIdle> for User {
    type Reply = ();

    async fn handle(&mut self, _: CheckIdle, ctx: &mut Context<Self>) {
        self.idle.checks += 1;
        let is_idle =
            self.connections.is_empty() && self.stream.is_settled() && self.owed.is_empty();
        if is_idle && self.idle.checks > 2 || self.known.is_none() {
            ctx.passivate();
        }
    }
}
