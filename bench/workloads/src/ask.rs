//! `ask-1`, `ask-8` and `ask-block-on`: clients that ask one actor and wait for each reply.
//!
//! Clients are tasks on the system's own workers, where services ask from. `ask-1` times each ask
//! with one clock read (the end of one is the start of the next), about 25 ns that every system
//! pays, and then as many asks again without, for a mean that nothing is added to. `ask-block-on`
//! does the same from the thread that drives a program's main future, beside a task.

use crate::measure::{Budget, Sample, percentile_ns};
use crate::system::{System, on_worker};
use crate::tally::Board;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Latencies kept at most: 8 M of four bytes each, enough for a second at 125 ns.
const LATENCIES_MAX: usize = 8_000_000;
/// Clients of `ask-8`.
const CLIENTS: usize = 8;

fn spawn_counter<S: System>(system: &Arc<S>) -> S::Address {
    // This batch never completes: an ask carries its own reply.
    let mut tallies = Board::new(1).tallies(1, u64::MAX);
    let tally = tallies.next().expect("one tally was asked for");
    let spawner = Arc::clone(system);
    on_worker(&**system, async move { spawner.spawn(tally).await })
}

/// What one client of one actor saw.
struct Answers {
    latencies: Vec<u32>,
    /// Nanoseconds per ask without a clock read for each.
    mean_ns: f64,
    asks: u64,
    last_sum: u64,
}

/// Asks with the number 1, so that the sum in the last reply counts the asks.
pub(crate) fn run_one<S: System>(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let address = spawn_counter(&system);
    let mut answers = on_worker(&*system, ask_alone::<S>(address, budget));
    if answers.last_sum != answers.asks {
        return Err(format!("the last reply was {} after {} asks", answers.last_sum, answers.asks));
    }
    answers.latencies.sort_unstable();
    Ok(vec![
        Sample::new("p50", "ns", percentile_ns(&answers.latencies, 0.50)),
        Sample::new("p99", "ns", percentile_ns(&answers.latencies, 0.99)),
        Sample::new("mean", "ns", answers.mean_ns),
    ])
}

async fn ask_alone<S: System>(address: S::Address, budget: Budget) -> Answers {
    let mut asks = 0_u64;
    let warm_up = Instant::now() + Duration::from_secs_f64(budget.warm_up_seconds);
    while Instant::now() < warm_up {
        S::ask(&address, 1).await;
        asks += 1;
    }
    let mut latencies = Vec::with_capacity(LATENCIES_MAX);
    let mut last = Instant::now();
    let until = last + Duration::from_secs_f64(budget.seconds);
    while last < until && latencies.len() < LATENCIES_MAX {
        S::ask(&address, 1).await;
        let now = Instant::now();
        let nanoseconds = now.duration_since(last).as_nanos();
        latencies.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
        last = now;
    }
    // As many again, on one pair of clock reads.
    let again = latencies.len().max(1);
    let mut last_sum = 0;
    let begun = Instant::now();
    for _ in 0..again {
        last_sum = S::ask(&address, 1).await;
    }
    let mean_ns = begun.elapsed().as_nanos() as f64 / again as f64;
    asks += (latencies.len() + again) as u64;
    Answers { latencies, mean_ns, asks, last_sum }
}

/// One client, first in a task, then on a thread outside that blocks on its asks, as `main` does.
pub(crate) fn run_block_on<S: System>(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let address = spawn_counter(&system);
    let half = Budget { seconds: budget.seconds / 2.0, ..budget };
    let mut inside = on_worker(&*system, ask_alone::<S>(address.clone(), half));
    let mut outside = system.on_thread(ask_alone::<S>(address, half));
    let asks = inside.asks + outside.asks;
    if outside.last_sum != asks {
        return Err(format!("the last reply was {} after {asks} asks", outside.last_sum));
    }
    inside.latencies.sort_unstable();
    outside.latencies.sort_unstable();
    let at = |metric, answers: &Answers, share| {
        Sample::new(metric, "ns", percentile_ns(&answers.latencies, share))
    };
    Ok(vec![
        at("p50-block-on", &outside, 0.50),
        at("p99-block-on", &outside, 0.99),
        at("p50-task", &inside, 0.50),
        at("p99-task", &inside, 0.99),
    ])
}

pub(crate) fn run_eight<S: System>(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let address = spawn_counter(&system);
    let stop = Arc::new(AtomicBool::new(false));
    let measured = Arc::new(AtomicBool::new(false));
    let (tx, rx) = mpsc::channel();
    for _ in 0..CLIENTS {
        let (address, stop, measured) = (address.clone(), Arc::clone(&stop), Arc::clone(&measured));
        let tx = tx.clone();
        system.run_task(async move {
            let (mut all, mut counted) = (0_u64, 0_u64);
            while !stop.load(Ordering::Relaxed) {
                S::ask(&address, 1).await;
                all += 1;
                counted += u64::from(measured.load(Ordering::Relaxed));
            }
            // The receiver below waits for every client.
            let _ = tx.send((all, counted));
        });
    }
    drop(tx);
    thread::sleep(Duration::from_secs_f64(budget.warm_up_seconds));
    let begun = Instant::now();
    measured.store(true, Ordering::Relaxed);
    thread::sleep(Duration::from_secs_f64(budget.seconds));
    measured.store(false, Ordering::Relaxed);
    let elapsed_ns = begun.elapsed().as_nanos() as f64;
    stop.store(true, Ordering::Relaxed);
    let (mut all, mut counted) = (0, 0);
    for (client_all, client_counted) in rx {
        all += client_all;
        counted += client_counted;
    }
    let sum = on_worker(&*system, async move { S::ask(&address, 1).await });
    if sum != all + 1 {
        return Err(format!("the actor counted {sum} of {} asks", all + 1));
    }
    Ok(vec![Sample::rate(counted, elapsed_ns)])
}
