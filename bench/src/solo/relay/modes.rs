//! `relay-modes`: a backend stores a message of a room in PostgreSQL and publishes it into the
//! personal channels of the room's members, one of whom is online, in each way that it can.
//!
//! For `api`, `outbox`, `cdc` and `both` (the log and the API with one idempotency key), and rooms
//! of 100 to 100,000 members, medians: `creation` is the backend's transaction from its first
//! statement to its commit, `delivery` the time from that first statement until the publication is
//! at the client, and `broadcast` what lies between the commit and the client. `rows` is how many
//! rows a second go from one commit to subscribers, by an outbox and from the log.
//! All channels have history in memory. PostgreSQL is a real one, with fsync.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample};
use althing_testkit::servers::PostgresServer;
use anyhow::{Context, Result};
use folkmoot_relay::{Relay, Settings, start};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use super::{Listener, ask, median_ms, subscribe, until_published};

/// Members of rooms, which are named by their place here, and how figures name them.
const SIZES: [(usize, &str); 4] = [(100, "100"), (1_000, "1k"), (10_000, "10k"), (100_000, "100k")];
const ROUNDS_MIN: usize = 5;
const ROUNDS_MAX: usize = 100;
/// Of the figure `rows`.
const ROWS: i64 = 50_000;
const PARTITIONS: i32 = 4;
const TABLES: &str = "
    CREATE TABLE member (room integer, name text, PRIMARY KEY (room, name));
    CREATE TABLE message (id bigserial PRIMARY KEY, room integer, body text);
    CREATE TABLE centrifugo_outbox (
        id bigserial PRIMARY KEY, method text NOT NULL, payload jsonb COMPRESSION lz4 NOT NULL,
        partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now());";
/// The command that publishes message `$3` of room `$1`.
const COMMAND: &str = "
    SELECT jsonb_build_object(
        'channels', to_jsonb(ARRAY(
            SELECT 'kept:' || name FROM member WHERE room = $1 ORDER BY name)),
        'data', $2::text, 'idempotency_key', $3::text)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Api,
    Outbox,
    Cdc,
    Both,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Api, Self::Outbox, Self::Cdc, Self::Both];

    fn calls(self) -> bool {
        matches!(self, Self::Api | Self::Both)
    }

    fn inserts(self) -> bool {
        self != Self::Api
    }

    fn consumers(self, dsn: &str) -> serde_json::Value {
        match self {
            Self::Api => json!([]),
            Self::Outbox => json!([{ "name": "rows", "type": "postgresql", "postgresql": {
                "dsn": dsn, "num_partitions": PARTITIONS, "partition_poll_interval": "1s",
                "partition_notification_channel": "outbox",
            } }]),
            Self::Cdc | Self::Both => json!([{
                "name": "changes", "type": "postgresql_cdc", "postgresql_cdc": {
                    "dsn": dsn, "slot_name": self.to_string(), "publication_name": self.to_string(),
                },
            }]),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::Outbox => "outbox",
            Self::Cdc => "cdc",
            Self::Both => "both",
        })
    }
}

/// A backend, its database, and a relay that follows it.
struct Backend {
    runtime: Runtime,
    client: Client,
    relay: Relay,
    api: std::io::BufReader<TcpStream>,
    mode: Mode,
    messages: u64,
}

/// When what happened, after the backend's first statement.
struct Times {
    created: Duration,
    delivered: Duration,
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    measure(budget).map_err(|error| format!("{error:#}"))
}

fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let server = database()?;
    let mut samples = Vec::new();
    for mode in Mode::ALL {
        let mut backend = Backend::start(mode, &server)?;
        for (room, (size, name)) in (0..).zip(SIZES) {
            let time = Duration::from_secs_f64(budget.seconds / 4.0);
            let times = backend.messages(room, size, time)?;
            let [mut created, mut broadcast, mut delivered] = [
                times.iter().map(|it| it.created).collect::<Vec<_>>(),
                // By the API it may be there before the backend knows that it has committed.
                times.iter().map(|it| it.delivered.saturating_sub(it.created)).collect(),
                times.iter().map(|it| it.delivered).collect(),
            ];
            for (part, times) in [
                ("creation", &mut created),
                ("broadcast", &mut broadcast),
                ("delivery", &mut delivered),
            ] {
                let metric = format!("{mode}-{part}-{name}");
                samples.push(Sample::new(metric, "ms", median_ms(times)));
            }
        }
        if matches!(mode, Mode::Outbox | Mode::Cdc) {
            let rate = backend.rows()?;
            samples.push(Sample::new(format!("{mode}-rows"), "rows/s", rate));
        }
        backend.end()?;
    }
    Ok(samples)
}

