//! Appends chat messages to a fresh store as fast as their acknowledgements come, and says how fast
//! that was, one `name unit value` a line.
//!
//! `cargo run --release -p folkmoot --example append_load -- [senders] [seconds] [directory] [store]`
//! The store is `embedded`, an address, or `postgres` or `cassandra`: one that is started for this.
//! Each sender has a room of its own and awaits each acknowledgement, fsync on, before its next
//! message of 120 bytes. The mover works meanwhile, as it does in a server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use althing_testkit::servers::{CassandraServer, PostgresServer};
use folkmoot::storage::{
    Message, NewAccount, NewDevice, NewRoom, Offset, Record, RoomEvent, RoomId, RoomRecord, Seq,
    Store, StoreOptions, UnixMillis, UserId,
};
use folkmoot_protocol::DeviceId;

const BODY_LEN: usize = 120;
const WARM_UP: Duration = Duration::from_secs(1);
const SENDER: UserId = UserId::from_u64(1);
const NOW: UnixMillis = UnixMillis::from_u64(1_700_000_000_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let senders: u64 = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let directory = arguments.next().map_or_else(
        || std::env::temp_dir().join(format!("append-load-{}", std::process::id())),
        PathBuf::from,
    );
    let store = arguments.next().unwrap_or_else(|| "embedded".to_owned());
    let cassandra = (store == "cassandra").then(CassandraServer::start);
    let postgres = (store == "postgres").then(PostgresServer::start);
    let database = match (store.as_str(), &cassandra, &postgres) {
        ("embedded", ..) => None,
        (_, Some(server), _) => Some(format!("cassandra://{}/load?replicas=1", server.host())),
        (_, _, Some(server)) => Some(server.url()),
        _ => Some(store),
    };
    let database = database.map(|address| address.parse()).transpose()?;
    let options = StoreOptions { database, ..StoreOptions::new(&directory) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(senders, Duration::from_secs(seconds), &options))?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

async fn run(
    senders: u64,
    duration: Duration,
    options: &StoreOptions,
) -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(options)?;
    populate(&store, senders).await?;
    let from = Instant::now() + WARM_UP;
    let until = from + duration;
    let tasks: Vec<_> =
        (1..=senders).map(|room| tokio::spawn(send(store.clone(), room, from, until))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let lag = store.stats();
    let caught_up = Instant::now();
    store.barrier().await?;
    println!("acknowledged 1/s {:.0}", latencies.len() as f64 / duration.as_secs_f64());
    latencies.sort_unstable();
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        let index = ((latencies.len() as f64 * share) as usize).min(latencies.len() - 1);
        println!("ack-{name} ms {:.3}", latencies[index].as_secs_f64() * 1e3);
    }
    // Of the log, at the end, and how long it took from there.
    println!("not-moved MiB {:.1}", lag.lag_bytes as f64 / f64::from(1 << 20));
    println!("moved ms {:.0}", caught_up.elapsed().as_secs_f64() * 1e3);
    let opened = Instant::now();
    for room in 1..=senders {
        store.load_room(RoomId::from_u64(room), 256, NOW).await?;
    }
    println!("room-load ms {:.3}", opened.elapsed().as_secs_f64() * 1e3 / senders as f64);
    store.close().await;
    Ok(())
}

async fn populate(store: &Store, rooms: u64) -> Result<(), Box<dyn std::error::Error>> {
    let account = NewAccount {
        id: SENDER,
        name: "sender".into(),
        display_name: "Sender".into(),
        password_hash: String::new(),
        at: NOW,
    };
    let device = NewDevice {
        id: DeviceId::from_u64(1),
        user: SENDER,
        label: "load".into(),
        token_hash: [0; 32],
        at: NOW,
    };
    store.create_account(account, device).await?;
    for room in 1..=rooms {
        let id = RoomId::from_u64(room);
        let (name, topic) = (format!("room {room}"), String::new());
        store.create_room(NewRoom { id, name, topic, owner: SENDER, at: NOW }).await?;
    }
    Ok(())
}

/// Sends until the end and returns the latency of every acknowledgement after the warm-up.
async fn send(
    store: Store,
    room: u64,
    from: Instant,
    until: Instant,
) -> Result<Vec<Duration>, folkmoot::storage::AppendError> {
    let epoch = store.write_epoch();
    let body = "x".repeat(BODY_LEN);
    let mut latencies = Vec::new();
    for seq in 1.. {
        let message = Message {
            seq: Seq::from_u64(seq),
            user: SENDER,
            name: "sender".into(),
            key: format!("{room:08x}-{seq:08x}"),
            content_hash: seq,
            body: body.clone(),
            reply_to: None,
            mentions: Vec::new(),
            mention_all: false,
            attachments: Vec::new(),
        };
        let record = Record::Room(RoomRecord {
            room: RoomId::from_u64(room),
            // The room's stream began with its owner's joining.
            offset: Offset::from_u64(seq + 1),
            at: NOW,
            event: RoomEvent::Message(message),
        });
        let started = Instant::now();
        if started >= until {
            break;
        }
        store.ready().await?;
        store.append(epoch, &record).await?;
        if started >= from {
            latencies.push(started.elapsed());
        }
    }
    Ok(latencies)
}
