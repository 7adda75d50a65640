//! `million`: a million named actors on three nodes, of which one is killed: how long until each of
//! those that it had answers again.
//!
//! Who asks is a client of the two other nodes. It asks a sample of the lost actors, all at once,
//! from the kill on, and then every actor of the million once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample, percentile_ns};
use althing_cluster::Client;
use tokio::task::JoinSet;

use super::{PATIENCE, Resident, ResidentCalls, Stage, There, error, milliseconds, name};

/// Actors that are looked up before the kill. Of the lost third, each of its 1,365 buckets has some.
const SAMPLE: u64 = 60_000;

/// Tasks that ask.
const ASKERS: u64 = 512;

const TRY_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let count = budget.messages;
    let stage = Stage::new()?;
    let mut nodes = stage.nodes(&["one", "two", "three"])?;
    let began = Instant::now();
    for node in &mut nodes {
        node.order(&format!("fill {count}"))?;
    }
    let mut filled = 0;
    for node in &mut nodes {
        filled += node.line()?.parse::<u64>().map_err(error)?;
    }
    if filled != count {
        return Err(format!("{filled} of {count} actors were started"));
    }
    let fill = began.elapsed();
    let resident = nodes.iter().map(resident_mib).collect::<Result<Vec<_>, _>>()?;
    let client = Arc::new(stage.client(&nodes[..2])?);
    let lost_id = nodes[2].id();
    let step = (count / SAMPLE).max(1);
    let sample = Arc::new((0..count).step_by(usize::try_from(step).map_err(error)?).collect());
    let lost: Vec<u64> = stage.runtime.block_on(async {
        let homes = ask_each(&client, sample, Instant::now()).await?;
        Ok::<_, String>(
            homes.iter().filter(|home| home.process == lost_id).map(|home| home.number).collect(),
        )
    })?;
    let lost_count = lost.len();
    nodes[2].kill()?;
    let killed = Instant::now();
    let (times, all) = stage.runtime.block_on(async {
        let answers = ask_each(&client, Arc::new(lost), killed).await?;
        let all = ask_each(&client, Arc::new((0..count).collect()), killed).await?;
        if let Some(home) = answers.iter().chain(&all).find(|home| home.process == lost_id) {
            return Err(format!("actor {} answers from the dead", home.number));
        }
        Ok((answers.iter().map(|home| home.after).collect::<Vec<_>>(), killed.elapsed()))
    })?;
    let mut times: Vec<u32> = times.iter().map(|time| milliseconds(*time) as u32).collect();
    times.sort_unstable();
    Ok(vec![
        Sample::new("actors", "", count as f64),
        Sample::new("asked-of-lost", "", lost_count as f64),
        Sample::new("p50", "ms", percentile_ns(&times, 0.5)),
        Sample::new("last", "ms", percentile_ns(&times, 1.0)),
        Sample::new("all-asked", "ms", milliseconds(all)),
        Sample::new("fill", "ms", milliseconds(fill)),
        Sample::new("resident-of-a-node", "MiB", resident.iter().copied().fold(0.0, f64::max)),
    ])
}

/// An answer: of whom, from which process, and how long after the start.
struct Home {
    number: u64,
    process: u32,
    after: Duration,
}

/// Asks each of them until it answers; from many tasks, each of which takes the next one.
async fn ask_each(
    client: &Arc<Client>,
    numbers: Arc<Vec<u64>>,
    start: Instant,
) -> Result<Vec<Home>, String> {
    let next = Arc::new(AtomicU64::new(0));
    let mut askers = JoinSet::new();
    for _ in 0..ASKERS {
        let (client, numbers, next) = (client.clone(), numbers.clone(), next.clone());
        askers.spawn(async move {
            let mut homes = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let number = usize::try_from(at).ok().and_then(|at| numbers.get(at).copied());
                let Some(number) = number else { return Ok(homes) };
                let actor = client.get::<Resident>(name(number)).map_err(error)?;
                let process = loop {
                    match actor.here().timeout(TRY_TIMEOUT).await {
                        Ok((process, _)) => break process,
                        Err(why) if start.elapsed() > PATIENCE => return Err(why.to_string()),
                        Err(_) => {}
                    }
                };
                homes.push(Home { number, process, after: start.elapsed() });
            }
        });
    }
    let mut all = Vec::new();
    while let Some(homes) = askers.join_next().await {
        all.extend(homes.map_err(error)??);
    }
    Ok(all)
}

fn resident_mib(node: &There) -> Result<f64, String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.id())).map_err(error)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.ok_or("the kernel tells no resident size")? / 1024.0)
}
