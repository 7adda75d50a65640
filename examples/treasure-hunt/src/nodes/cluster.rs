//! Several nodes of one world on this machine, to try: each a process, with a PostgreSQL of their
//! own unless one is named. A node that ends is started again.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use anyhow::{Context, Result};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Before a node that has ended is started again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a node may take to hand over what it has.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// Which nodes to run.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// How many.
    pub nodes: u16,
    /// Where clients of the first one come in; the others take the ports after it.
    pub address: SocketAddr,
    /// The database, if it is not one that ends with the nodes.
    pub store: Option<String>,
    /// Everything about the ground follows from it.
    pub seed: u64,
}

impl Cluster {
    /// Runs the nodes until `stop` resolves.
    ///
    /// # Errors
    /// A node cannot be started.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self { nodes: count, address, store, seed } = self;
        let postgres = match store {
            Some(_) => None,
            None => Some(tokio::task::spawn_blocking(PostgresServer::start).await?),
        };
        let store = store.or_else(|| postgres.as_ref().map(PostgresServer::url));
        let store = store.expect("one of them is there");
        let stopping = watch::Sender::new(false);
        let mut nodes = JoinSet::new();
        for number in 0..count {
            let port = address.port().checked_add(number).context("no port for a node")?;
            let address = SocketAddr::new(address.ip(), port);
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["node", "--name", &format!("n{}", number + 1)]);
            command.args(["--address", &address.to_string(), "--seed", &seed.to_string()]);
            command.env("HUNT_STORE", &store).stdin(Stdio::null()).kill_on_drop(true);
            nodes.spawn(keep(command, stopping.subscribe()));
        }
        println!("treasure hunt in {store}: count it again by treasure-hunt recount --store URL");
        tokio::select! {
            () = stop => {}
            Some(ended) = nodes.join_next() => ended.context("a node's task")??,
        }
        stopping.send_replace(true);
        while let Some(ended) = nodes.join_next().await {
            ended.context("a node's task")??;
        }
        drop(postgres);
        Ok(())
    }
}

/// Runs a node, again and again, until all are to stop.
async fn keep(mut command: Command, mut stopping: watch::Receiver<bool>) -> Result<()> {
    loop {
        let mut node = command.spawn().context("cannot start a node")?;
        tokio::select! {
            status = node.wait() => eprintln!("a node has ended with {}", status?),
            () = stops(&mut stopping) => return end(node).await,
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN_AFTER) => {}
            () = stops(&mut stopping) => return Ok(()),
        }
    }
}

/// Waits until all are to stop.
async fn stops(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}

/// Tells a node to stop, and waits until it has.
async fn end(mut node: Child) -> Result<()> {
    let pid = node.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    // One that does not stop is killed when it is dropped: what it has acknowledged is kept.
    if let Ok(ended) = tokio::time::timeout(STOP_WITHIN, node.wait()).await {
        ended?;
    }
    Ok(())
}
