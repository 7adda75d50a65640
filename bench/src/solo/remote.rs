//! `remote-tell` and `remote-ask`: actors of one process tell and ask those of another, by
//! `althing-cluster` over a socket of 127.0.0.1.
//!
//! This process is the cluster's first node and serves the authority; the other, `althing-bench
//! remote-node`, is started for it. `remote-tell`: 8 tasks here tell 1 or 8 actors there; the clock
//! stops when each has answered that it has handled them all. `remote-ask`: one task asks an idle
//! actor, beside the round trip of as many bytes on a plain socket between the same processes; then
//! 64 tasks ask 8 actors.

use althing::{ActorRef, Node, actor};
use althing_bench_workloads::{Budget, Sample, percentile_ns};
use althing_cluster::{Authority, LEASE_DEFAULT, Member, MemberConfig, Tls};
use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const CLUSTER: &str = "bench";
const TELLERS: usize = 8;
const ASKERS: usize = 64;
/// Asks of each asker in one batch.
const ASKS: u64 = 500;
/// Bytes of a plain round trip, about those of an ask and its reply on the wire.
const PLAIN_BYTES: usize = 64;

#[derive(Default)]
struct Counter {
    told: u64,
}

#[actor(name = "bench.remote", wire)]
impl Counter {
    async fn add(&mut self, n: u64) {
        self.told += n;
    }

    /// How much was added since the last call.
    async fn take(&mut self) -> u64 {
        std::mem::take(&mut self.told)
    }

    async fn process(&mut self) -> u32 {
        std::process::id()
    }
}

fn error(what: impl std::fmt::Display) -> String {
    what.to_string()
}

/// A node with its runtime.
struct Side {
    runtime: Runtime,
    node: Node,
    member: Member,
}

impl Side {
    fn start(name: &str, authority: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(error)?;
        let config = MemberConfig::new(CLUSTER, name, authority, Tls::insecure_plaintext());
        let member = Member::bind(config).map_err(error)?;
        let entered = runtime.enter();
        let node = Node::builder(name)
            .cluster(member.way())
            .actor(async |_| Ok(Counter::default()))
            .build();
        drop(entered);
        runtime.block_on(member.join()).map_err(error)?;
        Ok(Self { runtime, node, member })
    }
}

/// The other process: a node, and a plain socket that sends back what it gets.
pub(crate) fn serve(authority: &str) -> ExitCode {
    let served = Side::start("there", authority).and_then(|side| {
        side.runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.map_err(error)?;
            println!("{}", listener.local_addr().map_err(error)?);
            loop {
                let (mut stream, _) = listener.accept().await.map_err(error)?;
                stream.set_nodelay(true).map_err(error)?;
                tokio::spawn(async move {
                    let mut bytes = [0; PLAIN_BYTES];
                    while stream.read_exact(&mut bytes).await.is_ok()
                        && stream.write_all(&bytes).await.is_ok()
                    {}
                });
            }
        })
    });
    let served: Result<(), String> = served;
    if let Err(why) = served {
        eprintln!("althing-bench remote-node: {why}");
    }
    ExitCode::FAILURE
}

struct Pair {
    here: Side,
    there: Child,
    plain: SocketAddr,
    _authority: Authority,
    _directory: tempfile::TempDir,
}

impl Pair {
    fn start() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(error)?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let tls = Tls::insecure_plaintext();
        let authority = Authority::start(CLUSTER, directory.path(), any, LEASE_DEFAULT, tls);
        let authority = authority.map_err(error)?;
        let address = authority.address().to_string();
        let here = Side::start("here", &address)?;
        let mut there = Command::new(env::current_exe().map_err(error)?)
            .args(["remote-node", &address])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(error)?;
        let mut line = String::new();
        let out = there.stdout.take().ok_or("the other process has an output")?;
        BufReader::new(out).read_line(&mut line).map_err(error)?;
        let plain = line.trim().parse().map_err(error)?;
        Ok(Self { here, there, plain, _authority: authority, _directory: directory })
    }

    /// Actors that live in the other process.
    fn actors(&self, count: usize) -> Result<Vec<ActorRef<Counter>>, String> {
        let there = self.there.id();
        let until = Instant::now() + Duration::from_secs(20);
        self.here.runtime.block_on(async {
            let mut found = Vec::new();
            for n in 0u64.. {
                if Instant::now() > until {
                    return Err("the other node has got no actors".to_owned());
                }
                let actor = self.here.node.get::<Counter>(&*format!("counter-{n}"));
                // While its share of the names comes, asks may fail.
                if actor.process().await == Ok(there) {
                    found.push(actor);
                }
                if found.len() == count {
                    break;
                }
            }
            Ok(found)
        })
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.here.node.kill();
        // It has nothing to lose.
        _ = self.there.kill();
        _ = self.there.wait();
        drop(self.here.member.state());
    }
}

