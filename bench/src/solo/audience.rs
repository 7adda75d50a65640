//! `remote-publish`: one publisher, 100,000 subscribers on three nodes of a cluster, each a process of
//! its own on 127.0.0.1; nanoseconds per subscriber reached.
//!
//! A batch is eight publishes back to back and ends when this process knows that the last subscriber
//! of each node has handled the last one. The same with one subscriber on each node is what the way
//! there and back takes; it is taken off. `copies` is how often an event of a batch was decoded on
//! the nodes that do not publish, for each of them: 1, however many subscribers a node has.

use althing::wire::Depth;
use althing::{
    Actor, ActorRef, Context, EventHandler, Node, Published, Subscription, Topic, TopicOptions,
    Wire, WireError,
};
use althing_bench_workloads::{Budget, Sample, median_ns};
use althing_cluster::{Authority, LEASE_DEFAULT, Member, MemberConfig, Tls};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CLUSTER: &str = "bench-audience";
const SUBSCRIBERS: usize = 100_000;
/// Of a batch, as in the workloads on one node.
const PUBLISHES: u64 = 8;
/// Counters that the reports of one node are spread over.
const SHARDS: usize = 256;
const PATIENCE: Duration = Duration::from_secs(60);

static DECODED: AtomicU64 = AtomicU64::new(0);

/// As long as a short message.
#[derive(Wire)]
struct Short {
    number: u64,
    text: String,
}

/// What is published; it is counted where it is decoded.
struct News(Short);

impl Wire for News {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        Short::decode_within(bytes, depth).map(Self)
    }
}

/// Knows when all ears of this process have heard the last event of a batch.
struct Board {
    shards: Vec<AtomicUsize>,
    /// Shards that are not complete.
    left: AtomicUsize,
    ears: usize,
    heard: Sender<Instant>,
}

impl Board {
    fn new(ears: usize, heard: Sender<Instant>) -> Arc<Self> {
        let shards = (0..SHARDS.min(ears)).map(|_| AtomicUsize::new(0)).collect();
        let board = Self { shards, left: AtomicUsize::new(0), ears, heard };
        board.begin();
        Arc::new(board)
    }

    fn begin(&self) {
        let count = self.shards.len();
        self.left.store(count, Ordering::Relaxed);
        for (number, shard) in self.shards.iter().enumerate() {
            shard.store((self.ears + count - 1 - number) / count, Ordering::Relaxed);
        }
    }

    fn report(&self, shard: usize) {
        if self.shards[shard].fetch_sub(1, Ordering::AcqRel) == 1
            && self.left.fetch_sub(1, Ordering::AcqRel) == 1
        {
            // Nobody hears anything more of this batch, and the next one waits for this.
            self.begin();
            _ = self.heard.send(Instant::now());
        }
    }
}

/// A subscriber; an event that does not follow the one before stops the count, and so the run.
struct Ear {
    board: Arc<Board>,
    shard: usize,
    last: u64,
}

impl Actor for Ear {
    const NAME: &'static str = "bench.audience-ear";
}

impl EventHandler<News> for Ear {
    async fn event(&mut self, event: &Published<News>, _: &mut Context<Self>) {
        if event.payload.0.number == self.last + 1 {
            self.last += 1;
            if self.last.is_multiple_of(PUBLISHES) {
                self.board.report(self.shard);
            }
        }
    }
}

fn error(what: impl std::fmt::Display) -> String {
    what.to_string()
}

/// A node with its subscribers.
struct Side {
    runtime: Runtime,
    topic: Topic<News>,
    heard: Receiver<Instant>,
    _ears: Vec<(ActorRef<Ear>, Subscription)>,
    _node: Node,
    _member: Member,
}

impl Side {
    fn start(name: &str, authority: &str, ears: usize) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(error)?;
        let config = MemberConfig::new(CLUSTER, name, authority, Tls::insecure_plaintext());
        let member = Member::bind(config).map_err(error)?;
        let entered = runtime.enter();
        let node = Node::builder(name).cluster(member.way()).event::<News>("bench.news").build();
        drop(entered);
        runtime.block_on(member.join()).map_err(error)?;
        let topic = node.topic("bench", TopicOptions::default());
        let (sender, heard) = channel();
        let board = Board::new(ears, sender);
        let ears = (0..ears).map(|number| {
            let shard = number % board.shards.len();
            let ear = node.spawn(Ear { board: board.clone(), shard, last: 0 });
            let subscription = topic.subscribe(&ear);
            (ear, subscription)
        });
        let ears = ears.collect();
        runtime.block_on(member.subscribed(&topic)).map_err(error)?;
        Ok(Self { runtime, topic, heard, _ears: ears, _node: node, _member: member })
    }
}

