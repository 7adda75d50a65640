//! The way back of an ask: one slot, one asker, one replier, dropped in any order.
//!
//! The slot is a small mutex around a state; whoever comes second finds what the first left. A
//! replier that goes without a word leaves `NoReply`; an asker that goes leaves `abandoned`, and a
//! message not yet started is skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use crate::activation::current;
use crate::activation::edge::Owed;
use crate::activation::turn::{self, Effect, Fate};
use crate::address::place::{AnyPlace, Debt};
use crate::error::AskError;
use crate::mail::awaited::Awaited;
use crate::shield::shielded;
use crate::sync::Mutex;

/// Where the reply of an ask goes; for a tell it goes nowhere.
///
/// Dropping it without a reply fails the ask with `AskError::NoReply`.
///
/// Whoever gives the reply in the end, its asker waits for the actor whose handler has kept this: an
/// ask back by that actor is a cycle.
///
/// ```
/// use althing::{Node, ReplyTo, actor};
///
/// #[derive(Default)]
/// struct Gate(Vec<ReplyTo<&'static str>>);
///
/// #[actor(name = "example.gate")]
/// impl Gate {
///     #[delayed]
///     async fn pass(&mut self, reply: ReplyTo<&'static str>) {
///         self.0.push(reply);
///     }
///
///     async fn open(&mut self) {
///         for reply in self.0.drain(..) {
///             reply.send("go");
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Node::builder("town").build().spawn(Gate::default());
/// let (passed, opened) = tokio::join!(gate.pass(), gate.open());
/// assert_eq!((passed?, opened?), ("go", ()));
/// # Ok(())
/// # }
/// ```
pub struct ReplyTo<R> {
    slot: Option<Arc<Slot<R>>>,
}

struct Slot<R> {
    state: Mutex<State<R>>,
}

/// Whether the message of an ask has begun to run, or has left the node: then it can no longer be
/// said that it did not run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Queued,
    Begun,
}

enum State<R> {
    /// The asker's waker, and what the actor owes if its handler kept the slot.
    Waiting(Option<Waker>, Option<Debt>, Message),
    /// Nobody waits here: the outcome is handed to a function, which sends it on. What the actor
    /// owes, as above.
    Forwarded(Forward<R>, Option<Debt>),
    Replied(R),
    Failed(Option<AskError>),
    Abandoned,
}

/// Takes the outcome of a message; `Err(None)` when the replier went without a reply.
type Forward<R> = Box<dyn FnOnce(Result<R, Option<AskError>>) + Send>;

/// The asker's half.
pub(crate) struct Receiver<R> {
    slot: Arc<Slot<R>>,
    /// Whether it has been polled: from then on the slot mostly has the right waker.
    has_waited: AtomicBool,
}

/// Makes a slot and returns both halves.
pub(crate) fn channel<R>() -> (ReplyTo<R>, Receiver<R>) {
    let state = State::Waiting(None, None, Message::Queued);
    let slot = Arc::new(Slot { state: Mutex::new(state) });
    let has_waited = AtomicBool::new(false);
    (ReplyTo { slot: Some(slot.clone()) }, Receiver { slot, has_waited })
}

impl<R: Send> Awaited for Slot<R> {
    fn is_settled(&self) -> bool {
        Slot::is_settled(self)
    }

    fn refuse(&self, why: AskError) -> bool {
        let mut state = self.state.lock();
        let State::Waiting(waker, _, Message::Queued) = &mut *state else { return false };
        let waker = waker.take();
        *state = State::Failed(Some(why));
        // Released before waking: the asker would block on us.
        drop(state);
        wake_asker(waker);
        true
    }
}

impl<R: Send> Owed for Slot<R> {
    fn owed_by(&self) -> Option<Arc<dyn AnyPlace>> {
        match &*self.state.lock() {
            State::Waiting(_, Some(debt), _) => Some(debt.actor().clone()),
            _ => None,
        }
    }
}

impl<R: Send> Awaited for Receiver<R> {
    fn is_settled(&self) -> bool {
        self.slot.is_settled()
    }

    fn refuse(&self, why: AskError) -> bool {
        self.slot.refuse(why)
    }
}

impl<R> State<R> {
    /// Hands an outcome to the function of a forwarded slot, then pays the debt.
    fn forward(self, outcome: Self) {
        let Self::Forwarded(forward, debt) = self else { return };
        forward(match outcome {
            Self::Replied(reply) => Ok(reply),
            Self::Failed(why) => Err(why),
            Self::Waiting(..) | Self::Forwarded(..) | Self::Abandoned => Err(None),
        });
        drop(debt);
    }
}

impl<R> Slot<R> {
    fn is_settled(&self) -> bool {
        !matches!(*self.state.lock(), State::Waiting(..) | State::Forwarded(..))
    }

