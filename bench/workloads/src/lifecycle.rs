//! `spawn` and `stop`: nanoseconds per actor, until the last one has started or is gone.
//!
//! One task of the runtime starts (or stops) all actors in a loop. An actor has started when its
//! start hook ran, and is gone when its state was dropped; both are counted, not assumed.

use crate::measure::{Budget, Sample, median_ns};
use crate::system::{System, on_worker};
use crate::tally::Board;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which half of an actor's life is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Spawn,
    Stop,
}

pub(crate) fn run<S: System>(budget: Budget, phase: Phase) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let actors = usize::try_from(budget.messages).map_err(|error| error.to_string())?;
    let mut durations = budget.run(|| {
        let (spawned, stopped) = one_generation(&system, actors)?;
        Ok::<_, String>(match phase {
            Phase::Spawn => spawned,
            Phase::Stop => stopped,
        })
    })?;
    let metric = match phase {
        Phase::Spawn => "spawn",
        Phase::Stop => "stop",
    };
    Ok(vec![Sample::new(metric, "ns", median_ns(&mut durations) / budget.messages as f64)])
}

/// Starts and stops `actors` actors and returns how long each half took.
fn one_generation<S: System>(
    system: &Arc<S>,
    actors: usize,
) -> Result<(Duration, Duration), String> {
    let board = Board::new(1);
    let tallies = board.tallies(actors, u64::MAX);
    let spawner = Arc::clone(system);
    let (begun, addresses) = on_worker(&**system, async move {
        let mut addresses = Vec::with_capacity(tallies.len());
        let begun = Instant::now();
        for tally in tallies {
            addresses.push(spawner.spawn(tally).await);
        }
        (begun, addresses)
    });
    let ended = board.started.wait().map_err(|error| format!("start: {error}"))?;
    let spawned = ended.duration_since(begun);
    let begun = on_worker(&**system, async move {
        let begun = Instant::now();
        for address in addresses {
            S::stop(address).await;
        }
        begun
    });
    let ended = board.stopped.wait().map_err(|error| format!("stop: {error}"))?;
    Ok((spawned, ended.duration_since(begun)))
}
