//! Nothing grows without a bound, and no list makes each of its members pay for all others.
//!
//! Costs are compared at two sizes: eight times as much work may take a good deal more than eight times as long, but not 64 times.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use althing::{
    Actor, ActorOptions, ActorRef, Context, Handler, MailboxKind, Node, Read, ReadHandler, Receives,
};
use parking_lot::Mutex;
use support::{Flex, On, act, alone, flex, node, within};
use tokio::sync::Notify;

/// What eight times as much work may take, beside what one does.
const TIMES_MAX: u32 = 24;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the system tells");
    statm
        .split_whitespace()
        .nth(1)
        .expect("the system tells")
        .parse::<usize>()
        .expect("the system tells")
        * 4_096
}

/// Has room for four messages.
struct Reader(Arc<Notify>);

struct Look;

impl Actor for Reader {
    const NAME: &'static str = "test.reader";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(4))
    }
}

impl Receives<Look> for Reader {
    type Reply = ();
    type Way = Read;
}

impl ReadHandler<Look> for Reader {
    type Reply = ();

    async fn read(&self, _: Look, _: &Context<Self>) {
        self.0.notified().await;
    }
}

#[test]
fn a_mailbox_bounds_the_reads_that_overlap() {
    within(On::OneThread, async {
        let reader = node().spawn(Reader(Arc::default()));
        let mut taken = 0;
        for _ in 0..2_000 {
            taken += u32::from(reader.send(Look).try_tell().is_ok());
            tokio::task::yield_now().await;
        }
        assert!(taken < 2_000, "room for four, and {taken} reads none of which has ended");
    });
}

/// How long it takes until that many children have stopped, one after the other, the last one first.
async fn stopping_children(children: usize) -> Duration {
    let parent = flex(&node());
    let spawned = Arc::<Mutex<Vec<ActorRef<Flex>>>>::default();
    let list = spawned.clone();
    let spawning = act(move |_, ctx| {
        let child = || ctx.spawn(async |_| Ok(Flex::default()));
        list.lock().extend(std::iter::repeat_with(child).take(children));
    });
    parent.send(spawning).timeout(Duration::from_secs(15)).await.expect("it runs");
    let spawned = std::mem::take(&mut *spawned.lock());
    let begun = Instant::now();
    for child in spawned.iter().rev() {
        child.stop().await;
    }
    begun.elapsed()
}

#[test]
fn the_end_of_a_child_costs_the_same_beside_many_others() {
    within(On::OneThread, async {
        let (few, many) = (stopping_children(2_000).await, stopping_children(16_000).await);
        assert!(many < few * TIMES_MAX, "2,000: {few:?}, 16,000: {many:?}");
    });
}

struct Named;

impl Actor for Named {
    const NAME: &'static str = "test.named";
}

/// In a process of its own, whose memory nobody else uses.
#[test]
fn an_actor_that_is_activated_again_and_again_takes_no_more_memory() {
    alone("an_actor_that_is_activated_again_and_again_takes_no_more_memory", || {
        within(On::OneThread, async {
            let node = Node::builder("test").actor(async |_| Ok(Named)).build();
            let named = node.get::<Named>("a");
            let before = resident_bytes();
            for _ in 0..500_000 {
                named.activate();
            }
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 4 << 20, "{} KiB after half a million calls", grown >> 10);
        });
    });
}

/// Hears of ends.
struct Overseer;

struct Watch(ActorRef<Bulky>);

impl Actor for Overseer {
    const NAME: &'static str = "test.overseer";
}

impl Handler<Watch> for Overseer {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

/// Whose state lies in its place, as all do.
struct Bulky(#[expect(dead_code, reason = "it is there to take room")] [u8; 64 << 10]);

impl Actor for Bulky {
    const NAME: &'static str = "test.bulky";
}

const OVERSEEN: &str = "a_watcher_keeps_no_memory_of_those_whose_end_it_has_heard_of";

#[test]
fn a_watcher_keeps_no_memory_of_those_whose_end_it_has_heard_of() {
    alone(OVERSEEN, || {
        within(On::OneThread, async {
            let node = node();
            let overseer = node.spawn(Overseer);
            let before = resident_bytes();
            for _ in 0..1_000 {
                let bulky = node.spawn(Bulky([1; 64 << 10]));
                overseer.send(Watch(bulky.clone())).await.unwrap();
                bulky.stop().await;
            }
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 8 << 20, "{} KiB after a thousand ends", grown >> 10);
        });
    });
}
