//! The ways a message reaches its handler, as types: `Write`, `Read` and `Delayed`.
//!
//! Unsafe here: a handler's future borrows the actor and the context for as long as it lives, which
//! the runtime guarantees and the compiler cannot see; the functions take raw pointers and give
//! them the lifetime the caller vouches for.

use std::future::Future;

use crate::activation::context::Context;
use crate::actor::{Actor, Admission, DelayedHandler, Handler, ReadHandler};
use crate::mail::access::Access;
use crate::mail::reply::ReplyTo;

/// How a message of type `M` reaches `A`; implemented by `Write`, `Read` and `Delayed` only.
pub trait Dispatch<A: Actor, M: Send + 'static>: sealed::Sealed + Send + Sync + 'static {
    /// What an ask gets.
    type Reply: Send + 'static;
    /// What the handler needs.
    const ACCESS: Access;
    /// Whether the handler keeps the reply slot, which then must exist before it runs.
    const KEEPS_REPLY: bool;

    /// Asks the guard.
    ///
    /// # Safety
    /// The caller has `ACCESS` to both pointers.
    #[doc(hidden)]
    unsafe fn admit(state: *mut A, message: &M, context: *mut Context<A>) -> Admission;

    /// What the handler's future yields.
    type Output: Send;

    /// The reply in what a handler's future has yielded, unless the handler kept the slot.
    #[doc(hidden)]
    fn reply_of(output: Self::Output) -> Option<Self::Reply>;

    /// Builds the handler's future: itself and nothing around it, because each layer is one more
    /// copy of the message.
    ///
    /// # Safety
    /// The caller has `ACCESS` to both pointers until the future is dropped.
    #[doc(hidden)]
    unsafe fn call<'a>(
        state: *mut A,
        message: M,
        context: *mut Context<A>,
        reply: &mut ReplyTo<Self::Reply>,
    ) -> impl Future<Output = Self::Output> + Send + use<'a, A, M, Self>
    where
        A: 'a;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Write {}
    impl Sealed for super::Read {}
    impl Sealed for super::Delayed {}
}

/// Exclusive access, reply on return: `Handler`.
#[derive(Clone, Copy, Debug)]
pub struct Write;
/// Shared access: `ReadHandler`.
#[derive(Clone, Copy, Debug)]
pub struct Read;
/// Exclusive access, reply whenever: `DelayedHandler`.
#[derive(Clone, Copy, Debug)]
pub struct Delayed;

impl<A: Handler<M>, M: Send + 'static> Dispatch<A, M> for Write {
    type Reply = A::Reply;
    const ACCESS: Access = Access::Exclusive;
    const KEEPS_REPLY: bool = false;
    type Output = A::Reply;

    #[inline]
    fn reply_of(output: A::Reply) -> Option<A::Reply> {
        Some(output)
    }

    unsafe fn admit(state: *mut A, message: &M, context: *mut Context<A>) -> Admission {
        // SAFETY: exclusive access by the caller's promise.
        let (state, context) = unsafe { exclusive(state, context) };
        state.admit(message, context)
    }

    unsafe fn call<'a>(
        state: *mut A,
        message: M,
        context: *mut Context<A>,
        _reply: &mut ReplyTo<A::Reply>,
    ) -> impl Future<Output = Self::Output> + Send + use<'a, A, M>
    where
        A: 'a,
    {
        // SAFETY: exclusive access for as long as the future lives, by the caller's promise.
        let (state, context): (&'a mut A, &'a mut Context<A>) =
            unsafe { exclusive(state, context) };
        state.handle(message, context)
    }
}

impl<A: ReadHandler<M>, M: Send + 'static> Dispatch<A, M> for Read {
    type Reply = A::Reply;
    const ACCESS: Access = Access::Shared;
    const KEEPS_REPLY: bool = false;
    type Output = A::Reply;

    #[inline]
    fn reply_of(output: A::Reply) -> Option<A::Reply> {
        Some(output)
    }

    unsafe fn admit(state: *mut A, message: &M, context: *mut Context<A>) -> Admission {
        // SAFETY: shared access by the caller's promise.
        let (state, context) = unsafe { shared(state, context) };
        state.admit(message, context)
    }

    unsafe fn call<'a>(
        state: *mut A,
        message: M,
        context: *mut Context<A>,
        _reply: &mut ReplyTo<A::Reply>,
    ) -> impl Future<Output = Self::Output> + Send + use<'a, A, M>
    where
        A: 'a,
    {
        // SAFETY: shared access for as long as the future lives, by the caller's promise.
        let (state, context): (&'a A, &'a Context<A>) = unsafe { shared(state, context) };
        state.read(message, context)
    }
}

impl<A: DelayedHandler<M>, M: Send + 'static> Dispatch<A, M> for Delayed {
    type Reply = A::Reply;
    const ACCESS: Access = Access::Exclusive;
    const KEEPS_REPLY: bool = true;
    type Output = ();

    #[inline]
    fn reply_of((): ()) -> Option<A::Reply> {
        None
    }

    unsafe fn admit(state: *mut A, message: &M, context: *mut Context<A>) -> Admission {
        // SAFETY: exclusive access by the caller's promise.
        let (state, context) = unsafe { exclusive(state, context) };
        state.admit(message, context)
    }

    unsafe fn call<'a>(
        state: *mut A,
        message: M,
        context: *mut Context<A>,
        reply: &mut ReplyTo<A::Reply>,
    ) -> impl Future<Output = Self::Output> + Send + use<'a, A, M>
    where
        A: 'a,
    {
        // SAFETY: exclusive access for as long as the future lives, by the caller's promise.
        let (state, context): (&'a mut A, &'a mut Context<A>) =
            unsafe { exclusive(state, context) };
        state.handle(message, reply.take(), context)
    }
}

/// # Safety
/// Both pointers are valid and nothing else uses what they point to for `'a`.
unsafe fn exclusive<'a, A: Actor>(
    state: *mut A,
    context: *mut Context<A>,
) -> (&'a mut A, &'a mut Context<A>) {
    // SAFETY: the caller's promise.
    let state = unsafe { &mut *state };
    // SAFETY: the caller's promise.
    (state, unsafe { &mut *context })
}

/// # Safety
/// Both pointers are valid and nobody changes what they point to for `'a`.
unsafe fn shared<'a, A: Actor>(state: *mut A, context: *mut Context<A>) -> (&'a A, &'a Context<A>) {
    // SAFETY: the caller's promise.
    let state = unsafe { &*state };
    // SAFETY: the caller's promise.
    (state, unsafe { &*context })
}