    /// Returns whether somebody still waited.
    fn settle(&self, outcome: State<R>) -> bool {
        let mut state = self.state.lock();
        let (waker, debt) = match &mut *state {
            State::Waiting(waker, debt, _) => (waker.take(), debt.take()),
            State::Forwarded(..) => {
                let before = std::mem::replace(&mut *state, State::Abandoned);
                // Released before calling: the function is foreign.
                drop(state);
                before.forward(outcome);
                return true;
            }
            State::Replied(_) | State::Failed(_) | State::Abandoned => {
                // Released before dropping the outcome: a reply's drop is foreign.
                drop(state);
                drop(outcome);
                return false;
            }
        };
        *state = outcome;
        // Released before waking: the asker would block on us.
        drop(state);
        drop(debt);
        wake_asker(waker);
        true
    }
}

fn wake_asker(waker: Option<Waker>) {
    if let Some(waker) = waker {
        // The asker's, whose panic is not the replier's.
        shielded("the waker of an asker", || waker.wake());
    }
}

impl<R> ReplyTo<R> {
    /// A slot for a tell.
    pub(crate) const fn nowhere() -> Self {
        Self { slot: None }
    }

    /// A slot whose outcome `forward` takes, once; it runs wherever the slot is settled, so it must
    /// not wait.
    pub(crate) fn forwarding(
        forward: impl FnOnce(Result<R, Option<AskError>>) + Send + 'static,
    ) -> Self {
        let state = Mutex::new(State::Forwarded(Box::new(forward), None));
        Self { slot: Some(Arc::new(Slot { state })) }
    }

    /// Sends the reply; returns whether someone still waited for it. In a turn that is held it
    /// leaves with the turn's commit.
    pub fn send(mut self, reply: R) -> bool
    where
        R: Send + 'static,
    {
        let is_awaited = !self.is_abandoned() && self.is_somewhere();
        if turn::is_held() {
            self.complete(reply);
            return is_awaited;
        }
        self.settle(State::Replied(reply))
    }

    /// Whether nobody waits any more, so that the work can be skipped. A tell is never abandoned.
    pub fn is_abandoned(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| matches!(*slot.state.lock(), State::Abandoned))
    }

    /// Whether the ask has ended already, by its asker or by a failure, so that its message must
    /// not run. A tell never has.
    pub(crate) fn is_over(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.is_settled())
    }

    /// Says that the message begins to run, or leaves the node, unless the ask has ended already:
    /// then it must not. Returns whether it may. A tell always may.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        let Some(slot) = &self.slot else { return true };
        match &mut *slot.state.lock() {
            State::Waiting(_, _, message) => {
                *message = Message::Begun;
                true
            }
            State::Forwarded(..) => true,
            State::Replied(_) | State::Failed(_) | State::Abandoned => false,
        }
    }

    /// Says that the message was put back before its handler.
    pub(crate) fn put_back(&self) {
        let Some(slot) = &self.slot else { return };
        if let State::Waiting(_, _, message) = &mut *slot.state.lock() {
            *message = Message::Queued;
        }
    }

    /// Whether there is an asker to reply to.
    #[inline]
    pub(crate) fn is_somewhere(&self) -> bool {
        self.slot.is_some()
    }

    pub(crate) fn fail(&mut self, why: AskError) {
        self.settle(State::Failed(Some(why)));
    }

    /// As `fail`, for what the actor itself has decided: in a turn that is held, it leaves with the
    /// turn.
    pub(crate) fn refuse(&mut self, why: AskError)
    where
        R: Send + 'static,
    {
        if turn::is_held() {
            return self.settle_with_the_turn(State::Failed(Some(why)));
        }
        self.fail(why);
    }

    pub(crate) fn complete(&mut self, reply: R)
    where
        R: Send + 'static,
    {
        if turn::is_held() {
            return self.settle_with_the_turn(State::Replied(reply));
        }
        self.settle(State::Replied(reply));
    }

    #[cold]
    fn settle_with_the_turn(&mut self, outcome: State<R>)
    where
        R: Send + 'static,
    {
        let Some(slot) = self.slot.take() else { return };
        let Some(actor) = current::actor() else { return };
        turn::keep(Effect::Reply(Box::new(move |fate| {
            slot.settle(match fate {
                Fate::Committed => outcome,
                Fate::Aborted => State::Failed(Some(AskError::NotCommitted(actor.header().id()))),
            });
        })));
    }

    pub(crate) fn take(&mut self) -> Self {
        Self { slot: self.slot.take() }
    }

    /// Counts the reply among what another actor owes, and no longer among what its first one does.
    pub(crate) fn hand_on(&self, to: Arc<dyn AnyPlace>) {
        let Some(slot) = &self.slot else { return };
        let mut other = Some(Debt::of(to));
        let mut state = slot.state.lock();
        if let State::Waiting(_, debt, _) | State::Forwarded(_, debt) = &mut *state {
            std::mem::swap(debt, &mut other);
        }
        // Released before dropping: the last reference to an actor may go.
        drop(state);
        drop(other);
    }

    /// Counts the reply among what the actor polled here owes, until somebody settles it.
    pub(crate) fn owe(&self) {
        let Some(slot) = &self.slot else { return };
        let owed = current::actor().map(Debt::of);
        if let State::Waiting(_, debt, _) | State::Forwarded(_, debt) = &mut *slot.state.lock() {
            *debt = owed;
        }
    }

    fn settle(&mut self, outcome: State<R>) -> bool {
        let Some(slot) = self.slot.take() else { return false };
        slot.settle(outcome)
    }

    /// Goes without a reply. Apart, so that the drop of a tell's slot is one comparison.
    #[cold]
    #[inline(never)]
    fn leave(&mut self) {
        // A guard or handler that panics takes the replies along that it holds.
        let panics = if std::thread::panicking() { current::actor() } else { None };
        let why = panics.map(|actor| AskError::HandlerPanicked(actor.header().id()));
        self.settle(State::Failed(why));
    }
}

