//! What has ended is freed: wakers, watchers and children of an actor that lives on.

use std::future::Future;
use std::sync::Arc;
use std::task::{self, Wake, Waker};
use std::time::Duration;

use crate::support::{Flex, On, act, flex, node, settle, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, Handler, Node, StopReason, Supervision,
    WeakRef,
};
use parking_lot::Mutex;

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// A `select!` in a loop polls what it waits for again and again.
#[test]
fn waiting_for_an_end_keeps_one_waker_however_often_it_is_polled() {
    within(On::OneThread, async {
        let actor = flex(&node());
        let woken = Arc::new(Nobody);
        let waker = Waker::from(woken.clone());
        let kept = || Arc::strong_count(&woken) - 2;
        let mut stopped = Box::pin(actor.stopped());
        for _ in 0..10_000 {
            let mut cx = task::Context::from_waker(&waker);
            assert!(stopped.as_mut().poll(&mut cx).is_pending());
        }
        assert!(kept() <= 1, "{} wakers are kept", kept());
        drop(stopped);
        assert_eq!(kept(), 0, "nobody waits any more");
    });
}

struct Watcher;

struct Watch(ActorRef<Flex>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

fn alive<A: Actor>(actors: &[WeakRef<A>]) -> usize {
    actors.iter().filter(|actor| actor.upgrade().is_some()).count()
}

#[test]
fn a_watched_actor_does_not_keep_watchers_that_have_stopped() {
    within(On::OneThread, async {
        let node = node();
        let watched = flex(&node);
        let mut watchers = Vec::new();
        for _ in 0..1_000 {
            let watcher = node.spawn(Watcher);
            watcher.send(Watch(watched.clone())).await.unwrap();
            watcher.stop().await;
            watchers.push(watcher.downgrade());
        }
        assert_eq!(alive(&watchers), 0);
    });
}

/// Never starts.
struct Refuses;

impl Actor for Refuses {
    const NAME: &'static str = "test.refuses";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        Err(ActorError::new("not today"))
    }
}

#[test]
fn a_parent_does_not_keep_children_that_never_started() {
    within(On::PausedTime, async {
        let parent = flex(&node());
        let children = Arc::<Mutex<Vec<WeakRef<Refuses>>>>::default();
        let spawned = children.clone();
        let spawning = act(move |_, ctx| {
            let child = || ctx.spawn(async |_| Ok(Refuses)).downgrade();
            spawned.lock().extend(std::iter::repeat_with(child).take(1_000));
        });
        parent.send(spawning).await.unwrap();
        settle().await;
        assert_eq!(alive(&children.lock()), 0);
    });
}

/// Fails whenever it is asked to, and leaves it to its parent.
struct Fragile;

struct Break;

impl Actor for Fragile {
    const NAME: &'static str = "test.fragile";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Escalate)
    }
}

impl Handler<Break> for Fragile {
    type Reply = ();

    async fn handle(&mut self, _: Break, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

#[test]
fn a_parent_does_not_keep_children_whose_failure_it_survived() {
    within(On::OneThread, async {
        let options = ActorOptions::default().supervision(Supervision::Resume);
        let node = Node::builder("test").options::<Flex>(options).build();
        let parent = flex(&node);
        let mut children = Vec::new();
        for _ in 0..100 {
            let child = Arc::new(Mutex::new(None));
            let spawned = child.clone();
            let spawning = act(move |_, ctx| {
                *spawned.lock() = Some(ctx.spawn(async |_| Ok(Fragile)));
            });
            parent.send(spawning).await.unwrap();
            let child = child.lock().take().expect("it was spawned");
            child.send(Break).await.unwrap_err();
            child.stopped().await;
            children.push(child.downgrade());
        }
        parent.send(act(|_, _| {})).await.expect("the parent goes on");
        settle().await;
        assert_eq!(alive(&children), 0);
    });
}

/// Links with somebody when it is unloaded.
struct Leaver(Arc<Mutex<Option<ActorRef<Flex>>>>);

struct Leave;

impl Actor for Leaver {
    const NAME: &'static str = "test.leaver";

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        if let Some(other) = self.0.lock().take() {
            ctx.link(&other);
        }
    }
}

impl Handler<Leave> for Leaver {
    type Reply = ();

    async fn handle(&mut self, _: Leave, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

#[test]
fn an_actor_that_sleeps_keeps_nothing_of_an_ended_one_that_it_linked_with() {
    within(On::OneThread, async {
        let other = flex(&node());
        let weak = other.downgrade();
        other.stop().await;
        let place = Arc::new(Mutex::new(Some(other)));
        let node = Node::builder("test")
            .actor(move |_| std::future::ready(Ok(Leaver(place.clone()))))
            .build();
        let leaver = node.get::<Leaver>("a");
        leaver.send(Leave).await.unwrap();
        leaver.stopped().await;
        settle().await;
        assert!(weak.upgrade().is_none());
        assert!(!leaver.is_active());
    });
}

/// Named; remembers others beyond its unloading.
struct Sleeper;

/// What a sleeper is to remember before it is unloaded.
enum Remember {
    Nothing,
    ToWake,
    ToHearOf(ActorRef<Sleeper>),
    ToStopWith(ActorRef<Sleeper>),
}

impl Actor for Sleeper {
    const NAME: &'static str = "test.sleeper";
}

impl Handler<Remember> for Sleeper {
    type Reply = ();

    async fn handle(&mut self, what: Remember, ctx: &mut Context<Self>) {
        match what {
            Remember::Nothing => {}
            Remember::ToWake => {
                ctx.wake_after(Duration::from_secs(1_000), Remember::Nothing);
            }
            Remember::ToHearOf(other) => ctx.watch(&other),
            Remember::ToStopWith(other) => ctx.link(&other),
        }
        ctx.passivate();
    }
}

/// A node is kept by its actors, and they by what they would come back for.
#[test]
fn a_node_is_freed_after_its_shutdown_whatever_its_sleepers_remember() {
    within(On::PausedTime, async {
        let remembered: [fn(ActorRef<Sleeper>) -> Remember; 4] =
            [|_| Remember::Nothing, |_| Remember::ToWake, Remember::ToHearOf, Remember::ToStopWith];
        for (n, remembered) in remembered.iter().enumerate() {
            let node = Node::builder("test").actor(async |_| Ok(Sleeper)).build();
            let other = node.get("other");
            node.get::<Sleeper>("a").send(remembered(other)).await.unwrap();
            settle().await;
            let weak = node.downgrade();
            node.shutdown(Duration::from_secs(1)).await;
            drop(node);
            // Passes over its directory.
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert!(weak.upgrade().is_none(), "{n}");
        }
    });
}
