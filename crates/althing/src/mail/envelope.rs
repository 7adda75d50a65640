//! A message on its way: 32 bytes, a static table of functions and 24 bytes of payload.
//!
//! Layout: `table` names the types; `payload` holds a `Packed<M, R>` (message and reply slot) in
//! place if it fits and is aligned to 8, else a `Box` of it. Ownership: an envelope owns its
//! payload until it is run; dropping an envelope rejects its message, so that no asker waits for a
//! message that will never run.
//!
//! Unsafe here: the payload is untyped memory. The only constructors are `Envelope::new` and, for
//! events, `Envelope::with_table`, which pair the table with the very type they store, and every
//! payload is taken once.

use std::any::type_name;
use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::task::{self, Poll};

use crate::activation::body::{Body, Running};
use crate::activation::context::Context;
use crate::actor::{Actor, Admission};
use crate::address::place::Header;
use crate::error::AskError;
use crate::mail::dispatch::{Access, Dispatch};
use crate::mail::reply::ReplyTo;
use crate::metrics::observe::Step;
use crate::metrics::{Counter, MessageName};
use crate::remote::Message;
use crate::shield::discard;

mod repack;
mod stretch;
mod tick;
mod traced;

pub(crate) use stretch::Stretch;
pub(crate) use tick::skip_tick;

/// Bytes kept in place: a reply slot and two words of message.
const INLINE_WORDS: usize = 3;

pub(crate) type Payload = MaybeUninit<[usize; INLINE_WORDS]>;

/// A message, its reply slot, and the functions that know their types.
pub(crate) struct Envelope {
    table: &'static Table,
    payload: Payload,
}

/// What `start` came to.
pub(crate) enum Started {
    /// The handler ran to its end.
    Done,
    /// The handler waits; its future lives in the body.
    Suspended,
    /// A guard wants the message kept; here it is again.
    Stashed(Envelope),
}

/// The functions of an envelope, and what they are for.
pub(crate) struct Table {
    pub(crate) access: Access,
    pub(crate) name: MessageName,
    /// Whether it is a topic's event, which ends with its actor's life.
    pub(crate) is_event: bool,
    /// Runs the first envelope, and those of the same table after it as far as the stretch allows,
    /// until a handler waits or something else wants the actor.
    ///
    /// # Safety
    /// The stretch is not empty and its first envelope is of this table; `target` is as
    /// `Envelope::start` asks.
    pub(crate) run: unsafe fn(&mut Stretch, Target<'_>, &mut task::Context<'_>) -> Started,
    /// # Safety
    /// `payload` is of this table's type and is not used again.
    pub(crate) reject: unsafe fn(Payload, Option<AskError>),
    /// Makes a message of it that travels; `None` for what ends with the actor's life.
    ///
    /// # Safety
    /// As `reject`.
    pub(crate) repack: Option<unsafe fn(Payload, &Header) -> Option<Message>>,
}

/// Where a message is to run.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) state: *mut (),
    pub(crate) body: &'a Body,
    pub(crate) header: &'a Header,
}

impl Target<'_> {
    /// Whether something comes before the next message: a system message, an urgent one, or the
    /// wish to stop. The body must be empty.
    #[inline]
    fn is_wanted(self) -> bool {
        self.header.has_attention() || self.body.stops()
    }
}

struct Packed<M, R> {
    reply: ReplyTo<R>,
    message: M,
}

impl Envelope {
    /// Packs a message for an actor of type `A`.
    pub(crate) fn new<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        message: M,
        reply: ReplyTo<D::Reply>,
    ) -> Self {
        Self { table: Tables::<A, M, D>::TABLE, payload: store(Packed { reply, message }) }
    }

    /// Packs a payload under a table that says how to run it.
    pub(crate) fn with_table<T: Send>(table: &'static Table, payload: T) -> Self {
        Self { table, payload: store(payload) }
    }

    /// Whether it is a topic's event.
    pub(crate) fn is_event(&self) -> bool {
        self.innermost().table.is_event
    }

    /// Whether the handler takes the actor's state exclusively.
    pub(crate) fn access(&self) -> Access {
        self.table.access
    }

    /// Names the message's type.
    pub(crate) fn name(&self) -> MessageName {
        let envelope = self.innermost();
        envelope.tick_name().unwrap_or(envelope.table.name)
    }

    /// Runs the handler until it ends or waits.
    ///
    /// # Safety
    /// `target.state` points to a live actor of the type this envelope was packed for, the body is
    /// empty, and the caller holds the access that `access()` names until the body is empty again.
    pub(crate) unsafe fn start(self, target: Target<'_>, cx: &mut task::Context<'_>) -> Started {
        let mut envelope = ManuallyDrop::new(self);
        let run = envelope.table.run;
        // SAFETY: one live envelope, which nothing else uses: `ManuallyDrop` keeps our drop away.
        let mut stretch = unsafe { Stretch::new(&raw mut *envelope, 1) };
        // SAFETY: the stretch begins with an envelope of this table; the rest is the caller's
        // promise.
        unsafe { run(&mut stretch, target, cx) }
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
        unsafe { (first.table.run)(stretch, target, cx) }
    }

    /// Drops the message and tells its asker why.
    pub(crate) fn reject(self, why: AskError) {
        let envelope = ManuallyDrop::new(self);
        // SAFETY: the payload is of the table's type and is handed over once.
        unsafe { (envelope.table.reject)(envelope.payload, Some(why)) }
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        // SAFETY: the payload is of the table's type; it is not used after drop.
        unsafe { (self.table.reject)(self.payload, None) }
    }
}

