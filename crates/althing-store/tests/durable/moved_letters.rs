//! Letters of actors that have moved: what a former node has not delivered goes before what the
//! next life leaves, however little time there is between them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::{ActorError, ActorId, Context, Node, NodeBuilder, Start, Timestamp, Wire, actor};
use althing_store::{
    Answer, Courier, CourierOptions, Delivery, Memory, RequestId, Saved, State, Store, StoreError,
};
use althing_testkit::{Bridge, World};

use crate::through::{Differs, Through};

#[derive(Default, Wire)]
struct Heard {
    what: Vec<u64>,
}

impl State for Heard {}

struct Person {
    saved: Saved<Heard>,
}

#[actor(name = "test.moved-person", wire, durable = saved)]
impl Person {
    async fn hear(&mut self, request: RequestId, what: u64) {
        self.saved.once(&request, |heard| heard.what.push(what));
    }

    async fn heard(&self) -> Vec<u64> {
        self.saved.what.clone()
    }

    /// Leaves letters to each of them, all in one turn.
    async fn write_to(&mut self, others: Vec<String>, what: Vec<u64>, ctx: &mut Context<Self>) {
        for what in what {
            for other in &others {
                let other = ctx.node().get::<Person>(other.clone());
                let letter = |request| other.hear(request, what);
                self.saved.post().tell(letter).expect("it can be written down");
            }
        }
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Person, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Person>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Person { saved: Saved::load(store, &start).await? }) })
    }
}

/// A node that delivers.
fn town(builder: NodeBuilder, courier: Courier) -> Node {
    let courier = Arc::new(courier);
    let node = builder.actor(opening(courier.clone())).build();
    courier.start(&node);
    node
}

/// A node that leaves letters and delivers none, as if it always moved or died before that.
fn silent_town(builder: NodeBuilder, memory: &Arc<Memory>) -> Node {
    builder.actor(opening(Arc::new(Courier::new(memory.clone())))).build()
}

fn id(who: &str) -> ActorId {
    ActorId::named("test.moved-person", who)
}

/// Waits until a person has heard so many things.
async fn heard(node: &Node, who: &str, count: usize) -> Vec<u64> {
    loop {
        let heard = node.get::<Person>(who).heard().await.expect("it runs");
        if heard.len() >= count {
            return heard;
        }
        node.sleep(Duration::from_millis(10)).await;
    }
}

async fn write(node: &Node, who: &str, others: &[&str], what: impl IntoIterator<Item = u64>) {
    let others = others.iter().map(|&other| other.to_owned()).collect();
    let what = what.into_iter().collect();
    node.get::<Person>(who).write_to(others, what).await.expect("it is written");
}

async fn is_empty(memory: &Memory) -> bool {
    memory.due(Timestamp(u64::MAX), None, 1).await.expect("it reads").is_empty()
}

#[test]
fn letters_keep_their_order_when_their_owner_has_moved() {
    for seed in 0..20 {
        let (world, bridge, memory) = (World::new(seed), Bridge::new(), Arc::new(Memory::new()));
        let one = silent_town(world.node("one").cluster(bridge.end()), &memory);
        let two = town(world.node("two").cluster(bridge.end()), Courier::new(memory.clone()));
        world.run(async {
            bridge.settle(&id("alice"), &one);
            for who in ["bob", "carol"] {
                bridge.settle(&id(who), &two);
            }
            // Long after the first look of the other node at the store.
            two.sleep(Duration::from_secs(5)).await;
            write(&one, "alice", &["bob", "carol"], 1..=3).await;
            write(&one, "alice", &["bob"], [4]).await;
            bridge.carry(&id("alice"), &two).await;
            let begun = world.elapsed();
            write(&two, "alice", &["bob", "carol"], 5..=6).await;
            write(&two, "alice", &["bob"], [7]).await;
            assert_eq!(heard(&two, "bob", 7).await, [1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(heard(&two, "carol", 5).await, [1, 2, 3, 5, 6]);
            assert!(world.elapsed() - begun < Duration::from_secs(1), "they go at once");
            two.sleep(Duration::from_secs(1)).await;
            assert!(is_empty(&memory).await);
        });
    }
}

#[test]
fn letters_of_an_actor_whose_node_has_died_go_before_those_of_its_next_life() {
    for seed in 0..20 {
        let (world, bridge, memory) = (World::new(seed), Bridge::new(), Arc::new(Memory::new()));
        let one = silent_town(world.node("one").cluster(bridge.end()), &memory);
        let two = town(world.node("two").cluster(bridge.end()), Courier::new(memory.clone()));
        world.run(async {
            bridge.settle(&id("alice"), &one);
            bridge.settle(&id("bob"), &two);
            two.sleep(Duration::from_secs(5)).await;
            write(&one, "alice", &["bob"], 1..=3).await;
            bridge.lose(&one);
            world.crash(&one);
            bridge.settle(&id("alice"), &two);
            let begun = world.elapsed();
            write(&two, "alice", &["bob"], [4]).await;
            assert_eq!(heard(&two, "bob", 4).await, [1, 2, 3, 4]);
            assert!(world.elapsed() - begun < Duration::from_secs(1), "they go at once");
        });
    }
}

/// Counts how often somebody looks for what was left before, and says for a while that it does not
/// work.
#[derive(Default)]
struct Counted {
    looks: AtomicUsize,
    refusals: AtomicUsize,
}

impl Differs for Counted {
    fn left_before(
        &self,
        memory: &Memory,
        names: Vec<(ActorId, String)>,
        limit: usize,
    ) -> Answer<Vec<Delivery>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let is_less = |refusals: usize| refusals.checked_sub(1);
        if self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_less).is_ok() {
            let why = std::io::Error::other("it is away");
            return Box::pin(async { Err(StoreError::Unavailable(Arc::new(why))) });
        }
        memory.left_before(names, limit)
    }
}

