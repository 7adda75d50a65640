//! `chat-send`: acknowledged messages per second of the real server, fsync on.
//!
//! Starts the release build of `folkmoot` as a process of its own with a fresh data directory on
//! disk. 64 senders over WebSockets, eight to a room, keep one message each in flight; in every
//! room one more client is subscribed and notes when each message arrives. At the end every
//! acknowledged message must have arrived there, once, in order and without a gap.
//! `chat-send-postgres` and `chat-send-cassandra` are the same with the data in a real server of this
//! machine, which syncs what it acknowledges.

use super::folkmoot::{Client, Server};
use super::kept::On;
use althing_bench_workloads::{Budget, Sample, percentile_ns};
use anyhow::{Context, Result, bail, ensure};
use folkmoot_protocol::rpc::{InviteAccept, InviteCreate, MessageSend, RoomCreate};
use folkmoot_protocol::{Channel, RoomId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

const ROOMS: usize = 8;
const SENDERS_PER_ROOM: usize = 8;
/// Characters of a message after its time stamp: together a line of chat.
const PADDING: &str = "the quick brown fox jumps over the lazy dog and then takes a rest";
/// Longest wait for the last deliveries.
const SETTLE_MAX: Duration = Duration::from_secs(10);

pub(crate) fn run(on: On, budget: Budget) -> Result<Vec<Sample>> {
    // Half of the cores: the server, a process of its own, is what is measured.
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().div_ceil(2));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(measure(on, budget))
}

/// What one sender or listener saw in the measured part.
#[derive(Default)]
struct Seen {
    /// Messages acknowledged or delivered, in the warm-up too.
    total: u64,
    /// Latencies of the measured part, in microseconds.
    latencies_us: Vec<u32>,
}

/// Shared by all clients of a run.
struct Run {
    origin: Instant,
    measured: AtomicBool,
    stop: AtomicBool,
}

async fn measure(on: On, budget: Budget) -> Result<Vec<Sample>> {
    let server = Server::start(on).await?;
    let run = Arc::new(Run {
        origin: Instant::now(),
        measured: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    });
    let mut senders = JoinSet::new();
    let mut listeners = JoinSet::new();
    let mut rooms = Vec::new();
    for room in 0..ROOMS {
        rooms.push(open_room(&server, room).await?);
    }
    for (room, (listener, members)) in rooms.into_iter().enumerate() {
        listeners.spawn(listen(listener, Arc::clone(&run), room));
        for sender in members {
            senders.spawn(send(sender, Arc::clone(&run)));
        }
    }
    tokio::time::sleep(Duration::from_secs_f64(budget.warm_up_seconds)).await;
    let begun = Instant::now();
    run.measured.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs_f64(budget.seconds)).await;
    run.measured.store(false, Ordering::Relaxed);
    let elapsed = begun.elapsed();
    run.stop.store(true, Ordering::Relaxed);
    let sent = collect(senders, None).await?;
    let delivered = collect(listeners, Some(sent.total)).await?;
    ensure!(
        sent.total == delivered.total,
        "{} messages acknowledged, {} delivered",
        sent.total,
        delivered.total
    );
    Ok(samples(sent, delivered, elapsed))
}

/// A room's listener and its senders.
async fn open_room(server: &Server, room: usize) -> Result<(Member, Vec<Member>)> {
    let mut owner = server.sign_up(&format!("listener{room}")).await?;
    let view = owner.rpc(&RoomCreate { name: format!("Room {room}"), topic: None }).await?;
    let invite = InviteCreate { room: view.id, expires_in_s: None, uses_max: None };
    let code = owner.rpc(&invite).await?.code;
    let mut senders = Vec::new();
    for sender in 0..SENDERS_PER_ROOM {
        let mut client = server.sign_up(&format!("sender{room}.{sender}")).await?;
        client.rpc(&InviteAccept { code: code.clone() }).await?;
        senders.push(Member { client, room: view.id });
    }
    // After the last joined, so that every event that arrives is a message.
    owner.subscribe(Channel::Room(view.id)).await?;
    Ok((Member { client: owner, room: view.id }, senders))
}

struct Member {
    client: Client,
    room: RoomId,
}

/// Sends one message after the other, each when the one before is acknowledged.
async fn send(mut member: Member, run: Arc<Run>) -> Result<Seen> {
    let mut seen = Seen::default();
    while !run.stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let micros = begun.duration_since(run.origin).as_micros();
        let message = MessageSend {
            room: member.room,
            key: seen.total.to_string(),
            body: format!("{micros} {PADDING}"),
            reply_to: None,
            attachments: Vec::new(),
        };
        let sent = member.client.rpc(&message).await?;
        ensure!(!sent.duplicate, "message {} was taken for a retry", seen.total);
        seen.total += 1;
        if run.measured.load(Ordering::Relaxed) {
            seen.latencies_us.push(micros_since(begun));
        }
    }
    Ok(seen)
}

/// Notes when each message of a room arrives; ends when told how many there are, or on silence.
async fn listen(mut member: Member, run: Arc<Run>, room: usize) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut last_seq = 0;
    loop {
        let event = match timeout(Duration::from_millis(500), member.client.next_message()).await {
            Ok(event) => event.with_context(|| format!("listener of room {room}"))?,
            // Nothing for half a second after the senders have stopped: all has arrived.
            Err(_) if run.stop.load(Ordering::Relaxed) => return Ok(seen),
            Err(_) => continue,
        };
        ensure!(
            event.seq.as_u64() == last_seq + 1,
            "room {room}: message {} came after {last_seq}",
            event.seq
        );
        last_seq = event.seq.as_u64();
        seen.total += 1;
        if run.measured.load(Ordering::Relaxed) {
            let stamp = event.body.split(' ').next().and_then(|text| text.parse().ok());
            let sent_us: u64 = stamp.context("a message without its time stamp")?;
            seen.latencies_us.push(micros_since(run.origin + Duration::from_micros(sent_us)));
        }
    }
}

fn micros_since(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)
}

async fn collect(mut tasks: JoinSet<Result<Seen>>, expected: Option<u64>) -> Result<Seen> {
    let mut all = Seen::default();
    loop {
        match timeout(SETTLE_MAX, tasks.join_next()).await {
            Ok(None) => return Ok(all),
            Ok(Some(seen)) => {
                let seen = seen.context("a client's task panicked")??;
                all.total += seen.total;
                all.latencies_us.extend(seen.latencies_us);
            }
            Err(_) => bail!("clients did not finish; {} of {expected:?} messages seen", all.total),
        }
    }
}

fn samples(mut sent: Seen, mut delivered: Seen, elapsed: Duration) -> Vec<Sample> {
    sent.latencies_us.sort_unstable();
    delivered.latencies_us.sort_unstable();
    let rate = sent.latencies_us.len() as f64 / elapsed.as_secs_f64();
    let at = |metric, latencies: &[u32], share| {
        Sample::new(metric, "ms", percentile_ns(latencies, share) / 1_000.0)
    };
    vec![
        Sample::new("acknowledged", "1/s", rate),
        at("ack-p50", &sent.latencies_us, 0.50),
        at("ack-p99", &sent.latencies_us, 0.99),
        at("ack-max", &sent.latencies_us, 1.0),
        at("delivery-p50", &delivered.latencies_us, 0.50),
        at("delivery-p99", &delivered.latencies_us, 0.99),
        at("delivery-max", &delivered.latencies_us, 1.0),
    ]
}
