//! Asks that would wait for themselves fail at once, no others do, and the error is true: the
//! message did not run.

use std::future::{Future, IntoFuture, pending};
use std::sync::Arc;
use std::task;
use std::time::{Duration, Instant};

use crate::support::{Do, Flex, On, act, flex, later, node, nothing, settle, soon, within};
use althing::{Actor, ActorOptions, ActorRef, AskError, Context, Handler, MailboxKind, Node};
use futures_util::poll;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// `Cycle` says that the message did not run. Run in place, the other's handler is at work already
/// when it asks back: then it is its own ask that closes the circle.
#[test]
fn an_ask_that_fails_as_a_cycle_has_not_run() {
    within(On::PausedTime, async {
        let node = node();
        let (a, b) = (flex(&node), flex(&node));
        let effects = Arc::<Mutex<Vec<&str>>>::default();
        // Known to be quick from now on, so that its handlers run in place.
        a.send(nothing()).await.unwrap();
        let (back, of_a, of_b) = (a.clone(), effects.clone(), effects.clone());
        a.send(later(async move {
            let changing = later(async move {
                of_b.lock().push("b changed something");
                back.send(nothing()).await.ok();
                0
            });
            if let Err(AskError::Cycle(_)) = b.send(changing).await {
                of_a.lock().push("a was told that b did not run");
            }
            0
        }))
        .await
        .unwrap();
        settle().await;
        assert_eq!(*effects.lock(), ["b changed something"]);
    });
}

/// An ask that was begun in a handler and goes on in a task of its own is nothing that the actor
/// waits for.
#[test]
fn an_actor_whose_handler_has_ended_waits_for_nobody() {
    within(On::PausedTime, async {
        let node = node();
        let (a, b) = (flex(&node), flex(&node));
        let (idle, slow) = (a.clone(), b.clone());
        let (tx, answered) = oneshot::channel();
        a.send(Do(Box::new(move |_, ctx| {
            Box::pin(async move {
                let asking_back = later(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    tx.send(idle.send(nothing()).timeout(Duration::from_secs(1)).await).ok();
                    0
                });
                let mut ask = Box::pin(async move { slow.send(asking_back).await });
                assert!(poll!(&mut ask).is_pending());
                ctx.detach(async move {
                    ask.await.ok();
                });
                0
            })
        })))
        .await
        .unwrap();
        assert_eq!(soon("the answer", answered).await.unwrap(), Ok(0));
    });
}

/// Layers of two actors in which each waits for both of the next: 2 to the power of `LAYERS` paths,
/// and twice as many actors.
async fn lattice(node: &Node, layers: usize) -> ActorRef<Flex> {
    let lattice: Vec<_> = (0..layers).map(|_| [flex(node), flex(node)]).collect();
    // From below, so that each waits before it is asked.
    for layer in (0..layers).rev() {
        for actor in &lattice[layer] {
            let next = lattice.get(layer + 1).cloned();
            let waiting = later(async move {
                let Some([left, right]) = next else { return pending().await };
                let asks =
                    [left.send(nothing()).into_future(), right.send(nothing()).into_future()];
                futures_util::future::join_all(asks).await;
                0
            });
            actor.send(waiting).try_tell().expect("there is room");
        }
        settle().await;
    }
    lattice[0][0].clone()
}

#[test]
fn looking_for_a_cycle_takes_each_actor_once() {
    const LAYERS: usize = 18;
    within(On::PausedTime, async {
        let node = node();
        let top = lattice(&node, LAYERS).await;
        let (tx, took) = oneshot::channel();
        let asking = later(async move {
            let mut ask = Box::pin(top.send(nothing()).into_future());
            let begun = Instant::now();
            assert!(poll!(&mut ask).is_pending());
            tx.send(begun.elapsed()).ok();
            0
        });
        flex(&node).send(asking).try_tell().unwrap();
        let took = took.await.unwrap();
        assert!(took < Duration::from_millis(100), "one poll of an ask took {took:?}");
    });
}

/// Has room for one message.
struct Small;

struct AskYourself;
struct Fill;

impl Actor for Small {
    const NAME: &'static str = "test.small";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(1)).deadline(Duration::from_secs(2))
    }
}

impl Handler<AskYourself> for Small {
    type Reply = Result<(), AskError>;

    async fn handle(&mut self, _: AskYourself, ctx: &mut Context<Self>) -> Result<(), AskError> {
        // Meanwhile others fill the mailbox.
        tokio::time::sleep(Duration::from_millis(50)).await;
        ctx.address().send(Fill).await
    }
}

