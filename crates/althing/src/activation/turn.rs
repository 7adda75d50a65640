//! A turn: one message from the start of its handler to its end, and what it lets out.
//!
//! In most actors what a handler lets out leaves at once. In an actor whose turns are held
//! ([`Turns::Held`](crate::Turns)) it is kept here until the turn is committed: replies, tells,
//! publishes, and tasks. Then it leaves in the order in which it was made; a turn that is aborted
//! lets nothing out, and whoever asked hears `NotCommitted`. Timers need no holding: they belong to
//! the life, which ends when a turn is aborted. An ask does not wait for the commit: it is a
//! question to the world outside, for which the turn has not happened yet.
//!
//! Invariant: while a held handler is polled, `HELD` names the depth of its frame on the thread's
//! stack of actors. Handlers that run inside it, of other actors, are deeper, and their effects are
//! their own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::activation::commit::Commit;
use crate::activation::current;
use crate::address::place::{AnyPlace, wake};
use crate::address::refusal::refuse;
use crate::mail::envelope::Envelope;
use crate::mail::mailbox::Pushed;
use crate::mail::priority::Priority;
use crate::remote::following::ship_all;
use crate::remote::outgoing::send;
use crate::remote::parcel::Parcel;
use crate::shield::{discard, shielded};

/// Effects of one turn from which on its tells find every mailbox full.
pub(crate) const EFFECTS_MAX: usize = 4_096;

/// Something that leaves with a turn.
pub(crate) enum Effect {
    Tell(Arc<dyn AnyPlace>, Envelope, Priority),
    Ship(Arc<dyn AnyPlace>, Parcel),
    /// Settles a reply slot.
    Reply(Box<dyn FnOnce(Fate) + Send>),
    Run(Box<dyn FnOnce() + Send>),
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Committed,
    Aborted,
}

/// What a turn has let out so far.
#[derive(Default)]
pub(crate) struct Effects(Vec<Effect>);

/// The turns of one run, where they are held.
#[derive(Default)]
pub(crate) struct Commits {
    /// What the turn whose handler waits has let out.
    pub(super) open: Effects,
    pub(super) on_the_way: VecDeque<(Commit, Effects)>,
}

/// No depth of any frame.
const NOBODY: u32 = u32::MAX;

thread_local! {
    /// The depth of the frame whose handler is held. Apart from its effects, because it is looked
    /// at for each reply.
    static HELD: Cell<u32> = const { Cell::new(NOBODY) };
    static EFFECTS: RefCell<Effects> = const { RefCell::new(Effects(Vec::new())) };
}

/// Keeps what the handler polled meanwhile lets out.
pub(crate) struct Holding {
    outer_depth: u32,
    outer: Effects,
}

impl Holding {
    /// Begins or goes on with a turn of the actor polled on this thread. The outbox is empty: a
    /// lane of the handler below would let a tell out.
    pub(crate) fn resume(effects: Effects) -> Self {
        let outer_depth = HELD.replace(current::depth());
        Self { outer_depth, outer: EFFECTS.replace(effects) }
    }

    /// What has been let out.
    pub(crate) fn pause(self) -> Effects {
        EFFECTS.take()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.set(self.outer_depth);
        // Something is left only if the handler panicked.
        EFFECTS.replace(std::mem::take(&mut self.outer)).abort();
    }
}

/// Whether the handler polled on this thread is held.
#[inline]
pub(crate) fn is_held() -> bool {
    HELD.get() != NOBODY && HELD.get() == current::depth()
}

/// Keeps an effect of the held handler.
pub(crate) fn keep(effect: Effect) {
    debug_assert!(is_held(), "only a held turn keeps anything");
    EFFECTS.with_borrow_mut(|effects| effects.0.push(effect));
}

/// Whether the held turn has let out as much as it may.
pub(crate) fn is_full() -> bool {
    EFFECTS.with_borrow(|effects| effects.0.len() >= EFFECTS_MAX)
}

/// Runs `work` when the handler polled here lets go of what it has let out: at once, unless it is
/// held.
pub(crate) fn with_the_turn(work: impl FnOnce() + Send + 'static) {
    if is_held() {
        keep(Effect::Run(Box::new(work)));
    } else {
        work();
    }
}

/// Tells from a held turn. Whether there is room is looked at now; the message is queued with the
/// commit, whatever waits there by then.
pub(crate) fn tell(
    place: &Arc<dyn AnyPlace>,
    priority: Priority,
    make: impl FnOnce() -> Envelope,
) -> Pushed {
    let header = place.header();
    let mut inner = header.mailbox.lock();
    if let Some(refusal) = inner.refusal() {
        return refusal;
    }
    if is_full() || header.mailbox.is_full(&mut inner, header.kind.len_max) {
        return Pushed::Full;
    }
    drop(inner);
    keep(Effect::Tell(place.clone(), make(), priority));
    Pushed::Queued
}

impl Effects {
    /// Lets everything out, in order. Foreign code may run, and panic, on the way.
    pub(crate) fn release(self) {
        for effect in self.0 {
            shielded("releasing what a turn let out", || effect.release());
        }
    }

    /// Drops everything; whoever waits for a reply hears that the turn was not committed.
    pub(crate) fn abort(self) {
        for effect in self.0 {
            shielded("dropping what an aborted turn let out", || effect.abort());
        }
    }
}

impl Commits {
    pub(super) fn abort(self) {
        self.open.abort();
        for (commit, effects) in self.on_the_way {
            shielded("dropping a commit", || drop(commit));
            effects.abort();
        }
    }
}

impl Effect {
    fn release(self) {
        match self {
            Self::Run(work) => work(),
            Self::Reply(settle) => settle(Fate::Committed),
            Self::Ship(place, parcel) => send(&place, parcel),
            Self::Tell(place, envelope, priority) => release_tell(&place, envelope, priority),
        }
    }

    fn abort(self) {
        match self {
            Self::Reply(settle) => settle(Fate::Aborted),
            other => discard("dropping what an aborted turn let out", other),
        }
    }
}

fn release_tell(place: &Arc<dyn AnyPlace>, envelope: Envelope, priority: Priority) {
    let header = place.header();
    let mut envelope = Some(envelope);
    let make = || envelope.take().expect("an envelope is queued once");
    let mailbox = &header.mailbox;
    match mailbox.push_aside(u32::MAX, priority, make, |what| wake(place, what)) {
        Pushed::Queued if priority != Priority::Normal => header.call_attention(),
        Pushed::Queued | Pushed::Full => {}
        Pushed::Closed => refuse(place, envelope.into_iter().collect()),
        // It has moved since the turn told it.
        Pushed::Elsewhere => ship_all(place, envelope.into_iter().collect()),
    }
}
