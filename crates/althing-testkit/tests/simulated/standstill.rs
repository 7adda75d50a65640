//! A world never hangs: it says who waits for whom, or that a limit is reached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use althing::{Actor, ActorError, ActorOptions, ActorRef, Context, Handler, Node, StopReason};
use althing_testkit::{Probe, World};

const HOUR: Duration = Duration::from_secs(3_600);

/// Asks the next one, with no deadline that a test would live to see.
struct Link(Option<ActorRef<Link>>);

struct Ask;
struct Hang;
#[derive(Clone)]
struct Tick;

impl Actor for Link {
    const NAME: &'static str = "test.link";
}

impl Handler<Ask> for Link {
    type Reply = ();

    async fn handle(&mut self, _: Ask, _: &mut Context<Self>) {
        match &self.0 {
            Some(next) => next.send(Ask).timeout(HOUR * 10_000).await.expect("it answers"),
            None => std::future::pending().await,
        }
    }
}

impl Handler<Hang> for Link {
    type Reply = ();

    async fn handle(&mut self, _: Hang, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

impl Handler<Tick> for Link {
    type Reply = ();

    async fn handle(&mut self, _: Tick, ctx: &mut Context<Self>) {
        ctx.every(Duration::from_secs(60), Tock);
    }
}

#[derive(Clone)]
struct Tock;

impl Handler<Tock> for Link {
    type Reply = ();

    async fn handle(&mut self, _: Tock, _: &mut Context<Self>) {}
}

/// Runs what must not end well; returns what it said.
fn failure<T>(run: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).err().expect("it fails");
    panic.downcast_ref::<String>().expect("a panic with values in its text").clone()
}

#[test]
fn a_test_that_nobody_wakes_fails_with_its_seed() {
    let text = failure(|| World::new(9).run(std::future::pending::<()>()));
    assert_eq!(text, "everybody waits for ever (seed 9)\nthe test's future waits");
}

#[test]
fn housekeeping_keeps_no_world_alive() {
    let world = World::new(9);
    let node = world.node("test").build();
    let text = failure(|| {
        world.run(async {
            // The timer's task and the sweep for idle actors go on.
            let link = node.spawn(Link(None));
            link.send(Tick).await.expect("it runs");
            link.stop().await;
            std::future::pending::<()>().await;
        });
    });
    assert!(text.starts_with("everybody waits for ever (seed 9)"), "{text}");
    assert!(world.elapsed() < HOUR * 2, "{:?}", world.elapsed());
}

#[test]
fn a_standstill_says_who_waits_for_whom() {
    let world = World::new(9);
    let node = world.node("inn").build();
    let text = failure(|| {
        world.run(async {
            let last = node.spawn(Link(None));
            let first = node.spawn(Link(Some(last.clone())));
            last.send(Hang).tell().await.expect("room");
            last.send(Ask).tell().await.expect("room");
            first.send(Ask).timeout(HOUR * 10_000).await.expect("it answers");
        });
    });
    // The asks' deadlines keep the world alive until its own limit.
    assert!(text.starts_with("the test has not ended by 3600000s of virtual time"), "{text}");
    assert!(
        text.contains("inn: test.link#1 is in a handler that waits; messages in its mailbox: 2")
    );
    assert!(text.contains("inn: test.link#2 waits for a reply of test.link#1"), "{text}");
}

#[test]
fn a_probe_that_nobody_answers_for_is_named() {
    let world = World::new(9);
    let node = world.node("inn").build();
    let text = failure(|| {
        world.run(async {
            let (probe, _heard) = Probe::<u32, u32>::spawn_asked(&node);
            probe.send(1).tell().await.expect("room");
            std::future::pending::<()>().await;
        });
    });
    assert!(text.contains("inn: testkit.probe<u32, u32>#1 is in a handler that waits"), "{text}");
}

#[test]
fn a_timer_that_ticks_for_ever_ends_at_the_limit_of_virtual_time() {
    let world = World::new(9);
    let node = world.node("test").build();
    let limit = HOUR * 24;
    let text = failure(|| {
        world.run_for(limit, async {
            node.spawn(Link(None)).send(Tick).await.expect("it runs");
            std::future::pending::<()>().await;
        });
    });
    assert!(
        text.starts_with("the test has not ended by 86400s of virtual time (seed 9)"),
        "{text}"
    );
    assert!(world.elapsed() <= limit);
}

#[test]
fn a_timer_that_is_due_is_waited_for() {
    let world = World::new(9);
    let node = world.node("test").build();
    world.run(async {
        let (probe, mut heard) = Probe::spawn(&node);
        let bell = node.spawn(Bell(probe));
        bell.send(Set(HOUR * 500)).await.expect("it runs");
        heard.next().await;
        assert_eq!(world.elapsed(), HOUR * 500);
    });
}

struct Bell(ActorRef<Probe<String>>);

struct Set(Duration);
struct Ring;

impl Actor for Bell {
    const NAME: &'static str = "test.bell";
}

impl Handler<Set> for Bell {
    type Reply = ();

