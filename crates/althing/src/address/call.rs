//! One message on its way to one actor: await it to ask, `tell` it, or `try_tell` it.
//!
//! An ask of an idle actor runs the handler in place, on the asker's task, if it is known to be
//! quick and the asker has set no timeout of its own; otherwise the message queues with a reply
//! slot. The timer of a deadline is made only when something has to wait.

use std::any::type_name;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::activation::current;
use crate::activation::waits::{self, Waiting};
use crate::actor::{Actor, Receives};
use crate::address::actor_ref::ActorRef;
use crate::address::place::{AnyPlace, AsAnyPlace, wake};
use crate::address::tell::{Tell, call_attention, push_tell};
use crate::error::{AskError, SendError};
use crate::mail::deadline::{Deadline, Due};
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::in_place::{self, InPlace};
use crate::mail::line::Line;
use crate::mail::mailbox::Pushed;
use crate::mail::outbox;
use crate::mail::priority::Priority;
use crate::mail::reply::{Receiver, ReplyTo, channel};
use crate::metrics::Counter;
use crate::remote::ship::{Shipped, local_only, ship_ask, ship_tell};

/// A message with its target. As a future it is an ask with a deadline.
///
/// # Cancel safety
/// Dropping an ask before its handler has started takes the message back; a handler that has
/// started runs to its end and its reply is dropped.
///
/// ```
/// use althing::{Priority, Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let counter = Node::builder("shop").build().spawn(Counter::default());
/// counter.add(1).tell().await?; // waits for room
/// counter.add(2).priority(Priority::High).try_tell()?; // never waits, hands the message back
/// let asked = counter.add(3).timeout(std::time::Duration::from_secs(1));
/// assert_eq!(asked.await?, 6);
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited or told"]
pub struct Call<'a, A: Actor, M: Send + 'static, D: Dispatch<A, M>> {
    target: &'a ActorRef<A>,
    message: Option<M>,
    timeout: Option<Duration>,
    priority: Priority,
    wait: Wait<'a, D::Reply>,
    /// Made once something has to wait; a box, because most asks are over before, and are moved with
    /// all that they hold.
    deadline: Option<Box<Deadline>>,
    /// When it was sent, on the node's clock, if how long it takes is still to be learned.
    sent_ns: Option<u64>,
}

enum Wait<'a, R> {
    /// Nothing sent yet.
    New,
    /// The mailbox is full; the message is still ours.
    ForRoom(Line<'a>, Option<Slot<R>>),
    /// Sent.
    ForReply(Receiver<R>, Option<Waiting>),
}

/// Both halves of a reply slot, before the message is sent.
struct Slot<R> {
    reply: ReplyTo<R>,
    receiver: Receiver<R>,
    waiting: Option<Waiting>,
}

impl<R> Slot<R> {
    /// Why the ask was failed before it was sent: it turned out to be part of a cycle. If it was
    /// not, whoever finds that out wakes the asker, who would look again only after a while.
    fn refusal(&self, waker: &Waker) -> Option<AskError> {
        self.waiting.as_ref()?;
        match self.receiver.poll(waker) {
            Poll::Ready(Err(why)) => why,
            Poll::Ready(Ok(_)) | Poll::Pending => None,
        }
    }
}

impl<A: Actor> ActorRef<A> {
    /// Addresses a message. Await it to ask; see `Call` for telling.
    #[inline]
    pub fn send<M: Send + 'static>(&self, message: M) -> Call<'_, A, M, A::Way>
    where
        A: Receives<M>,
    {
        Call::new(self, message)
    }
}

