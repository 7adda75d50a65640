//! Many drops that panic at once. Each comes while nothing else unwinds, so that none of them ends
//! the process.
//!
//! A program whose drop panics during another panic is aborted by the language. So the runtime must
//! not drop a list of foreign values in one go. Each test runs in a process of its own.

use std::fmt;
use std::future::pending;
use std::time::Duration;

use crate::support::{
    Cause, Flex, On, Watch, Watcher, act, alone, flex, later, node, nothing, settle, soon, within,
};
use althing::{
    Actor, ActorError, ActorRef, Context, EventHandler, Handler, Node, Published, Read,
    ReadHandler, Receives, Topic, TopicOptions,
};
use tokio::runtime::Builder;

/// Panics when it is dropped, whatever else goes on.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a drop on purpose");
    }
}

struct Armed(Bomb);

impl Handler<Armed> for Flex {
    type Reply = ();

    async fn handle(&mut self, Armed(bomb): Armed, _: &mut Context<Self>) {
        std::mem::forget(bomb);
    }
}

fn tell_four(actor: &ActorRef<Flex>) {
    for _ in 0..4 {
        actor.send(Armed(Bomb)).try_tell().expect("there is room");
    }
}

struct Reader;

struct Look;

impl Actor for Reader {
    const NAME: &'static str = "test.reader";
}

impl Receives<Look> for Reader {
    type Reply = ();
    type Way = Read;
}

impl ReadHandler<Look> for Reader {
    type Reply = ();

    async fn read(&self, _: Look, _: &Context<Self>) {
        let _bomb = Bomb;
        pending().await
    }
}

#[test]
fn of_reads_that_overlap() {
    alone("drop_bombs::of_reads_that_overlap", || {
        within(On::PausedTime, async {
            let reader = node().spawn(Reader);
            reader.send(Look).try_tell().unwrap();
            reader.send(Look).try_tell().unwrap();
            settle().await;
            reader.kill();
            soon("the end", reader.stopped()).await;
        });
    });
}

#[test]
fn of_a_handlers_tells_to_an_actor_that_it_has_killed() {
    alone("drop_bombs::of_a_handlers_tells_to_an_actor_that_it_has_killed", || {
        within(On::PausedTime, async {
            let node = node();
            let (teller, killed) = (flex(&node), flex(&node));
            let telling = act(move |_, _| {
                tell_four(&killed);
                killed.kill();
            });
            teller.send(telling).try_tell().unwrap();
            settle().await;
            // It failed, or it did not: who asks it hears so in time.
            soon("an answer", async { teller.send(nothing()).await.ok() }).await;
        });
    });
}

#[test]
fn of_messages_that_wait_for_an_actor_that_is_killed() {
    alone("drop_bombs::of_messages_that_wait_for_an_actor_that_is_killed", || {
        within(On::PausedTime, async {
            let actor = flex(&node());
            let me = actor.clone();
            actor.send(act(move |_, _| me.kill())).try_tell().unwrap();
            tell_four(&actor);
            soon("the end", actor.stopped()).await;
        });
    });
}

