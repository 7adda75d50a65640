//! When a user leaves memory, after two quiet checks without a connection; and what it looks at
//! again when a node was lost.

use althing::{Context, Handler, TimerId};
use folkmoot_protocol::DisconnectCode;

use super::CheckIdle;
use super::actor::User;
use crate::nodes::Moved;
use crate::storage::contract::Directory;
use crate::storage::{Device, DeviceId};

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
        self.is_in_doubt |= moved.has_lost;
        self.look_again(ctx).await;
    }

    /// After the loss of a node: it may have stored that the user came into a room or left one, or
    /// that devices are signed out, and have told nobody. Waits until what is under way to the disk
    /// is there.
    pub(super) async fn look_again(&mut self, ctx: &mut Context<Self>) {
        if !self.is_in_doubt || !self.stream.is_settled() {
            return;
        }
        self.is_in_doubt = false;
        let devices = match self.connections.is_empty() {
            true => Ok(Vec::new()),
            false => self.ports.streams().devices(self.id).await,
        };
        let (Ok(devices), Ok(())) = (devices, self.reload().await) else {
            return self.give_up(ctx);
        };
        self.keep_only(&devices);
    }

    /// Ends the connections of devices that are not among those signed in.
    pub(super) fn keep_only(&self, devices: &[Device]) {
        let is_out = |device: DeviceId| devices.iter().all(|known| known.id != device);
        for connection in self.connections.iter().filter(|known| is_out(known.device)) {
            connection.line.close(DisconnectCode::InvalidToken);
        }
    }

    /// The store cannot be read. The user comes back with the next message and knows of no
    /// connection then, so that nobody could end one: they are to come in anew.
    pub(super) fn give_up(&mut self, ctx: &mut Context<Self>) {
        for connection in self.connections.drain(..) {
            connection.line.close(DisconnectCode::ServerError);
        }
        ctx.passivate();
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
