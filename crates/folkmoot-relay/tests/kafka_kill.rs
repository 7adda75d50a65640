//! A backend writes hundreds of records a second to Kafka, while the relay, the broker and both are
//! killed in turn: what Kafka took reaches a subscriber that comes back, each once and in order.
//! And what waited meanwhile, or was never taken, costs little memory.
//!
//! `RELAY_KILLS` says how often, in all; `RELAY_BACKLOG` how many records wait.

mod kafka_support;
mod kill_support;
mod support;

use std::sync::Arc;
use std::time::Instant;

use althing_testkit::servers::KafkaServer;
use folkmoot_relay::{Settings, start};
use kafka_support::{Backend, PATIENCE, publishes};
use kill_support::{Follower, Process, Tally};
use serde_json::{Value, json};
use support::{Listener, get};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Duration, interval, sleep, timeout};

const PARTITIONS: i32 = 2;
/// Records of one partition at once, and the pause between two: five hundred a second in all.
const AT_ONCE: u64 = 5;
const PAUSE: Duration = Duration::from_millis(20);
/// Records that must be heard of each partition between two kills.
const BETWEEN_KILLS: u64 = 150;
/// What a backlog may take beside what the relay takes without one.
const GROWTH_KIB_MAX: u64 = 64 << 10;

fn settings(host: &str, topic: &str, channel: &Value) -> Value {
    json!({
        "client": {
            "allow_anonymous_connect_without_token": true, "queue_max_size": 1 << 28,
        },
        "http_api": { "key": "key" },
        "channel": channel,
        "consumers": [{ "name": "records", "type": "kafka", "kafka": {
            "brokers": [host], "topics": [topic], "consumer_group": "relay",
            // Otherwise a relay that was killed is waited for until its session is over.
            "instance_id": "one",
        } }],
    })
}

/// The tests have a broker each, and take turns: two cores have enough to do with one.
static TURN: Mutex<()> = Mutex::const_new(());

async fn started() -> KafkaServer {
    tokio::task::spawn_blocking(KafkaServer::start).await.expect("it starts")
}

