//! What an actor fails with is foreign code: it may panic when it is dropped, wherever the runtime
//! drops it. That ends nothing but what the failure itself ends.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{
    AtDrop, Cause, Charge, Flex, On, Watch, Watcher, act, flex, nothing, settle, soon, watched,
    within,
};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, Handler, Node, RestartPolicy,
    StopReason, Supervision, WeakRef,
};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

fn cause() -> Cause<Charge> {
    Cause(Charge)
}

/// Fails when it is told to, or in its last hook.
struct Frail {
    fails_last: bool,
}

enum Fail {
    Now,
    AndPanic,
    AndWait,
    InTheEnd,
}

struct Look;

impl Actor for Frail {
    const NAME: &'static str = "test.frail";

    fn options() -> ActorOptions {
        let policy = RestartPolicy { restarts_max: 1, ..RestartPolicy::default() };
        ActorOptions::default().supervision(Supervision::Restart(policy))
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        if self.fails_last {
            ctx.fail(cause());
        }
    }
}

impl Handler<Fail> for Frail {
    type Reply = ();

    async fn handle(&mut self, how: Fail, ctx: &mut Context<Self>) {
        if let Fail::InTheEnd = how {
            self.fails_last = true;
            return;
        }
        ctx.fail(cause());
        match how {
            Fail::Now | Fail::InTheEnd => {}
            Fail::AndPanic => panic!("on purpose"),
            Fail::AndWait => pending().await,
        }
    }
}

impl Handler<Look> for Frail {
    type Reply = ();

    async fn handle(&mut self, _: Look, _: &mut Context<Self>) {}
}

/// A frail actor, and how many lives it has begun.
fn frail(node: &Node) -> (ActorRef<Frail>, Arc<AtomicU32>) {
    let lives = Arc::new(AtomicU32::new(0));
    let counted = lives.clone();
    let actor = node.spawn_with(move |_| {
        counted.fetch_add(1, SeqCst);
        async { Ok(Frail { fails_last: false }) }
    });
    (actor, lives)
}

fn node() -> Node {
    Node::builder("test").build()
}

#[test]
fn a_stop_holds_though_the_last_hook_fails_with_a_cause_whose_drop_panics() {
    within(On::PausedTime, async {
        let (actor, lives) = frail(&node());
        actor.send(Fail::InTheEnd).await.unwrap();
        soon("the stop", actor.stop()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((lives.load(SeqCst), actor.is_active()), (1, false));
    });
}

#[test]
fn a_kill_holds_though_the_handler_has_failed_with_a_cause_whose_drop_panics() {
    within(On::PausedTime, async {
        let (actor, lives) = frail(&node());
        actor.send(Fail::AndWait).try_tell().unwrap();
        settle().await;
        actor.kill();
        soon("the end", actor.stopped()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((lives.load(SeqCst), actor.is_active()), (1, false));
    });
}

#[test]
fn a_handler_that_fails_with_a_cause_whose_drop_panics_has_failed_once() {
    within(On::PausedTime, async {
        let (actor, lives) = frail(&node());
        actor.send(Fail::Now).await.unwrap();
        assert_eq!(soon("the next life", actor.send(Look)).await, Ok(()));
        assert_eq!(lives.load(SeqCst), 2);
    });
}

#[test]
fn a_panic_after_a_cause_whose_drop_panics_is_one_like_any_other() {
    within(On::PausedTime, async {
        let (actor, lives) = frail(&node());
        // From now on it is asked in place.
        actor.send(Look).await.unwrap();
        actor.send(Look).await.unwrap();
        let asker = actor.clone();
        let asked = tokio::spawn(async move { asker.send(Fail::AndPanic).await }).await;
        let asked = asked.expect("the asker does not panic");
        assert_eq!(asked, Err(AskError::HandlerPanicked(actor.id())));
        assert_eq!(soon("the next life", actor.send(Look)).await, Ok(()));
        assert_eq!(lives.load(SeqCst), 2);

        let (told, lives) = frail(&node());
        told.send(Fail::AndPanic).try_tell().unwrap();
        assert_eq!(soon("the next life", told.send(Look)).await, Ok(()));
        assert_eq!(lives.load(SeqCst), 2);
    });
}

#[test]
fn an_actor_has_ended_with_its_runtime_though_the_drop_of_its_cause_panics() {
    watched(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let actor = runtime.block_on(async {
            let (actor, _) = frail(&node());
            actor.send(Fail::AndWait).try_tell().unwrap();
            settle().await;
            actor
        });
        drop(runtime);
        let other = Builder::new_current_thread().enable_all().build().unwrap();
        other.block_on(async { soon("the end", actor.stopped()).await });
    });
}

/// Says that it has begun, and waits until nobody keeps that actor any longer, without letting go of
/// its thread.
struct Outlive(oneshot::Sender<()>, WeakRef<Mortal>);

impl Handler<Outlive> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Outlive(begun, other): Outlive, ctx: &mut Context<Self>) {
        begun.send(()).expect("it waits");
        while other.upgrade().is_some() {
            std::thread::yield_now();
        }
        ctx.address().kill();
        pending().await
    }
}

