//! One life ends once, and the next begins only for something to do.
//!
//! What one life asked for (its own stop, a watch, a link) must not be taken for the wish of the
//! next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Flex, On, act, settle, soon, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, Handler, Node, RestartPolicy,
    Start, StopReason, Supervision,
};
use tokio::sync::Notify;

/// Counts lives and messages; asks for its own stop in one of its hooks.
#[derive(Clone, Default)]
struct Named {
    stops_in: Option<Hook>,
    lives: Arc<AtomicU32>,
    handled: Arc<AtomicU32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Hook {
    Started,
    Stopping,
}

struct Touch;
struct Unload;
struct Link(ActorRef<Named>);
struct WatchYourself;

impl Actor for Named {
    const NAME: &'static str = "test.named";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.lives.fetch_add(1, SeqCst);
        if self.stops_in == Some(Hook::Started) {
            ctx.stop();
        }
        Ok(())
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if self.stops_in == Some(Hook::Stopping) {
            ctx.stop();
        }
    }
}

impl Handler<Touch> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {
        self.handled.fetch_add(1, SeqCst);
    }
}

impl Handler<Unload> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

impl Handler<Link> for Named {
    type Reply = ();

    async fn handle(&mut self, Link(other): Link, ctx: &mut Context<Self>) {
        ctx.link(&other);
    }
}

impl Handler<WatchYourself> for Named {
    type Reply = ();

    async fn handle(&mut self, _: WatchYourself, ctx: &mut Context<Self>) {
        let me = ctx.address();
        ctx.watch(&me);
    }
}

/// A node of such actors, and what they count together.
fn node_of(stops_in: Option<Hook>) -> (Node, Named) {
    let counts = Named { stops_in, ..Named::default() };
    let each = counts.clone();
    let node = Node::builder("test")
        .actor(move |_: Start<Named>| {
            let named = each.clone();
            async move { Ok(named) }
        })
        .build();
    (node, counts)
}

#[test]
fn a_stop_asked_for_in_the_last_hook_does_not_stop_the_next_life() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(Some(Hook::Stopping));
        let named = node.get::<Named>("a");
        named.send(Touch).await.unwrap();
        drop(named.stop());
        settle().await;
        // It comes while the hook runs, and begins the next life.
        assert_eq!(named.send(Touch).await, Ok(()));
        assert_eq!((counts.lives.load(SeqCst), counts.handled.load(SeqCst)), (2, 2));
    });
}

#[test]
fn an_actor_that_stops_itself_as_it_starts_refuses_what_waits() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(Some(Hook::Started));
        let asked = node.get::<Named>("a").send(Touch).await;
        assert!(!matches!(asked, Err(AskError::Timeout(_))), "{asked:?}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let lives = counts.lives.load(SeqCst);
        assert!(lives <= 2, "{lives} lives for one message");
    });
}

#[test]
fn an_anonymous_actor_that_stops_itself_as_it_starts_has_ended() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(None);
        let actor = node.spawn(Named { stops_in: Some(Hook::Started), ..counts });
        soon("the end", actor.stopped()).await;
        assert!(matches!(actor.send(Touch).await, Err(AskError::Stopped(_))));
    });
}

#[test]
fn an_actor_that_watches_itself_ends_like_any_other() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(None);
        let named = node.get::<Named>("a");
        named.send(WatchYourself).await.unwrap();
        soon("the stop", named.stop()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((counts.lives.load(SeqCst), named.is_active()), (1, false));
    });
}

#[test]
fn an_actor_that_is_linked_to_itself_ends_like_any_other() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(None);
        let named = node.get::<Named>("a");
        named.send(Link(named.clone())).await.unwrap();
        soon("the stop", named.stop()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((counts.lives.load(SeqCst), named.is_active()), (1, false));
    });
}

#[test]
fn linked_actors_that_have_ended_do_not_start_again_to_end_each_other() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(None);
        let (a, b) = (node.get::<Named>("a"), node.get::<Named>("b"));
        b.send(Touch).await.unwrap();
        a.send(Link(b.clone())).await.unwrap();
        a.stop().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(counts.lives.load(SeqCst), 2);
        assert!(!a.is_active() && !b.is_active());
    });
}

#[test]
fn a_linked_actor_that_sleeps_is_not_started_to_be_stopped() {
    within(On::PausedTime, async {
        let (node, counts) = node_of(None);
        let (a, b) = (node.get::<Named>("a"), node.get::<Named>("b"));
        a.send(Link(b.clone())).await.unwrap();
        b.send(Unload).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!b.is_active());
        a.stop().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(counts.lives.load(SeqCst), 2);
    });
}

