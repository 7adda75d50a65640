//! Rows of a backend, read by whichever node has the partition or the slot: a node that stops, or
//! is killed, is followed by another one, and no row is lost, doubled or out of order.

use althing_testkit::servers::PostgresServer;
use serde_json::json;
use tokio::time::{Duration, sleep, timeout};
use tokio_postgres::{Client, NoTls};

use super::cluster::{Cluster, PATIENCE, Subscriber};

const PARTITIONS: usize = 4;
/// Rows of each partition while a node stops, and as many while one is killed.
const ROWS: u64 = 150;
/// The first of several takes part in owning channels and is never stopped; the others only take
/// connections and read rows.
const ROLES: [&str; 3] = ["both", "gateway", "gateway"];

async fn database(server: &PostgresServer) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&server.url(), NoTls).await.expect("it is up");
    tokio::spawn(connection);
    client
}

async fn logical_server() -> PostgresServer {
    let mut server = tokio::task::block_in_place(PostgresServer::start);
    let level = "ALTER SYSTEM SET wal_level = 'logical'";
    database(&server).await.batch_execute(level).await.expect("it is set");
    tokio::task::block_in_place(|| server.start_again());
    server
}

/// Whether each row says by a key that it is published once.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    None,
    Each,
}

/// Commits numbers, one after the other, in all partitions.
async fn write(client: Client, numbers: std::ops::Range<u64>, keys: Keys) {
    let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                  VALUES ('publish', $1::text::jsonb, $2)";
    for number in numbers {
        for partition in 0..PARTITIONS {
            let mut payload = json!({"channel": format!("c{partition}"), "data": number});
            if keys == Keys::Each {
                payload["idempotency_key"] = json!(format!("{partition}-{number}"));
            }
            let partition = i32::try_from(partition).expect("a small number");
            let inserted = client.execute(insert, &[&payload.to_string(), &partition]).await;
            inserted.expect("it is inserted");
        }
    }
}

/// What has been heard: the next number of each channel.
struct Heard {
    subscriber: Subscriber,
    next: [u64; PARTITIONS],
}

impl Heard {
    async fn begin(cluster: &Cluster) -> Self {
        let mut subscriber = Subscriber::connect(&cluster.nodes[0]).await;
        for partition in 0..PARTITIONS {
            subscriber.subscribe(&format!("c{partition}")).await;
        }
        Self { subscriber, next: [0; PARTITIONS] }
    }

    /// Hears the numbers below this one, in all channels.
    async fn up_to(&mut self, end: u64) {
        while self.next.iter().any(|next| *next < end) {
            let (channel, push) = self.subscriber.push().await;
            let at: usize = channel[1..].parse().expect("one of them");
            assert_eq!(
                push["pub"]["data"], self.next[at],
                "{channel}: lost, doubled or out of order"
            );
            self.next[at] += 1;
        }
    }
}

/// The number of the node that reads the slot.
async fn reader(cluster: &Cluster) -> usize {
    let looking = async {
        loop {
            for (number, node) in cluster.nodes.iter().enumerate() {
                if node.metrics().await.contains("consumer_up{consumer=\"rows\"} 1") {
                    return number;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("nobody reads the slot")
}

/// Waits until the slot says that all that is committed was read: what was not would come twice from
/// whoever reads it next.
async fn all_is_confirmed(client: &Client) {
    let written = client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await;
    let written: String = written.expect("the server is up").get(0);
    let sql = "SELECT bool_and(confirmed_flush_lsn >= $1::text::pg_lsn) FROM pg_replication_slots";
    let looking = async {
        loop {
            let row = client.query_one(sql, &[&written]).await.expect("the server is up");
            if row.get(0) {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("the slot is not confirmed");
}

/// A node that can be stopped, and reads the slot; whoever reads it otherwise is cut off.
async fn reader_but_first(cluster: &Cluster, client: &Client) -> usize {
    let cut = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active";
    loop {
        match reader(cluster).await {
            0 => client.batch_execute(cut).await.expect("it is cut off"),
            other => return other,
        }
    }
}

/// Stops a node and kills another one while rows are committed. `slot`: the one that reads it.
async fn nodes_come_and_go(mut cluster: Cluster, has_slot: bool) {
    let client = database(&cluster.postgres).await;
    let table = "SELECT FROM centrifugo_outbox LIMIT 0";
    while client.query(table, &[]).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
    let mut heard = Heard::begin(&cluster).await;
    for (first, keys) in [(0, Keys::None), (ROWS, Keys::Each)] {
        let victim = match has_slot {
            true => reader_but_first(&cluster, &client).await,
            false => 1,
        };
        let mut victim = cluster.nodes.remove(victim);
        let writer = database(&cluster.postgres).await;
        let writing = tokio::spawn(write(writer, first..first + ROWS, keys));
        heard.up_to(first + ROWS / 3).await;
        // A node that is asked to stop finishes what it publishes; one that is killed may have
        // published what it has not deleted, and keys say so.
        match keys {
            Keys::None => victim.terminate().await,
            Keys::Each => victim.process.kill().await.expect("our own child can be killed"),
        }
        heard.up_to(first + ROWS).await;
        writing.await.expect("all is committed");
        if keys == Keys::None {
            victim.stopped().await;
            if has_slot {
                all_is_confirmed(&client).await;
            }
        }
    }
    // Behind all that would come twice.
    write(database(&cluster.postgres).await, 2 * ROWS..2 * ROWS + 1, Keys::None).await;
    heard.up_to(2 * ROWS + 1).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_outbox_are_heard_once_and_in_order_while_nodes_stop_and_are_killed() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let settings = format!(
        "[[consumers]]\nname = 'rows'\ntype = 'postgresql'\n[consumers.postgresql]\ndsn = '{}'\n\
         num_partitions = {PARTITIONS}\npartition_poll_interval = '5ms'\n",
        server.url()
    );
    nodes_come_and_go(Cluster::start_on(server, "outbox", &ROLES, &settings).await, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_read_by_one_node_at_a_time_and_heard_once_while_nodes_stop_and_are_killed() {
    let server = logical_server().await;
    let settings = format!(
        "[[consumers]]\nname = 'rows'\ntype = 'postgresql_cdc'\n[consumers.postgresql_cdc]\n\
         dsn = '{}'\n",
        server.url()
    );
    nodes_come_and_go(Cluster::start_on(server, "cdc", &ROLES, &settings).await, true).await;
}
