//! The load generator: plays with thousands of players over WebSocket and checks what it was told
//! against the log.
//!
//! Latency runs from the moment an act was due, not from when it was sent, so that a stall of the
//! server counts for every act it delays. One socket plays many players if asked to; each player
//! still waits for its own answers.

mod bot;
pub mod client;
mod drive;
mod report;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

pub use bot::{Bot, Tally};
pub use report::{Report, Verdict};

use crate::gateway::Recounted;
use crate::place::RegionId;
use crate::process::{self, ProcessUse};

/// Sockets that connect and join at the same time.
const ENTERING_MAX: usize = 64;

/// How to play.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub address: SocketAddr,
    /// Players.
    pub players: u32,
    /// Players on one socket.
    pub players_per_socket: u32,
    /// Acts of each player in a second.
    pub rate: f64,
    /// How long.
    pub duration: Duration,
}

/// Plays, and recounts at the end.
///
/// # Errors
/// The server cannot be reached or breaks off before play begins.
pub async fn play(options: Options) -> Result<Report> {
    let status = || async { client::get_json::<StatusView>(options.address, "/status").await };
    let reachable = "cannot reach the server: is `treasure-hunt serve` running?";
    status().await.context(reachable)?;
    // The ground is there for whoever comes: what it takes is no player's, and making it is not
    // part of play.
    for region in RegionId::all() {
        let path = format!("/map/{}", region.number());
        let (code, ..) = client::get(options.address, &path).await?;
        anyhow::ensure!(code == 200, "{path} answers {code}");
    }
    let empty = Usage::now(status().await?);
    let sockets = options.players.div_ceil(options.players_per_socket);
    let gates = drive::Gates {
        door: Arc::new(Semaphore::new(ENTERING_MAX)),
        start: Arc::new(Barrier::new(sockets as usize + 1)),
        finish: Arc::new(Barrier::new(sockets as usize + 1)),
    };
    let mut crews = JoinSet::new();
    let crew_count = crew_count(sockets);
    for crew in 0..crew_count {
        let (options, gates) = (options.clone(), gates.clone());
        crews.spawn_blocking(move || play_some(&options, &gates, crew, crew_count));
    }
    let arrived = tokio::select! {
        _ = gates.start.wait() => Ok(()),
        Some(ended) = crews.join_next() => Err(ended),
    };
    if let Err(ended) = arrived {
        ended.context("a crew failed")?.context("joining")?;
        anyhow::bail!("a socket ended before play began");
    }
    let before = Usage::now(status().await?);
    gates.finish.wait().await;
    let after = Usage::now(status().await?);
    let mut bots = Vec::new();
    let mut tally = Tally::default();
    while let Some(crew) = crews.join_next().await {
        for (played, counted) in crew.context("a crew failed")?? {
            bots.extend(played);
            tally.merge(counted);
        }
    }
    let recounted: Recounted = client::get_json(options.address, "/recount").await?;
    Ok(Report::new(&options, &bots, tally, &recounted, [&empty, &before, &after]))
}

/// Threads that play: half of the cores, because the server is on the same machine.
fn crew_count(sockets: u32) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
    u32::try_from(cores).unwrap_or(1).clamp(1, sockets.max(1))
}

/// Plays every `crews`-th socket on this thread: no bot of a crew ever waits for another core.
fn play_some(
    options: &Options,
    gates: &drive::Gates,
    crew: u32,
    crews: u32,
) -> Result<Vec<(Vec<Bot>, Tally)>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let sockets = options.players.div_ceil(options.players_per_socket);
        let mut drivers = JoinSet::new();
        for socket in (crew..sockets).step_by(crews as usize) {
            let first = socket * options.players_per_socket;
            let count = options.players_per_socket.min(options.players - first);
            drivers.spawn(drive::socket(options.clone(), socket, count, gates.clone()));
        }
        let mut played = Vec::new();
        while let Some(driver) = drivers.join_next().await {
            played.push(driver.context("a socket's task failed")??);
        }
        Ok(played)
    })
}

/// The part of the server's status that a report needs.
#[derive(Clone, Debug, serde::Deserialize)]
struct StatusView {
    process: ProcessUse,
    acts: ActsView,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct ActsView {
    killed: u64,
    retries: u64,
}

/// Both processes at one moment.
#[derive(Clone, Debug)]
struct Usage {
    server: StatusView,
    own_cpu_s: f64,
}

impl Usage {
    fn now(server: StatusView) -> Self {
        Self { server, own_cpu_s: process::usage().cpu_s }
    }
}
