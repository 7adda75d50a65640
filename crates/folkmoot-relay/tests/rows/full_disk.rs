//! A disk that fills up below the histories of a relay, and has room again.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::kill_support::{Process, call};
use crate::support::database;
use althing_testkit::servers::PostgresServer;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use tokio_postgres::Client;

/// The relay writes a mebibyte ahead, and a segment begins at each start.
const DISK: &str = "size=12m";
/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u64 = 50;

/// A process in whose namespace a small tmpfs is mounted, for as long as it lives.
struct Disk {
    holder: Child,
    /// What it waits for the end of.
    _input: ChildStdin,
    mount: PathBuf,
}

impl Disk {
    /// Fails where this system does not let a test mount a disk of its own: who wants to pass over
    /// that says so to the test runner.
    fn mount(mount: &Path) -> Self {
        std::fs::create_dir_all(mount).expect("the temporary directory is writable");
        let script = r#"mount -t tmpfs -o "$1" tmpfs "$2" && echo mounted && exec cat"#;
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", DISK])
            .arg(mount)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux's unshare");
        let input = holder.stdin.take().expect("it is piped");
        let mut said = String::new();
        let output = holder.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut said).expect("it says when it is mounted");
        assert_eq!(said.trim_end(), "mounted", "a tmpfs in a user namespace cannot be mounted");
        Self { holder, _input: input, mount: mount.to_owned() }
    }

    /// What runs a program that sees the disk.
    fn inside(&self) -> Vec<String> {
        let target = format!("--target={}", self.holder.id());
        ["nsenter", &target, "--user", "--mount", "--preserve-credentials"]
            .map(str::to_owned)
            .into()
    }

    /// Where a file of the disk is seen from outside.
    fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.mount.strip_prefix("/").expect("an absolute path")).join(name)
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.path("ballast")).expect("the disk is there");
        for len in [1 << 20, 4 << 10, 1] {
            while file.write_all(&vec![1; len]).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn settings(directory: &Path, database: &str) -> Value {
    let namespace = |name: &str, is_durable: bool| {
        json!({
            "name": name, "durable_history": is_durable, "history_size": 10_000, "history_ttl": "1h",
        })
    };
    json!({
        "http_api": { "key": "key" },
        "channel": {
            "history_directory": directory, "history_max_publication_limit": 10_000,
            "namespaces": [namespace("kept", true), namespace("fleeting", false)],
        },
        "consumers": [{ "name": "backend", "type": "postgresql", "postgresql": {
            "dsn": database, "num_partitions": 1, "partition_notification_channel": "outbox",
        } }],
    })
}

async fn publish(relay: &Process, channel: &str, key: &str, text: &str) -> Value {
    let params = json!({ "channel": channel, "data": text, "idempotency_key": key });
    call(relay.address(), "publish", &params).await.expect("it answers")
}

/// The data of all that a channel keeps.
async fn history(relay: &Process, channel: &str) -> Vec<Value> {
    let asked = json!({ "channel": channel, "limit": -1 });
    let answer = call(relay.address(), "history", &asked).await.expect("it answers");
    let publications = answer["result"]["publications"].as_array().expect("publications");
    publications.iter().map(|one| one["data"].clone()).collect()
}

/// Rows for a channel that is kept. Before them two of one id, of which only the first can go out
/// at once; and one of which some is refused for good: it must not be set aside as long as the rest
/// may go out later.
async fn insert_rows(backend: &Client) {
    let several = "ALTER TABLE centrifugo_outbox DROP CONSTRAINT centrifugo_outbox_pkey";
    backend.batch_execute(several).await.expect("ids may be there twice");
    let twins = [("fleeting:d", 1), ("kept:d", 2)];
    let twins = twins.map(|(channel, data)| json!({ "channel": channel, "data": data }));
    let insert = "INSERT INTO centrifugo_outbox (id, method, payload, partition)
                  VALUES (-1, 'publish', $1::text::jsonb, 0), (-1, 'publish', $2::text::jsonb, 0)";
    let twins = twins.map(|payload| payload.to_string());
    backend.execute(insert, &[&twins[0], &twins[1]]).await.expect("they are inserted");
    let halved = json!({ "channels": ["nowhere:x", "kept:c", "fleeting:c"], "data": 7 });
    let insert = "INSERT INTO centrifugo_outbox (id, method, payload, partition)
                  VALUES (0, 'broadcast', $1::text::jsonb, 0)";
    backend.execute(insert, &[&halved.to_string()]).await.expect("it is inserted");
    for number in 1..=ROWS {
        let payload = json!({ "channel": "kept:b", "data": number }).to_string();
        let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                      VALUES ('publish', $1::text::jsonb, 0)";
        backend.execute(insert, &[&payload]).await.expect("it is inserted");
    }
    backend.batch_execute("NOTIFY outbox").await.expect("it is told");
}

/// Why rows were set aside.
async fn set_aside(backend: &Client) -> Vec<String> {
    let failed = "SELECT error FROM centrifugo_outbox_failed";
    let failed = backend.query(failed, &[]).await.expect("it reads");
    failed.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_by_name_and_all_goes_on_once_there_is_room() {
    let directory = tempfile::tempdir().expect("it is made");
    let disk = Disk::mount(&directory.path().join("disk"));
    let server = tokio::task::spawn_blocking(PostgresServer::start).await.expect("it starts");
    let backend = database(&server.url()).await.expect("it connects");
    let settings = settings(&disk.mount.join("histories"), &server.url());
    let mut relay = Process::start_by(disk.inside(), directory.path(), &settings);
    assert_eq!(publish(&relay, "kept:a", "0", "first").await["result"]["offset"], 1);
    disk.fill();

    // What fits into the room that was set aside is taken; then it is refused, and says why.
    let text = "x".repeat(100_000);
    let mut said = 1_u64;
    let refused = loop {
        let answer = publish(&relay, "kept:a", &said.to_string(), &text).await;
        if !answer["error"].is_null() {
            break answer["error"].clone();
        }
        said += 1;
        assert_eq!(answer["result"]["offset"], said, "offsets go on by one");
    };
    assert_eq!(refused["code"], 503, "{refused}");
    assert_eq!(refused["message"], "the store cannot take writes");
    // Reading goes on, and so do channels in memory.
    assert_eq!(history(&relay, "kept:a").await.len() as u64, said);
    assert_eq!(publish(&relay, "fleeting:a", "0", &text).await["result"]["offset"], 1);
    // Nobody hears of a row that is not on disk, and it waits.
    insert_rows(&backend).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(history(&relay, "fleeting:d").await, [1]);
    assert_eq!(history(&relay, "kept:b").await, Vec::<Value>::new());
    assert_eq!(set_aside(&backend).await, [""; 0]);
    let removed = json!({ "channel": "kept:a" });
    let removed = call(relay.address(), "history_remove", &removed).await.expect("it answers");
    assert_eq!(removed["error"]["code"], 503, "{removed}");
    assert_eq!(history(&relay, "kept:a").await.len() as u64, said, "it was refused");

    std::fs::remove_file(disk.path("ballast")).expect("it is ours");
    let began = Instant::now();
    let answer = loop {
        // The same that was refused; it has not been published.
        let answer = publish(&relay, "kept:a", &said.to_string(), "after").await;
        if answer["error"].is_null() {
            break answer;
        }
        assert_eq!(answer["error"]["code"], 503, "{answer}");
        assert!(began.elapsed() < PATIENCE, "the relay does not find the room that was made");
    };
    assert_eq!(answer["result"]["offset"], said + 1);
    while history(&relay, "kept:b").await.len() < ROWS as usize {
        assert!(began.elapsed() < PATIENCE, "rows that waited are not published");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(history(&relay, "fleeting:d").await, [1]);
    assert_eq!(history(&relay, "kept:d").await, [2]);
    assert_eq!(history(&relay, "kept:c").await, [7]);
    assert_eq!(history(&relay, "fleeting:c").await, [7]);
    // The transaction that sets it aside may end after it is published.
    while set_aside(&backend).await.is_empty() {}
    assert!(set_aside(&backend).await[0].contains("1 of 3 channels"));
    let wanted: Vec<Value> = (1..=ROWS).map(|number| json!(number)).collect();
    for is_again in [false, true] {
        if is_again {
            let again = move || {
                relay.kill();
                relay.start_again();
                relay
            };
            relay = tokio::task::spawn_blocking(again).await.expect("it starts again");
        }
        let all = history(&relay, "kept:a").await;
        assert_eq!(all.len() as u64, said + 1);
        assert_eq!((&all[0], all.last()), (&json!("first"), Some(&json!("after"))));
        assert!(all[1..all.len() - 1].iter().all(|one| *one == text));
        assert_eq!(history(&relay, "kept:b").await, wanted);
    }
}
