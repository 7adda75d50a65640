//! `takeover`, `move` and `million`: a cluster of several processes on 127.0.0.1, with the default
//! lease, of which one process is lost or one actor is moved again and again.
//!
//! This process serves the authority; the nodes are `althing-bench cluster-node`, started for it.

mod million;
mod moves;
mod takeover;

use std::collections::HashSet;
use std::env;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use althing::{ActorId, Node, actor};
use althing_cluster::{Authority, Client, ClientConfig, LEASE_DEFAULT, Member, MemberConfig, Tls};
use tokio::runtime::Runtime;

pub(crate) use million::run as run_million;
pub(crate) use moves::run as run_moves;
pub(crate) use takeover::run as run_takeover;

const CLUSTER: &str = "bench-cluster";

const KIND: &str = "bench.resident";

/// Longer than anything takes here unless it failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says where it lives.
#[derive(Default)]
struct Resident {
    asked: u64,
}

#[actor(name = "bench.resident", wire)]
impl Resident {
    /// The process, and how often it was asked there.
    async fn here(&mut self) -> (u32, u64) {
        self.asked += 1;
        (std::process::id(), self.asked)
    }
}

fn error(what: impl std::fmt::Display) -> String {
    what.to_string()
}

fn name(number: u64) -> String {
    format!("resident-{number}")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A node in this process.
async fn join(name: &str, authority: &str) -> Result<(Node, Arc<Member>), String> {
    let config = MemberConfig::new(CLUSTER, name, authority, Tls::insecure_plaintext());
    let member = Arc::new(Member::bind(config).map_err(error)?);
    let builder = Node::builder(name).cluster(member.way());
    let node = builder.actor(async |_| Ok(Resident::default())).build();
    member.join().await.map_err(error)?;
    Ok((node, member))
}

/// A node as a process of its own, until its input ends. `fill N` has it start those of N residents
/// that live on it.
pub(crate) fn serve(name: &str, authority: &str) -> ExitCode {
    let served = runtime().and_then(|runtime| runtime.block_on(take_orders(name, authority)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("althing-bench cluster-node: {why}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(error)
}

async fn take_orders(name: &str, authority: &str) -> Result<(), String> {
    let (node, member) = join(name, authority).await?;
    println!("{}", member.address());
    // Orders come one after the other, and the cluster has threads of its own.
    for line in io::stdin().lock().lines() {
        let line = line.map_err(error)?;
        if let Some(count) = line.strip_prefix("fill ") {
            println!("{}", fill(&node, count.parse().map_err(error)?).await?);
        }
        if line == "buckets" {
            let view = member.view();
            let owned: Vec<_> = view.members.iter().map(|it| it.buckets.to_string()).collect();
            println!("{}", owned.join(" "));
        }
    }
    Ok(())
}

async fn fill(node: &Node, count: u64) -> Result<u64, String> {
    let mut filled = 0;
    for number in 0..count {
        if node.is_home_of(&ActorId::named(KIND, name(number))) {
            let (process, _) = node.get::<Resident>(name(number)).here().await.map_err(error)?;
            filled += u64::from(process == std::process::id());
        }
    }
    Ok(filled)
}

/// A node in another process; killed when this is dropped.
struct There {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl There {
    fn start(name: &str, authority: &str) -> Result<Self, String> {
        let mut child = Command::new(env::current_exe().map_err(error)?)
            .args(["cluster-node", name, authority])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(error)?;
        let input = child.stdin.take().ok_or("the other process has an input")?;
        let output = child.stdout.take().ok_or("the other process has an output")?;
        let lines = BufReader::new(output).lines();
        let mut there = Self { child, input, lines, address: String::new() };
        there.address = there.line()?;
        Ok(there)
    }

    fn line(&mut self) -> Result<String, String> {
        self.lines.next().ok_or("the other process has ended")?.map_err(error)
    }

    fn order(&mut self, order: &str) -> Result<(), String> {
        writeln!(self.input, "{order}").map_err(error)
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(error)?;
        self.child.wait().map(drop).map_err(error)
    }
}

impl Drop for There {
    fn drop(&mut self) {
        // It has nothing to lose.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The authority, and a runtime for who asks.
struct Stage {
    runtime: Runtime,
    authority: Authority,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(error)?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let tls = Tls::insecure_plaintext();
        let authority = Authority::start(CLUSTER, directory.path(), any, LEASE_DEFAULT, tls);
        let authority = authority.map_err(error)?;
        Ok(Self { runtime: runtime()?, authority, _directory: directory })
    }

    fn address(&self) -> String {
        self.authority.address().to_string()
    }

    /// Starts nodes, and waits until they share the buckets.
    fn nodes(&self, names: &[&str]) -> Result<Vec<There>, String> {
        let start = |name: &&str| There::start(name, &self.address());
        let mut nodes = names.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let until = Instant::now() + PATIENCE;
        loop {
            nodes[0].order("buckets")?;
            let shares = nodes[0].line()?;
            let is_share =
                |share: &str| share.parse().is_ok_and(|it: usize| it > 3_500 / names.len());
            if shares.split(' ').filter(|share| is_share(share)).count() == names.len() {
                return Ok(nodes);
            }
            if Instant::now() > until {
                return Err(format!("the nodes never share the buckets: {shares}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Somebody who asks and is no node.
    fn client(&self, nodes: &[There]) -> Result<Client, String> {
        let addresses: HashSet<_> = nodes.iter().map(|node| node.address.clone()).collect();
        let config = ClientConfig::new(CLUSTER, addresses, Tls::insecure_plaintext());
        self.runtime.block_on(Client::connect(config)).map_err(error)
    }
}
