//! Which actors this thread is polling, inside each other: the top one is the current actor.
//!
//! A thread-local stack is grown around each poll and shrunk after it (`polling`). A frame also
//! says whether the frame below asked for it, so that an ask that leaves the node can tell who waits
//! for it.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use crate::address::place::AnyPlace;

/// Handlers run inside each other on one stack; beyond it messages queue.
pub(crate) const DEPTH_MAX: u32 = 8;
/// Deeper than handlers run inside each other (`DEPTH_MAX` and a task's own frame).
const FRAMES_MAX: usize = 16;

/// A reference to an actor, with the frame's kind in the lowest bit, which is free in it.
type Tagged = *const Arc<dyn AnyPlace>;

/// The tag of a frame that the frame below waits for.
const ASKED: usize = 1;
const _: () = assert!(align_of::<Arc<dyn AnyPlace>>() > ASKED, "the lowest bit is free");

struct Stack {
    actors: [Top; FRAMES_MAX],
    depth: Cell<u32>,
}

thread_local! {
    static STACK: Stack = const {
        Stack { actors: [const { Top(Cell::new(ptr::null())) }; FRAMES_MAX], depth: Cell::new(0) }
    };
}

/// A frame, while it is on top.
pub(crate) struct Top(Cell<Tagged>);

impl Top {
    /// Marks another actor as the one being polled, under the same guard, for whom nobody below
    /// waits.
    #[inline]
    pub(crate) fn turn_to(&self, actor: &Arc<dyn AnyPlace>) {
        self.0.set(actor);
    }
}

/// Why an actor is polled here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The handler below asks it and waits for the reply.
    Asked,
    /// Anything else: nobody below waits.
    Alone,
}

/// Puts a frame on top; `leave` takes it off again, before `actor` goes.
#[inline]
pub(super) fn enter(actor: &Arc<dyn AnyPlace>, frame: Frame) {
    let tagged = ptr::from_ref(actor).map_addr(|address| match frame {
        Frame::Asked => address | ASKED,
        Frame::Alone => address,
    });
    STACK.with(|stack| {
        let depth = stack.depth.get();
        stack.actors[depth as usize].0.set(tagged);
        stack.depth.set(depth + 1);
    });
}

/// Takes the top frame off; returns how many are left.
#[inline]
pub(super) fn leave() -> u32 {
    STACK.with(|stack| {
        let depth = stack.depth.get() - 1;
        stack.depth.set(depth);
        depth
    })
}

/// Lends the top frame; there is one, and it is on top again whenever it is used.
#[inline]
pub(crate) fn with_top<R>(work: impl FnOnce(&Top) -> R) -> R {
    STACK.with(|stack| work(&stack.actors[stack.depth.get() as usize - 1]))
}

/// How many activations are being polled inside each other on this thread.
#[inline]
pub(crate) fn depth() -> u32 {
    STACK.with(|stack| stack.depth.get())
}

/// The actor being polled on this thread.
pub(crate) fn actor() -> Option<Arc<dyn AnyPlace>> {
    frame(depth().checked_sub(1)?).cloned()
}

/// Whether this thread is polling the actor with that serial right now.
pub(crate) fn is(serial: u64) -> bool {
    depth().checked_sub(1).and_then(frame).is_some_and(|actor| actor.header().serial() == serial)
}

/// Which actor on this thread's stack asked the one with that serial, and waits.
pub(crate) fn asker_of(serial: u64) -> Option<Arc<dyn AnyPlace>> {
    let at = (1..depth()).find(|at| {
        is_asked(*at) && frame(*at).is_some_and(|actor| actor.header().serial() == serial)
    })?;
    frame(at - 1).cloned()
}

/// Whether the frame below asked for that one and waits.
fn is_asked(index: u32) -> bool {
    STACK.with(|stack| stack.actors[index as usize].0.get().addr() & ASKED != 0)
}

fn frame<'a>(index: u32) -> Option<&'a Arc<dyn AnyPlace>> {
    let tagged = STACK.with(|stack| stack.actors[index as usize].0.get());
    let actor = tagged.map_addr(|address| address & !ASKED);
    // SAFETY: frames below the depth belong to guards that have not dropped yet, which `actor`
    // outlives.
    unsafe { actor.as_ref() }
}