impl Handler<Fill> for Small {
    type Reply = ();

    async fn handle(&mut self, _: Fill, _: &mut Context<Self>) {}
}

#[test]
fn a_cycle_through_a_full_mailbox_fails_at_once_too() {
    within(On::PausedTime, async {
        let small = node().spawn(Small);
        let ask = small.send(AskYourself).timeout(Duration::from_secs(10));
        let mut ask = Box::pin(ask.into_future());
        assert!(poll!(&mut ask).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
        while small.send(Fill).try_tell().is_ok() {}
        let asked = ask.await.unwrap();
        assert!(matches!(asked, Err(AskError::Cycle(_))), "{asked:?}");
    });
}

mod two_nodes {
    use althing::{ActorRef, AskError, Node, actor};

    struct Echo;

    #[actor(name = "test.echo")]
    impl Echo {
        async fn echo(&mut self, n: u32) -> u32 {
            n
        }

        async fn pass(&mut self, other: ActorRef<Echo>, n: u32) -> Result<u32, AskError> {
            other.echo(n).await
        }
    }

    #[tokio::test]
    async fn actors_of_two_nodes_are_never_taken_for_each_other() {
        // The first actor of each node, the second, and so on.
        let (one, two) = (Node::builder("one").build(), Node::builder("two").build());
        for n in 0..10 {
            let (here, there) = (one.spawn(Echo), two.spawn(Echo));
            assert_eq!(here.pass(there.clone(), n).await, Ok(Ok(n)));
            assert_ne!(here.id(), there.id());
        }
    }
}

/// The handler has run on its asker's task, and the actor's own task has not come to it yet.
#[test]
fn an_actor_whose_handler_has_ended_in_place_waits_for_nobody() {
    within(On::OneThread, async {
        let node = node();
        let (left, right) = (flex(&node), flex(&node));
        // From now on handlers run on the task of their asker.
        left.send(nothing()).await.unwrap();
        let (release, released) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let back = left.clone();
        let asks_back = later(async move {
            released.await.ok();
            tell.send(back.send(nothing()).await).ok();
            0
        });
        let leaves_its_ask_to_a_task = act(move |_, ctx| {
            let mut ask = Box::pin(async move { right.send(asks_back).await });
            let mut cx = task::Context::from_waker(task::Waker::noop());
            assert!(ask.as_mut().poll(&mut cx).is_pending());
            ctx.detach(async move { drop(ask.await) });
            release.send(()).expect("the other handler waits");
        });
        left.send(leaves_its_ask_to_a_task).await.unwrap();
        assert_eq!(soon("the ask back", told).await.expect("it is told"), Ok(0));
    });
}

/// Begins an ask in a handler and leaves it to a task once `may_end` has come; returns what the
/// handler of the other was told, who asks back as soon as it is asked.
async fn asked_back_before_it_ends(
    left: &ActorRef<Flex>,
    right: ActorRef<Flex>,
    may_end: impl FnOnce() + Send + 'static,
    has_asked_back: impl FnOnce() + Send + 'static,
) -> Result<u64, AskError> {
    let (tell, told) = oneshot::channel();
    let back = left.clone();
    let asks_back = later(async move {
        let mut ask = Box::pin(back.send(nothing()).into_future());
        let first = poll!(&mut ask);
        has_asked_back();
        tell.send(match first {
            task::Poll::Ready(outcome) => outcome,
            task::Poll::Pending => ask.await,
        })
        .ok();
        0
    });
    let leaves_its_ask_to_a_task = act(move |_, ctx| {
        let mut ask = Box::pin(async move { right.send(asks_back).await });
        let mut cx = task::Context::from_waker(task::Waker::noop());
        assert!(ask.as_mut().poll(&mut cx).is_pending());
        may_end();
        ctx.detach(async move { drop(ask.await) });
    });
    left.send(leaves_its_ask_to_a_task).await.expect("the handler ends");
    soon("the ask back", told).await.expect("it is told")
}

/// The handler still runs while the other asks back from another thread: it has not begun to wait.
#[test]
fn an_actor_whose_handler_is_at_work_waits_for_nobody() {
    within(On::Workers(4), async {
        let node = node();
        let (left, right) = (flex(&node), flex(&node));
        let (asks, asked) = std::sync::mpsc::channel();
        let may_end =
            move || tokio::task::block_in_place(|| asked.recv()).expect("the other asks back");
        let has_asked_back = move || asks.send(()).expect("the handler waits");
        let told = asked_back_before_it_ends(&left, right, may_end, has_asked_back).await;
        assert_eq!(told, Ok(0));
    });
}

/// As above, but the other asks back from within the poll of the ask.
#[test]
fn an_actor_that_is_asked_back_in_place_waits_for_nobody_yet() {
    within(On::OneThread, async {
        let node = node();
        let (left, right) = (flex(&node), flex(&node));
        // From now on handlers run on the task of their asker.
        left.send(nothing()).await.unwrap();
        let told = asked_back_before_it_ends(&left, right, || {}, || {}).await;
        assert_eq!(told, Ok(0));
    });
}

/// Nobody waits yet when the second ask is sent, by an actor of the runtime `of_right` if there is
/// one, once the mailbox it goes to is as `before` leaves it: the cycle is seen when the handlers
/// are suspended.
fn a_cycle_closes_before_its_handlers_wait(
    mailbox: MailboxKind,
    of_right: Option<Handle>,
    before: fn(&ActorRef<Flex>),
) {
    within(On::Workers(4), async move {
        let options = ActorOptions::default().mailbox(mailbox);
        let left = flex(&Node::builder("left").options::<Flex>(options).build());
        let right = {
            let _entered = of_right.as_ref().map(Handle::enter);
            flex(&node())
        };
        let (asks, asked) = std::sync::mpsc::channel();
        let (tell, told) = oneshot::channel();
        let back = left.clone();
        let asks_back = later(async move {
            before(&back);
            let mut ask = Box::pin(back.send(nothing()).into_future());
            assert!(poll!(&mut ask).is_pending(), "the handler of the other is at work");
            asks.send(()).expect("the handler waits");
            tell.send(ask.await).ok();
            7
        });
        let (left_id, right_id) = (left.id(), right.id());
        let asking = later(async move {
            let mut ask = Box::pin(right.send(asks_back).into_future());
            assert!(poll!(&mut ask).is_pending());
            tokio::task::block_in_place(|| asked.recv()).expect("the other asks back");
            ask.await.unwrap()
        });
        // The ask that was sent last fails, and the other one goes on.
        assert_eq!(soon("the asker", left.send(asking)).await, Ok(7));
        let path = vec![right_id.clone(), left_id, right_id];
        assert_eq!(told.await.unwrap(), Err(AskError::Cycle(path)));
    });
}

#[test]
fn a_cycle_that_closes_before_its_handlers_wait_fails_too() {
    a_cycle_closes_before_its_handlers_wait(MailboxKind::Unbounded, None, |_| {});
}

/// The ask that fails has not been sent: it waits for room, and looks again by itself after a
/// while. Here its clock stands, because somebody is at work in its runtime.
#[test]
fn a_cycle_that_closes_while_one_waits_for_room_fails_at_once_too() {
    let still = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let handle = still.handle().clone();
    let thread = std::thread::spawn(move || {
        still.block_on(async { tokio::task::spawn_blocking(move || ended.recv()).await })
    });
    a_cycle_closes_before_its_handlers_wait(MailboxKind::Bounded(4), Some(handle), |full| {
        while full.send(nothing()).try_tell().is_ok() {}
    });
    drop(end);
    thread.join().unwrap().unwrap().unwrap_err();
}

mod a_failed_handler {
    use std::time::Duration;

    use althing::{
        Actor, ActorOptions, ActorRef, AskError, Context, Handler, Node, RestartPolicy, Supervision,
    };
    use futures_util::poll;
    use tokio::sync::oneshot;

    struct Clumsy;

    struct Panic;
    struct Begin(ActorRef<Helpful>, oneshot::Sender<Result<(), AskError>>);
    struct Look;

    impl Actor for Clumsy {
        const NAME: &'static str = "test.clumsy";

        fn options() -> ActorOptions {
            // Its second restart comes late.
            let backoff = Duration::from_secs(1);
            let policy = RestartPolicy { backoff, ..RestartPolicy::default() };
            ActorOptions::default().supervision(Supervision::Restart(policy))
        }
    }

    impl Handler<Panic> for Clumsy {
        type Reply = ();
        async fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
            panic!("on purpose");
        }
    }

    impl Handler<Begin> for Clumsy {
        type Reply = ();
        async fn handle(&mut self, Begin(other, tx): Begin, ctx: &mut Context<Self>) {
            let me = ctx.address();
            let mut ask = Box::pin(async move { other.send(AskBack(me, tx)).await });
            assert!(poll!(&mut ask).is_pending());
            ctx.detach(async move {
                ask.await.ok();
            });
            panic!("on purpose");
        }
    }

    impl Handler<Look> for Clumsy {
        type Reply = ();
        async fn handle(&mut self, _: Look, _: &mut Context<Self>) {}
    }

    struct Helpful;

    struct AskBack(ActorRef<Clumsy>, oneshot::Sender<Result<(), AskError>>);

    impl Actor for Helpful {
        const NAME: &'static str = "test.helpful";
    }

    impl Handler<AskBack> for Helpful {
        type Reply = ();
        async fn handle(&mut self, AskBack(clumsy, tx): AskBack, ctx: &mut Context<Self>) {
            // Between the failure and the restart.
            ctx.node().sleep(Duration::from_millis(100)).await;
            tx.send(clumsy.send(Look).await).ok();
        }
    }

    /// The ask that it had begun goes on elsewhere; the actor itself waits for its restart only.
    #[tokio::test(start_paused = true)]
    async fn waits_for_nobody_while_its_actor_pauses_before_a_restart() {
        let node = Node::builder("clumsy").build();
        let clumsy = node.spawn_with(async |_| Ok(Clumsy));
        let helpful = node.spawn(Helpful);
        let panicked = Err(AskError::HandlerPanicked(clumsy.id()));
        assert_eq!(clumsy.send(Panic).await, panicked);
        let (tx, answer) = oneshot::channel();
        assert_eq!(clumsy.send(Begin(helpful, tx)).await, panicked);
        assert_eq!(answer.await.unwrap(), Ok(()));
    }
}

