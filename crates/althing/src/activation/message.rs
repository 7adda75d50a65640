//! A message for an actor of a certain type, packed into an envelope, and how it runs.
//!
//! Layout: the payload is a `Packed<M, R>`, message and reply slot. The table of a message is
//! paired with that type in `Envelope::new` and nowhere else.

use std::any::type_name;
use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use crate::activation::body::Work;
use crate::activation::context::Context;
use crate::activation::packed::{Packed, repack};
use crate::activation::target::Target;
use crate::actor::{Actor, Admission};
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::{Envelope, Payload, Sort, Started, Stretch, Table, TargetPtr, load};
use crate::mail::reply::ReplyTo;
use crate::metrics::Counter;
use crate::metrics::step::Step;
use crate::shield::discard;

/// A handler's future and where its output goes: to the slot if there is one, else it stays here.
pub(crate) struct Running<F, R, T> {
    pub(crate) reply: ReplyTo<R>,
    pub(crate) output: Option<R>,
    /// Takes the reply out of what the future yields.
    reply_of: T,
    future: F,
}

impl<F: Future, R, T: Fn(F::Output) -> Option<R>> Running<F, R, T> {
    #[inline]
    pub(crate) fn new(reply: ReplyTo<R>, future: F, reply_of: T) -> Self {
        Self { reply, output: None, reply_of, future }
    }
}

impl<F: Future + Send, R: Send + 'static, T: Fn(F::Output) -> Option<R>> Work for Running<F, R, T> {
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<()> {
        // SAFETY: `future` is pinned with us and never moved; `reply` is `Unpin` and used by
        // reference.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        match future.poll(cx) {
            Poll::Ready(output) => {
                match (this.reply_of)(output) {
                    Some(reply) if this.reply.is_somewhere() => this.reply.complete(reply),
                    output => this.output = output,
                }
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn fail(&mut self, why: AskError) {
        self.reply.fail(why);
    }
}

impl Envelope {
    /// Packs a message for an actor of type `A`.
    pub(crate) fn new<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        message: M,
        reply: ReplyTo<D::Reply>,
    ) -> Self {
        // SAFETY: the table takes such payloads.
        unsafe { Self::with_table(Tables::<A, M, D>::TABLE, Packed { reply, message }) }
    }
}

struct Tables<A, M, D>(std::marker::PhantomData<(A, M, D)>);

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Tables<A, M, D> {
    const TABLE: &'static Table = &Table {
        access: D::ACCESS,
        name: type_name::<M>,
        sort: Sort::Message,
        run: run::<A, M, D>,
        reject: reject::<M, D::Reply>,
        repack: Some(repack::<A, M, D>),
    };
}

/// # Safety
/// As `Table::run`.
unsafe fn run<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    stretch: &mut Stretch,
    target: TargetPtr,
    cx: &mut task::Context<'_>,
) -> Started {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(target) };
    // Not the constant: it may have another address here than where the envelopes were made.
    let table = stretch.peek().expect("the caller's promise").table();
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
    if !reply.begin() {
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
        Admission::Stash => {
            reply.put_back();
            return Started::Stashed(Envelope::new::<A, M, D>(message, reply));
        }
        Admission::Reject(why) => {
            target.header.kind.metrics.count(Counter::Rejected);
            target.header.observe(Step::Refused(&why));
            reply.refuse(AskError::Rejected(target.header.id(), why));
            // As above: nobody's handler runs.
            discard("dropping a refused message", message);
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
    // First, because the message's drop is foreign and may panic.
    match why {
        Some(why) => reply.fail(why),
        None => drop(reply),
    }
    drop(message);
}
