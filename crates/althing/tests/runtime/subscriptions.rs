//! How long a subscription lasts: an actor that is unloaded keeps it, a stop ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{On, within};
use althing::{
    Actor, ActorRef, Context, EventHandler, Handler, Node, Published, StopReason, Subscription,
    Topic, TopicOptions,
};
use tokio::sync::oneshot;

/// Waits for what comes in any case; the watchdog ends a test for which it does not.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

struct Named {
    starts: Arc<AtomicU32>,
    heard: Arc<AtomicU32>,
}

struct Touch;
struct Sleep;

impl Actor for Named {
    const NAME: &'static str = "test.named";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), althing::ActorError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl EventHandler<u64> for Named {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

impl Handler<Touch> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

impl Handler<Sleep> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Sleep, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

/// Stops the actor once it resolves.
struct Quit(oneshot::Receiver<()>);

impl Handler<Quit> for Named {
    type Reply = ();

    async fn handle(&mut self, Quit(wait): Quit, ctx: &mut Context<Self>) {
        wait.await.ok();
        ctx.stop();
    }
}

struct World {
    actor: ActorRef<Named>,
    topic: Topic<u64>,
    starts: Arc<AtomicU32>,
    heard: Arc<AtomicU32>,
}

fn world() -> World {
    let (starts, heard) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (to_starts, to_heard) = (starts.clone(), heard.clone());
    let node = Node::builder("topics")
        .actor(move |_| {
            let (starts, heard) = (to_starts.clone(), to_heard.clone());
            async move { Ok(Named { starts, heard }) }
        })
        .build();
    World { actor: node.get("a"), topic: node.topic("t", TopicOptions::default()), starts, heard }
}

impl World {
    fn counts(&self) -> (u32, u32) {
        (self.starts.load(Ordering::Relaxed), self.heard.load(Ordering::Relaxed))
    }
}

#[test]
fn an_event_wakes_a_passivated_subscriber() {
    within(On::OneThread, async {
        let world = world();
        let _subscription = world.topic.subscribe(&world.actor);
        world.actor.send(Sleep).await.unwrap();
        until(|| !world.actor.is_active()).await;
        world.topic.publish(1).unwrap();
        until(|| world.counts() == (2, 1)).await;
    });
}

#[test]
fn an_event_starts_a_named_subscriber_that_has_not_lived_yet() {
    within(On::OneThread, async {
        let world = world();
        let _subscription = world.topic.subscribe(&world.actor);
        world.topic.publish(1).unwrap();
        until(|| world.counts() == (1, 1)).await;
    });
}

#[test]
fn a_subscription_ends_with_a_stop_also_for_later_lives() {
    within(On::OneThread, async {
        let world = world();
        let _subscription = world.topic.subscribe(&world.actor);
        world.actor.send(Touch).await.unwrap();
        world.actor.stop().await;
        // Started by a message, idle: an event would run in place.
        world.actor.send(Touch).await.unwrap();
        world.topic.publish(1).unwrap();
        world.actor.send(Touch).await.unwrap();
        assert_eq!((world.counts(), world.topic.subscribers()), ((2, 0), 0));
        // Who subscribes anew hears the next.
        let _subscription = world.topic.subscribe(&world.actor);
        world.topic.publish(2).unwrap();
        until(|| world.counts() == (2, 1)).await;
    });
}

#[test]
fn an_event_that_waits_when_its_subscriber_stops_starts_no_new_life() {
    within(On::OneThread, async {
        let world = world();
        let _subscription = world.topic.subscribe(&world.actor);
        let (release, wait) = oneshot::channel();
        world.actor.send(Quit(wait)).try_tell().unwrap();
        until(|| world.counts().0 == 1).await;
        world.topic.publish(1).unwrap();
        release.send(()).unwrap();
        world.actor.stopped().await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!((world.counts(), world.actor.is_active()), ((1, 0), false));
    });
}

/// Subscribes in its last hook; somebody else keeps the subscription.
struct Late {
    topic: Topic<u64>,
    kept: Kept,
}

type Kept = Arc<parking_lot::Mutex<Option<Subscription>>>;

impl Actor for Late {
    const NAME: &'static str = "test.late";

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        *self.kept.lock() = Some(self.topic.subscribe(&ctx.address()));
    }
}

impl EventHandler<u64> for Late {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {}
}

#[test]
fn a_subscription_of_the_last_hook_ends_with_the_life_whose_hook_it_was() {
    within(On::OneThread, async {
        let kept = Kept::default();
        let topic = Node::builder("radio").build().topic("t", TopicOptions::default());
        let (heard, keeping) = (topic.clone(), kept.clone());
        let factory = move |_| {
            let (topic, kept) = (heard.clone(), keeping.clone());
            async { Ok(Late { topic, kept }) }
        };
        let late = Node::builder("test").actor(factory).build().get::<Late>("a");
        late.activate();
        until(|| late.is_active()).await;
        late.stop().await;
        assert_eq!(topic.subscribers(), 1);
        topic.publish(1).expect("nobody owns it");
        until(|| topic.subscribers() == 0).await;
        assert!(!late.is_active(), "no event has begun another life");
        drop(kept);
    });
}
