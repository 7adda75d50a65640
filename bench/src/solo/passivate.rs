//! `passivate`: 20,000 named actors that are started, unloaded, and brought back by a message.
//!
//! One task asks them in turn, so `start` and `return` are the time of an ask that builds its
//! actor. Unloading ends when the last state has been dropped. An actor that comes back must be a
//! new one.

use crate::althing::Althing;
use althing::{Actor, ActorRef, Context, Handler, Node};
use althing_bench_workloads::{Budget, Countdown, Sample, System, median_ns, on_worker};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ACTORS: usize = 20_000;

/// An actor that says when it is unloaded.
struct Sleeper {
    greeted: u64,
    unloaded: Arc<Countdown>,
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.unloaded.arrive(0);
    }
}

impl Actor for Sleeper {
    const NAME: &'static str = "bench.sleeper";
}

/// Replies how often this life was greeted.
struct Greet;

impl Handler<Greet> for Sleeper {
    type Reply = u64;

    async fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u64 {
        self.greeted += 1;
        self.greeted
    }
}

struct Unload;

impl Handler<Unload> for Sleeper {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Althing::start();
    let unloaded = Arc::new(Countdown::new());
    let node = system.enter_with(|| {
        let unloaded = Arc::clone(&unloaded);
        let build = move |_| {
            let unloaded = Arc::clone(&unloaded);
            async move { Ok(Sleeper { greeted: 0, unloaded }) }
        };
        Node::builder("passivate").actor(build).build()
    });
    // Held, as by a gateway that knows whom it serves: what is measured is the actor, not its name.
    let sleepers: Vec<ActorRef<Sleeper>> =
        (0..ACTORS).map(|index| node.get(index.to_string())).collect();
    let sleepers = Arc::new(sleepers);
    let mut starts = vec![greet_all(&system, &sleepers)?];
    let mut unloads = vec![unload_all(&system, &sleepers, &unloaded)?];
    let mut returns = budget.run(|| {
        let returned = greet_all(&system, &sleepers)?;
        unloads.push(unload_all(&system, &sleepers, &unloaded)?);
        Ok::<_, String>(returned)
    })?;
    let per_actor = |durations: &mut [Duration]| median_ns(durations) / ACTORS as f64;
    Ok(vec![
        Sample::new("start", "ns", per_actor(&mut starts)),
        Sample::new("unload", "ns", per_actor(&mut unloads)),
        Sample::new("return", "ns", per_actor(&mut returns)),
    ])
}

/// Asks each once; fails unless each has just been built.
fn greet_all(system: &Althing, sleepers: &Arc<Vec<ActorRef<Sleeper>>>) -> Result<Duration, String> {
    let sleepers = Arc::clone(sleepers);
    on_worker(system, async move {
        let begun = Instant::now();
        for sleeper in sleepers.iter() {
            match sleeper.send(Greet).await {
                Ok(1) => {}
                Ok(greeted) => return Err(format!("{} was greeted {greeted} times", sleeper.id())),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(begun.elapsed())
    })
}

fn unload_all(
    system: &Althing,
    sleepers: &Arc<Vec<ActorRef<Sleeper>>>,
    unloaded: &Countdown,
) -> Result<Duration, String> {
    unloaded.expect(ACTORS);
    let sleepers = Arc::clone(sleepers);
    let begun = on_worker(system, async move {
        let begun = Instant::now();
        for sleeper in sleepers.iter() {
            sleeper.send(Unload).tell().await.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(begun)
    })?;
    let ended = unloaded.wait().map_err(|error| error.to_string())?;
    Ok(ended.duration_since(begun))
}
