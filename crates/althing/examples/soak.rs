//! Stops, kills and panics at random under load, for SECONDS; then counts: `make soak SECONDS=60`.
//!
//! Every ask must end with a reply or a typed error within its deadline, every actor that was
//! stopped must be gone, and a named actor must answer again whatever happened to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use althing::{
    Actor, ActorError, ActorOptions, AskError, Context, Handler, Node, RestartPolicy, Start,
    Supervision,
};

const ENTITIES: u64 = 200;
const CLIENTS: u64 = 16;
const DEADLINE: Duration = Duration::from_secs(10);

struct Entity {
    handled: u64,
}

struct Work(u64);
struct Peer(u64);

impl Actor for Entity {
    const NAME: &'static str = "soak.entity";

    fn options() -> ActorOptions {
        let policy = RestartPolicy { restarts_max: u32::MAX, ..RestartPolicy::default() };
        let policy = RestartPolicy { backoff_max: Duration::from_millis(5), ..policy };
        ActorOptions::default().supervision(Supervision::Restart(policy)).deadline(DEADLINE)
    }
}

impl Handler<Work> for Entity {
    type Reply = u64;

    async fn handle(&mut self, Work(dice): Work, ctx: &mut Context<Self>) -> u64 {
        self.handled += 1;
        match dice % 1_000 {
            0 => panic!("soak: on purpose"),
            1..=20 => tokio::task::yield_now().await,
            21..=25 => tokio::time::sleep(Duration::from_millis(dice % 3)).await,
            26..=28 => ctx.passivate(),
            29 => ctx.stop(),
            _ => {}
        }
        self.handled
    }
}

impl Handler<Peer> for Entity {
    type Reply = Result<u64, AskError>;

    async fn handle(&mut self, Peer(dice): Peer, ctx: &mut Context<Self>) -> Result<u64, AskError> {
        let other = ctx.node().get::<Entity>((dice % ENTITIES).to_string());
        other.send(Work(dice)).tell().await.ok();
        other.send(Work(dice + 1)).await
    }
}

#[derive(Default)]
struct Tally {
    replies: AtomicU64,
    panics: AtomicU64,
    stopped: AtomicU64,
    cycles: AtomicU64,
    unexpected: AtomicU64,
}

impl Tally {
    fn count(&self, outcome: Result<(), AskError>) {
        let counter = match outcome {
            Ok(()) => &self.replies,
            Err(AskError::HandlerPanicked(_)) => &self.panics,
            Err(AskError::Stopped(_) | AskError::NoReply(_)) => &self.stopped,
            Err(AskError::Cycle(_)) => &self.cycles,
            Err(error) => {
                println!("unexpected: {error}");
                &self.unexpected
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

async fn client(node: Node, seed: u64, until: Instant, tally: Arc<Tally>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while Instant::now() < until {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let dice = state >> 8;
        let entity = node.get::<Entity>((dice % ENTITIES).to_string());
        match dice % 97 {
            0 => entity.kill(),
            1 => drop(entity.stop()),
            2..=20 => {
                tally.count(entity.send(Peer(dice / 97)).await.and_then(|inner| inner.map(drop)))
            }
            _ => tally.count(entity.send(Work(dice / 97)).await.map(drop)),
        }
    }
}

#[tokio::main]
async fn main() {
    let seconds = std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    std::panic::set_hook(Box::new(|_| {}));
    let node = Node::builder("soak")
        .actor(|_: Start<Entity>| async { Ok::<_, ActorError>(Entity { handled: 0 }) })
        .build();
    let tally = Arc::new(Tally::default());
    let until = Instant::now() + Duration::from_secs(seconds);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| tokio::spawn(client(node.clone(), seed + 1, until, tally.clone())))
        .collect();
    for client in clients {
        client.await.expect("clients do not panic");
    }
    let mut failed = tally.unexpected.load(Ordering::Relaxed);
    for key in 0..ENTITIES {
        let answer = node.get::<Entity>(key.to_string()).send(Work(999)).await;
        if let Err(error) = answer {
            println!("does not answer any more: {error}");
            failed += 1;
        }
    }
    let report = node.shutdown(DEADLINE).await;
    println!(
        "soak of {seconds} s: {} replies, {} panics, {} stopped or killed meanwhile, {} cycles, {} killed at shutdown, {failed} failures",
        tally.replies.load(Ordering::Relaxed),
        tally.panics.load(Ordering::Relaxed),
        tally.stopped.load(Ordering::Relaxed),
        tally.cycles.load(Ordering::Relaxed),
        report.killed.len(),
    );
    std::process::exit(i32::from(failed > 0 || !report.killed.is_empty()));
}
