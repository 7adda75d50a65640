//! The trace that a person reads, and what is printed when a test fails.

use std::process::Command;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorRef, Context, EventHandler, Handler, Node, Published, Read,
    ReadHandler, Receives, TopicOptions, actor,
};
use althing_testkit::{World, sweep};

/// Set for the process that fails on purpose.
const ROLE: &str = "ALTHING_TESTKIT_FAILS";

struct Cook {
    waiter: Option<ActorRef<Waiter>>,
}

struct Baker;
struct Waiter;
struct Order(#[expect(dead_code, reason = "only its type is seen")] &'static str);
struct Taste;
struct Serve;
struct Burn;

impl Actor for Cook {
    const NAME: &'static str = "test.cook";
}

impl Actor for Waiter {
    const NAME: &'static str = "test.waiter";
}

impl Handler<Order> for Cook {
    type Reply = ();

    async fn handle(&mut self, _: Order, ctx: &mut Context<Self>) {
        ctx.node().sleep(Duration::from_millis(1_500)).await;
        if let Some(waiter) = &self.waiter {
            waiter.send(Serve).tell().await.ok();
        }
    }
}

impl ReadHandler<Taste> for Cook {
    type Reply = ();

    async fn read(&self, _: Taste, _: &Context<Self>) {}
}

impl Receives<Taste> for Cook {
    type Reply = ();
    type Way = Read;
}

impl Handler<Burn> for Cook {
    type Reply = ();

    async fn handle(&mut self, _: Burn, _: &mut Context<Self>) {
        panic!("smoke");
    }
}

impl EventHandler<u32> for Cook {
    async fn event(&mut self, _: &Published<u32>, _: &mut Context<Self>) {}
}

impl Handler<Serve> for Waiter {
    type Reply = ();

    async fn handle(&mut self, _: Serve, ctx: &mut Context<Self>) {
        ctx.after(Duration::from_secs(1), Serve);
        let topic = ctx.node().topic::<u32>("bell", TopicOptions::default());
        if topic.last().0 == 0 {
            topic.publish(1).expect("nobody owns it");
        } else {
            ctx.stop();
        }
    }
}

#[actor(name = "test.baker")]
impl Baker {
    #[rate_limit(per_second = 1, burst = 1)]
    async fn knead(&mut self) {}
}

fn kitchen(node: &Node) -> (ActorRef<Cook>, ActorRef<Waiter>) {
    let waiter = node.spawn(Waiter);
    let hired = waiter.clone();
    let cook = node.spawn_with(move |_| {
        let waiter = Some(hired.clone());
        async move { Ok::<_, ActorError>(Cook { waiter }) }
    });
    (cook, waiter)
}

#[test]
fn the_trace_tells_when_who_did_what_for_whom_and_what_came_of_it() {
    let world = World::new(1);
    let node = world.node("inn").build();
    world.panic_next::<Cook, Taste>(1);
    // Held, or the topic would go with the handler that publishes, and its numbers begin anew.
    let _bell = node.topic::<u32>("bell", TopicOptions::default());
    world.run(async {
        let (cook, waiter) = kitchen(&node);
        cook.send(Order("soup")).await.expect("it runs");
        waiter.stopped().await;
        cook.send(Taste).await.expect_err("a fault");
        cook.send(Taste).await.expect("it runs");
        cook.send(Taste).await.expect("it runs");
        cook.send(Burn).await.expect_err("it burns");
    });
    let expected = "     \
     0.000000 inn: test.waiter#1 starts
     0.000000 inn: test.cook#2 starts
     0.000000 inn: test.cook#2 takes Order: waits
     1.500000 inn: test.cook#2 ends Order after 1.5s
     1.500000 inn: test.waiter#1 takes Serve from test.cook#2: ran
     1.500000 inn: test.waiter#1 publishes event 1 of bell
     2.500000 inn: test.waiter#1 is due a timer: Serve
     2.500000 inn: test.waiter#1 takes Serve: ran
     2.500000 inn: test.waiter#1 stops: Requested
     2.500000 inn: test.cook#2 meets a panic for Taste
     2.500000 inn: test.cook#2 panicked: a fault of the simulation
     2.500000 inn: test.cook#2 restarts
     2.500000 inn: test.cook#2 starts
     2.500000 inn: test.cook#2 takes Taste: ran
     2.500000 inn: test.cook#2 takes Taste in place: ran
     2.500000 inn: test.cook#2 takes Burn: panicked: smoke
     2.500000 inn: test.cook#2 restarts
";
    let trace = world.trace();
    assert_eq!(trace.to_string(), expected);
    assert_eq!(trace.left_out(), 0);
    let last = trace.last(2);
    assert_eq!((last.lines().len(), last.left_out()), (2, 15));
}

#[test]
fn an_event_is_told_with_its_publisher_and_each_who_hears_it() {
    let world = World::new(1);
    let node = world.node("inn").build();
    world.run(async {
        let (cook, waiter) = kitchen(&node);
        let bell = node.topic::<u32>("bell", TopicOptions::default());
        let subscription = bell.subscribe(&cook);
        waiter.send(Serve).tell().await.expect("room");
        waiter.stopped().await;
        drop(subscription);
    });
    let expected = "     \
     0.000000 inn: test.waiter#1 starts
     0.000000 inn: test.cook#2 starts
     0.000000 inn: test.waiter#1 takes Serve: ran
     0.000000 inn: test.waiter#1 publishes event 1 of bell
     0.000000 inn: test.cook#2 takes Published<u32> from test.waiter#1 in place: ran
     1.000000 inn: test.waiter#1 is due a timer: Serve
     1.000000 inn: test.waiter#1 takes Serve: ran
     1.000000 inn: test.waiter#1 stops: Requested
";
    assert_eq!(world.trace().to_string(), expected);
}

#[test]
fn a_crash_is_told() {
    let world = World::new(1);
    let node = world.node("inn").build();
    world.run(async {
        let (cook, _) = kitchen(&node);
        cook.send(Order("soup")).tell().await.expect("room");
        world.sleep(Duration::from_secs(1)).await;
        world.crash(&node);
    });
    let trace = world.trace().to_string();
    assert!(trace.contains("1.000000 inn: crashes\n"), "{trace}");
    assert!(trace.contains("1.000000 inn: test.cook#2 stops: Killed\n"), "{trace}");
}

#[test]
fn a_guards_refusal_is_told() {
    let world = World::new(1);
    let node = world.node("inn").build();
    world.run(async {
        let baker = node.spawn(Baker);
        baker.knead().await.expect("the first is let through");
        baker.knead().await.expect_err("the second is too soon");
    });
    let trace = world.trace();
    let last = trace.lines().last().expect("there are steps");
    assert!(
        last.contains("test.baker#1 takes Knead") && last.contains("refused: too many messages"),
        "{last}"
    );
}

/// Runs the calling test once more, in a process of its own in which it plays `role`; returns
/// whether it passed, and what it printed.
fn once_more(role: &str, seed: Option<&str>) -> (bool, String) {
    let test = std::thread::current().name().expect("the harness names its threads").to_owned();
    let mut command = Command::new(std::env::current_exe().expect("a test runs from a file"));
    command.args(["--exact", &test]).env(ROLE, role).env_remove("ALTHING_SEED");
    command.envs(seed.map(|seed| ("ALTHING_SEED", seed)));
    let output = command.output().expect("it starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

fn is_role(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|own| own == role)
}

#[test]
fn a_failure_prints_the_last_steps_and_the_seed() {
    if is_role("fails") {
        let world = World::new(77);
        let node = world.node("inn").build();
        world.run(async {
            let (cook, _) = kitchen(&node);
            for _ in 0..100 {
                cook.send(Taste).await.expect("it runs");
            }
            panic!("the soup is cold");
        });
    }
    let (passed, text) = once_more("fails", None);
    assert!(!passed && text.contains("the soup is cold"), "{text}");
    assert!(text.contains("the world failed with seed 77"), "{text}");
    assert_eq!(text.matches("inn: test.cook#2 takes Taste").count(), 50, "{text}");
    let rerun =
        "cargo test a_failure_prints_the_last_steps_and_the_seed (World::new(77) decides all)";
    assert!(text.contains(rerun), "{text}");
}

#[test]
fn a_sweep_names_the_first_seed_that_fails_and_runs_it_alone_on_request() {
    if is_role("sweeps") {
        sweep(0..1_000, async |world: World| {
            println!("runs seed {}", world.seed());
            let node = world.node("inn").build();
            let (cook, _) = kitchen(&node);
            cook.send(Taste).await.expect("it runs");
            assert!(world.seed() < 17, "too many cooks");
        });
        return;
    }
    let (passed, text) = once_more("sweeps", None);
    assert!(!passed, "{text}");
    assert_eq!(text.matches("runs seed ").count(), 18, "{text}");
    assert!(text.contains("the world failed with seed 17; its last steps:"), "{text}");
    let test = "a_sweep_names_the_first_seed_that_fails_and_runs_it_alone_on_request";
    assert!(text.contains(&format!("ALTHING_SEED=17 cargo test {test}")), "{text}");

    let (passed, text) = once_more("sweeps", Some("17"));
    assert!(!passed && text.matches("runs seed ").count() == 1, "{text}");
    assert!(once_more("sweeps", Some("3")).0);
    let (passed, text) = once_more("sweeps", Some("three"));
    assert!(!passed && text.contains("ALTHING_SEED is no number: three"), "{text}");
}