/// Writes numbers in their order, each once, whatever happens meanwhile; returns the last one.
async fn work(backend: Arc<Backend>, partition: i32, end: watch::Receiver<bool>) -> u64 {
    let (mut pace, mut last) = (interval(PAUSE), 0);
    let mut newest = Vec::new();
    while !*end.borrow() {
        pace.tick().await;
        for _ in 0..AT_ONCE {
            last += 1;
            let value = publishes(&format!("news:{partition}"), last);
            newest.push(backend.begins("kills", partition, &value));
        }
    }
    for written in newest {
        written.await.expect("the client lives").expect("Kafka takes it in the end");
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_seen_whole_once_and_in_order_though_relay_and_broker_are_killed() {
    let _turn = TURN.lock().await;
    let times = std::env::var("RELAY_KILLS").map_or(4, |times| times.parse().expect("a number"));
    let mut server = started().await;
    let backend = Arc::new(Backend::new(&server.host()));
    backend.makes("kills", PARTITIONS).await;
    let directory = tempfile::tempdir().expect("it is made");
    let channel = json!({
        "history_directory": directory.path().join("histories"),
        "recovery_max_publication_limit": 100_000,
        "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true, "durable_history": true,
            "force_recovery": true, "history_size": 100_000, "history_ttl": "1h",
        }],
    });
    let all = settings(&server.host(), "kills", &channel);
    let mut relay = Process::start(directory.path(), &all);
    let mut followers: Vec<Follower> =
        (0..PARTITIONS).map(|partition| Follower::start(relay.address(), partition)).collect();
    // Nothing is written before both are subscribed.
    for follower in &mut followers {
        follower.subscribes().await;
    }
    let (ending, end) = watch::channel(false);
    let workers: Vec<_> = (0..PARTITIONS)
        .map(|partition| tokio::spawn(work(backend.clone(), partition, end.clone())))
        .collect();
    let began = Instant::now();
    for kill in 0..times {
        for follower in &mut followers {
            follower.hears(BETWEEN_KILLS).await;
        }
        let kills = move || {
            if kill % 3 != 1 {
                relay.kill();
            }
            if kill % 3 != 0 {
                server.kill();
                server.start_again();
            }
            relay.start_again();
            (relay, server)
        };
        (relay, server) = tokio::task::spawn_blocking(kills).await.expect("both start again");
    }
    for follower in &mut followers {
        follower.hears(BETWEEN_KILLS).await;
    }
    ending.send_replace(true);
    let mut tally = Tally::default();
    for (worker, follower) in workers.into_iter().zip(followers) {
        let written = worker.await.expect("it ends");
        tally.add(&follower.end(written).await, written);
    }
    let per_second = tally.committed as f64 / began.elapsed().as_secs_f64();
    eprintln!("{times} kills, {per_second:.0} records/s: {tally:?}");
    tally.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_away_is_shown_and_read_again_once_it_is_back() {
    let _turn = TURN.lock().await;
    let mut server = started().await;
    let backend = Backend::new(&server.host());
    backend.makes("away", 1).await;
    let channel =
        json!({ "namespaces": [{ "name": "news", "allow_subscribe_for_anonymous": true }] });
    let mut all = settings(&server.host(), "away", &channel);
    all["client"]["queue_max_size"] = json!(1 << 20);
    let all = Settings::from_json(&all.to_string()).expect("settings");
    let relay = start(all, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts");
    let mut heard = Listener::subscribe(&relay, &["news:x"]).await.beside();
    for number in 1..=2 {
        backend.writes("away", 0, &publishes("news:x", number)).await;
        assert_eq!(next(&mut heard).await, number);
        server.kill();
        shows(&relay, "folkmoot_relay_consumer_up{consumer=\"records\"} 0").await;
        let again = move || {
            server.start_again();
            server
        };
        server = tokio::task::spawn_blocking(again).await.expect("it starts again");
        shows(&relay, "folkmoot_relay_consumer_up{consumer=\"records\"} 1").await;
    }
    backend.writes("away", 0, &publishes("news:x", 3)).await;
    assert_eq!(next(&mut heard).await, 3);
    // Nobody waits for a broker that does not answer.
    server.kill();
    let began = Instant::now();
    relay.stop().await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// What comes next of the relay's channel.
async fn next(heard: &mut mpsc::UnboundedReceiver<(String, Value)>) -> Value {
    timeout(PATIENCE, heard.recv()).await.expect("nothing came").expect("it goes on").1
}

/// Waits until the metrics have this line.
async fn shows(relay: &folkmoot_relay::Relay, line: &str) {
    let looking = async {
        while !get(relay, "/metrics", "").await.lines().any(|one| one == line) {
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("`{line}` never comes"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_is_published_in_order_with_little_memory() {
    let _turn = TURN.lock().await;
    let len = std::env::var("RELAY_BACKLOG").map_or(100_000, |len| len.parse().expect("a number"));
    let server = started().await;
    let backend = Arc::new(Backend::new(&server.host()));
    backend.makes("backlog", 1).await;
    let directory = tempfile::tempdir().expect("it is made");
    let channel = json!({ "namespaces": [{
        "name": "news", "allow_subscribe_for_anonymous": true, "force_recovery": true,
        "history_size": 10, "history_ttl": "60s",
    }] });
    let relay = Process::start(directory.path(), &settings(&server.host(), "backlog", &channel));
    let mut follower = Follower::start(relay.address(), 0);
    follower.subscribes().await;
    backend.writes("backlog", 0, &publishes("news:0", 1)).await;
    follower.hears(1).await;
    let before = relay.memory_peak_kib();
    // It reads nothing while the records are written, and has all of them before it then.
    relay.pause();
    let writer = backend.clone();
    let writing = move || {
        let mut newest = None;
        for number in 2..=len {
            newest = Some(writer.begins("backlog", 0, &publishes("news:0", number)));
        }
        newest
    };
    let newest = tokio::task::spawn_blocking(writing).await.expect("it ends");
    newest.expect("there is one").await.expect("the client lives").expect("Kafka takes it");
    let began = Instant::now();
    relay.resume();
    for wanted in (0..=len).step_by(50_000) {
        follower.waits(wanted).await;
    }
    let (took, grown) = (began.elapsed(), relay.memory_peak_kib() - before);
    let seen = follower.end(len).await;
    eprintln!("{len} records in {took:.1?}, {grown} KiB more than {before}");
    assert_eq!(seen, (1..=len).collect::<Vec<_>>());
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
}
