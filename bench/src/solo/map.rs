//! `map-http`, `map-ingest` and `map-million`: the vehicle map as a process of its own, loaded from
//! others.
//!
//! `map-http` asks `/vehicle` over 1,000 connections, with Debian's wrk or, where that is missing,
//! with a generator of our own; of ours and, in turn in the same run, of the Go peers under
//! `bench/peers/go-map`. The other two publish by MQTT with the map's own load generator, which
//! measures from publishing to the event stream.

mod asking;
mod process;
mod wrk;

use althing_bench_workloads::{Budget, Sample};
use anyhow::{Result, bail, ensure};
use process::{Map, Server};
use serde::Deserialize;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 1_000;
/// Below it the warm-up of connections is what is measured.
const SECONDS_MIN: f64 = 5.0;
const VEHICLES: u32 = 2_000;
const INGEST_VEHICLES: u32 = 50_000;
const INGEST_RATE: u32 = 50_000;
const MILLION: u32 = 1_000_000;
/// Seconds until a vehicle sleeps, so that most of a million do.
const IDLE_S: &str = "5";
/// Longest wait for a million vehicles to be asleep.
const ASLEEP_MAX: Duration = Duration::from_secs(90);
/// What a server answered to those who asked it as fast as it could answer.
struct Answered {
    per_second: f64,
    p99_ms: f64,
}

/// The part of the load generator's report that becomes samples.
#[derive(Deserialize)]
struct Report {
    published: u64,
    rate: f64,
    watched: u64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
}

/// The part of `/healthz` that counts.
#[derive(Deserialize)]
struct Health {
    vehicles_awake: u64,
    vehicles_known: u64,
    counters: Counters,
}

#[derive(Deserialize)]
struct Counters {
    received: u64,
    positions: u64,
    shed: u64,
}

/// Runs a workload of the map.
pub(super) fn run(workload: &str, budget: Budget) -> Result<Vec<Sample>, String> {
    let measured = match workload {
        "map-http" => http(budget),
        "map-ingest" => ingest(budget),
        _ => million(),
    };
    measured.map_err(|error| format!("{error:#}"))
}

fn http(budget: Budget) -> Result<Vec<Sample>> {
    let seconds = budget.seconds.max(SECONDS_MIN);
    let ask = if wrk::is_installed() { wrk::ask } else { asking::ask };
    let map = Map::start(&[])?;
    map.load(VEHICLES, VEHICLES, 2, false)?;
    let ours = ask(map.server.address(), seconds)?;
    drop(map);
    let mut samples = vec![
        Sample::new("althing", "1/s", ours.per_second),
        Sample::new("althing-p99", "ms", ours.p99_ms),
    ];
    let peers = process::build_peers()?;
    let candidates = [
        (["goakt", "net"], ["goakt", "goakt-p99", "ratio-goakt"]),
        (["goakt", "fast"], ["goakt-fasthttp", "goakt-fasthttp-p99", "ratio-goakt-fasthttp"]),
        (["protoactor", "net"], ["protoactor", "protoactor-p99", "ratio-protoactor"]),
    ];
    for ([system, http], [rate, p99, ratio]) in candidates {
        let peer = Server::start(Command::new(&peers).args(["-system", system, "-http", http]))?;
        let theirs = ask(peer.address(), seconds)?;
        samples.push(Sample::new(rate, "1/s", theirs.per_second));
        samples.push(Sample::new(p99, "ms", theirs.p99_ms));
        samples.push(Sample::new(ratio, "", ours.per_second / theirs.per_second));
    }
    Ok(samples)
}

fn ingest(budget: Budget) -> Result<Vec<Sample>> {
    let map = Map::start(&[])?;
    // All vehicles wake before the measured part.
    map.load(INGEST_VEHICLES, INGEST_RATE / 4, 4, false)?;
    let seconds = budget.seconds.max(SECONDS_MIN).ceil() as u32;
    let report = map.load(INGEST_VEHICLES, INGEST_RATE, seconds, true)?;
    let health = map.health()?;
    ensure!(health.counters.shed == 0, "{} positions were shed", health.counters.shed);
    Ok(vec![
        Sample::new("ingested", "1/s", report.rate),
        // Less than all when a stalled stream skipped to newer positions.
        Sample::new("seen", "%", report.watched as f64 * 100.0 / report.published as f64),
        Sample::new("to-stream-p50", "ms", report.p50_ms),
        Sample::new("to-stream-p99", "ms", report.p99_ms),
        Sample::new("to-stream-p99.9", "ms", report.p999_ms),
        Sample::new("resident", "MB", map.server.resident_mb("VmRSS")?),
    ])
}

fn million() -> Result<Vec<Sample>> {
    let map = Map::start(&["--idle", IDLE_S])?;
    let begun = Instant::now();
    let report = map.load(MILLION, INGEST_RATE, MILLION / INGEST_RATE, false)?;
    let deadline = Instant::now() + ASLEEP_MAX;
    let health = loop {
        let health = map.health()?;
        if health.vehicles_awake == 0 && health.vehicles_known >= report.published {
            break health;
        }
        if Instant::now() > deadline {
            bail!(
                "{} awake, {} known of {} published; {} received, {} shed",
                health.vehicles_awake,
                health.vehicles_known,
                report.published,
                health.counters.received,
                health.counters.shed
            );
        }
        thread::sleep(Duration::from_millis(100));
    };
    ensure!(health.counters.shed == 0, "{} positions were shed", health.counters.shed);
    ensure!(health.counters.positions == report.published, "positions were lost");
    Ok(vec![
        Sample::new("known", "vehicles", health.vehicles_known as f64),
        Sample::new("asleep-after", "s", begun.elapsed().as_secs_f64()),
        Sample::new("resident", "MB", map.server.resident_mb("VmRSS")?),
        Sample::new("resident-peak", "MB", map.server.resident_mb("VmHWM")?),
    ])
}
