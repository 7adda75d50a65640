//! Several processes of the chat server with one PostgreSQL: the nodes of one server, as `make
//! cluster` has them, each at a port of its own that it keeps.

use super::report::Report;
use super::server::{START_MAX, STOP_MAX, prepare, program};
use althing_testkit::servers::PostgresServer;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// For certificates, and for a store to be filled.
const FILL_MAX: Duration = Duration::from_secs(120);
/// Between two looks at a node that starts.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ended, and what they have written removed, when dropped.
pub(in crate::solo) struct Nodes {
    nodes: Vec<Node>,
    directory: PathBuf,
    postgres: PostgresServer,
}

struct Node {
    name: String,
    role: &'static str,
    address: SocketAddr,
    process: Option<Child>,
}

impl Nodes {
    /// Fills the store as the flags of `folkmoot seed` say, and starts a node for each role.
    pub(in crate::solo) async fn seeded(roles: &[&'static str], seed: &[String]) -> Result<Self> {
        let directory = prepare()?;
        let postgres = tokio::task::block_in_place(PostgresServer::start);
        let mut all = Self { nodes: Vec::new(), directory, postgres };
        for (number, role) in roles.iter().enumerate() {
            // Free a moment ago: a node keeps its port when it starts again.
            let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
            all.nodes.push(Node { name: format!("n{number}"), role, address, process: None });
        }
        let mut certificates = Command::new(program()?);
        certificates.args(["cluster", "init", "--cluster", "bench"]);
        certificates.arg(all.directory.join("tls"));
        for node in &all.nodes {
            certificates.args(["--node", &node.name]);
        }
        succeed(&mut certificates).await?;
        let mut filling = all.command()?;
        filling.arg("--data").arg(all.directory.join("seed")).arg("seed").args(seed);
        filling.arg("--tokens").arg(all.directory.join("tokens"));
        succeed(&mut filling).await?;
        for number in 0..all.nodes.len() {
            all.launch(number)?;
        }
        for number in 0..all.nodes.len() {
            all.ready(number).await?;
        }
        Ok(all)
    }

    fn command(&self) -> Result<Command> {
        let mut command = Command::new(program()?);
        command.env("FOLKMOOT_STORE", self.postgres.url());
        command.arg("--config").arg(self.directory.join("folkmoot.toml"));
        command.args(["--log", "warn"]).stdin(Stdio::null()).kill_on_drop(true);
        Ok(command)
    }

    fn launch(&mut self, number: usize) -> Result<()> {
        let mut command = self.command()?;
        let node = &mut self.nodes[number];
        command.args(["--listen", &node.address.to_string(), "--cluster-name", "bench"]);
        command.args(["--node", &node.name, "--role", node.role]);
        command.arg("--cluster-certificates").arg(self.directory.join("tls"));
        command.arg("--attachments").arg(self.directory.join("attachments"));
        command.arg("--data").arg(self.directory.join(&node.name)).stdout(Stdio::null());
        node.process = Some(command.spawn().context("cannot start folkmoot")?);
        Ok(())
    }

    /// Waits until a node says that it may be given clients.
    async fn ready(&self, number: usize) -> Result<()> {
        let address = self.nodes[number].address;
        let answers = async {
            while !is_ready(address).await.unwrap_or(false) {
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(START_MAX, answers).await.with_context(|| format!("{address} is never ready"))
    }

    /// Ends a node as an operator would, and starts it again; how long it took to end.
    pub(in crate::solo) async fn restart(&mut self, number: usize) -> Result<Duration> {
        let node = &mut self.nodes[number];
        let mut process = node.process.take().context("it runs")?;
        let pid = process.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw).context("it has not ended")?;
        let told = std::time::Instant::now();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = timeout(STOP_MAX, process.wait()).await.context("it does not stop")??;
        ensure!(status.success(), "{} stopped with {status}", self.nodes[number].name);
        let took = told.elapsed();
        self.launch(number)?;
        self.ready(number).await?;
        Ok(took)
    }

    /// Puts those of these numbers under load with `folkmoot load`, a process of its own that is
    /// started by this and ends with the future.
    ///
    /// # Errors
    /// Anything was lost, doubled or out of order, or a connection broke for good.
    pub(in crate::solo) fn load(
        &self,
        numbers: &[usize],
        flags: &[String],
    ) -> Result<impl Future<Output = Result<Report>> + use<>> {
        let mut command = Command::new(program()?);
        command.args(["load", "--json"]).arg("--tokens").arg(self.directory.join("tokens"));
        for number in numbers {
            command.args(["--server", &self.nodes[*number].address.to_string()]);
        }
        command.args(flags).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let load = command.kill_on_drop(true).spawn().context("cannot start folkmoot")?;
        Ok(async move { Report::of(&load.wait_with_output().await?) })
    }

    /// Messages that all nodes together have taken.
    pub(in crate::solo) async fn messages(&self) -> Result<u64> {
        let mut sum = 0;
        for node in &self.nodes {
            let page = get(node.address, "/metrics").await?;
            let line = page.lines().find(|line| line.starts_with("folkmoot_messages_total "));
            let count = line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok());
            sum += count.context("a node tells no number of messages")? as u64;
        }
        Ok(sum)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // Should it fail, it ends with `kill_on_drop`.
            let _ = node.process.as_mut().map(Child::start_kill);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

async fn succeed(command: &mut Command) -> Result<()> {
    let output = timeout(FILL_MAX, command.stdin(Stdio::null()).kill_on_drop(true).output());
    let output = output.await.context("folkmoot does not end")?.context("cannot start folkmoot")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "folkmoot: {}", why.trim());
    Ok(())
}

async fn is_ready(address: SocketAddr) -> Result<bool> {
    Ok(get(address, "/readyz").await?.starts_with("HTTP/1.1 200"))
}

async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
