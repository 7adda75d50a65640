//! The load generator: plays with thousands of players over WebSocket and checks what it was told against the log.
//!
//! Latency runs from the moment an act was due, not from when it was sent, so that a stall of the server counts for every act
//! it delays. One socket plays many players if asked to; each player still waits for its own answers.

mod bot;
pub mod client;
mod drive;
mod report;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

pub use bot::{Bot, Tally};
pub use report::{Report, Verdict};

use crate::gateway::Recounted;
use crate::process::{self, ProcessUse};

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
    let empty = Usage::now(status().await.context(reachable)?);
    let sockets = options.players.div_ceil(options.players_per_socket);
    let start = Arc::new(Barrier::new(sockets as usize + 1));
    let finish = Arc::new(Barrier::new(sockets as usize + 1));
    let mut drivers = JoinSet::new();
    for socket in 0..sockets {
        let first = socket * options.players_per_socket;
        let count = options.players_per_socket.min(options.players - first);
        let gates = drive::Gates { start: start.clone(), finish: finish.clone() };
        drivers.spawn(drive::socket(options.clone(), socket, count, gates));
    }
    let arrived = tokio::select! {
        _ = start.wait() => Ok(()),
        Some(ended) = drivers.join_next() => Err(ended),
    };
    if let Err(ended) = arrived {
        ended.context("a socket's task failed")?.context("joining")?;
        anyhow::bail!("a socket ended before play began");
    }
    let before = Usage::now(status().await?);
    finish.wait().await;
    let after = Usage::now(status().await?);
    let mut bots = Vec::new();
    let mut tally = Tally::default();
    while let Some(driver) = drivers.join_next().await {
        let (played, counted) = driver.context("a socket's task failed")??;
        bots.extend(played);
        tally.merge(counted);
    }
    let recounted: Recounted = client::get_json(options.address, "/recount").await?;
    Ok(Report::new(&options, &bots, tally, &recounted, [&empty, &before, &after]))
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