// SAFETY: `Envelope::new` and `Envelope::with_table` accept only `Send` payloads (`M: Send`, a
// reply slot of `Send` replies, an `Arc` of a `Send + Sync` event).
unsafe impl Send for Envelope {}

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<Payload>() && align_of::<T>() <= align_of::<Payload>()
}

fn store<T>(value: T) -> Payload {
    let mut payload = Payload::uninit();
    if fits::<T>() {
        // SAFETY: size and alignment were checked by `fits`.
        unsafe { payload.as_mut_ptr().cast::<T>().write(value) }
    } else {
        // SAFETY: a thin pointer fits into the payload's first word.
        unsafe { payload.as_mut_ptr().cast::<*mut T>().write(Box::into_raw(Box::new(value))) }
    }
    payload
}

/// # Safety
/// `payload` was made by `store::<T>` and is not used again.
pub(crate) unsafe fn load<T>(payload: Payload) -> T {
    if fits::<T>() {
        // SAFETY: `store` wrote a `T` here.
        unsafe { payload.as_ptr().cast::<T>().read() }
    } else {
        // SAFETY: `store` wrote a pointer here.
        let boxed = unsafe { payload.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` and is used once.
        *unsafe { Box::from_raw(boxed) }
    }
}

struct Tables<A, M, D>(std::marker::PhantomData<(A, M, D)>);

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Tables<A, M, D> {
    const TABLE: &'static Table = &Table {
        access: D::ACCESS,
        name: type_name::<M>,
        is_event: false,
        run: run::<A, M, D>,
        reject: reject::<M, D::Reply>,
        repack: Some(repack::repack::<A, M, D>),
    };
}

/// # Safety
/// As `Table::run`.
unsafe fn run<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    stretch: &mut Stretch,
    target: Target<'_>,
    cx: &mut task::Context<'_>,
) -> Started {
    // Not the constant: it may have another address here than where the envelopes were made.
    let table = stretch.peek().expect("the caller's promise").table;
    loop {
        // SAFETY: there is a next envelope: the caller's promise at first, then `goes_on`.
        let payload = unsafe { stretch.take_payload() };
        // SAFETY: the envelope's table is paired with this type in `Envelope::new`.
        let packed = unsafe { load::<Packed<M, D::Reply>>(payload) };
        // SAFETY: the caller's promise.
        let started = unsafe { run_one::<A, M, D>(packed, target, cx) };
        if !matches!(started, Started::Done) || !stretch.goes_on(table) || target.is_wanted() {
            return started;
        }
    }
}

/// # Safety
/// As `Envelope::start`.
#[inline]
unsafe fn run_one<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    packed: Packed<M, D::Reply>,
    target: Target<'_>,
    cx: &mut task::Context<'_>,
) -> Started {
    let Packed { mut reply, message } = packed;
    if reply.is_over() {
        target.header.observe(Step::Abandoned);
        // Nobody's handler runs: a drop that panics is not the actor's failure.
        discard("dropping an abandoned message", message);
        return Started::Done;
    }
    let state = target.state.cast::<A>();
    let context: *mut Context<A> = Context::of(target.body.core());
    // SAFETY: the caller holds the access that `D::ACCESS` names, to both.
    match unsafe { D::admit(state, &message, context) } {
        Admission::Run => {}
        Admission::Stash => return Started::Stashed(Envelope::new::<A, M, D>(message, reply)),
        Admission::Reject(why) => {
            target.header.kind.metrics.count(Counter::Rejected);
            target.header.observe(Step::Refused(&why));
            reply.refuse(AskError::Rejected(target.header.id(), why));
            return Started::Done;
        }
    }
    if D::KEEPS_REPLY {
        reply.owe();
    }
    // SAFETY: as for `admit`; the caller keeps the access until the body is empty.
    let future = unsafe { D::call(state, message, context, &mut reply) };
    match target.body.start(Running::new(reply, future, D::reply_of), cx) {
        Poll::Ready(()) => Started::Done,
        Poll::Pending => Started::Suspended,
    }
}

/// # Safety
/// As `Table::reject`.
unsafe fn reject<M, R>(payload: Payload, why: Option<AskError>) {
    // SAFETY: this table is paired with this type in `Envelope::new`.
    let Packed { mut reply, message } = unsafe { load::<Packed<M, R>>(payload) };
    drop(message);
    match why {
        Some(why) => reply.fail(why),
        None => drop(reply),
    }
}
