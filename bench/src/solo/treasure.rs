//! `treasure-3k` and `treasure-50k`: the treasure hunt, served and played by real processes.
//!
//! Starts the release build of `treasure-hunt` with a fresh log on disk, plays it from a second
//! process, and fails unless the recount of the log says that nothing acknowledged was lost. The
//! load generator measures; this only runs it.

use crate::build::{build_directory, up_to_date};
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, process};

/// What the server prints before its address.
const GREETING: &str = "treasure hunt: open http://";
/// Below it the warm-up of the machine is what is measured.
const SECONDS_MIN: f64 = 5.0;

/// How the world is played.
pub(super) struct Play {
    players: u32,
    players_per_socket: u32,
    rate: u32,
}

/// Every player has a socket of its own.
pub(super) const MANY_SOCKETS: Play = Play { players: 3_000, players_per_socket: 1, rate: 10 };
/// 250 sockets carry 200 players each: what is measured is the players, not the kernel's sockets.
pub(super) const MANY_PLAYERS: Play = Play { players: 50_000, players_per_socket: 200, rate: 1 };

/// The part of the load generator's report that becomes samples.
#[derive(Deserialize)]
struct Report {
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    done_per_second: f64,
    server_us_per_event: f64,
    server_cores: f64,
    load_cores: f64,
    busiest_worker_above_mean_percent: f64,
    resident_bytes_per_player: f64,
}

/// A running server; ended, and its log removed, when dropped.
struct Server {
    process: Child,
    address: String,
    directory: PathBuf,
}

pub(super) fn run(play: &Play, budget: Budget) -> Result<Vec<Sample>, String> {
    measure(play, budget).map_err(|error| format!("{error:#}"))
}

fn measure(play: &Play, budget: Budget) -> Result<Vec<Sample>> {
    let release = build_directory()?;
    up_to_date("treasure-hunt", &[], &release)?;
    let server = Server::start(&release)?;
    let seconds = budget.seconds.max(SECONDS_MIN).to_string();
    let load = Command::new(release.join("treasure-hunt"))
        .args(["load", "--json", "--address", &server.address, "--seconds", &seconds])
        .args(["--players", &play.players.to_string(), "--rate", &play.rate.to_string()])
        .args(["--players-per-socket", &play.players_per_socket.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the load generator")?;
    ensure!(load.status.success(), "{}", String::from_utf8_lossy(&load.stdout));
    let report: Report = serde_json::from_slice(&load.stdout)?;
    Ok(vec![
        Sample::new("move-to-event-p99", "ms", report.p99_ms),
        Sample::new("move-to-event-p50", "ms", report.p50_ms),
        Sample::new("move-to-event-p99.9", "ms", report.p999_ms),
        Sample::new("events", "1/s", report.done_per_second),
        Sample::new("server-cpu-per-event", "us", report.server_us_per_event),
        Sample::new("server-cpu", "cores", report.server_cores),
        Sample::new("load-cpu", "cores", report.load_cores),
        Sample::new("busiest-worker", "% above mean", report.busiest_worker_above_mean_percent),
        Sample::new("memory-per-player", "bytes", report.resident_bytes_per_player),
    ])
}

impl Server {
    /// Not in `/tmp`, which may be memory, where fsync costs nothing.
    fn start(release: &Path) -> Result<Self> {
        let directory = release.join(format!("treasure-{}", process::id()));
        let mut process = Command::new(release.join("treasure-hunt"))
            .args(["serve", "--address", "127.0.0.1:0", "--data"])
            .arg(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start treasure-hunt")?;
        let stdout = process.stdout.take().context("its output is piped")?;
        let mut server = Self { process, address: String::new(), directory };
        let mut greeting = String::new();
        BufReader::new(stdout).read_line(&mut greeting)?;
        let address = greeting.trim().strip_prefix(GREETING);
        server.address = address.with_context(|| format!("unexpected greeting {greeting}"))?.into();
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing else can be done about either.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