mod an_ask_that_was_handed_on {
    use std::time::Duration;

    use althing::{
        Actor, ActorRef, AskError, Context, Delayed, DelayedHandler, Handler, Receives, ReplyTo,
    };
    use tokio::sync::oneshot;

    use crate::support::{Do, Flex, On, flex, later, node, nothing, settle, within};

    /// Hands asks on, and asks.
    struct Desk;

    struct HandOn(ActorRef<Flex>, Do);
    struct Ask(ActorRef<Flex>, oneshot::Sender<Result<u64, AskError>>);

    impl Actor for Desk {
        const NAME: &'static str = "test.desk";
    }

    impl Receives<HandOn> for Desk {
        type Reply = u64;
        type Way = Delayed;
    }

    impl DelayedHandler<HandOn> for Desk {
        type Reply = u64;

        async fn handle(
            &mut self,
            HandOn(to, what): HandOn,
            reply: ReplyTo<u64>,
            _: &mut Context<Self>,
        ) {
            to.send(what).reply_to(reply);
        }
    }

    impl Handler<Ask> for Desk {
        type Reply = ();

        async fn handle(&mut self, Ask(other, outcome): Ask, _: &mut Context<Self>) {
            outcome.send(other.send(nothing()).await).ok();
        }
    }

    /// The asker waits for the one that has the ask now.
    #[test]
    fn is_no_wait_for_who_handed_it_on() {
        within(On::PausedTime, async {
            let node = node();
            let (asker, library, desk) = (flex(&node), flex(&node), node.spawn(Desk));
            let (end, ended) = oneshot::channel();
            let desk_of_asker = desk.clone();
            let asking = later(async move {
                let slow = later(async move { ended.await.expect("the test says when") });
                desk_of_asker.send(HandOn(library, slow)).await.expect("it is answered")
            });
            asker.send(asking).try_tell().expect("there is room");
            settle().await;
            let (tell, told) = oneshot::channel();
            desk.send(Ask(asker, tell)).try_tell().expect("there is room");
            settle().await;
            end.send(1).expect("the library waits");
            assert_eq!(told.await.expect("the desk answers"), Ok(0));
        });
    }

    #[test]
    fn closes_a_cycle_with_who_has_it_now() {
        within(On::PausedTime, async {
            let node = node();
            let (asker, library, desk) = (flex(&node), flex(&node), node.spawn(Desk));
            let (asker_id, library_id) = (asker.id(), library.id());
            let (tell, told) = oneshot::channel();
            let back = asker.clone();
            let asking = later(async move {
                let asking_back = later(async move {
                    tell.send(back.send(nothing()).await).ok();
                    7
                });
                desk.send(HandOn(library, asking_back)).await.expect("it is answered")
            });
            let asked = asker.send(asking).timeout(Duration::from_secs(1)).await;
            assert_eq!(asked, Ok(7));
            let path = vec![library_id.clone(), asker_id, library_id];
            assert_eq!(told.await.expect("it is told"), Err(AskError::Cycle(path)));
        });
    }
}