#[test]
fn letters_wait_in_their_order_while_the_store_does_not_say_what_was_left_before() {
    let (world, bridge, store) =
        (World::new(1), Bridge::new(), Arc::new(Through::<Counted>::default()));
    let one = silent_town(world.node("one").cluster(bridge.end()), &store.memory);
    let two = town(world.node("two").cluster(bridge.end()), Courier::new(store.clone()));
    world.run(async {
        bridge.settle(&id("alice"), &one);
        bridge.settle(&id("bob"), &two);
        bridge.settle(&id("dave"), &two);
        write(&two, "dave", &["bob"], [100]).await;
        two.sleep(Duration::from_secs(5)).await;
        store.looks.store(0, Ordering::Relaxed);
        write(&one, "alice", &["bob"], 1..=2).await;
        bridge.carry(&id("alice"), &two).await;
        store.refusals.store(3, Ordering::Relaxed);
        write(&two, "alice", &["bob"], [3]).await;
        write(&two, "alice", &["bob"], [4]).await;
        two.sleep(Duration::from_millis(2_500)).await;
        // Of whom it is known what was left before does not wait for them.
        write(&two, "dave", &["bob"], [101]).await;
        assert_eq!(heard(&two, "bob", 2).await, [100, 101]);
        assert_eq!(heard(&two, "bob", 6).await, [100, 101, 1, 2, 3, 4]);
        assert_eq!(store.looks.load(Ordering::Relaxed), 4, "once a second");
    });
}

#[test]
fn who_leaves_no_letter_is_not_looked_for_and_who_does_is_once_in_each_life() {
    let (world, store) = (World::new(2), Arc::new(Through::<Counted>::default()));
    let node = town(world.node("town"), Courier::new(store.clone()));
    world.run(async {
        for n in 0..10 {
            for life in 0..3 {
                let bob = node.get::<Person>(format!("{n}"));
                let request = RequestId::new(format!("{n} {life}"));
                bob.hear(request, life).await.expect("it runs");
                bob.stop().await;
            }
        }
        node.sleep(Duration::from_secs(100)).await;
        assert_eq!(store.looks.load(Ordering::Relaxed), 0);
        for life in 1..=3 {
            for what in 0..5 {
                write(&node, "alice", &["bob"], [what]).await;
            }
            node.sleep(Duration::from_secs(1)).await;
            assert_eq!(store.looks.load(Ordering::Relaxed), life);
            node.get::<Person>("alice").stop().await;
        }
    });
}

#[test]
fn who_has_left_more_than_memory_holds_is_delivered_in_order_after_a_move() {
    let (world, bridge, memory) = (World::new(3), Bridge::new(), Arc::new(Memory::new()));
    let one = silent_town(world.node("one").cluster(bridge.end()), &memory);
    let mut options = CourierOptions::default();
    options.in_memory_max = 20;
    let courier = Courier::with_options(memory.clone(), options);
    let two = town(world.node("two").cluster(bridge.end()), courier);
    world.run(async {
        for who in ["alice", "eve"] {
            bridge.settle(&id(who), &one);
        }
        for who in ["bob", "carol"] {
            bridge.settle(&id(who), &two);
        }
        two.sleep(Duration::from_secs(5)).await;
        // One who has left more than a look finds, and one who has not.
        for what in 0..50 {
            write(&one, "alice", &["bob"], [what]).await;
        }
        write(&one, "eve", &["carol"], 0..5).await;
        for who in ["alice", "eve"] {
            bridge.carry(&id(who), &two).await;
        }
        write(&two, "alice", &["bob"], 50..55).await;
        write(&two, "eve", &["carol"], 5..10).await;
        write(&two, "alice", &["bob"], [55]).await;
        assert_eq!(heard(&two, "bob", 56).await, (0..56).collect::<Vec<_>>());
        assert_eq!(heard(&two, "carol", 10).await, (0..10).collect::<Vec<_>>());
        two.sleep(Duration::from_secs(1)).await;
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn who_moves_there_and_back_keeps_the_order_of_its_letters() {
    for seed in 0..20 {
        let (world, bridge, memory) = (World::new(seed), Bridge::new(), Arc::new(Memory::new()));
        let one = town(world.node("one").cluster(bridge.end()), Courier::new(memory.clone()));
        let two = silent_town(world.node("two").cluster(bridge.end()), &memory);
        world.run(async {
            for who in ["alice", "bob"] {
                bridge.settle(&id(who), &one);
            }
            one.sleep(Duration::from_secs(5)).await;
            for there_and_back in 0..5 {
                let first = there_and_back * 4;
                write(&one, "alice", &["bob"], first..first + 2).await;
                bridge.carry(&id("alice"), &two).await;
                write(&two, "alice", &["bob"], first + 2..first + 4).await;
                bridge.carry(&id("alice"), &one).await;
            }
            write(&one, "alice", &["bob"], [20]).await;
            assert_eq!(heard(&one, "bob", 21).await, (0..21).collect::<Vec<_>>());
        });
    }
}