impl<R> Drop for ReplyTo<R> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.is_some() {
            self.leave();
        }
    }
}

impl<R> std::fmt::Debug for ReplyTo<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyTo").field("waited_for", &self.slot.is_some()).finish()
    }
}

impl<R> Receiver<R> {
    /// Whether the replier has replied or gone.
    pub(crate) fn is_settled(&self) -> bool {
        self.slot.is_settled()
    }

    /// The slot, for those who follow who waits for whom.
    pub(crate) fn awaited(&self) -> Arc<dyn Owed>
    where
        R: Send + 'static,
    {
        self.slot.clone()
    }

    /// The reply; `Err(None)` when the replier went without one.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<R, Option<AskError>>> {
        // Wakers are foreign: cloned and dropped outside the lock. Who comes for the first time
        // nearly always has to leave one.
        let is_first = !self.has_waited.load(Ordering::Relaxed);
        self.has_waited.store(true, Ordering::Relaxed);
        let mut fresh = is_first.then(|| waker.clone());
        loop {
            let mut state = self.slot.state.lock();
            let State::Waiting(waiting, ..) = &mut *state else {
                return Poll::Ready(match std::mem::replace(&mut *state, State::Abandoned) {
                    State::Replied(reply) => Ok(reply),
                    State::Failed(why) => Err(why),
                    State::Waiting(..) | State::Forwarded(..) | State::Abandoned => Err(None),
                });
            };
            if waiting.as_ref().is_some_and(|old| old.will_wake(waker)) {
                return Poll::Pending;
            }
            if let Some(fresh) = fresh.take() {
                let old = waiting.replace(fresh);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
            drop(state);
            fresh = Some(waker.clone());
        }
    }
}

impl<R> Drop for Receiver<R> {
    fn drop(&mut self) {
        let old = std::mem::replace(&mut *self.slot.state.lock(), State::Abandoned);
        drop(old);
    }
}

#[cfg(all(test, althing_loom))]
mod model {
    //! Every interleaving of one asker and one replier: `make loom`.

    use std::sync::Arc;
    use std::task::{Poll, Waker};

    use loom::thread;

    use super::{Receiver, ReplyTo, channel};
    use crate::sync::Bell;

    /// Polls until the end, as a task does: again when its waker was called.
    fn receive<R>(receiver: &Receiver<R>, bell: &Arc<Bell>) -> Option<R> {
        let waker = Waker::from(bell.clone());
        loop {
            match receiver.poll(&waker) {
                Poll::Ready(outcome) => return outcome.ok(),
                Poll::Pending => bell.wait(),
            }
        }
    }

    fn check(replies: fn(ReplyTo<u32>), expected: Option<u32>) {
        loom::model(move || {
            let (reply, receiver) = channel();
            let replier = thread::spawn(move || replies(reply));
            assert_eq!(receive(&receiver, &Bell::new()), expected);
            replier.join().expect("the model's thread ends");
        });
    }

    #[test]
    fn a_reply_arrives() {
        check(|reply| assert!(reply.send(7)), Some(7));
    }

    #[test]
    fn a_replier_that_goes_leaves_nobody_waiting() {
        check(drop, None);
    }

    #[test]
    fn a_waker_that_changes_is_the_one_that_is_called() {
        loom::model(|| {
            let (reply, receiver) = channel();
            let replier = thread::spawn(move || reply.send(7));
            let first = receiver.poll(&Waker::from(Bell::new()));
            let outcome = match first {
                Poll::Ready(outcome) => outcome.ok(),
                Poll::Pending => receive(&receiver, &Bell::new()),
            };
            assert_eq!(outcome, Some(7));
            assert!(replier.join().expect("the model's thread ends"));
        });
    }

    #[test]
    fn a_reply_to_an_asker_that_goes_is_dropped_once() {
        loom::model(|| {
            let kept = Arc::new(());
            let (reply, receiver) = channel();
            let sent = kept.clone();
            let replier = thread::spawn(move || reply.send(sent));
            drop(receiver);
            replier.join().expect("the model's thread ends");
            assert_eq!(Arc::strong_count(&kept), 1);
        });
    }
}
