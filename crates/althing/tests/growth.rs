//! Nothing grows without a bound, and no list makes each of its members pay for all others.
//!
//! Costs are compared at two sizes: eight times as much work may take a good deal more than eight
//! times as long, but not 64 times. They are the processor's time of the one thread that does it
//! all.

#[path = "runtime/support/mod.rs"]
mod support;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    Actor, ActorOptions, ActorRef, Context, Group, Handler, MailboxKind, Node, Read, ReadHandler,
    Receives, Terminated,
};
use futures_util::poll;
use parking_lot::Mutex;
use support::{Flex, Note, On, act, alone, flex, later, node, soon, within};
use tokio::sync::Notify;

/// What eight times as much work may take, beside what one does.
const TIMES_MAX: u32 = 24;

/// How long this thread has had a processor: time that others take does not count.
fn worked() -> Duration {
    // The system counts it when the thread gives way; else with the clock's tick, which is up to four
    // milliseconds late: as long as some of the work that is measured.
    std::thread::yield_now();
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat");
    let schedstat = schedstat.expect("the system tells");
    let nanoseconds = schedstat.split_whitespace().next().expect("the system tells");
    Duration::from_nanos(nanoseconds.parse().expect("the system tells"))
}

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

/// How long it takes until that many children have stopped, one after the other, the last one
/// first.
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
    let begun = worked();
    for child in spawned.iter().rev() {
        child.stop().await;
    }
    worked() - begun
}

#[test]
fn the_end_of_a_child_costs_the_same_beside_many_others() {
    within(On::OneThread, async {
        let (few, many) = (stopping_children(2_000).await, stopping_children(16_000).await);
        assert!(many < few * TIMES_MAX, "2,000: {few:?}, 16,000: {many:?}");
    });
}

/// How long a handler takes that awaits that many asks at once.
async fn asking_at_once(asks: usize) -> Duration {
    let options = ActorOptions::default().mailbox(MailboxKind::Unbounded);
    let node = Node::builder("test").options::<Flex>(options).build();
    let (asker, asked) = (flex(&node), flex(&node));
    let begun = worked();
    let asking = later(async move {
        let ask = || {
            let yielding = later(async {
                tokio::task::yield_now().await;
                0
            });
            asked.send(yielding).into_future()
        };
        futures_util::future::join_all((0..asks).map(|_| ask())).await;
        0
    });
    asker.send(asking).timeout(Duration::from_secs(15)).await.expect("it runs");
    worked() - begun
}

#[test]
fn an_ask_costs_the_same_beside_many_others_of_its_handler() {
    within(On::OneThread, async {
        let (few, many) = (asking_at_once(1_000).await, asking_at_once(8_000).await);
        assert!(many < few * TIMES_MAX, "{few:?}, eight times as many: {many:?}");
    });
}

/// Watches, and counts the ends that it hears of.
struct Watcher(Arc<Notify>, Arc<Mutex<usize>>);

