//! Many drops that panic at once. Each comes while nothing else unwinds, so that none of them ends
//! the process.
//!
//! A program whose drop panics during another panic is aborted by the language. So the runtime must
//! not drop a list of foreign values in one go. Each test runs in a process of its own.

use std::fmt;
use std::future::pending;
use std::time::Duration;

use crate::support::{Flex, On, act, alone, flex, later, node, nothing, settle, soon, within};
use althing::{
    Actor, ActorError, ActorRef, Context, Handler, Node, Read, ReadHandler, Receives, Terminated,
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

/// What somebody fails with.
struct Cause(Bomb);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on purpose")
    }
}

impl std::error::Error for Cause {}

/// Does not start.
struct Stillborn;

impl Actor for Stillborn {
    const NAME: &'static str = "test.stillborn";
}

impl Handler<Look> for Stillborn {
    type Reply = ();

    async fn handle(&mut self, _: Look, _: &mut Context<Self>) {}
}

struct Watcher;

struct Watch(ActorRef<Flex>);
struct Wait;

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, _: Terminated) {}
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

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