pub(crate) fn run_tell(budget: Budget) -> Result<Vec<Sample>, String> {
    let pair = Pair::start()?;
    let actors = pair.actors(TELLERS)?;
    let each = budget.messages / TELLERS as u64;
    let mut rates = Vec::new();
    for count in [1, TELLERS] {
        let tell = || pair.here.runtime.block_on(tell_all(&actors[..count], each));
        let durations = budget.run(tell)?;
        let total: Duration = durations.iter().sum();
        let told = each * TELLERS as u64 * durations.len() as u64;
        rates.push(told as f64 / total.as_secs_f64() / 1e6);
    }
    Ok(vec![Sample::new("8to1", "M/s", rates[0]), Sample::new("8to8", "M/s", rates[1])])
}

async fn tell_all(actors: &[ActorRef<Counter>], each: u64) -> Result<Duration, String> {
    let begun = Instant::now();
    let tellers: Vec<_> = (0..TELLERS)
        .map(|teller| {
            let actor = actors[teller % actors.len()].clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    actor.add(1).tell().await.map_err(|why| format!("{why:?}"))?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    for teller in tellers {
        teller.await.map_err(error)??;
    }
    let mut told = 0;
    for actor in actors {
        told += actor.take().await.map_err(error)?;
    }
    let took = begun.elapsed();
    if told != each * TELLERS as u64 {
        return Err(format!("{told} of {} messages were handled", each * TELLERS as u64));
    }
    Ok(took)
}

pub(crate) fn run_ask(budget: Budget) -> Result<Vec<Sample>, String> {
    let pair = Pair::start()?;
    let actors = pair.actors(TELLERS)?;
    let (mut asks, mut plain) = (Vec::new(), Vec::new());
    let runtime = &pair.here.runtime;
    let plain_address = pair.plain;
    let until = Duration::from_secs_f64(budget.seconds);
    let actor = actors[0].clone();
    let one = async move {
        let mut stream = TcpStream::connect(plain_address).await.map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        let begun = Instant::now();
        while begun.elapsed() < until {
            // In turn, so that both meet the same machine.
            for _ in 0..100 {
                let sent = Instant::now();
                actor.take().await.map_err(error)?;
                asks.push(nanoseconds(sent));
                let (sent, mut bytes) = (Instant::now(), [0; PLAIN_BYTES]);
                stream.write_all(&bytes).await.map_err(error)?;
                stream.read_exact(&mut bytes).await.map_err(error)?;
                plain.push(nanoseconds(sent));
            }
        }
        asks.sort_unstable();
        plain.sort_unstable();
        Ok::<_, String>((asks, plain))
    };
    let (asks, plain) = runtime.block_on(async { tokio::spawn(one).await.map_err(error) })??;
    let durations = budget.run(|| runtime.block_on(ask_all(&actors)))?;
    let total: Duration = durations.iter().sum();
    let rate = ASKS * ASKERS as u64 * durations.len() as u64;
    let (ask, round_trip) = (percentile_ns(&asks, 0.5), percentile_ns(&plain, 0.5));
    Ok(vec![
        Sample::new("p50", "ns", ask),
        Sample::new("p99", "ns", percentile_ns(&asks, 0.99)),
        Sample::new("plain-p50", "ns", round_trip),
        Sample::new("ratio", "", ask / round_trip),
        Sample::new("64-askers", "1/s", rate as f64 / total.as_secs_f64()),
    ])
}

async fn ask_all(actors: &[ActorRef<Counter>]) -> Result<Duration, String> {
    let begun = Instant::now();
    let askers: Vec<_> = (0..ASKERS)
        .map(|asker| {
            let actor = actors[asker % actors.len()].clone();
            tokio::spawn(async move {
                for _ in 0..ASKS {
                    actor.take().await.map_err(error)?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    for asker in askers {
        asker.await.map_err(error)??;
    }
    Ok(begun.elapsed())
}

fn nanoseconds(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_nanos()).unwrap_or(u32::MAX)
}