/// A server with the backend's tables, which logs enough for every mode.
fn database() -> Result<PostgresServer> {
    let mut server = PostgresServer::start();
    let runtime = runtime()?;
    let client = runtime.block_on(connect(&server.url()))?;
    let fill = |(room, (size, _)): (usize, (usize, &str))| {
        format!(
            "INSERT INTO member SELECT {room}, '{room}-' || lpad(number::text, 6, '0')
             FROM generate_series(1, {size}) AS number;"
        )
    };
    let rooms: String = SIZES.into_iter().enumerate().map(fill).collect();
    runtime.block_on(client.batch_execute(&format!("{TABLES}{rooms} ANALYZE member;")))?;
    runtime.block_on(client.batch_execute("ALTER SYSTEM SET wal_level = 'logical'"))?;
    drop(client);
    server.start_again();
    Ok(server)
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Backend {
    fn start(mode: Mode, server: &PostgresServer) -> Result<Self> {
        let runtime = runtime()?;
        let dsn = server.url();
        let settings = json!({
            "client": { "allow_anonymous_connect_without_token": true },
            "http_api": { "key": super::KEY },
            "channel": { "namespaces": [{
                "name": "kept", "allow_subscribe_for_anonymous": true,
                "history_size": 10, "history_ttl": "600s",
            }] },
            "consumers": mode.consumers(&dsn),
        });
        let at: SocketAddr = "127.0.0.1:0".parse()?;
        let settings = Settings::from_json(&settings.to_string())?;
        let relay = runtime.block_on(start(settings, at))?;
        let client = runtime.block_on(connect(&dsn))?;
        let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
        while matches!(mode, Mode::Cdc | Mode::Both)
            && runtime.block_on(client.query_one(slots, &[]))?.get::<_, i64>(0) == 0
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let api = TcpStream::connect(relay.address())?;
        api.set_nodelay(true)?;
        let api = std::io::BufReader::new(api);
        Ok(Self { runtime, client, relay, api, mode, messages: 0 })
    }

    /// Sends messages into a room, one after the other.
    fn messages(&mut self, room: i32, size: usize, time: Duration) -> Result<Vec<Times>> {
        let online = format!("kept:{room}-{size:06}");
        let mut listener = subscribe(self.relay.address(), &online)?;
        let mut times = Vec::new();
        let began = Instant::now();
        while times.len() < ROUNDS_MIN || times.len() < ROUNDS_MAX && began.elapsed() < time {
            times.push(self.message(room, &mut listener)?);
        }
        // The first one prepares statements and makes the channels.
        times.remove(0);
        Ok(times)
    }

    fn message(&mut self, room: i32, listener: &mut Listener) -> Result<Times> {
        self.messages += 1;
        let begun = Instant::now();
        // Beside the writing: the publication comes before the API's answer does.
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| until_published(listener).map(|()| begun.elapsed()));
            let body = self.runtime.block_on(create(
                &mut self.client,
                self.mode,
                room,
                &format!("{}-{}", self.mode, self.messages),
            ))?;
            let created = begun.elapsed();
            if let Some(body) = body {
                ask(&mut self.api, "broadcast", &body)?;
            }
            let delivered = reading.join().expect("reading does not panic")?;
            Ok(Times { created, delivered })
        })
    }

    /// Rows of one commit that are published in a second.
    fn rows(&mut self) -> Result<f64> {
        let mut ends = (0..PARTITIONS)
            .map(|partition| subscribe(self.relay.address(), &format!("kept:end-{partition}")))
            .collect::<Result<Vec<_>>>()?;
        let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
            SELECT 'publish', jsonb_build_object('channel', CASE
                WHEN number > $1::bigint - $2::int THEN 'kept:end-' || number % $2
                ELSE 'kept:' || number % 1000 END, 'data', 'a message of some length'), number % $2
            FROM generate_series(1, $1::bigint) AS number";
        let begun = self.runtime.block_on(async {
            let transaction = self.client.transaction().await?;
            transaction.execute(insert, &[&ROWS, &PARTITIONS]).await?;
            transaction.execute("NOTIFY outbox", &[]).await?;
            let begun = Instant::now();
            transaction.commit().await.map(|()| begun)
        })?;
        for end in &mut ends {
            until_published(end)?;
        }
        Ok(ROWS as f64 / begun.elapsed().as_secs_f64())
    }

    fn end(self) -> Result<()> {
        self.runtime.block_on(self.relay.stop());
        // A slot without a reader would keep the log for ever.
        let drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots";
        self.runtime.block_on(async {
            while self.client.execute(drop, &[]).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.client.execute("TRUNCATE centrifugo_outbox", &[]).await
        })?;
        Ok(())
    }
}

/// Stores a message, with what publishes it unless that is the API's task alone; returns the body
/// of a call of the API.
async fn create(client: &mut Client, mode: Mode, room: i32, key: &str) -> Result<Option<String>> {
    let body = "a message of some length ".repeat(4);
    let transaction = client.transaction().await?;
    let insert = "INSERT INTO message (room, body) VALUES ($1, $2)";
    transaction.execute(insert, &[&room, &body]).await?;
    if mode.inserts() {
        let insert = format!(
            "INSERT INTO centrifugo_outbox (method, payload) SELECT 'broadcast', ({COMMAND})"
        );
        transaction.execute(&insert, &[&room, &body, &key]).await?;
        transaction.execute("NOTIFY outbox", &[]).await?;
    }
    let call = if mode.calls() {
        let command = format!("SELECT ({COMMAND})::text");
        let row = transaction.query_one(&command, &[&room, &body, &key]).await?;
        Some(row.try_get::<_, Option<String>>(0)?.context("the room has members")?)
    } else {
        None
    };
    transaction.commit().await?;
    Ok(call)
}