struct Watch(ActorRef<Flex>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, _: Terminated) {
        *self.1.lock() += 1;
        self.0.notify_one();
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

/// How long it takes until that many have begun to watch one actor and heard of its end.
async fn watching(watchers: usize) -> Duration {
    let node = node();
    let (heard, count) = (Arc::new(Notify::new()), Arc::new(Mutex::new(0)));
    let watched = flex(&node);
    let begun = worked();
    for _ in 0..watchers {
        let watcher = node.spawn(Watcher(heard.clone(), count.clone()));
        watcher.send(Watch(watched.clone())).await.expect("it runs");
    }
    watched.stop().await;
    let all = async {
        while *count.lock() < watchers {
            heard.notified().await;
        }
    };
    soon("the news", all).await;
    worked() - begun
}

#[test]
fn a_watcher_costs_the_same_beside_thousands() {
    within(On::OneThread, async {
        let (few, many) = (watching(500).await, watching(4_000).await);
        assert!(many < few * TIMES_MAX, "{few:?}, eight times as many: {many:?}");
    });
}

const SET_ANEW: &str = "a_timer_that_is_set_anew_again_and_again_takes_no_more_memory";

/// An idle timeout is a timer that is cancelled and set anew with each message.
#[test]
fn a_timer_that_is_set_anew_again_and_again_takes_no_more_memory() {
    alone(SET_ANEW, || {
        within(On::OneThread, async {
            let actor = flex(&node());
            let setting_anew = |times: u32| {
                act(move |_, ctx| {
                    for _ in 0..times {
                        let timer = ctx.after(Duration::from_secs(86_400), Note(1));
                        ctx.cancel(timer);
                    }
                })
            };
            actor.send(setting_anew(10_000)).await.unwrap();
            let before = resident_bytes();
            actor.send(setting_anew(100_000)).timeout(Duration::from_secs(15)).await.unwrap();
            let grown = resident_bytes().saturating_sub(before);
            // A machine word for each would be more.
            assert!(grown < 512 << 10, "{} KiB after 100,000 timers", grown >> 10);
        });
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

struct Oversee(ActorRef<Bulky>);

impl Actor for Overseer {
    const NAME: &'static str = "test.overseer";
}

impl Handler<Oversee> for Overseer {
    type Reply = ();

    async fn handle(&mut self, Oversee(other): Oversee, ctx: &mut Context<Self>) {
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
                overseer.send(Oversee(bulky.clone())).await.unwrap();
                bulky.stop().await;
            }
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 8 << 20, "{} KiB after a thousand ends", grown >> 10);
        });
    });
}

#[test]
fn joining_a_group_costs_the_same_beside_thousands() {
    const GROUPS: usize = 10;
    within(On::OneThread, async {
        let took = |count| {
            let node = node();
            let members: Vec<_> = (0..count).map(|_| flex(&node)).collect();
            let begun = worked();
            let group = |_| members.iter().cloned().collect::<Group<Flex>>();
            let groups: Vec<_> = (0..GROUPS).map(group).collect();
            let took = worked() - begun;
            assert!(groups.iter().all(|group| group.members().len() == count));
            took
        };
        took(100);
        let (few, many) = (took(4_000), took(32_000));
        assert!(many < few * TIMES_MAX, "4,000 took {few:?}, 32,000 took {many:?}");
    });
}

#[test]
fn a_pick_among_members_that_have_stopped_costs_the_same_beside_thousands() {
    async fn took(count: usize) -> Duration {
        let node = node();
        let members: Vec<_> = (0..count).map(|_| flex(&node)).collect();
        let group: Group<Flex> = members.iter().cloned().collect();
        for member in &members {
            member.kill();
            member.stopped().await;
        }
        let begun = worked();
        assert!(group.round_robin().is_none());
        worked() - begun
    }
    within(On::OneThread, async {
        took(100).await;
        let (few, many) = (took(4_000).await, took(32_000).await);
        assert!(many < few * TIMES_MAX, "4,000 took {few:?}, 32,000 took {many:?}");
    });
}

/// Each sender that waits for room looks again, and again.
#[test]
fn a_look_of_a_sender_that_waits_costs_the_same_beside_thousands() {
    const LOOKS: usize = 20;
    async fn took(count: usize) -> Duration {
        let options = ActorOptions::default().mailbox(MailboxKind::Bounded(2));
        let node = Node::builder("test").options::<Flex>(options).build();
        let target = flex(&node);
        target.send(later(std::future::pending())).try_tell().expect("there is room");
        tokio::task::yield_now().await;
        while target.send(Note(0)).try_tell().is_ok() {}
        let mut tells: Vec<_> = (0..count).map(|_| target.send(Note(1)).tell()).collect();
        let begun = worked();
        for _ in 0..LOOKS {
            for tell in &mut tells {
                assert!(poll!(tell).is_pending());
            }
        }
        worked() - begun
    }
    within(On::OneThread, async {
        took(100).await;
        let (few, many) = (took(1_000).await, took(8_000).await);
        assert!(many < few * TIMES_MAX, "1,000 took {few:?}, 8,000 took {many:?}");
    });
}