#[test]
fn of_messages_that_wait_when_their_runtime_ends() {
    alone("drop_bombs::of_messages_that_wait_when_their_runtime_ends", || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let actor = runtime.block_on(async {
            let actor = flex(&node());
            actor.send(later(pending())).try_tell().unwrap();
            tell_four(&actor);
            tokio::task::yield_now().await;
            actor
        });
        drop(runtime);
        drop(actor);
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

struct Wait;

impl Handler<Wait> for Watcher {
    type Reply = ();

    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        pending().await
    }
}

#[test]
fn of_the_causes_of_ends_that_a_killed_watcher_has_not_heard_of() {
    alone("drop_bombs::of_the_causes_of_ends_that_a_killed_watcher_has_not_heard_of", || {
        within(On::PausedTime, async {
            let node = node();
            let watcher = node.spawn(Watcher);
            let failing = [flex(&node), flex(&node), flex(&node)];
            for other in &failing {
                watcher.send(Watch(other.clone())).await.unwrap();
            }
            watcher.send(Wait).try_tell().unwrap();
            settle().await;
            for other in failing {
                let failing = act(|_, ctx| ctx.fail(Cause(Bomb)));
                other.send(failing).await.unwrap();
                other.stopped().await;
            }
            settle().await;
            watcher.kill();
            soon("the end", watcher.stopped()).await;
        });
    });
}

#[test]
fn of_the_causes_of_ends_when_addresses_that_nobody_holds_are_forgotten() {
    alone(
        "drop_bombs::of_the_causes_of_ends_when_addresses_that_nobody_holds_are_forgotten",
        || {
            within(On::PausedTime, async {
                let node = Node::builder("test")
                    .actor(async |_| Err::<Stillborn, ActorError>(Cause(Bomb).into()))
                    .build();
                // Several in each part of the directory.
                for n in 0..500 {
                    let stillborn = node.get::<Stillborn>(n.to_string());
                    stillborn.send(Look).await.expect_err("it does not start");
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
                soon("the shutdown", node.shutdown(Duration::from_secs(1))).await;
            });
        },
    );
}

fn publish_four(topic: &Topic<Bomb>) {
    for _ in 0..4 {
        topic.publish(Bomb).expect("nobody owns it");
    }
}

#[test]
fn of_the_events_that_a_topic_keeps() {
    alone("drop_bombs::of_the_events_that_a_topic_keeps", || {
        within(On::PausedTime, async {
            let topic = node().topic::<Bomb>("t", TopicOptions { replay: 4 });
            publish_four(&topic);
            drop(topic);
        });
    });
}

struct Ear;

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<Bomb> for Ear {
    async fn event(&mut self, _: &Published<Bomb>, _: &mut Context<Self>) {}
}

#[test]
fn of_the_events_that_are_on_their_way_when_a_topic_goes() {
    alone("drop_bombs::of_the_events_that_are_on_their_way_when_a_topic_goes", || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (topic, subscriptions) = runtime.block_on(async {
            let node = node();
            let topic = node.topic::<Bomb>("t", TopicOptions { replay: 0 });
            // More than a publisher outside of the runtime delivers to itself.
            let subscriptions: Vec<_> =
                (0..600).map(|_| topic.subscribe(&node.spawn(Ear))).collect();
            (topic, subscriptions)
        });
        publish_four(&topic);
        assert!(topic.pending() > 0);
        drop((topic, subscriptions));
        drop(runtime);
    });
}

struct Sleeper;

impl Actor for Sleeper {
    const NAME: &'static str = "test.sleeper";
}

#[test]
fn of_what_the_factories_of_several_types_hold() {
    alone("drop_bombs::of_what_the_factories_of_several_types_hold", || {
        within(On::PausedTime, async {
            for is_killed in [false, true] {
                let (one, other) = (Bomb, Bomb);
                let sleeper = move |_| {
                    let _held = &one;
                    async { Ok(Sleeper) }
                };
                let ear = move |_| {
                    let _held = &other;
                    async { Ok(Ear) }
                };
                let node = Node::builder("test").actor(sleeper).actor(ear).build();
                if is_killed {
                    node.kill();
                } else {
                    soon("the shutdown", node.shutdown(Duration::from_secs(1))).await;
                }
            }
        });
    });
}

/// Cannot say what it is, and panics when it is dropped.
struct Unspeakable(Bomb);

impl fmt::Debug for Unspeakable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unspeakable")
    }
}

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a text on purpose")
    }
}

impl std::error::Error for Unspeakable {}

#[test]
fn of_a_cause_whose_text_panics_too() {
    alone("drop_bombs::of_a_cause_whose_text_panics_too", || {
        within(On::PausedTime, async {
            let actor = node().spawn_with(async |_| Ok(Flex::default()));
            let failing = act(|_, ctx| ctx.fail(Unspeakable(Bomb)));
            actor.send(failing).try_tell().unwrap();
            assert_eq!(soon("the next life", actor.send(nothing())).await, Ok(0));
        });
    });
}
