//! Whoever watches hears of an end once for each life that it watches, whoever sleeps, starts or
//! stops meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Flex, On, act, flex, node, settle, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, Handler, Node, Start, StopReason,
    Supervision, Terminated,
};
use parking_lot::Mutex;

type News = Arc<Mutex<Vec<StopReason>>>;

/// Writes the news down, and takes a while to stop.
#[derive(Clone, Default)]
struct Watcher {
    news: News,
    lives: Arc<AtomicU32>,
}

struct Watch<A: Actor>(ActorRef<A>);
struct Unload;

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.lives.fetch_add(1, SeqCst);
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        // Stores its state.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.news.lock().push(other.reason);
    }
}

impl<A: Actor> Handler<Watch<A>> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch<A>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

impl Handler<Unload> for Watcher {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

/// A watcher that is built anew in each of its lives, and what it keeps beyond them.
fn named_watcher() -> (ActorRef<Watcher>, Watcher) {
    let kept = Watcher::default();
    let each = kept.clone();
    let node = Node::builder("test")
        .actor(move |_: Start<Watcher>| {
            let watcher = each.clone();
            async move { Ok(watcher) }
        })
        .build();
    (node.get("watcher"), kept)
}

#[test]
fn watching_an_actor_again_brings_no_second_news() {
    within(On::PausedTime, async {
        let node = node();
        let watched = flex(&node);
        let watcher = Watcher::default();
        let news = watcher.news.clone();
        let watcher = node.spawn(watcher);
        for _ in 0..3 {
            watcher.send(Watch(watched.clone())).await.unwrap();
        }
        watched.stop().await;
        settle().await;
        assert_eq!(*news.lock(), [StopReason::Requested]);
    });
}

/// When a watched actor ends while its watcher is being unloaded, the news begins the watcher's
/// next life.
async fn news_of_an_end_after(pause: Duration) -> Vec<StopReason> {
    let (watcher, kept) = named_watcher();
    let watched = flex(&watcher.node());
    watcher.send(Watch(watched.clone())).await.expect("it runs");
    watcher.send(Unload).await.expect("it runs");
    tokio::time::sleep(pause).await;
    watched.stop().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let news = kept.news.lock();
    news.clone()
}

#[test]
fn a_watcher_hears_of_an_end_while_it_is_being_unloaded_and_after() {
    within(On::PausedTime, async {
        for pause_ms in [500, 50] {
            let news = news_of_an_end_after(Duration::from_millis(pause_ms)).await;
            assert_eq!(news, [StopReason::Requested], "{pause_ms} ms after it was to unload");
        }
    });
}

#[test]
fn a_watch_ends_with_the_life_of_a_watcher_that_is_stopped() {
    within(On::PausedTime, async {
        let (watcher, kept) = named_watcher();
        let watched = flex(&watcher.node());
        watcher.send(Watch(watched.clone())).await.unwrap();
        watcher.stop().await;
        watched.stop().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((kept.lives.load(SeqCst), watcher.is_active()), (1, false));
    });
}

/// A named actor that is unloaded soon.
struct Entity;

struct Touch;

impl Actor for Entity {
    const NAME: &'static str = "test.entity";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(Duration::from_secs(2))
    }
}

impl Handler<Touch> for Entity {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

/// The node forgets addresses of sleepers that nobody holds; those who watch one still wait for its
/// end.
#[test]
fn an_actor_that_slept_is_still_watched_though_nobody_held_its_address() {
    within(On::PausedTime, async {
        let node = Node::builder("test").actor(async |_| Ok(Entity)).build();
        for held in [true, false] {
            let watcher = Watcher::default();
            let news = watcher.news.clone();
            let watcher = node.spawn(watcher);
            let entity = node.get::<Entity>("a");
            entity.send(Touch).await.unwrap();
            watcher.send(Watch(entity.clone())).await.unwrap();
            let kept = held.then_some(entity);
            // It is unloaded, which is no end.
            tokio::time::sleep(Duration::from_secs(10)).await;
            let entity = node.get::<Entity>("a");
            entity.send(Touch).await.unwrap();
            entity.stop().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(*news.lock(), [StopReason::Requested], "held: {held}");
            drop(kept);
        }
    });
}

/// Fails in its first hook: at once, which is while its parent starts it, or a moment later.
struct Child {
    at_once: bool,
}

impl Actor for Child {
    const NAME: &'static str = "test.child";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Escalate)
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        if !self.at_once {
            tokio::task::yield_now().await;
        }
        panic!("on purpose");
    }
}

#[test]
fn a_parent_hears_of_a_child_that_fails_while_it_starts() {
    within(On::PausedTime, async {
        let node = node();
        for at_once in [false, true] {
            let parent: ActorRef<Flex> = flex(&node);
            let spawning = act(move |_, ctx| {
                ctx.spawn(move |_| async move { Ok(Child { at_once }) });
            });
            parent.send(spawning).await.unwrap();
            settle().await;
            assert!(parent.is_stopped(), "at once: {at_once}");
        }
    });
}

struct WatchAnEnd(ActorRef<Flex>);

impl Handler<WatchAnEnd> for Watcher {
    type Reply = ();

    async fn handle(&mut self, WatchAnEnd(other): WatchAnEnd, ctx: &mut Context<Self>) {
        ctx.watch(&other);
        other.stop().await;
        settle().await;
        ctx.unwatch(&other);
    }
}

#[test]
fn a_watcher_that_takes_its_watch_back_does_not_hear_of_an_end_before_that() {
    within(On::PausedTime, async {
        let node = node();
        let watcher = Watcher::default();
        let news = watcher.news.clone();
        let watcher = node.spawn(watcher);
        watcher.send(WatchAnEnd(flex(&node))).await.unwrap();
        settle().await;
        assert_eq!(*news.lock(), []);
    });
}

/// Panics at the first news.
struct Shaken(News);

impl Actor for Shaken {
    const NAME: &'static str = "test.shaken";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        let heard = {
            let mut news = self.0.lock();
            news.push(other.reason);
            news.len()
        };
        assert_ne!(heard, 1, "on purpose");
    }
}

impl<A: Actor> Handler<Watch<A>> for Shaken {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch<A>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

#[test]
fn a_watcher_that_panics_at_one_end_hears_of_the_others() {
    within(On::PausedTime, async {
        let (node, news) = (node(), News::default());
        let heard = news.clone();
        let shaken = node.spawn_with(move |_| std::future::ready(Ok(Shaken(heard.clone()))));
        let watched = [(); 3].map(|()| flex(&node));
        for other in &watched {
            shaken.send(Watch(other.clone())).await.unwrap();
        }
        watched.iter().for_each(ActorRef::kill);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(news.lock().len(), 3);
    });
}
