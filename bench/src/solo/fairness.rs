//! `fairness`: how long a quiet actor's answer takes while 100 hot actors are flooded.
//!
//! Eight tasks keep the mailboxes of the hot actors full. Quiet actors are asked once a
//! millisecond, so each ask finds its actor idle and all workers busy: from tasks inside the
//! runtime, as services ask, and from a thread outside, which also waits for the kernel to give it
//! a core.

use crate::althing::Althing;
use althing::{Actor, ActorRef, Context, Handler, Node};
use althing_bench_workloads::{Budget, Sample, System, percentile_ns};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const HOT_ACTORS: usize = 100;
const FLOODERS: usize = 8;
/// Tasks that ask, each its own quiet actor.
const ASKERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(1);
/// A flooder looks at the stop flag once per so many messages.
const MESSAGES_PER_LOOK: usize = 64;
/// Longest wait for what is left in the mailboxes at the end: 100 × 1,024 messages.
const SETTLE_MAX: Duration = Duration::from_secs(30);

struct Adder(Arc<AtomicU64>);

impl Actor for Adder {
    const NAME: &'static str = "bench.adder";
}

struct One;

impl Handler<One> for Adder {
    type Reply = u64;

    async fn handle(&mut self, _: One, _: &mut Context<Self>) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The hot actors and how many messages each has handled.
struct Flood {
    hot: Arc<Vec<ActorRef<Adder>>>,
    handled: Vec<Arc<AtomicU64>>,
    stop: Arc<AtomicBool>,
    sent: mpsc::Receiver<u64>,
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Althing::start();
    let flood = Flood::start(&system);
    thread::sleep(Duration::from_secs_f64(budget.warm_up_seconds));
    let time = Duration::from_secs_f64(budget.seconds);
    let (begun, before) = (Instant::now(), flood.handled());
    let (inside, outside) = ask_quietly(&system, time);
    let handled = flood.handled() - before;
    let flooded = Sample::rate(handled, begun.elapsed().as_nanos() as f64);
    flood.finish()?;
    let at = |metric, latencies: &[u32], share| {
        Sample::new(metric, "ns", percentile_ns(latencies, share))
    };
    Ok(vec![
        at("p50", &inside, 0.50),
        at("p99", &inside, 0.99),
        at("max", &inside, 1.0),
        at("p50-thread", &outside, 0.50),
        at("p99-thread", &outside, 0.99),
        Sample { metric: "flood".into(), ..flooded },
    ])
}

impl Flood {
    fn start(system: &Althing) -> Self {
        let handled: Vec<_> = (0..HOT_ACTORS).map(|_| Arc::default()).collect();
        let hot: Vec<_> = handled.iter().map(|count| spawn(system.node(), count)).collect();
        let hot = Arc::new(hot);
        let stop = Arc::new(AtomicBool::new(false));
        let (tx, sent) = mpsc::channel();
        for flooder in 0..FLOODERS {
            let (hot, stop, tx) = (Arc::clone(&hot), Arc::clone(&stop), tx.clone());
            system.run_task(async move {
                let count = flood(&hot, flooder * HOT_ACTORS / FLOODERS, &stop).await;
                // The receiver waits for every flooder.
                let _ = tx.send(count);
            });
        }
        Self { hot, handled, stop, sent }
    }

    fn handled(&self) -> u64 {
        self.handled.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Stops the flood and checks that every message was handled once.
    fn finish(self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        let sent: u64 = self.sent.iter().sum();
        let deadline = Instant::now() + SETTLE_MAX;
        while self.handled() < sent && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
        drop(self.hot);
        let handled: u64 = self.handled.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        if handled == sent {
            return Ok(());
        }
        Err(format!("hot actors handled {handled} messages, {sent} were sent"))
    }
}

fn spawn(node: &Node, count: &Arc<AtomicU64>) -> ActorRef<Adder> {
    node.spawn(Adder(Arc::clone(count)))
}

/// Tells the hot actors in turn until told to stop; returns how many messages it sent.
async fn flood(hot: &[ActorRef<Adder>], first: usize, stop: &AtomicBool) -> u64 {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..MESSAGES_PER_LOOK {
            let target = &hot[(first + sent) % hot.len()];
            target.send(One).tell().await.expect("hot actors live as long as the run");
            sent += 1;
        }
    }
    sent as u64
}

/// Asks quiet actors for `time`; sorted latencies in nanoseconds, from inside and from outside.
fn ask_quietly(system: &Althing, time: Duration) -> (Vec<u32>, Vec<u32>) {
    let until = Instant::now() + time;
    let (tx, rx) = mpsc::channel();
    for _ in 0..ASKERS {
        let (tx, quiet) = (tx.clone(), spawn(system.node(), &Arc::default()));
        system.run_task(async move {
            let mut latencies = Vec::new();
            while Instant::now() < until {
                tokio::time::sleep(PAUSE).await;
                latencies.push(ask(&quiet).await);
            }
            // The receiver waits for every asker.
            let _ = tx.send(latencies);
        });
    }
    drop(tx);
    let quiet = spawn(system.node(), &Arc::default());
    let mut outside = Vec::new();
    while Instant::now() < until {
        thread::sleep(PAUSE);
        outside.push(system.on_thread(ask(&quiet)));
    }
    let mut inside: Vec<u32> = rx.iter().flatten().collect();
    inside.sort_unstable();
    outside.sort_unstable();
    (inside, outside)
}

async fn ask(quiet: &ActorRef<Adder>) -> u32 {
    let begun = Instant::now();
    quiet.send(One).await.expect("quiet actors live as long as the run");
    u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX)
}
