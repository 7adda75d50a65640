//! `durable-commit`: 1,024 actors whose state is saved on the embedded store, each asked by a task
//! of its own; `durable-commit-postgres` and `-cassandra` are the same on a real server of this
//! machine, which syncs what it acknowledges.
//!
//! Every ask changes 100 bytes of state, and is answered once that is on the disk: the store syncs
//! whatever has gathered. `commits` are answers per second of the whole, `p50` and `p99` the time
//! of one ask. At the end every actor must have counted what it was asked.
//!
//! `durable-wake`: the same actors, each unloaded and then asked for its count, one after the
//! other. `wake` is the time of that ask, in which the state is loaded from the store; `unload`
//! that of the stop before it. Neither waits for the disk, because nothing has changed.

use super::kept::{Kept, On};
use crate::althing::Althing;
use althing::{Actor, ActorError, Commit, Context, Handler, Node, Start, Turns, Wire};
use althing_bench_workloads::{Budget, Sample, System, on_worker, percentile_ns};
use althing_store::{Saved, State};
use std::time::{Duration, Instant};

const ACTORS: usize = 1_024;
/// Asks of each actor in one batch.
const ASKS: u64 = 20;

#[derive(Default, Wire)]
struct Counted {
    asks: u64,
    rest: Vec<u8>,
}

impl State for Counted {}

struct Counter {
    saved: Saved<Counted>,
}

impl Actor for Counter {
    const NAME: &'static str = "bench.durable";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        self.saved.commit()
    }
}

struct Count;

impl Handler<Count> for Counter {
    type Reply = u64;

    async fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.saved.asks += 1;
        self.saved.rest.resize(100, 7);
        self.saved.asks
    }
}

struct CountedSoFar;

impl Handler<CountedSoFar> for Counter {
    type Reply = u64;

    async fn handle(&mut self, _: CountedSoFar, _: &mut Context<Self>) -> u64 {
        self.saved.asks
    }
}

/// A store, and a node whose actors are kept there.
struct Durable {
    system: Althing,
    node: Node,
    _kept: Kept,
}

impl Durable {
    fn start(on: On) -> Result<Self, String> {
        let system = Althing::start();
        let (kept, store) = Kept::start(&system, on)?;
        let node =
            system.enter_with(|| {
                let open = move |start: Start<Counter>| {
                    let store = store.clone();
                    async move {
                        Ok::<_, ActorError>(Counter { saved: Saved::load(store, &start).await? })
                    }
                };
                Node::builder("durable").actor(open).build()
            });
        Ok(Self { system, node, _kept: kept })
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        // The last reference to the store goes with the node's factories.
        self.node.kill();
    }
}

pub(crate) fn run(on: On, budget: Budget) -> Result<Vec<Sample>, String> {
    let durable = Durable::start(on)?;
    let mut latencies = Vec::new();
    let mut batches = 0;
    let durations = budget.run(|| {
        let (took, asks) = ask_all(&durable.system, &durable.node)?;
        batches += 1;
        latencies.extend(asks);
        Ok::<_, String>(took)
    })?;
    let total: Duration = durations.iter().sum();
    let commits = durations.len() as f64 * ACTORS as f64 * ASKS as f64 / total.as_secs_f64();
    latencies.sort_unstable();
    wake_all(&durable, batches * ASKS)?;
    Ok(vec![
        Sample::new("commits", "1/s", commits),
        Sample::new("p50", "ns", percentile_ns(&latencies, 0.50)),
        Sample::new("p99", "ns", percentile_ns(&latencies, 0.99)),
    ])
}

pub(crate) fn run_wake(budget: Budget) -> Result<Vec<Sample>, String> {
    let durable = Durable::start(On::Embedded)?;
    ask_all(&durable.system, &durable.node)?;
    let mut woken = Woken::default();
    budget.run(|| {
        let begun = Instant::now();
        let round = wake_all(&durable, ASKS)?;
        woken.unloads.extend(round.unloads);
        woken.wakes.extend(round.wakes);
        Ok::<_, String>(begun.elapsed())
    })?;
    woken.unloads.sort_unstable();
    woken.wakes.sort_unstable();
    Ok(vec![
        Sample::new("wake-p50", "ns", percentile_ns(&woken.wakes, 0.50)),
        Sample::new("wake-p99", "ns", percentile_ns(&woken.wakes, 0.99)),
        Sample::new("unload-p50", "ns", percentile_ns(&woken.unloads, 0.50)),
    ])
}

/// Asks each actor some times, all at once; returns how long that took, and each ask.
fn ask_all(system: &Althing, node: &Node) -> Result<(Duration, Vec<u32>), String> {
    let node = node.clone();
    on_worker(system, async move {
        let begun = Instant::now();
        let asking: Vec<_> = (0..ACTORS)
            .map(|index| {
                let counter = node.get::<Counter>(index.to_string());
                tokio::spawn(async move {
                    let mut took = Vec::with_capacity(ASKS as usize);
                    for _ in 0..ASKS {
                        let begun = Instant::now();
                        counter.send(Count).await.map_err(|error| error.to_string())?;
                        took.push(nanos(begun));
                    }
                    Ok::<_, String>(took)
                })
            })
            .collect();
        let mut all = Vec::with_capacity(ACTORS * ASKS as usize);
        for asked in asking {
            all.extend(asked.await.map_err(|error| error.to_string())??);
        }
        Ok((begun.elapsed(), all))
    })
}

#[derive(Default)]
struct Woken {
    unloads: Vec<u32>,
    wakes: Vec<u32>,
}

/// Stops and asks each actor, one after the other; fails unless each has counted what it was asked.
fn wake_all(durable: &Durable, asked: u64) -> Result<Woken, String> {
    let node = durable.node.clone();
    on_worker(&durable.system, async move {
        let mut woken = Woken::default();
        for index in 0..ACTORS {
            let counter = node.get::<Counter>(index.to_string());
            let begun = Instant::now();
            counter.stop().await;
            woken.unloads.push(nanos(begun));
            let begun = Instant::now();
            let counted = counter.send(CountedSoFar).await.map_err(|error| error.to_string())?;
            woken.wakes.push(nanos(begun));
            // The warm-up counts, too.
            if counted < asked {
                return Err(format!("{} has counted {counted} of {asked}", counter.id()));
            }
        }
        Ok(woken)
    })
}

fn nanos(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX)
}
