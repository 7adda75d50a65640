//! `relay-channels`: many channels, and slow readers beside a quick one.
//!
//! The relay is in this process, whose memory grows for each of `--messages` channels by `kept` bytes
//! with one publication of its own in its history and nobody who hears it, and by `heard` bytes with
//! one subscriber and no history, of which there are ten thousand to a connection.
//! Then one connection reads a channel with long messages, alone (`alone-…`) and beside a hundred
//! that read nothing (`beside-…`): the time from before a publication is asked for until it is there.
//! Those are cut off once their queues are full, and others come in their place.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample};
use anyhow::{Result, ensure};
use folkmoot_relay::{Relay, Settings, start};
use tokio_tungstenite::tungstenite::{Message, connect};

use super::{KEY, Listener, ask, memory_kib, subscribe, until_published};

/// Channels before the first that counts: until then tables that all share grow, too.
const BEFORE: u64 = 10_000;
const PER_CONNECTION: u64 = 10_000;
/// Commands in one message or request.
const BATCH: u64 = 500;
const SLOW: usize = 100;
const TEXT_BYTES: usize = 16_384;
const MESSAGES: usize = 2_000;
/// Between two messages.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    measure(budget.messages).map_err(|error| format!("{error:#}"))
}

fn measure(channels: u64) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let relay = runtime.block_on(serve())?;
    let at = relay.address();
    let mut samples = Vec::new();
    let mut listeners = Vec::new();
    for (name, make) in [("kept", publish_all as Make), ("heard", subscribe_all)] {
        listeners.extend(make(at, 0..BEFORE)?);
        let before = memory_kib("RssAnon")?;
        listeners.extend(make(at, BEFORE..BEFORE + channels)?);
        let grown = memory_kib("RssAnon")?.saturating_sub(before);
        samples.push(Sample::new(name, "bytes", grown as f64 * 1_024.0 / channels as f64));
    }
    for (slow, names) in [
        (0, ["alone-p50", "alone-p99", "alone-max"]),
        (SLOW, ["beside-p50", "beside-p99", "beside-max"]),
    ] {
        let mut times = read_beside(at, slow)?;
        times.sort_unstable();
        for (name, share) in names.into_iter().zip([0.5, 0.99, 1.0]) {
            let place = (times.len() as f64 * share) as usize;
            let time = times[place.min(times.len() - 1)];
            samples.push(Sample::new(name, "ms", time.as_secs_f64() * 1e3));
        }
    }
    runtime.block_on(relay.stop());
    Ok(samples)
}

type Make = fn(SocketAddr, std::ops::Range<u64>) -> Result<Vec<Listener>>;

async fn serve() -> Result<Relay> {
    let settings = format!(
        "[client]
        allow_anonymous_connect_without_token = true
        channel_limit = {PER_CONNECTION}
        [http_api]
        key = '{KEY}'
        [[channel.namespaces]]
        name = 'user'
        allow_subscribe_for_anonymous = true
        [[channel.namespaces]]
        name = 'kept'
        history_size = 10
        history_ttl = '6000s'"
    );
    let at: SocketAddr = "127.0.0.1:0".parse()?;
    Ok(start(Settings::from_toml(&settings)?, at).await?)
}

/// Publishes a number into each channel.
fn publish_all(at: SocketAddr, channels: std::ops::Range<u64>) -> Result<Vec<Listener>> {
    let mut backend = BufReader::new(TcpStream::connect(at)?);
    for first in channels.clone().step_by(BATCH as usize) {
        let commands = (first..channels.end.min(first + BATCH)).map(|channel| {
            format!(r#"{{"publish":{{"channel":"kept:{channel:09}","data":{channel}}}}}"#)
        });
        let commands = commands.collect::<Vec<_>>().join(",");
        let answer = ask(&mut backend, "batch", &format!(r#"{{"commands":[{commands}]}}"#))?;
        ensure!(!answer.contains(r#""error""#), "a publication was refused");
    }
    Ok(Vec::new())
}

/// Subscribes to each channel.
fn subscribe_all(at: SocketAddr, channels: std::ops::Range<u64>) -> Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for first in channels.clone().step_by(PER_CONNECTION as usize) {
        let own = first..channels.end.min(first + PER_CONNECTION);
        let (mut listener, _) = connect(format!("ws://{at}/connection/websocket"))?;
        listener.send(Message::text(r#"{"id":1,"connect":{}}"#))?;
        listener.read()?;
        for first in own.clone().step_by(BATCH as usize) {
            let batch = first..own.end.min(first + BATCH);
            let commands = batch.clone().map(|channel| {
                let id = channel - own.start + 2;
                format!(r#"{{"id":{id},"subscribe":{{"channel":"user:{channel:09}"}}}}"#)
            });
            listener.send(Message::text(commands.collect::<Vec<_>>().join("\n")))?;
            let mut left = batch.end - batch.start;
            while left > 0 {
                let text = listener.read()?.into_text()?;
                ensure!(!text.contains("error"), "{text}");
                left -= text.lines().filter(|line| line.contains(r#""subscribe""#)).count() as u64;
            }
        }
        listeners.push(listener);
    }
    Ok(listeners)
}

/// How long each message takes until one who reads has it, beside some who do not.
fn read_beside(at: SocketAddr, slow: usize) -> Result<Vec<Duration>> {
    let mut quick = subscribe(at, "user:all")?;
    let mut beside = Vec::new();
    let mut backend = BufReader::new(TcpStream::connect(at)?);
    backend.get_ref().set_nodelay(true)?;
    let body = format!(r#"{{"channel":"user:all","data":"{}"}}"#, "x".repeat(TEXT_BYTES));
    let mut times = Vec::new();
    for number in 0..MESSAGES {
        // Their queues take 64 of the messages, and what the kernel holds.
        if number % (MESSAGES / 4) == 0 {
            beside.clear();
            for _ in 0..slow {
                beside.push(subscribe(at, "user:all")?);
            }
        }
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&mut backend, "publish", &body));
            until_published(&mut quick)?;
            times.push(begun.elapsed());
            asking.join().expect("asking does not panic").map(drop)
        })?;
        std::thread::sleep(PAUSE);
    }
    Ok(times)
}
