//! `read-states-durable`: changes that are acknowledged when a crash cannot undo them, by the log
//! and its syncs in groups, from 1,024 tasks that each wait for the last one; changed rows go to
//! SQLite meanwhile.

use super::mix::{Zipf, load_all};
use super::paced::Stored;
use super::{TIMED, nanoseconds};
use crate::build::build_directory;
use althing_bench_workloads::{Budget, Sample, percentile_ns};
use anyhow::Result;
use folkmoot_read_states::{Change, Options, ReadStates};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const TASKS: usize = 1_024;

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(budget))
}

async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let directory = tempfile::tempdir_in(build_directory()?)?;
    let (store, _) = Stored::open(directory.path())?;
    let log = Some(directory.path().join("log"));
    let options = Options { bytes_max: 1 << 30, log, ..Options::default() };
    let states = ReadStates::open(Arc::new(store), options).await?;
    load_all(&states).await.map_err(anyhow::Error::msg)?;
    let places = Zipf::new(77, Zipf::zeta()).picks(TIMED);
    let places: Arc<[_]> = places.into_iter().map(|pick| (pick.user, pick.room)).collect();
    let (is_measured, is_over) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    // Each is above the last one, so that every operation is a change: others are not in the log.
    let message = Arc::new(AtomicU64::new(1 << 20));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (states, places, message) = (states.clone(), places.clone(), message.clone());
        let (is_measured, is_over) = (is_measured.clone(), is_over.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for n in task * (TIMED / TASKS).. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let ((user, room), begun) = (places[n % TIMED], Instant::now());
                let message = message.fetch_add(1, Ordering::Relaxed);
                let change = Change::Acknowledge { message, mentions_left: 0 };
                let changed = states.change(user, room, change)?;
                states.durable(changed).await?;
                if is_measured.load(Ordering::Relaxed) {
                    times.push(nanoseconds(begun));
                }
            }
            Ok::<_, folkmoot_read_states::ReadStatesError>(times)
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(budget.warm_up_seconds)).await;
    let begun = Instant::now();
    is_measured.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs_f64(budget.seconds)).await;
    is_measured.store(false, Ordering::Relaxed);
    let took = begun.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    Ok(vec![
        Sample::new("acknowledged", "1/s", times.len() as f64 / took),
        Sample::new("ack-p50", "ms", percentile_ns(&times, 0.5) / 1e6),
        Sample::new("ack-p99", "ms", percentile_ns(&times, 0.99) / 1e6),
    ])
}