    async fn handle(&mut self, Set(delay): Set, ctx: &mut Context<Self>) {
        ctx.after(delay, Ring);
    }
}

impl Handler<Ring> for Bell {
    type Reply = ();

    async fn handle(&mut self, _: Ring, _: &mut Context<Self>) {
        self.0.send("ring".to_owned()).tell().await.ok();
    }
}

struct Guest(ActorRef<Probe<Duration>>);

struct Greet;

impl Actor for Guest {
    const NAME: &'static str = "test.guest";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(HOUR)
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        self.0.send(ctx.elapsed()).tell().await.ok();
    }
}

impl Handler<Greet> for Guest {
    type Reply = ();

    async fn handle(&mut self, _: Greet, _: &mut Context<Self>) {}
}

fn guests(world: &World) -> (Node, althing_testkit::Heard<Duration>) {
    let (log, heard) = Probe::unplaced();
    let node = world
        .node("test")
        .actor(move |start: althing::Start<Guest>| {
            let log = log.on(&start.node());
            async move { Ok::<_, ActorError>(Guest(log)) }
        })
        .build();
    (node, heard)
}

#[test]
fn an_idle_actor_is_waited_for_until_it_is_unloaded() {
    let world = World::new(9);
    let (node, mut heard) = guests(&world);
    world.run(async {
        let guest = node.get::<Guest>("ada");
        guest.send(Greet).await.expect("it runs");
        let unloaded = heard.next().await;
        assert!(unloaded >= HOUR && unloaded <= HOUR + Duration::from_secs(2), "{unloaded:?}");
        assert!(!guest.is_active());
    });
}

#[test]
fn an_idle_actor_is_unloaded_on_time_while_the_test_sleeps() {
    let world = World::new(9);
    let (node, mut heard) = guests(&world);
    world.run(async {
        world.sleep(HOUR * 10).await;
        node.get::<Guest>("ada").send(Greet).await.expect("it runs");
        world.sleep(HOUR * 10).await;
        let unloaded = heard.next().await;
        assert!(unloaded >= HOUR * 11 && unloaded <= HOUR * 11 + Duration::from_secs(2));
    });
}

#[test]
fn an_actor_that_has_just_run_after_a_long_sleep_is_not_idle() {
    let world = World::new(9);
    let (node, mut heard) = guests(&world);
    world.run(async {
        let guest = node.get::<Guest>("ada");
        for _ in 0..10 {
            guest.send(Greet).await.expect("it runs");
            world.sleep(HOUR - Duration::from_secs(2)).await;
        }
        assert!(guest.is_active());
        assert!(heard.so_far().is_empty());
    });
}

struct Flipper(Option<ActorRef<Flipper>>);

struct Flip(ActorRef<Flipper>);

impl Actor for Flipper {
    const NAME: &'static str = "test.flipper";
}

impl Handler<Flip> for Flipper {
    type Reply = ();

    async fn handle(&mut self, Flip(back): Flip, ctx: &mut Context<Self>) {
        self.0 = Some(back.clone());
        back.send(Flip(ctx.address())).tell().await.ok();
    }
}

#[test]
fn actors_that_wake_each_other_for_ever_end_at_the_limit_of_polls() {
    let world = World::new(9);
    let node = world.node("test").build();
    world.set_polls_at_once_max(10_000);
    let text = failure(|| {
        world.run_for(HOUR, async {
            let (one, other) = (node.spawn(Flipper(None)), node.spawn(Flipper(None)));
            one.send(Flip(other)).tell().await.expect("room");
            std::future::pending::<()>().await;
        });
    });
    assert!(text.starts_with("no end after 10000 polls at one instant"), "{text}");
    assert_eq!(world.elapsed(), Duration::ZERO);
}
