//! `relay-broadcast`: a backend publishes one message into the personal channels of the members of a
//! room, by the server API, and one of them is online.
//!
//! Each figure is the median time from before the request is written until the publication has come
//! to that client, over real sockets: `delivery` for channels without history, `kept` with it in
//! memory, `stored` with it on disk, synced.
//! `reply-100k` is the time until the backend has its answer, for 100,000 channels with history.

pub(crate) mod channels;
pub(crate) mod histories;
pub(crate) mod idle;
pub(crate) mod modes;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use folkmoot_relay::{Relay, Settings, start};
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Message, WebSocket, connect};

use crate::build::build_directory;

const KEY: &str = "bench";
/// Channels, and the names of the figures without history, with it, and with it on disk.
const SIZES: [(usize, [&str; 3]); 4] = [
    (100, ["delivery-100", "kept-100", "stored-100"]),
    (1_000, ["delivery-1k", "kept-1k", "stored-1k"]),
    (10_000, ["delivery-10k", "kept-10k", "stored-10k"]),
    (100_000, ["delivery-100k", "kept-100k", "stored-100k"]),
];
const NAMESPACES: [&str; 3] = ["user", "kept", "stored"];
/// What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Broadcasts of one size at least, whatever the budget.
const ROUNDS_MIN: usize = 5;
const ROUNDS_MAX: usize = 200;

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    measure(budget).map_err(|error| format!("{error:#}"))
}

fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Beside the program: `/tmp` may be no disk.
    let directory = tempfile::tempdir_in(build_directory()?)?;
    let relay = runtime.block_on(serve(directory.path()))?;
    let mut samples = Vec::new();
    for (size, names) in SIZES {
        for (namespace, name) in NAMESPACES.into_iter().zip(names) {
            let time = Duration::from_secs_f64(budget.seconds / SIZES.len() as f64);
            let (delivery, reply) = broadcast(relay.address(), namespace, size, time)?;
            samples.push(Sample::new(name, "ms", delivery));
            if name == "kept-100k" {
                samples.push(Sample::new("reply-100k", "ms", reply));
            }
        }
    }
    runtime.block_on(relay.stop());
    Ok(samples)
}

async fn serve(directory: &Path) -> Result<Relay> {
    let directory = directory.display();
    let settings = format!(
        "[client]
        allow_anonymous_connect_without_token = true
        [http_api]
        key = '{KEY}'
        [channel]
        history_directory = '{directory}'
        [[channel.namespaces]]
        name = 'user'
        allow_subscribe_for_anonymous = true
        [[channel.namespaces]]
        name = 'kept'
        allow_subscribe_for_anonymous = true
        history_size = 10
        history_ttl = '600s'
        [[channel.namespaces]]
        name = 'stored'
        allow_subscribe_for_anonymous = true
        history_size = 10
        history_ttl = '600s'
        durable_history = true"
    );
    let at: SocketAddr = "127.0.0.1:0".parse()?;
    Ok(start(Settings::from_toml(&settings)?, at).await?)
}

/// Median milliseconds until the one online has it, and until the backend has its answer.
fn broadcast(at: SocketAddr, namespace: &str, size: usize, time: Duration) -> Result<(f64, f64)> {
    let channels: Vec<String> = (0..size).map(|user| format!("{namespace}:{user:09}")).collect();
    let last = channels.last().context("there are channels")?;
    let mut client = subscribe(at, last)?;
    let body = format!(
        r#"{{"channels":{},"data":{{"room":"r1","user":"u1","text":"{}"}}}}"#,
        serde_json::to_string(&channels)?,
        "a message of some length ".repeat(4),
    );
    let mut backend = BufReader::new(TcpStream::connect(at)?);
    backend.get_ref().set_nodelay(true)?;
    let (mut deliveries, mut replies) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while deliveries.len() < ROUNDS_MIN || deliveries.len() < ROUNDS_MAX && began.elapsed() < time {
        let begun = Instant::now();
        // Beside the reading: the publication comes before the answer does.
        std::thread::scope(|scope| {
            let replying =
                scope.spawn(|| ask(&mut backend, "broadcast", &body).map(|_| begun.elapsed()));
            until_published(&mut client)?;
            deliveries.push(begun.elapsed());
            replies.push(replying.join().expect("asking does not panic")?);
            anyhow::Ok(())
        })?;
    }
    Ok((median_ms(&mut deliveries), median_ms(&mut replies)))
}

fn median_ms(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

type Listener = WebSocket<MaybeTlsStream<TcpStream>>;

fn subscribe(at: SocketAddr, channel: &str) -> Result<Listener> {
    let (mut client, _) = connect(format!("ws://{at}/connection/websocket"))?;
    if let MaybeTlsStream::Plain(stream) = client.get_ref() {
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    client.send(Message::text(r#"{"id":1,"connect":{}}"#))?;
    client.send(Message::text(format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#)))?;
    loop {
        let text = client.read()?.into_text()?;
        ensure!(!text.contains("error"), "{text}");
        if text.contains(r#""id":2"#) {
            return Ok(client);
        }
    }
}

fn until_published(client: &mut Listener) -> Result<()> {
    while !client.read()?.into_text()?.contains(r#""pub""#) {}
    Ok(())
}

/// Calls a method and returns its answer, which is no error.
fn ask(backend: &mut BufReader<TcpStream>, method: &str, body: &str) -> Result<String> {
    let head = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {KEY}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    backend.get_mut().write_all(head.as_bytes())?;
    backend.get_mut().write_all(body.as_bytes())?;
    let (mut line, mut len) = (String::new(), 0);
    loop {
        line.clear();
        backend.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            len = value.trim().parse()?;
        }
        ensure!(!line.is_empty(), "the relay closed the connection");
        if line == "\r\n" {
            break;
        }
    }
    let mut answer = vec![0; len];
    backend.read_exact(&mut answer)?;
    let answer = String::from_utf8(answer)?;
    ensure!(!answer.starts_with(r#"{"error""#), "{answer}");
    Ok(answer)
}

/// What the kernel says of this process's memory.
fn memory_kib(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    Ok(kib.with_context(|| format!("no {name}"))?.trim().parse()?)
}
