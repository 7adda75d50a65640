//! Actors that are watched from another node, and then are not.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use althing::{ActorRef, Context, Node, actor};
use althing_testkit::{Bridge, World};

/// How many actors; more than what a node knows besides.
const COUNT: usize = 100;

struct Sleeper;

#[actor(name = "test.sleeper", wire)]
impl Sleeper {
    async fn nap(&mut self, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

struct Watcher;

#[actor(name = "test.watcher")]
impl Watcher {
    async fn look(&mut self, other: ActorRef<Sleeper>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }

    async fn look_away(&mut self, other: ActorRef<Sleeper>, ctx: &mut Context<Self>) {
        ctx.unwatch(&other);
    }
}

/// Has actors of the first node unloaded, after `each` has seen them from the second, which is lost in
/// the end; how many addresses the first one has before that, and after.
fn left_of(each: &impl AsyncFn(&Bridge, &Node, &ActorRef<Sleeper>)) -> (usize, usize) {
    let (world, bridge) = (World::new(1), Bridge::new());
    let node = |name| world.node(name).cluster(bridge.end()).actor(async |_| Ok(Sleeper)).build();
    let (one, two) = (node("one"), node("two"));
    world.run(async {
        for n in 0..COUNT {
            each(&bridge, &two, &two.get::<Sleeper>(n.to_string())).await;
        }
        one.sleep(Duration::from_secs(600)).await;
        let before = one.metrics().visited;
        bridge.lose(&two);
        world.crash(&two);
        one.sleep(Duration::from_secs(600)).await;
        (before, one.metrics().visited)
    })
}

fn left(each: &impl AsyncFn(&Bridge, &Node, &ActorRef<Sleeper>)) -> usize {
    left_of(each).0
}

#[test]
fn a_node_forgets_actors_that_no_other_node_watches_any_more() {
    let unwatched = left(&async |_, two, sleeper| {
        let watcher = two.spawn(Watcher);
        watcher.look(sleeper.clone()).await.expect("it runs");
        watcher.look_away(sleeper.clone()).await.expect("it runs");
        sleeper.nap().await.expect("it runs");
    });
    assert!(unwatched < COUNT, "{unwatched} are left");
    let stopped = left(&async |_, two, sleeper| {
        let watcher = two.spawn(Watcher);
        watcher.look(sleeper.clone()).await.expect("it runs");
        watcher.stop().await;
        sleeper.nap().await.expect("it runs");
    });
    assert!(stopped < COUNT, "{stopped} are left");
}

#[test]
fn a_node_forgets_actors_whose_end_no_other_node_awaits_any_more() {
    let awaited = left(&async |_, _, sleeper| {
        let ended = sleeper.stopped();
        sleeper.nap().await.expect("it runs");
        ended.await;
    });
    assert!(awaited < COUNT, "{awaited} are left");
    let given_up = left(&async |_, _, sleeper| {
        sleeper.activate();
        let mut ended = sleeper.stopped();
        let is_over = poll_fn(|cx| Poll::Ready(pin!(&mut ended).poll(cx).is_ready())).await;
        assert!(!is_over, "it lives");
        drop(ended);
        sleeper.nap().await.expect("it runs");
    });
    assert!(given_up < COUNT, "{given_up} are left");
}

#[test]
fn a_node_forgets_actors_that_have_moved_though_they_are_watched() {
    let moved = left(&async |bridge, two, sleeper| {
        let watcher = two.spawn(Watcher);
        watcher.look(sleeper.clone()).await.expect("it runs");
        sleeper.nap().await.expect("it runs");
        two.sleep(Duration::from_secs(1)).await;
        bridge.carry(&sleeper.id(), two).await;
    });
    assert!(moved < COUNT, "{moved} are left");
}

#[test]
fn a_node_forgets_actors_that_were_watched_from_a_node_that_is_lost() {
    let (before, after) = left_of(&async |_, two, sleeper| {
        let watcher = two.spawn(Watcher);
        watcher.look(sleeper.clone()).await.expect("it runs");
        sleeper.nap().await.expect("it runs");
    });
    assert!(before >= COUNT, "{before} are watched");
    assert!(after < COUNT, "{after} are left");
}
