//! `relay-idle`: what a quiet connection takes that is subscribed to a channel of its own, by each
//! transport that is not WebSocket.
//!
//! The relay is in this process, whose memory grows by `sse` and `http-stream` for each connection
//! after the first thousand; of the client there is a socket and nothing else. `--messages` says
//! how many connections are measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use folkmoot_relay::{Relay, Settings, start};

use super::{PATIENCE, memory_kib};
use crate::solo::rooms::descriptors_for;

/// Connections before the first that counts: until then buffers that all share grow, too.
const BEFORE: u64 = 1_000;
const TRANSPORTS: [(&str, &str); 2] = [
    ("sse", "GET /connection/sse?cf_connect=%7B%22id%22%3A1%2C%22connect%22%3A%7B%7D%7D"),
    ("http-stream", "POST /connection/http_stream"),
];
const CONNECT: &str = r#"{"id":1,"connect":{}}"#;

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    measure(budget).map_err(|error| format!("{error:#}"))
}

fn measure(budget: Budget) -> Result<Vec<Sample>> {
    // Both ends of each are in this process.
    descriptors_for(2 * TRANSPORTS.len() as u64 * (BEFORE + budget.messages))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut samples = Vec::new();
    // Kept until the end: what is given back would be taken by the next and not be counted.
    let mut kept = Vec::new();
    for (name, head) in TRANSPORTS {
        let relay = runtime.block_on(serve())?;
        let mut commands = BufReader::new(TcpStream::connect(relay.address())?);
        let mut open = |count: u64| -> Result<Vec<TcpStream>> {
            (0..count).map(|_| connect(relay.address(), head, &mut commands)).collect()
        };
        let first = open(BEFORE)?;
        let before = memory_kib("RssAnon")?;
        let measured = open(budget.messages)?;
        let grown = memory_kib("RssAnon")?.saturating_sub(before);
        samples.push(Sample::new(name, "KiB", grown as f64 / measured.len() as f64));
        kept.push((relay, first, measured));
    }
    for (relay, ..) in kept {
        runtime.block_on(relay.stop());
    }
    Ok(samples)
}

async fn serve() -> Result<Relay> {
    let settings = "[client]
        allow_anonymous_connect_without_token = true
        [[channel.namespaces]]
        name = 'user'
        allow_subscribe_for_anonymous = true";
    let at: SocketAddr = "127.0.0.1:0".parse()?;
    Ok(start(Settings::from_toml(settings)?, at).await?)
}

/// Connects, and subscribes by a request of its own, as SDKs do.
fn connect(at: SocketAddr, head: &str, commands: &mut BufReader<TcpStream>) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    request(&mut stream, head, if head.starts_with("POST") { CONNECT } else { "" })?;
    let reply = until(&mut stream, "\"node\"")?;
    let (session, node) = (text_of(&reply, "session")?, text_of(&reply, "node")?);
    let subscribe =
        serde_json::json!({"id": 2, "subscribe": {"channel": format!("user:{session}")}});
    let command =
        serde_json::json!({"session": session, "node": node, "data": subscribe.to_string()});
    request(commands.get_mut(), "POST /emulation", &command.to_string())?;
    let mut line = String::new();
    commands.read_line(&mut line)?;
    ensure!(line.contains("204"), "a command was answered with {line}");
    while line != "\r\n" {
        line.clear();
        ensure!(commands.read_line(&mut line)? > 0, "the relay closed the connection");
    }
    let reply = until(&mut stream, "\"subscribe\"")?;
    ensure!(!reply.contains("\"error\""), "{reply}");
    Ok(stream)
}

fn request(stream: &mut TcpStream, head: &str, body: &str) -> Result<()> {
    let len = body.len();
    // In one piece: what comes in several waits for the other side each time.
    let text = format!("{head} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len}\r\n\r\n{body}");
    Ok(stream.write_all(text.as_bytes())?)
}

/// Reads until that has come.
fn until(stream: &mut TcpStream, wanted: &str) -> Result<String> {
    let (mut text, mut piece) = (String::new(), [0; 4_096]);
    while !text.contains(wanted) || !text.ends_with('\n') {
        let len = stream.read(&mut piece)?;
        ensure!(len > 0, "the relay closed the connection: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..len]));
    }
    Ok(text)
}

/// The text of a field of a reply.
fn text_of(reply: &str, field: &str) -> Result<String> {
    let behind = reply.split_once(&format!("\"{field}\":\"")).map(|(_, behind)| behind);
    let text = behind.and_then(|behind| behind.split('"').next());
    text.map(str::to_owned).with_context(|| format!("no {field} in {reply}"))
}
