//! At the limits of what can be given: durations of any length, mailboxes with little room, futures
//! of any size.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{Flex, Note, On, act, alone, flex, node, nothing, settle, soon, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, EventHandler, Handler,
    MailboxKind, Node, Published, Rejection, StopReason, Topic, TopicOptions,
};
use tokio::sync::Notify;

#[test]
fn a_timer_and_a_shutdown_take_any_duration() {
    within(On::PausedTime, async {
        let node = node();
        // Time since the node's start is added to what is given.
        settle().await;
        let arming = act(|_, ctx| {
            ctx.after(Duration::MAX, Note(1));
        });
        assert_eq!(flex(&node).send(arming).await, Ok(0));
        assert!(node.shutdown(Duration::MAX).await.killed.is_empty());
    });
}

#[test]
fn a_budget_of_no_messages_is_one() {
    within(On::OneThread, async {
        let mut options = ActorOptions::default();
        options.batch_budget = 0;
        let actor = flex(&Node::builder("test").options::<Flex>(options).build());
        assert_eq!(soon("an answer", actor.send(nothing())).await, Ok(0));
    });
}

#[test]
fn a_node_allows_any_number_of_jobs_at_once() {
    within(On::OneThread, async {
        for jobs in [0, usize::MAX] {
            let node = Node::builder("test").blocking_jobs_max(jobs).build();
            assert_eq!(soon("the job", node.blocking(|| 7)).await, 7);
        }
    });
}

/// Has room for eight messages.
struct Eight;

impl Actor for Eight {
    const NAME: &'static str = "test.eight";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(8))
    }
}

impl Handler<Note> for Eight {
    type Reply = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

/// A handler that tells twice keeps room for more of its tells. That must not be all the room that
/// there is.
#[test]
fn a_handler_that_tells_twice_leaves_room_for_others() {
    within(On::Workers(3), async {
        let node = node();
        let target = node.spawn(Eight);
        let to = target.clone();
        let (has_told, told) = mpsc::channel();
        let (release, wait) = mpsc::channel::<()>();
        let telling = act(move |_, _| {
            to.send(Note(1)).try_tell().unwrap();
            to.send(Note(2)).try_tell().unwrap();
            has_told.send(()).unwrap();
            wait.recv().ok();
        });
        flex(&node).send(telling).try_tell().unwrap();
        tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        let told = target.send(Note(3)).try_tell();
        release.send(()).unwrap();
        assert!(told.is_ok(), "two of eight places are used: {told:?}");
    });
}

/// Bytes that each handler of the chain keeps while it asks the next. A build without optimisation
/// moves them more often.
const KEPT: usize = if cfg!(debug_assertions) { 64 << 10 } else { 128 << 10 };
/// Handlers that run inside each other on one stack, at most.
const NESTED: usize = 8;

/// Asks the next of its chain, with a large future.
struct Link {
    next: Option<ActorRef<Link>>,
}

struct Length;

impl Actor for Link {
    const NAME: &'static str = "test.link";
}

impl Handler<Length> for Link {
    type Reply = usize;