impl<'a, A: Actor, M: Send + 'static, D: Dispatch<A, M>> Call<'a, A, M, D> {
    #[inline]
    pub(crate) fn new(target: &'a ActorRef<A>, message: M) -> Self {
        Self {
            target,
            message: Some(message),
            timeout: None,
            priority: Priority::Normal,
            wait: Wait::New,
            deadline: None,
            sent_ns: None,
        }
    }

    /// Sets how long to wait, for room and for the reply together. The handler then never runs on
    /// the asker's own task, so that the deadline holds even if it blocks its thread.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets which of the messages that wait runs first. Priority does not lift the mailbox's bound.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sends without asking for a reply; waits for room in the mailbox until the deadline.
    ///
    /// # Errors
    /// `Timeout` and `Stopped` hand the message back, as do `LocalOnly` and `TooLong` if the actor
    /// lives on another node. An actor that tells itself does not wait: `Full`; nor does one that
    /// has let out as much in one held turn as it may.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready drops the message unsent.
    #[inline]
    pub fn tell(self) -> Tell<'a, A, M, D> {
        let Self { target, message, timeout, priority, wait, deadline, .. } = self;
        // Nothing has been sent, so there is nothing in these two to drop: said so, because a drop
        // would cost a tenth of the tell.
        let _ = (ManuallyDrop::new(wait), ManuallyDrop::new(deadline));
        Tell::new(target, message, timeout, priority)
    }

    /// Sends without asking for a reply and without waiting.
    ///
    /// # Errors
    /// `Full` and `Stopped` hand the message back, as do `LocalOnly` and `TooLong` if the actor
    /// lives on another node.
    #[inline]
    pub fn try_tell(mut self) -> Result<(), SendError<M>> {
        let pushed = push_tell::<A, M, D>(self.target, &mut self.message, self.priority);
        if let Pushed::Queued = pushed {
            return Ok(());
        }
        let mut refused = SendError::Stopped as fn(M) -> SendError<M>;
        if let Pushed::Elsewhere = pushed {
            let (place, waker) = (self.target.place(), Waker::noop());
            match ship_tell::<A, M, D>(place, &mut self.message, self.priority, waker) {
                Shipped::Sent => return Ok(()),
                Shipped::NoRoom => refused = SendError::Full,
                Shipped::LocalOnly => refused = SendError::LocalOnly,
                Shipped::TooLong => refused = SendError::TooLong,
            }
        }
        let message = self.message.take().expect("a message that was not taken is still here");
        Err(match pushed {
            Pushed::Queued | Pushed::Closed | Pushed::Elsewhere => refused(message),
            Pushed::Full => {
                self.target.place().header().kind.metrics.count(Counter::Overloaded);
                SendError::Full(message)
            }
        })
    }

    /// What was to be sent, of a call that has not been polled.
    pub(crate) fn into_unsent(self) -> (&'a ActorRef<A>, M, Priority) {
        (self.target, self.message.expect("a call that was not polled has it"), self.priority)
    }

    fn timeout_or_default(&self) -> Duration {
        self.timeout.unwrap_or_else(|| self.target.deadline())
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Poll<Result<D::Reply, AskError>> {
        // What was told before the ask must arrive before it.
        outbox::hand_over();
        let kind = &self.target.place().header().kind;
        let is_known = kind.quick.knows(type_name::<M>);
        if !is_known {
            self.sent_ns = Some(kind.node.clock_ns());
        }
        if !is_known || self.timeout.is_some() || self.priority != Priority::Normal {
            return self.queue(cx);
        }
        if in_place::poll_budget(cx).is_pending() {
            return Poll::Pending;
        }
        let message = self.message.take().expect("a call is sent once");
        match in_place::ask::<A, M, D>(self.target.place(), message, cx) {
            InPlace::Busy(message) => {
                self.message = Some(message);
                self.queue(cx)
            }
            InPlace::Replied(reply) => Poll::Ready(Ok(reply)),
            InPlace::Failed(why) => Poll::Ready(Err(*why)),
            InPlace::Waits(receiver, waiting) => {
                self.wait = Wait::ForReply(receiver, waiting);
                self.poll_reply(cx)
            }
        }
    }

    fn queue(&mut self, cx: &mut Context<'_>) -> Poll<Result<D::Reply, AskError>> {
        let (reply, receiver) = channel();
        let mut slot = Slot { reply, receiver, waiting: None };
        if current::depth() > 0 {
            // Before anybody can see the message: an ask that fails for a cycle has not run.
            let to = self.target.place().as_any_place();
            match waits::begin(to, slot.receiver.awaited()) {
                Ok(waiting) => slot.waiting = waiting,
                Err(path) => return Poll::Ready(Err(AskError::Cycle(path))),
            }
        }
        self.push(slot, cx)
    }

    /// Sends again, from its place in the line.
    fn retry(&mut self, cx: &mut Context<'_>) -> Poll<Result<D::Reply, AskError>> {
        let Wait::ForRoom(_, slot) = &mut self.wait else { unreachable!("called in that state") };
        match slot.take() {
            // The ask was failed meanwhile: it turned out to be part of a cycle.
            Some(slot) if slot.receiver.is_settled() => {
                self.wait = Wait::ForReply(slot.receiver, slot.waiting);
                self.poll_reply(cx)
            }
            Some(slot) => self.push(slot, cx),
            None => unreachable!("a slot is away only while it is pushed"),
        }
    }

    fn push(
        &mut self,
        slot: Slot<D::Reply>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<D::Reply, AskError>> {
        let Slot { reply, receiver, waiting } = slot;
        let place = self.target.place();
        let header = place.header();
        let sender = header.sender();
        let message = self.message.take().expect("kept until it is sent");
        let mut parts = Some((message, reply));
        let envelope = || {
            let (message, reply) = parts.take().expect("an envelope is made once");
            Envelope::new::<A, M, D>(message, reply).sent_from(sender)
        };
        let wake = |what| wake(place, what);
        let mailbox = &header.mailbox;
        match mailbox.push_aside(header.kind.len_max, self.priority, envelope, wake) {
            Pushed::Queued => {
                if let Wait::ForRoom(line, _) = &mut self.wait {
                    line.end();
                }
                call_attention(place, self.priority);
                self.wait = Wait::ForReply(receiver, waiting);
                self.poll_reply(cx)
            }
            Pushed::Closed => Poll::Ready(Err(AskError::Stopped(self.target.id()))),
            Pushed::Elsewhere => {
                let (message, reply) = parts.expect("no envelope was made");
                self.message = Some(message);
                self.ship(Slot { reply, receiver, waiting }, cx)
            }
            Pushed::Full => {
                let (message, reply) = parts.expect("no envelope was made");
                self.message = Some(message);
                self.line_up(Slot { reply, receiver, waiting }, cx)
            }
        }
    }

    /// Sends to another node, where the actor lives.
    #[cold]
    fn ship(
        &mut self,
        slot: Slot<D::Reply>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<D::Reply, AskError>> {
        let place = self.target.place();
        let Slot { reply, receiver, waiting } = slot;
        let mut reply = Some(reply);
        let (message, priority) = (&mut self.message, self.priority);
        match ship_ask::<A, M, D>(place, message, &mut reply, priority, cx.waker()) {
            Shipped::Sent => {
                self.wait = Wait::ForReply(receiver, waiting);
                self.poll_reply(cx)
            }
            Shipped::LocalOnly | Shipped::TooLong => {
                Poll::Ready(Err(local_only::<M>(self.target.id())))
            }
            Shipped::NoRoom => {
                let reply = reply.expect("nothing was sent");
                let slot = Slot { reply, receiver, waiting };
                if let Some(why) = slot.refusal(cx.waker()) {
                    return Poll::Ready(Err(why));
                }
                self.wait = Wait::ForRoom(Line::new(&place.header().mailbox), Some(slot));
                self.poll_room(cx)
            }
        }
    }

    /// Waits for room on the way to another node, whose cluster has the waker.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<D::Reply, AskError>> {
        loop {
            match self.poll_deadline(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Due::Look) => {}
                Poll::Ready(Due::Over) => {
                    self.target.place().header().kind.metrics.count(Counter::Overloaded);
                    return Poll::Ready(Err(AskError::Overloaded(self.target.id())));
                }
            }
        }
    }

    fn line_up(
        &mut self,
        slot: Slot<D::Reply>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<D::Reply, AskError>> {
        if let Some(why) = slot.refusal(cx.waker()) {
            return Poll::Ready(Err(why));
        }
        let header = self.target.place().header();
        let before = std::mem::replace(&mut self.wait, Wait::New);
        let line = match before {
            Wait::ForRoom(line, _) => line,
            Wait::New | Wait::ForReply(..) => Line::new(&header.mailbox),
        };
        self.wait = Wait::ForRoom(line, Some(slot));
        loop {
            let Wait::ForRoom(line, _) = &mut self.wait else { unreachable!("set above") };
            if line.wait_for_room(cx.waker(), header.kind.len_max) {
                cx.waker().wake_by_ref();
            }
            match self.poll_deadline(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Due::Look) => {}
                Poll::Ready(Due::Over) => {
                    header.kind.metrics.count(Counter::Overloaded);
                    return Poll::Ready(Err(AskError::Overloaded(self.target.id())));
                }
            }
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Due> {
        let timeout = self.timeout_or_default();
        let env = &self.target.place().header().kind.node.env;
        let begin = || Box::new(Deadline::new(env, timeout));
        self.deadline.get_or_insert_with(begin).poll(env, cx)
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<D::Reply, AskError>> {
        let target = self.target;
        let Wait::ForReply(receiver, waiting) = &mut self.wait else {
            unreachable!("polled for a reply after sending only")
        };
        match receiver.poll(cx.waker()) {
            Poll::Ready(Ok(reply)) => {
                if let Some(sent_ns) = self.sent_ns {
                    let kind = &target.place().header().kind;
                    kind.quick.learn(type_name::<M>, kind.node.clock_ns().saturating_sub(sent_ns));
                }
                return Poll::Ready(Ok(reply));
            }
            Poll::Ready(Err(why)) => {
                return Poll::Ready(Err(why.unwrap_or_else(|| AskError::NoReply(target.id()))));
            }
            Poll::Pending => {}
        }
        if waiting.as_ref().is_some_and(Waiting::has_moved) {
            // The handler that began it has left it to us.
            *waiting = None;
        }
        if waiting.is_none() && current::depth() > 0 {
            *waiting = waits::begin_late(&target.place().as_any_place(), receiver.awaited());
        }
        loop {
            match self.poll_deadline(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Due::Look) => {}
                Poll::Ready(Due::Over) => {
                    target.place().header().kind.metrics.count(Counter::TimedOut);
                    return Poll::Ready(Err(AskError::Timeout(target.id())));
                }
            }
        }
    }
}

// The message is never pinned: it is moved into an envelope or a handler.
impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Unpin for Call<'_, A, M, D> {}

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Future for Call<'_, A, M, D> {
    type Output = Result<D::Reply, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.wait {
            Wait::New => this.start(cx),
            Wait::ForRoom(..) => this.retry(cx),
            Wait::ForReply(..) => this.poll_reply(cx),
        }
    }
}
