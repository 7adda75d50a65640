//! A message on its way to one actor that nobody waits for: queued at once, or when there is room.
//!
//! From inside a handler it goes by the outbox; a turn that is held keeps it until it is committed.

use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::activation::{current, turn};
use crate::actor::Actor;
use crate::address::actor_ref::ActorRef;
use crate::address::place::{AnyPlace, AsAnyPlace, wake};
use crate::address::typed::Place;
use crate::error::SendError;
use crate::mail::deadline::{Deadline, Due};
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::line::Line;
use crate::mail::mailbox::Pushed;
use crate::mail::outbox;
use crate::mail::priority::Priority;
use crate::mail::reply::ReplyTo;
use crate::metrics::Counter;
use crate::remote::ship::{Shipped, ship_tell};

/// A tell that waits for room.
#[must_use = "a tell does nothing until it is awaited"]
pub struct Tell<'a, A: Actor, M: Send + 'static, D: Dispatch<A, M>> {
    target: &'a ActorRef<A>,
    message: Option<M>,
    timeout: Option<Duration>,
    priority: Priority,
    /// Boxed, so that a tell that need not wait is small; dropped by `drop` if there is one, so
    /// that others pay one comparison.
    waiting: ManuallyDrop<Option<Box<(Line<'a>, Deadline)>>>,
    dispatch: PhantomData<fn() -> D>,
}

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Unpin for Tell<'_, A, M, D> {}

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Future for Tell<'_, A, M, D> {
    type Output = Result<(), SendError<M>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match push_tell::<A, M, D>(this.target, &mut this.message, this.priority) {
            Pushed::Queued => {
                if let Some(waiting) = &mut *this.waiting {
                    waiting.0.end();
                }
                Poll::Ready(Ok(()))
            }
            refused => this.refused(refused, cx),
        }
    }
}

impl<'a, A: Actor, M: Send + 'static, D: Dispatch<A, M>> Tell<'a, A, M, D> {
    #[inline]
    pub(super) fn new(
        target: &'a ActorRef<A>,
        message: Option<M>,
        timeout: Option<Duration>,
        priority: Priority,
    ) -> Self {
        let waiting = ManuallyDrop::new(None);
        Self { target, message, timeout, priority, waiting, dispatch: PhantomData }
    }

    #[cold]
    fn refused(&mut self, refused: Pushed, cx: &mut Context<'_>) -> Poll<Result<(), SendError<M>>> {
        let message = self.message.take().expect("a tell is polled until ready only");
        if let Pushed::Closed = refused {
            return Poll::Ready(Err(SendError::Stopped(message)));
        }
        self.message = Some(message);
        let is_elsewhere = matches!(refused, Pushed::Elsewhere);
        if is_elsewhere {
            let (place, waker) = (self.target.place(), cx.waker());
            match ship_tell::<A, M, D>(place, &mut self.message, self.priority, waker) {
                Shipped::Sent => return Poll::Ready(Ok(())),
                Shipped::LocalOnly => {
                    return Poll::Ready(Err(self.hand_back(SendError::LocalOnly)));
                }
                Shipped::TooLong => return Poll::Ready(Err(self.hand_back(SendError::TooLong))),
                Shipped::NoRoom => {}
            }
        }
        let header = self.target.place().header();
        // Neither of the two gets room while it waits here.
        if current::is(header.serial()) || (turn::is_held() && turn::is_full()) {
            header.kind.metrics.count(Counter::Overloaded);
            return Poll::Ready(Err(self.hand_back(SendError::Full)));
        }
        let timeout = self.timeout.unwrap_or_else(|| self.target.deadline());
        let env = &header.kind.node.env;
        let (line, deadline) = &mut **self.waiting.get_or_insert_with(|| {
            Box::new((Line::new(&header.mailbox), Deadline::new(env, timeout)))
        });
        loop {
            // On the way to another node, the cluster has the waker.
            if !is_elsewhere && line.wait_for_room(cx.waker(), header.kind.len_max) {
                cx.waker().wake_by_ref();
            }
            match deadline.poll(env, cx) {
                Poll::Pending => break,
                Poll::Ready(Due::Look) => {}
                Poll::Ready(Due::Over) => {
                    header.kind.metrics.count(Counter::Overloaded);
                    return Poll::Ready(Err(self.hand_back(SendError::Timeout)));
                }
            }
        }
        Poll::Pending
    }

    fn hand_back(&mut self, error: fn(M) -> SendError<M>) -> SendError<M> {
        error(self.message.take().expect("a message that was not taken is still here"))
    }
}

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Drop for Tell<'_, A, M, D> {
    #[inline]
    fn drop(&mut self) {
        if self.waiting.is_some() {
            leave(&mut self.waiting);
        }
    }
}

#[cold]
#[inline(never)]
fn leave(waiting: &mut ManuallyDrop<Option<Box<(Line<'_>, Deadline)>>>) {
    drop(waiting.take());
}

/// Unless it is queued, the message is where it was.
#[inline]
pub(super) fn push_tell<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    target: &ActorRef<A>,
    message: &mut Option<M>,
    priority: Priority,
) -> Pushed {
    let place = target.place();
    let header = place.header();
    if priority != Priority::Normal || header.kind.keeps_senders {
        return push_specially::<A, M, D>(target, message, priority);
    }
    let envelope = || {
        let message = message.take().expect("a message is told once");
        Envelope::new::<A, M, D>(message, ReplyTo::nowhere())
    };
    if current::depth() > 0 {
        outbox::tell(place, envelope)
    } else {
        header.mailbox.push(header.kind.len_max, envelope, |what| wake(place, what))
    }
}

/// With a priority, or with who sent it.
#[cold]
fn push_specially<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    target: &ActorRef<A>,
    message: &mut Option<M>,
    priority: Priority,
) -> Pushed {
    let place = target.place();
    let header = place.header();
    let sender = header.sender();
    let envelope = || {
        let message = message.take().expect("a message is told once");
        Envelope::new::<A, M, D>(message, ReplyTo::nowhere()).sent_from(sender)
    };
    if turn::is_held() {
        return turn::tell(&place.as_any_place(), priority, envelope);
    }
    if priority == Priority::Normal && current::depth() > 0 {
        return outbox::tell(place, envelope);
    }
    let wake = |what| wake(place, what);
    let pushed = header.mailbox.push_aside(header.kind.len_max, priority, envelope, wake);
    call_attention(place, priority);
    pushed
}

/// Has a message of other than normal priority looked at before the rest of the batch at hand.
pub(crate) fn call_attention<A: Actor>(place: &Arc<Place<A>>, priority: Priority) {
    if priority != Priority::Normal {
        place.header().call_attention();
    }
}
