//! The seed decides everything: the same one gives the same run, in any process.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, EventHandler, Handler, Published,
    StopReason, TopicOptions,
};
use althing_testkit::{Heard, Probe, World};

/// Set for the processes that a test starts to run it once more.
const ROLE: &str = "ALTHING_TESTKIT_STORY";

/// Draws, sleeps, listens and sets timers; says what it does.
struct Worker {
    log: ActorRef<Probe<String>>,
    name: String,
}

struct Work;
#[derive(Clone)]
struct Tick;

impl Actor for Worker {
    const NAME: &'static str = "test.worker";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(Duration::from_secs(30))
    }

    async fn stopping(&mut self, _: &mut Context<Self>, reason: StopReason) {
        self.say(format!("stops: {reason:?}"));
    }
}

impl Worker {
    fn say(&self, what: impl std::fmt::Display) {
        // The log may have stopped before.
        self.log.send(format!("{}: {what}", self.name)).try_tell().ok();
    }
}

impl Handler<Work> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Work, ctx: &mut Context<Self>) {
        // All timers of one hundredth of a second are due at one tick.
        ctx.after(Duration::from_millis(10), Tick);
        let pause = Duration::from_millis(ctx.random_u64() % 20);
        ctx.node().sleep(pause).await;
        self.say(format!("worked {pause:?}"));
    }
}

impl Handler<Tick> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.say("tick");
    }
}

impl EventHandler<u32> for Worker {
    async fn event(&mut self, event: &Published<u32>, _: &mut Context<Self>) {
        self.say(format!("heard {}", event.payload));
    }
}

/// Twenty named workers work, panic, hear events, fall idle, wake and are shut down. Returns what
/// they said, and the world's number.
fn story(seed: u64) -> (Vec<String>, u64) {
    let world = World::new(seed);
    let observer = world.node("observer").build();
    let (log, mut heard): (_, Heard<String>) = Probe::spawn(&observer);
    let node = world
        .node("story")
        .actor(move |start: althing::Start<Worker>| {
            let (log, name) = (log.clone(), start.key().to_owned());
            async move { Ok::<_, ActorError>(Worker { log, name }) }
        })
        .build();
    world.panic_sometimes::<Worker, Work>(50);
    world.delay_sometimes::<Worker, Tick>(100, Duration::from_millis(7));
    let said = world.run(async {
        let workers: Vec<_> = (0..20).map(|n| node.get::<Worker>(format!("w{n}"))).collect();
        let topic = node.topic::<u32>("numbers", TopicOptions::default());
        for worker in &workers {
            worker.send(Work).tell().await.expect("room");
        }
        let subscriptions: Vec<_> = workers.iter().map(|worker| topic.subscribe(worker)).collect();
        topic.publish(1).expect("nobody owns it");
        let clients: Vec<_> = workers
            .iter()
            .cloned()
            .map(|worker| world.spawn(async move { worker.send(Work).await.is_ok() }))
            .collect();
        for client in clients {
            client.await;
        }
        drop(subscriptions);
        // Some wake once more, the others fall idle.
        world.sleep(Duration::from_secs(25)).await;
        for worker in &workers[..7] {
            worker.send(Work).tell().await.expect("room");
        }
        world.sleep(Duration::from_secs(20)).await;
        node.shutdown(Duration::from_secs(5)).await;
        heard.so_far()
    });
    (said, world.fingerprint())
}

/// A number for what was said.
fn hash(said: &[String]) -> u64 {
    said.iter()
        .flat_map(|line| line.bytes())
        .fold(7, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_same_seed_tells_the_same_story() {
    assert_eq!(story(1), story(1));
}

#[test]
fn another_seed_tells_another_story() {
    let stories: BTreeSet<u64> = (0..20).map(|seed| hash(&story(seed).0)).collect();
    assert_eq!(stories.len(), 20);
}

#[test]
fn the_same_seed_tells_the_same_story_in_another_process() {
    let lines: Vec<String> = (0..5)
        .map(|seed| {
            let (said, fingerprint) = story(seed);
            format!("story {seed}: {:x} {fingerprint:x}", hash(&said))
        })
        .collect();
    if std::env::var_os(ROLE).is_some() {
        println!("\n{}", lines.join("\n"));
        return;
    }
    for _ in 0..2 {
        let output = Command::new(std::env::current_exe().expect("a test runs from a file"))
            .args(["--exact", "the_same_seed_tells_the_same_story_in_another_process"])
            .args(["--nocapture", "--test-threads", "1"])
            .env(ROLE, "1")
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let others: Vec<&str> = text.lines().filter(|line| line.starts_with("story ")).collect();
        assert_eq!(others, lines);
    }
}

#[test]
fn the_seed_decides_who_goes_first_of_those_who_wake_at_the_same_instant() {
    let first_of = |seed| {
        let world = World::new(seed);
        world.run(async {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            for name in 0..4 {
                let (sender, sleep) = (sender.clone(), world.sleep(Duration::from_secs(1)));
                drop(world.spawn(async move {
                    sleep.await;
                    sender.send(name).expect("the test listens");
                }));
            }
            receiver.recv().await.expect("somebody wakes")
        })
    };
    let firsts: BTreeSet<i32> = (0..50).map(first_of).collect();
    assert_eq!(firsts, BTreeSet::from([0, 1, 2, 3]));
}
