//! `rolling-restart`: 3,000 sockets on three nodes of Folkmoot with one PostgreSQL, under load, while
//! each node in turn is told to stop (SIGTERM), ends, and is started again.
//!
//! A socket whose node stops goes on at the next node after a part of 200 ms, with the positions of
//! its rooms, and says again what was not acknowledged, under the same key. `pause` is from the end of
//! its connection until it has its rooms and all that was said meanwhile. `delivery` is of all
//! messages to all sockets, of those on other nodes too. A run in which anything is lost, doubled, out
//! of order or refused fails.

use super::folkmoot::Nodes;
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SOCKETS: u64 = 3_000;
/// Each socket is in one room.
const MEMBERS: u64 = 100;
const SENDERS: u64 = 60;
/// Messages a second; each goes to 100 sockets.
const RATE: u64 = 100;
/// Longer than three restarts take, with what lies between them.
const SECONDS: u64 = 40;
/// Between a node that is ready and the next one that stops, as an operator waits.
const BETWEEN: Duration = Duration::from_secs(2);
const ENTRANCE_MAX: Duration = Duration::from_secs(60);
/// For the load to end after its time: clients that cannot come back try for a minute, and what is
/// missing counts as lost after ten seconds.
const REST_MAX: Duration = Duration::from_secs(SECONDS + 80);

pub(crate) fn run(_: Budget) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Vec<Sample>> {
    let seed = flags(&[
        ("--users", SOCKETS.to_string()),
        ("--room", format!("{MEMBERS}x{}", SOCKETS / MEMBERS)),
    ]);
    let mut nodes = Nodes::seeded(&["both"; 3], &seed).await?;
    let mut load = flags(&[
        ("--sockets", SOCKETS.to_string()),
        ("--senders", SENDERS.to_string()),
        ("--rate", RATE.to_string()),
        ("--seconds", SECONDS.to_string()),
    ]);
    load.push("--resume".to_owned());
    let load = tokio::spawn(nodes.load(&[0, 1, 2], &load)?);
    let entrance = async {
        // Nobody speaks before all are in.
        while nodes.messages().await? == 0 {
            sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    timeout(ENTRANCE_MAX, entrance).await.context("not all sockets came in")??;
    let mut stops = Vec::new();
    for number in 0..3 {
        sleep(BETWEEN).await;
        stops.push(nodes.restart(number).await?);
    }
    ensure!(!load.is_finished(), "the load ended before the last node was back");
    let report = timeout(REST_MAX, load).await.context("the load does not end")???;
    let (said, resumed) = (report.said()?, report.resumed()?);
    ensure!(said.refused == 0, "{} messages were refused", said.refused);
    // A third is on each node that stops, and those of the first ones on later ones again.
    ensure!(resumed.connections >= SOCKETS, "only {} went on elsewhere", resumed.connections);
    let mut samples = resumed.pause.samples(&["pause-p50", "pause-p99", "pause-p99.9"])?;
    samples.push(Sample::new("resumed", "connections", resumed.connections as f64));
    samples.push(Sample::new("retried", "connections", resumed.retried as f64));
    samples.extend(said.to_delivery.samples(&[
        "delivery-p50",
        "delivery-p99",
        "delivery-p99.9",
    ])?);
    samples.push(Sample::new("delivered", "events", said.delivered as f64));
    // Others fail above, and in `folkmoot load`.
    samples.push(Sample::new("lost-doubled-reordered", "events", 0.0));
    let longest = stops.iter().max().copied().unwrap_or_default();
    samples.push(Sample::new("stop-longest", "ms", longest.as_secs_f64() * 1e3));
    Ok(samples)
}

pub(super) fn flags(flags: &[(&str, String)]) -> Vec<String> {
    flags.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]).collect()
}