/// A node as a process of its own: a line when it listens, and one for each batch that it has heard,
/// with how many events it has decoded so far.
pub(crate) fn serve(name: &str, authority: &str, ears: &str) -> ExitCode {
    let served = ears.parse().map_err(error).and_then(|ears| {
        let side = Side::start(name, authority, ears)?;
        println!("{ears}");
        while side.heard.recv().is_ok() {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", DECODED.load(Ordering::Relaxed)).map_err(error)?;
            out.flush().map_err(error)?;
        }
        Ok::<_, String>(())
    });
    if let Err(why) = served {
        eprintln!("althing-bench audience-node: {why}");
    }
    ExitCode::FAILURE
}

/// A node in another process, and what it says with the time at which it was heard.
struct There {
    child: Child,
    lines: Receiver<(u64, Instant)>,
}

impl There {
    fn start(name: &str, authority: &str, ears: usize) -> Result<Self, String> {
        let mut child = Command::new(env::current_exe().map_err(error)?)
            .args(["audience-node", name, authority, &ears.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(error)?;
        let output = child.stdout.take().ok_or("the other process has an output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let number = line.parse().unwrap_or_default();
                if sender.send((number, Instant::now())).is_err() {
                    return;
                }
            }
        });
        let there = Self { child, lines };
        there.line()?;
        Ok(there)
    }

    fn line(&self) -> Result<(u64, Instant), String> {
        self.lines.recv_timeout(PATIENCE).map_err(|_| "another node does not hear all".to_owned())
    }
}

impl Drop for There {
    fn drop(&mut self) {
        // It has nothing to lose.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Times of batches, and how often each event was decoded on each of the other nodes.
fn measure(budget: Budget, ears: usize) -> Result<(Vec<Duration>, f64), String> {
    let directory = tempfile::tempdir().map_err(error)?;
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let tls = Tls::insecure_plaintext();
    let authority = Authority::start(CLUSTER, directory.path(), any, LEASE_DEFAULT, tls);
    let authority = authority.map_err(error)?;
    let address = authority.address().to_string();
    let of = |node: usize| ears / 3 + usize::from(node < ears % 3);
    let here = Side::start("here", &address, of(0))?;
    let there = [There::start("one", &address, of(1))?, There::start("two", &address, of(2))?];
    let (mut number, mut decoded) = (0, 0);
    let times = budget.run(|| {
        let (topic, first) = (here.topic.clone(), number);
        number += PUBLISHES;
        let publish = async move {
            let begun = Instant::now();
            for number in first + 1..=first + PUBLISHES {
                let text = "the quick brown fox jumps over the lazy dog".to_owned();
                topic
                    .publish(News(Short { number, text }))
                    .map_err(|_| "nobody owns it".to_owned())?;
            }
            Ok::<_, String>(begun)
        };
        let begun = here.runtime.block_on(here.runtime.spawn(publish)).map_err(error)??;
        let own = here.heard.recv_timeout(PATIENCE).map_err(|_| "this node does not hear all")?;
        let mut last = own;
        decoded = 0;
        for there in &there {
            let (count, at) = there.line()?;
            last = last.max(at);
            decoded += count;
        }
        Ok::<_, String>(last.duration_since(begun))
    })?;
    Ok((times, decoded as f64 / number as f64 / there.len() as f64))
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let (mut way, _) = measure(budget, 3)?;
    let (mut all, copies) = measure(budget, SUBSCRIBERS)?;
    let (way, all) = (median_ns(&mut way), median_ns(&mut all));
    let deliveries = (SUBSCRIBERS - 3) as f64 * PUBLISHES as f64;
    Ok(vec![
        Sample::new("per-subscriber", "ns", (all - way) / deliveries),
        Sample::new("way", "us", way / 1e3),
        Sample::new("copies", "", copies),
    ])
}
