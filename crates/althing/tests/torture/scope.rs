//! Where instructions are performed: in a handler with exclusive access, in a read, or outside of
//! actors.
//!
//! A scope inside an actor is also the witness that nothing overlaps with it, and that its context
//! stays its own until the end: its drop runs wherever the handler's future is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use althing::{ActorId, Context};
use parking_lot::Mutex;

use crate::puppet::Puppet;
use crate::records::Known;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Exclusive,
    Shared,
}

pub(crate) enum Place<'a> {
    Outside,
    Exclusive(&'a mut Puppet, &'a mut Context<Puppet>),
    Shared(&'a Puppet, &'a Context<Puppet>),
}

pub(crate) struct Scope<'a> {
    pub(crate) world: Arc<World>,
    /// Who is counted as the sender of what is sent from here; nobody, if senders have run out.
    pub(crate) sender: Option<usize>,
    pub(crate) place: Place<'a>,
    id: Option<ActorId>,
    known: Arc<Mutex<Known>>,
    /// Asks that were moved elsewhere: the runtime may take them for the handler's until it ends.
    pub(crate) moved: Vec<usize>,
}

impl<'a> Scope<'a> {
    pub(crate) fn exclusive(puppet: &'a mut Puppet, ctx: &'a mut Context<Puppet>) -> Self {
        let world = puppet.world.clone();
        let slot = &world.slots[puppet.slot];
        if let Err(busy) = slot.busy.compare_exchange(0, -1, SeqCst, SeqCst) {
            let details = format!("a handler of {} begins: {busy} inside", puppet.slot);
            world.broken("handlers do not overlap", details);
            slot.busy.store(-1, SeqCst);
        }
        let known = slot.known.clone();
        let sender = Some(puppet.slot);
        let id = Some(ctx.id());
        Self { world, sender, place: Place::Exclusive(puppet, ctx), id, known, moved: Vec::new() }
    }

    /// Reads overlap, so each is a sender of its own.
    pub(crate) fn shared(puppet: &'a Puppet, ctx: &'a Context<Puppet>) -> Self {
        let world = puppet.world.clone();
        let slot = &world.slots[puppet.slot];
        if slot.busy.fetch_add(1, SeqCst) < 0 {
            let details = format!("a read of {} begins beside a write", puppet.slot);
            world.broken("handlers do not overlap", details);
        }
        let known = Arc::new(Mutex::new(slot.known.lock().clone()));
        let sender = world.fresh_sender();
        let id = Some(ctx.id());
        Self { world, sender, place: Place::Shared(puppet, ctx), id, known, moved: Vec::new() }
    }

    /// Outside of actors, with what somebody knew.
    pub(crate) fn outside(world: &Arc<World>, sender: Option<usize>, known: Known) -> Self {
        let known = Arc::new(Mutex::new(known));
        Self {
            world: world.clone(),
            sender,
            place: Place::Outside,
            id: None,
            known,
            moved: Vec::new(),
        }
    }

    /// A sender of its own that begins with what is known here.
    pub(crate) fn fork(&self) -> (Option<usize>, Known) {
        (self.world.fresh_sender(), self.known())
    }

    pub(crate) fn known(&self) -> Known {
        self.known.lock().clone()
    }

    pub(crate) fn learn(&self, known: &Known) {
        self.known.lock().learn(known);
    }

    /// Counts a message to `target`: its number, and what was known to have been sent there before.
    pub(crate) fn count(&self, target: usize) -> (Option<(usize, u16)>, Box<[u16]>) {
        let mut known = self.known.lock();
        let before = known.sent_to(target);
        let number = self.sender.map(|sender| (sender, known.count(target, sender)));
        (number, before)
    }

    /// The actor inside which this is.
    pub(crate) fn by(&self) -> Option<usize> {
        match &self.place {
            Place::Outside => None,
            Place::Exclusive(puppet, _) => Some(puppet.slot),
            Place::Shared(puppet, _) => Some(puppet.slot),
        }
    }

    /// Whether this is in a handler of that very actor.
    pub(crate) fn is_in(&self, id: &ActorId) -> bool {
        self.id.as_ref() == Some(id)
    }

    pub(crate) fn life(&self) -> u32 {
        match &self.place {
            Place::Outside => 0,
            Place::Exclusive(puppet, _) => puppet.life,
            Place::Shared(puppet, _) => puppet.life,
        }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let (id, slot) = match &self.place {
            Place::Outside => return,
            Place::Exclusive(puppet, ctx) => (ctx.id(), puppet.slot),
            Place::Shared(puppet, ctx) => (ctx.id(), puppet.slot),
        };
        if Some(&id) != self.id.as_ref() {
            let details = format!("{:?} became {id} while a handler ran", self.id);
            self.world.broken("a context stays its actor's own", details);
        }
        for wait in self.moved.drain(..) {
            self.world.end_wait(wait);
        }
        let busy = &self.world.slots[slot].busy;
        match &self.place {
            Place::Shared(..) => {
                busy.fetch_sub(1, SeqCst);
            }
            _ => busy.store(0, SeqCst),
        }
    }
}
