//! Where an envelope runs: an actor's state, the body for its handler's future, and its header.

use std::mem::ManuallyDrop;
use std::ptr;
use std::task;

use crate::activation::body::Body;
use crate::address::place::Header;
use crate::mail::envelope::{Envelope, Started, Stretch, TargetPtr};
use crate::remote::parcel::Message;

/// Where a message is to run.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) state: *mut (),
    pub(crate) body: &'a Body,
    pub(crate) header: &'a Header,
}

impl<'a> Target<'a> {
    /// As an envelope passes it on.
    #[inline]
    fn as_ptr(&self) -> TargetPtr {
        ptr::from_ref(self).cast()
    }

    /// # Safety
    /// The pointer came from `as_ptr` of a target that lives.
    #[inline]
    pub(crate) unsafe fn of(target: TargetPtr) -> Self {
        // SAFETY: the caller's promise.
        unsafe { *target.cast::<Target<'a>>() }
    }

    /// Whether something comes before the next message: a system message, an urgent one, or the
    /// wish to stop. The body must be empty.
    #[inline]
    pub(crate) fn is_wanted(self) -> bool {
        self.header.has_attention() || self.body.stops()
    }
}

impl Envelope {
    /// Runs the handler until it ends or waits.
    ///
    /// # Safety
    /// `target.state` points to a live actor of the type this envelope was packed for, the body is
    /// empty, and the caller holds the access that `access()` names until the body is empty again.
    pub(crate) unsafe fn start(self, target: Target<'_>, cx: &mut task::Context<'_>) -> Started {
        let mut envelope = ManuallyDrop::new(self);
        let run = envelope.table().run;
        // SAFETY: one live envelope, which nothing else uses: `ManuallyDrop` keeps our drop away.
        let mut stretch = unsafe { Stretch::new(&raw mut *envelope, 1) };
        // SAFETY: the stretch begins with an envelope of this table; the rest is the caller's
        // promise.
        unsafe { run(&mut stretch, target.as_ptr(), cx) }
    }

    /// Runs a stretch from its first envelope on, as far as `Stretch::allow` said.
    ///
    /// # Safety
    /// The stretch is not empty; for each of its envelopes that is allowed to run, `target` is as
    /// `start` asks.
    #[inline]
    pub(crate) unsafe fn run(
        stretch: &mut Stretch,
        target: Target<'_>,
        cx: &mut task::Context<'_>,
    ) -> Started {
        let first = stretch.peek().expect("the caller's promise");
        // SAFETY: the table is the first envelope's; the rest is the caller's promise.
        unsafe { (first.table().run)(stretch, target.as_ptr(), cx) }
    }

    /// The message as it travels. `None` if nobody waits for it any more, if it is an event or a
    /// tick, or if its type does not travel, which its asker hears.
    pub(crate) fn repack(self, header: &Header) -> Option<Message> {
        // SAFETY: the pointer is to a header; every kind's messages are packed for actors of it.
        unsafe { self.repack_for(ptr::from_ref(header).cast()) }
    }
}