/// Restarts wait longer each time; a stop does not wait for them.
#[test]
fn an_actor_that_pauses_before_a_restart_stops_at_once() {
    const HOUR: Duration = Duration::from_secs(3_600);
    within(On::PausedTime, async {
        let policy = RestartPolicy { backoff: HOUR, backoff_max: HOUR, ..RestartPolicy::default() };
        let options = ActorOptions::default().supervision(Supervision::Restart(policy));
        let node = Node::builder("test").options::<Flex>(options).build();
        let builds = Arc::new(AtomicU32::new(0));
        let counted = builds.clone();
        let actor = node.spawn_with(move |_| {
            counted.fetch_add(1, SeqCst);
            async { Ok(Flex::default()) }
        });
        // The first restart is at once, the second after an hour.
        for _ in 0..2 {
            actor.send(act(|_, _| panic!("on purpose"))).await.unwrap_err();
        }
        let before = builds.load(SeqCst);
        soon("the stop", actor.stop()).await;
        assert_eq!(builds.load(SeqCst), before, "it was built to be stopped");
    });
}

/// Asked before the failure that the pause follows: by then the request lies behind the handler
/// that fails.
#[test]
fn an_actor_that_was_asked_to_stop_before_it_failed_does_not_wait_out_its_pause() {
    const HOUR: Duration = Duration::from_secs(3_600);
    within(On::PausedTime, async {
        let policy = RestartPolicy { backoff: HOUR, backoff_max: HOUR, ..RestartPolicy::default() };
        let options = ActorOptions::default().supervision(Supervision::Restart(policy));
        let node = Node::builder("test").options::<Flex>(options).build();
        let actor = node.spawn_with(async |_| Ok(Flex::default()));
        // The first restart is at once, the second after an hour.
        actor.send(act(|_, _| panic!("on purpose"))).await.unwrap_err();
        let (fail, failing) = tokio::sync::oneshot::channel::<()>();
        let failing = crate::support::later(async move {
            failing.await.ok();
            panic!("on purpose");
        });
        actor.send(failing).try_tell().unwrap();
        crate::support::settle().await;
        let stopped = actor.stop();
        crate::support::settle().await;
        fail.send(()).unwrap();
        soon("the stop", stopped).await;
    });
}

/// Fails itself as its first life starts; waits in a handler until the test lets it go on.
#[derive(Clone, Default)]
struct FailsOnce {
    lives: Arc<AtomicU32>,
    handled: Arc<AtomicU32>,
    gate: Arc<Notify>,
}

struct Wait;

impl Actor for FailsOnce {
    const NAME: &'static str = "test.fails-once";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        if self.lives.fetch_add(1, SeqCst) == 0 {
            ctx.fail(ActorError::new("on purpose"));
        }
        Ok(())
    }
}

impl Handler<Wait> for FailsOnce {
    type Reply = ();

    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        self.gate.notified().await;
    }
}

impl Handler<Touch> for FailsOnce {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {
        self.handled.fetch_add(1, SeqCst);
    }
}

/// Messages that come after a stop which follows a start that failed.
fn after_a_start_that_failed(supervision: Supervision) {
    within(On::PausedTime, async move {
        let FailsOnce { lives, handled, gate } = FailsOnce::default();
        let each = FailsOnce { lives, handled: handled.clone(), gate: gate.clone() };
        let node = Node::builder("test")
            .options::<FailsOnce>(ActorOptions::default().supervision(supervision))
            .actor(move |_| {
                let actor = each.clone();
                async move { Ok(actor) }
            })
            .build();
        let actor = node.get::<FailsOnce>("a");
        for _ in 0..2 {
            actor.send(Wait).try_tell().unwrap();
        }
        settle().await;
        let stopped = actor.stop();
        gate.notify_one();
        settle().await;
        actor.send(Touch).try_tell().unwrap();
        gate.notify_one();
        soon("the stop", stopped).await;
        settle().await;
        assert_eq!(handled.load(SeqCst), 1, "it comes after the stop: the next life runs it");
    });
}

#[test]
fn a_start_that_failed_takes_nothing_from_the_lives_after_it() {
    after_a_start_that_failed(Supervision::default());
}

#[test]
fn a_start_that_failed_takes_nothing_from_the_life_that_goes_on() {
    after_a_start_that_failed(Supervision::Resume);
}