/// Fails for good.
struct Mortal;

impl Actor for Mortal {
    const NAME: &'static str = "test.mortal";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Stop)
    }
}

impl Handler<Fail> for Mortal {
    type Reply = ();

    async fn handle(&mut self, _: Fail, ctx: &mut Context<Self>) {
        ctx.fail(cause());
    }
}

#[test]
fn a_kill_holds_though_unread_news_of_an_end_panic_in_their_drop() {
    within(On::Workers(2), async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let node = node();
        let watcher = node.spawn_with(move |_| {
            counted.fetch_add(1, SeqCst);
            async { Ok(Watcher) }
        });
        let mortal = node.spawn(Mortal);
        watcher.send(Watch(mortal.clone())).await.unwrap();
        let (begun, has_begun) = oneshot::channel();
        watcher.send(Outlive(begun, mortal.downgrade())).try_tell().unwrap();
        has_begun.await.unwrap();
        mortal.send(Fail::Now).try_tell().unwrap();
        drop(mortal);
        soon("the end", watcher.stopped()).await;
        settle().await;
        assert_eq!((lives.load(SeqCst), watcher.is_active()), (1, false));
    });
}

/// Does not start.
struct Stillborn;

impl Actor for Stillborn {
    const NAME: &'static str = "test.stillborn";
}

impl Handler<Look> for Stillborn {
    type Reply = ();

    async fn handle(&mut self, _: Look, _: &mut Context<Self>) {}
}

#[test]
fn a_node_goes_on_unloading_though_the_drop_of_a_cause_panics() {
    within(On::PausedTime, async {
        let options = ActorOptions::default().passivate_after(Duration::from_secs(60));
        let node = Node::builder("test")
            .actor(async |_| Err::<Stillborn, ActorError>(cause().into()))
            .actor(async |_| Ok(Frail { fails_last: false }))
            .options::<Frail>(options)
            .build();
        node.get::<Stillborn>("a").send(Look).await.expect_err("it does not start");
        let idle = node.get::<Frail>("a");
        idle.send(Look).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(!idle.is_active(), "it was idle for long enough");
    });
}

/// Fails and stops in one handler.
struct FailAndStop(Arc<AtomicU32>);

impl Handler<FailAndStop> for Frail {
    type Reply = ();

    async fn handle(&mut self, FailAndStop(drops): FailAndStop, ctx: &mut Context<Self>) {
        ctx.fail(Cause(AtDrop(move || {
            drops.fetch_add(1, SeqCst);
        })));
        ctx.stop();
    }
}

#[test]
fn an_actor_that_has_failed_and_then_stops_itself_keeps_no_cause() {
    within(On::PausedTime, async {
        let node = Node::builder("test").actor(async |_| Ok(Frail { fails_last: false })).build();
        let (actor, drops) = (node.get::<Frail>("a"), Arc::new(AtomicU32::new(0)));
        actor.send(FailAndStop(drops.clone())).await.unwrap();
        soon("the stop", actor.stopped()).await;
        settle().await;
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// What somebody fails with, and cannot say.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a text on purpose")
    }
}

impl std::error::Error for Unspeakable {}

#[test]
fn a_cause_whose_text_panics_is_one_like_any_other() {
    within(On::PausedTime, async {
        let node = node();
        let actor = node.spawn_with(async |_| Ok(Flex::default()));
        actor.send(act(|_, ctx| ctx.fail(Unspeakable))).await.unwrap();
        assert_eq!(soon("the next life", actor.send(nothing())).await, Ok(0));
        let kind = &node.metrics().kinds[0];
        assert_eq!((kind.restarted, kind.panicked), (1, 0));
    });
}

#[test]
fn who_lets_go_of_the_last_address_is_not_failed_by_the_cause_of_an_end() {
    within(On::PausedTime, async {
        let options = ActorOptions::default().supervision(Supervision::Stop);
        let node = Node::builder("test").options::<Flex>(options).build();
        let actor = flex(&node);
        actor.send(act(|_, ctx| ctx.fail(cause()))).await.unwrap();
        soon("the end", actor.stopped()).await;
        settle().await;
        drop(actor);
    });
}
