//! What the simulated world promises.

use std::time::Duration;

use althing::{Actor, ActorError, ActorRef, AskError, Context, Handler, Node};
use althing_testkit::{Probe, World};

struct Worker {
    log: ActorRef<Probe<String>>,
    name: usize,
}

struct Work;
struct Wait(Duration);

impl Actor for Worker {
    const NAME: &'static str = "test.worker";
}

impl Handler<Work> for Worker {
    type Reply = usize;

    async fn handle(&mut self, _: Work, ctx: &mut Context<Self>) -> usize {
        let pause = Duration::from_millis(ctx.random_u64() % 50);
        ctx.node().sleep(pause).await;
        self.log.send(format!("{}: {pause:?}", self.name)).tell().await.ok();
        self.name
    }
}

impl Handler<Wait> for Worker {
    type Reply = ();

    async fn handle(&mut self, Wait(pause): Wait, ctx: &mut Context<Self>) {
        ctx.node().sleep(pause).await;
    }
}

fn workers(node: &Node, count: usize) -> (Vec<ActorRef<Worker>>, althing_testkit::Heard<String>) {
    let (log, heard) = Probe::spawn(node);
    let workers = (0..count).map(|name| {
        let log = log.clone();
        node.spawn_with(move |_| {
            let log = log.clone();
            async move { Ok::<_, ActorError>(Worker { log, name }) }
        })
    });
    (workers.collect(), heard)
}

/// Has five workers work twenty times each; returns what they said, and the trace.
fn story(seed: u64) -> (Vec<String>, u64) {
    let world = World::new(seed);
    let node = world.node("test").build();
    let said = world.run(async {
        let (workers, mut heard) = workers(&node, 5);
        for _ in 0..20 {
            for worker in &workers {
                worker.send(Work).tell().await.expect("room");
            }
        }
        let mut said = Vec::new();
        while said.len() < 100 {
            said.push(heard.next().await);
        }
        said
    });
    (said, world.fingerprint())
}

#[test]
fn the_same_seed_tells_the_same_story() {
    assert_eq!(story(1), story(1));
    let (one, two) = (story(1), story(2));
    assert_ne!(one.0, two.0);
    assert_ne!(one.1, two.1);
}

#[test]
fn waiting_takes_no_time() {
    let world = World::new(1);
    let node = world.node("test").build();
    let started = std::time::Instant::now();
    world.run(async {
        let (workers, _heard) = workers(&node, 1);
        let day = Duration::from_secs(86_400);
        workers[0].send(Wait(day)).timeout(day * 2).await.expect("it ends");
        assert!(node.elapsed() >= day);
    });
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_ask_times_out_in_virtual_time() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (workers, _heard) = workers(&node, 1);
        let hour = Duration::from_secs(3_600);
        let late = workers[0].send(Wait(hour)).timeout(hour / 2).await;
        assert_eq!(late, Err(AskError::Timeout(workers[0].id())));
        assert_eq!(node.elapsed(), hour / 2);
    });
}

#[test]
fn an_injected_panic_reaches_the_asker_and_the_actor_restarts() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (workers, _heard) = workers(&node, 1);
        world.panic_next::<Worker, Work>(1);
        let failed = workers[0].send(Work).await;
        assert_eq!(failed, Err(AskError::HandlerPanicked(workers[0].id())));
        assert_eq!(workers[0].send(Work).await, Ok(0));
    });
}

#[test]
fn injected_delays_reorder_nothing_within_an_actor() {
    let world = World::new(3);
    let node = world.node("test").build();
    world.delay_sometimes::<Probe<i32>, i32>(300, Duration::from_millis(20));
    world.run(async {
        let (probe, mut heard) = Probe::spawn(&node);
        for number in 0..50 {
            probe.send(number).tell().await.expect("room");
        }
        for number in 0..50 {
            assert_eq!(heard.next().await, number);
        }
        assert!(node.elapsed() > Duration::from_millis(100));
    });
}

#[test]
#[should_panic(expected = "everybody waits for ever (seed 9)")]
fn a_world_where_everybody_waits_says_so_with_its_seed() {
    World::new(9).run(std::future::pending::<()>());
}
