//! The order of one connection's commands about one channel: each is answered after those before
//! it, and a question sees what earlier commands did (history has what was published before).
//!
//! Publications do not wait for each other, or a connection could not send more than one message
//! per disk sync: the next one begins as soon as the one before is with its room, which keeps them
//! in order. Where a backend is asked about each first, a publication does not begin so, and waits as
//! everything else: until all before it are answered. Then it has the channel to itself.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use folkmoot_protocol::frame::Request;
use tokio::sync::oneshot;

/// Channels remembered before those whose commands have ended are forgotten.
const CHANNELS_LEN: usize = 256;

/// A signal that is given by dropping the sender, so that a command which is given up signals too.
type Signal = oneshot::Receiver<()>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Runs beside others of its kind.
    Publish,
    Alone,
}

/// The newest command of each channel that has some under way.
#[derive(Debug, Default)]
pub(super) struct Order {
    newest: HashMap<String, Before>,
}

/// What a command has to know of the one before it.
#[derive(Debug)]
struct Before {
    kind: Kind,
    begun: Signal,
    answered: Signal,
}

/// A command's place.
#[derive(Debug)]
pub(super) struct Turn {
    kind: Kind,
    before: Option<Before>,
    /// Dropped when the command is with whoever decides it.
    begun: oneshot::Sender<()>,
    /// Dropped when its reply is queued.
    answered: oneshot::Sender<()>,
}

impl Order {
    /// The place of a command that came just now.
    pub(super) fn turn(
        &mut self,
        request: &Request,
        begins_in_order: impl FnOnce(&str) -> bool,
    ) -> Turn {
        let kind = match request {
            Request::Publish(publish) if begins_in_order(&publish.channel) => Kind::Publish,
            _ => Kind::Alone,
        };
        let (begun, after_begun) = oneshot::channel();
        let (answered, after_answered) = oneshot::channel();
        let mine = Before { kind, begun: after_begun, answered: after_answered };
        let before = request.channel().and_then(|channel| {
            if self.newest.len() >= CHANNELS_LEN {
                self.newest.retain(|_, before| before.is_under_way());
            }
            self.newest.insert(channel.to_owned(), mine)
        });
        Turn { kind, before, begun, answered }
    }
}

impl Order {
    /// Nothing is under way: the channels are forgotten, of which a connection may have thousands.
    pub(super) fn forget(&mut self) {
        self.newest = HashMap::new();
    }
}

impl Before {
    fn is_under_way(&mut self) -> bool {
        self.answered.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }
}

impl Turn {
    /// Does the work when its turn has come, and hands its answer over after those before it.
    pub(super) async fn take<T>(self, work: impl Future<Output = T>, answer: impl AsyncFnOnce(T)) {
        let Self { kind, mut before, begun, answered } = self;
        let both_publish = |before: &Before| kind == Kind::Publish && before.kind == Kind::Publish;
        if let Some(before) = &mut before {
            // An error is the signal: senders are only ever dropped.
            let _ = match both_publish(before) {
                true => (&mut before.begun).await,
                false => (&mut before.answered).await,
            };
        }
        let mut work = pin!(work);
        let first = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        drop(begun);
        let done = match first {
            Poll::Ready(done) => done,
            Poll::Pending => work.await,
        };
        if let Some(before) = before.filter(both_publish) {
            let _ = before.answered.await;
        }
        answer(done).await;
        drop(answered);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use folkmoot_protocol::frame::{HistoryRequest, PublishRequest};
    use futures_util::FutureExt;
    use futures_util::future::{join, join3};

    use super::*;

    fn publish(channel: &str) -> Request {
        Request::Publish(PublishRequest { channel: channel.to_owned(), ..Default::default() })
    }

    fn history(channel: &str) -> Request {
        Request::History(HistoryRequest { channel: channel.to_owned(), ..Default::default() })
    }

    #[tokio::test]
    async fn a_question_begins_after_what_was_published_before_it_is_answered() {
        let (mut order, seen) = (Order::default(), RefCell::new(Vec::new()));
        let (first, second) =
            (order.turn(&publish("a"), |_| true), order.turn(&history("a"), |_| true));
        let (stored, storing) = oneshot::channel::<()>();
        let publishing = first.take(storing, async |_| seen.borrow_mut().push("published"));
        let asking = second.take(async { seen.borrow_mut().push("asked") }, async |()| {});
        let disk = async {
            tokio::task::yield_now().await;
            assert!(seen.borrow().is_empty());
            drop(stored);
        };
        join3(asking, publishing, disk).await;
        assert_eq!(*seen.borrow(), ["published", "asked"]);
    }

    #[tokio::test]
    async fn publications_run_beside_each_other_and_are_answered_in_order() {
        let (mut order, seen) = (Order::default(), RefCell::new(Vec::new()));
        let (first, second) =
            (order.turn(&publish("a"), |_| true), order.turn(&publish("a"), |_| true));
        let (slow, storing) = oneshot::channel::<()>();
        let one = first.take(storing, async |_| seen.borrow_mut().push("first"));
        // Begins while the first is under way: it is what lets the first one end.
        let two = second.take(async { drop(slow) }, async |()| seen.borrow_mut().push("second"));
        join(two, one).await;
        assert_eq!(*seen.borrow(), ["first", "second"]);
    }

    #[tokio::test]
    async fn publications_that_somebody_is_asked_about_run_one_after_the_other() {
        let (mut order, seen) = (Order::default(), RefCell::new(Vec::new()));
        let (first, second) =
            (order.turn(&publish("a"), |_| false), order.turn(&publish("a"), |_| false));
        let (answered, asking) = oneshot::channel::<()>();
        let one = first.take(asking, async |_| seen.borrow_mut().push("first"));
        let two = second.take(async { seen.borrow_mut().push("second") }, async |()| {});
        let backend = async {
            tokio::task::yield_now().await;
            assert!(seen.borrow().is_empty());
            drop(answered);
        };
        join3(two, one, backend).await;
        assert_eq!(*seen.borrow(), ["first", "second"]);
    }

    #[tokio::test]
    async fn channels_do_not_wait_for_each_other() {
        let mut order = Order::default();
        let waiting = order.turn(&history("a"), |_| true);
        let other = order.turn(&history("b"), |_| true);
        let mut stuck = Box::pin(waiting.take(std::future::pending::<()>(), async |()| {}));
        assert!(stuck.as_mut().now_or_never().is_none());
        other.take(async {}, async |()| {}).await;
    }

    #[tokio::test]
    async fn a_command_that_is_given_up_holds_up_nobody() {
        let mut order = Order::default();
        drop(order.turn(&history("a"), |_| true));
        order.turn(&history("a"), |_| true).take(async {}, async |()| {}).await;
    }

    #[test]
    fn channels_without_commands_are_forgotten() {
        let mut order = Order::default();
        for number in 0..10 * CHANNELS_LEN {
            drop(order.turn(&history(&number.to_string()), |_| true));
        }
        assert!(order.newest.len() <= CHANNELS_LEN);
        order.forget();
        assert_eq!(order.newest.capacity(), 0);
    }
}
