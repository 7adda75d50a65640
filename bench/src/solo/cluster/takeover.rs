//! `takeover`: from SIGKILL of a node's process until its actor answers on another node.

use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample};

use super::{PATIENCE, Resident, ResidentCalls, Stage, There, error, join, milliseconds, name};

/// Nodes that are killed, one after the other.
const KILLS: u32 = 5;

/// Short beside what is measured.
const TRY_TIMEOUT: Duration = Duration::from_millis(100);

pub(crate) fn run(_: Budget) -> Result<Vec<Sample>, String> {
    let stage = Stage::new()?;
    let (node, _member) = stage.runtime.block_on(join("here", &stage.address()))?;
    let mut times = Vec::new();
    for kill in 0..KILLS {
        let mut there = There::start(&format!("there-{kill}"), &stage.address())?;
        let id = there.id();
        let took = stage.runtime.block_on(async {
            let until = Instant::now() + PATIENCE;
            let mut numbers = (0_u64..2_000).cycle();
            let actor = loop {
                let number = numbers.next().ok_or("there are names")?;
                let actor = node.get::<Resident>(name(number));
                match actor.here().timeout(TRY_TIMEOUT).await {
                    Ok((process, _)) if process == id => break actor,
                    _ if Instant::now() > until => return Err("it gets no actors".to_owned()),
                    _ => {}
                }
            };
            there.kill()?;
            let killed = Instant::now();
            loop {
                match actor.here().timeout(TRY_TIMEOUT).await {
                    Ok((process, _)) if process != id => return Ok(killed.elapsed()),
                    _ if killed.elapsed() > PATIENCE => return Err("it never answers".to_owned()),
                    // The node is lost, and not yet replaced.
                    _ => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        });
        times.push(took.map_err(error)?);
    }
    times.sort_unstable();
    Ok(vec![
        Sample::new("p50", "ms", milliseconds(times[times.len() / 2])),
        Sample::new("longest", "ms", milliseconds(times[times.len() - 1])),
    ])
}