    async fn handle(&mut self, _: Length, _: &mut Context<Self>) -> usize {
        let kept = [1_u8; KEPT];
        let rest = match &self.next {
            Some(next) => next.send(Length).await.expect("it runs"),
            None => 0,
        };
        rest + usize::from(std::hint::black_box(&kept)[KEPT / 2])
    }
}

fn chain(node: &Node) -> ActorRef<Link> {
    let first = (0..NESTED).fold(None, |next, _| Some(node.spawn(Link { next })));
    first.expect("a chain has links")
}

/// In a process of its own: a stack that overflows ends the process.
#[test]
fn handlers_with_large_futures_may_ask_each_other() {
    alone("limits::handlers_with_large_futures_may_ask_each_other", || {
        within(On::Workers(2), async {
            let first = chain(&node());
            // From the second time on, the handlers are known to be quick and run inside each
            // other.
            for _ in 0..3 {
                assert_eq!(first.send(Length).await, Ok(NESTED));
            }
        });
    });
}

/// Publishes to the next topic of its chain, from within a large future.
struct Echo {
    next: Option<Topic<u32>>,
    heard: Arc<Notify>,
}

impl Actor for Echo {
    const NAME: &'static str = "test.echo";
}

impl EventHandler<u32> for Echo {
    async fn event(&mut self, event: &Published<u32>, ctx: &mut Context<Self>) {
        let kept = [1_u8; KEPT];
        match &self.next {
            Some(next) => ctx.publish(next, event.payload),
            None => self.heard.notify_one(),
        }
        tokio::task::yield_now().await;
        std::hint::black_box(&kept);
    }
}

/// In a process of its own, as above.
#[test]
fn event_handlers_with_large_futures_may_publish_to_each_other() {
    alone("limits::event_handlers_with_large_futures_may_publish_to_each_other", || {
        within(On::Workers(2), async {
            let node = node();
            let heard = Arc::new(Notify::new());
            let topic = |n: usize| node.topic::<u32>(n.to_string(), TopicOptions::default());
            let chain: Vec<_> = (0..=NESTED)
                .map(|n| {
                    let next = (n < NESTED).then(|| topic(n + 1));
                    let echo = node.spawn(Echo { next, heard: heard.clone() });
                    (topic(n).subscribe(&echo), echo)
                })
                .collect();
            topic(0).publish(7).unwrap();
            soon("the last one", heard.notified()).await;
            drop(chain);
        });
    });
}

/// Starts the next of its chain, from within a large hook, and stops it from another.
struct Nest {
    depth: usize,
    inner: Option<ActorRef<Nest>>,
}

impl Actor for Nest {
    const NAME: &'static str = "test.nest";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        let kept = [1_u8; KEPT];
        if self.depth < NESTED {
            self.inner = Some(ctx.node().spawn(Nest { depth: self.depth + 1, inner: None }));
        }
        tokio::task::yield_now().await;
        std::hint::black_box(&kept);
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        let kept = [1_u8; KEPT];
        if let Some(inner) = &self.inner {
            inner.stop().await;
        }
        std::hint::black_box(&kept);
    }
}

/// In a process of its own, as above.
#[test]
fn hooks_with_large_futures_may_start_and_stop_others() {
    alone("limits::hooks_with_large_futures_may_start_and_stop_others", || {
        within(On::Workers(2), async {
            let first = node().spawn(Nest { depth: 0, inner: None });
            soon("the chain", first.stop()).await;
            assert!(first.is_stopped());
        });
    });
}

/// What a permit of the bucket is answered with.
async fn permit(actor: &ActorRef<Flex>, per_second: u32) -> Result<(), Rejection> {
    let (told, taken) = mpsc::channel();
    let take = act(move |_, ctx| {
        told.send(ctx.take_permit("of a test", per_second, 1)).unwrap();
    });
    actor.send(take).await.unwrap();
    taken.recv().unwrap()
}

/// Also where a second does not divide into whole nanoseconds.
#[test]
fn whoever_waits_as_long_as_a_rate_limit_says_gets_a_permit() {
    within(On::PausedTime, async {
        let node = node();
        for per_second in [3, 7, 9, 11, 1_000_003] {
            let actor = flex(&node);
            assert_eq!(permit(&actor, per_second).await, Ok(()));
            for _ in 0..20 {
                let refused = permit(&actor, per_second).await;
                let Err(Rejection::RateLimited { retry_after }) = refused else {
                    panic!("{refused:?}");
                };
                tokio::time::advance(retry_after).await;
                assert_eq!(permit(&actor, per_second).await, Ok(()), "{per_second} a second");
            }
        }
    });
}

/// Asks the next of its ring, round and round.
struct Ring {
    next: Option<ActorRef<Ring>>,
}

struct Join(ActorRef<Ring>);

impl Actor for Ring {
    const NAME: &'static str = "test.ring";
}

impl Handler<Join> for Ring {
    type Reply = ();

    async fn handle(&mut self, Join(next): Join, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Length> for Ring {
    type Reply = Result<(), AskError>;

    async fn handle(&mut self, _: Length, _: &mut Context<Self>) -> Result<(), AskError> {
        self.next.as_ref().expect("it has joined").send(Length).await?
    }
}

async fn asked_around(len: usize) -> Result<(), AskError> {
    let node = node();
    let ring: Vec<_> = (0..len).map(|_| node.spawn(Ring { next: None })).collect();
    for (at, one) in ring.iter().enumerate() {
        one.send(Join(ring[(at + 1) % len].clone())).await.unwrap();
    }
    ring[0].send(Length).await.unwrap()
}

#[test]
fn a_cycle_of_thousands_of_asks_fails_as_one() {
    within(On::OneThread, async {
        let outcome = asked_around(4_000).await;
        assert!(matches!(outcome, Err(AskError::Cycle(_))), "no cycle");
    });
}
