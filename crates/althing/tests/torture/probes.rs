//! What the test itself asks puppets, besides what their program tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use althing::{Context, Handler};

use crate::puppet::{Alarm, Puppet};

/// Asked at the end: answers, opens its gate, lets go of replies and timers.
pub(crate) struct Check;

impl Handler<Check> for Puppet {
    type Reply = u32;

    async fn handle(&mut self, _: Check, ctx: &mut Context<Self>) -> u32 {
        self.check_stage("the last check");
        self.gate_is_shut = false;
        ctx.unstash_all();
        self.replies.clear();
        for alarm in self.alarms.drain(..) {
            if let Alarm::Periodic { id, .. } = alarm {
                ctx.cancel(id);
            }
        }
        self.life
    }
}

/// Asked again and again: does nothing.
pub(crate) struct Poke;

impl Handler<Poke> for Puppet {
    type Reply = ();

    async fn handle(&mut self, _: Poke, _: &mut Context<Self>) {
        self.check_stage("a poke");
    }
}

/// Asks for a message after a tick, and counts it.
pub(crate) struct FreshTimer(pub(crate) Arc<AtomicI64>);

impl Handler<FreshTimer> for Puppet {
    type Reply = ();

    async fn handle(&mut self, FreshTimer(count): FreshTimer, ctx: &mut Context<Self>) {
        ctx.after(self.world.tick, Ring(count));
    }
}

pub(crate) struct Ring(Arc<AtomicI64>);

impl Handler<Ring> for Puppet {
    type Reply = ();

    async fn handle(&mut self, Ring(count): Ring, _: &mut Context<Self>) {
        count.fetch_add(1, SeqCst);
    }
}
