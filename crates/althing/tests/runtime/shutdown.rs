//! The end of a node: everybody finishes, and then nobody starts any more, by whatever way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Flex, On, flex, later, node, nothing, settle, soon, within};
use althing::{Actor, ActorRef, Context, Handler, Node, Start};

const DEADLINE: Duration = Duration::from_secs(5);

#[test]
fn who_is_spawned_after_a_shutdown_refuses() {
    within(On::PausedTime, async {
        let node = node();
        node.shutdown(DEADLINE).await;
        assert!(flex(&node).send(nothing()).await.is_err());
        let named = node.spawn_named("a", Flex::default());
        if let Ok(named) = named {
            assert!(named.send(nothing()).await.is_err());
        }
    });
}

/// Starts another of its kind when it is dropped.
struct Phoenix {
    node: Node,
    drops: Arc<AtomicU32>,
}

/// More than a stack holds inside each other, and not without end.
const DROPS_MAX: u32 = 20_000;

impl Actor for Phoenix {
    const NAME: &'static str = "test.phoenix";
}

impl Drop for Phoenix {
    fn drop(&mut self) {
        if self.drops.fetch_add(1, SeqCst) < DROPS_MAX {
            self.node.spawn(Self { node: self.node.clone(), drops: self.drops.clone() });
        }
    }
}

#[test]
fn an_actor_that_starts_another_when_it_is_dropped_does_not_outlive_a_shutdown() {
    within(On::OneThread, async {
        let (node, drops) = (node(), Arc::new(AtomicU32::new(0)));
        node.spawn(Phoenix { node: node.clone(), drops: drops.clone() });
        node.shutdown(Duration::from_millis(100)).await;
        // What the last one started drops on goes on meanwhile, on the thread that stopped it.
        while drops.load(SeqCst) <= DROPS_MAX {
            settle().await;
        }
        let alive = |kind: &althing::KindSnapshot| kind.started != kind.stopped;
        assert!(!node.metrics().kinds.iter().any(alive));
    });
}

#[test]
fn a_shutdown_that_a_handler_awaits_does_not_wait_for_that_handler() {
    within(On::PausedTime, async {
        let node = node();
        let (actor, other) = (flex(&node), flex(&node));
        let before = node.elapsed();
        let ending = node.clone();
        let shutting_down = later(async move {
            ending.shutdown(Duration::from_secs(600)).await;
            0
        });
        actor.send(shutting_down).timeout(Duration::from_secs(3_600)).await.ok();
        assert!(other.is_stopped());
        let took = node.elapsed().saturating_sub(before);
        assert!(took < Duration::from_secs(60), "{took:?}");
    });
}

#[test]
fn a_shutdown_that_two_handlers_await_waits_for_neither() {
    within(On::PausedTime, async {
        let node = node();
        let before = node.elapsed();
        let asks = [flex(&node), flex(&node)].map(|actor| {
            let ending = node.clone();
            let shutting_down = later(async move {
                let report = ending.shutdown(Duration::from_secs(600)).await;
                report.killed.len() as u64
            });
            tokio::spawn(async move {
                actor.send(shutting_down).timeout(Duration::from_secs(3_600)).await
            })
        });
        for ask in asks {
            assert_eq!(ask.await.unwrap(), Ok(0));
        }
        let took = node.elapsed().saturating_sub(before);
        assert!(took < Duration::from_secs(60), "{took:?}");
    });
}

#[test]
fn shutdowns_at_once_and_one_after_the_other_stop_each_actor_once() {
    within(On::PausedTime, async {
        let node = node();
        for _ in 0..10 {
            flex(&node);
        }
        let (one, two) = tokio::join!(node.shutdown(DEADLINE), node.shutdown(DEADLINE));
        let three = node.shutdown(DEADLINE).await;
        let killed = [&one, &two, &three].map(|report| report.killed.len());
        assert_eq!((killed, three.stopped), ([0; 3], 0));
    });
}

/// Unloads itself with each message.
struct Sleepy(Arc<AtomicU32>);

struct Nap;

impl Actor for Sleepy {
    const NAME: &'static str = "test.sleepy";
}

impl Handler<Nap> for Sleepy {
    type Reply = ();

    async fn handle(&mut self, _: Nap, ctx: &mut Context<Self>) {
        self.0.fetch_add(1, SeqCst);
        ctx.passivate();
    }
}

/// The bundle in which a handler tells is still open, and nothing more is in it.
#[test]
fn who_sleeps_is_not_counted_as_stopped_though_somebody_has_just_told_it() {
    within(On::Workers(2), async {
        let naps = Arc::new(AtomicU32::new(0));
        let counted = naps.clone();
        let node = Node::builder("test")
            .actor(move |_| {
                let naps = counted.clone();
                async { Ok(Sleepy(naps)) }
            })
            .build();
        let (ending, sleepy) = (node.clone(), node.get::<Sleepy>("a"));
        let stopped = Arc::new(AtomicU32::new(u32::MAX));
        let reported = stopped.clone();
        let telling = later(async move {
            for _ in 0..2 {
                sleepy.send(Nap).try_tell().unwrap();
            }
            tokio::task::block_in_place(|| {
                while naps.load(SeqCst) < 2 || sleepy.is_active() {
                    std::thread::yield_now();
                }
            });
            let report = ending.shutdown(DEADLINE).await;
            assert_eq!(report.killed, []);
            reported.store(report.stopped as u32, SeqCst);
            0
        });
        let teller = flex(&node);
        let telling = teller.send(telling).timeout(Duration::from_secs(60));
        // Its node ends, so it may not be answered.
        _ = soon("the teller", telling).await;
        assert_eq!(stopped.load(SeqCst), 0, "nobody but the teller was awake");
    });
}

/// Tells itself when it is dropped, so that it has always another life to begin.
struct Restless(ActorRef<Restless>);

struct Rise;

impl Actor for Restless {
    const NAME: &'static str = "test.restless";
}

impl Handler<Rise> for Restless {
    type Reply = ();

    async fn handle(&mut self, _: Rise, _: &mut Context<Self>) {}
}

impl Drop for Restless {
    fn drop(&mut self) {
        self.0.send(Rise).try_tell().ok();
    }
}

#[test]
fn an_actor_that_tells_itself_in_each_of_its_drops_does_not_outlive_a_shutdown() {
    within(On::Workers(2), async {
        let node = Node::builder("test")
            .actor(async |start: Start<Restless>| Ok(Restless(start.address().clone())))
            .build();
        let restless = node.get::<Restless>("a");
        restless.send(Rise).await.unwrap();
        soon("the shutdown", node.shutdown(Duration::from_millis(100))).await;
        assert!(restless.is_stopped());
        assert!(restless.send(Rise).try_tell().is_err());
    });
}
