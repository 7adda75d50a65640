//! Many drops that panic at once. Each comes while nothing else unwinds, so that none of them ends
//! the process.
//!
//! A program whose drop panics during another panic is aborted by the language. So the runtime must
//! not drop a list of foreign values in one go. Each test runs in a process of its own.

use std::future::pending;

use crate::support::{Flex, On, act, alone, flex, later, node, nothing, settle, soon, within};
use althing::{Actor, ActorRef, Context, Handler, Read, ReadHandler, Receives};
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
