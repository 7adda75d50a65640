//! Chaos from outside: the map as a process of its own, its actors killed all the time while a
//! second process publishes.
//!
//! `CHAOS_SECONDS` sets how long it rages (8 unless set; `make test` takes 60). A kill may cost
//! what waited in a mailbox, never more: vehicles come back with what the store had of them, and
//! with their next position.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use common::{Events, get, scratch};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_realtime-map");
const VEHICLES: u32 = 1_000;
const RATE: u32 = 2_000;
/// Everything the load's vehicles cover.
const BBOX: &str = "20.3,60.1,20.9,60.3";

/// Ends the map also when the test fails.
struct Running {
    process: Child,
    http: SocketAddr,
    broker: String,
    log: Option<JoinHandle<String>>,
}

impl Running {
    fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut process = Command::new(PROGRAM)
            .args(["--port", "0", "--vehicles", "100", "--data"])
            .arg(data)
            .args(arguments)
            .env("RUST_LOG", "warn,rumqttd=off")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut after = |prefix: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(prefix).expect(&line).to_owned()
        };
        let (http, broker) = (after("map on http://").parse().unwrap(), after("broker on "));
        let mut stderr = process.stderr.take().unwrap();
        // Read all the time, or a full pipe would hold the map up.
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { process, http, broker, log: Some(log) }
    }

    fn load(&self, seconds: &str) -> Value {
        let output = Command::new(PROGRAM)
            .args(["load", "--json", "--mqtt", &self.broker, "--watch", &self.http.to_string()])
            .args(["--vehicles", &VEHICLES.to_string(), "--rate", &RATE.to_string()])
            .args(["--seconds", seconds])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Ends it as a service manager would; returns what it logged.
    fn stop(mut self) -> String {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vehicles_keep_their_past_and_go_on_while_actors_die_all_the_time() {
    let seconds = std::env::var("CHAOS_SECONDS").unwrap_or_else(|_| "8".to_owned());
    let data = scratch();
    // Chaos kills vehicles that are known, so all are seen and stored once.
    let map = Running::start(&data, &[]);
    map.load("2");
    map.stop();

    let map = Running::start(&data, &["--chaos", "10ms"]);
    let report = map.load(&seconds);
    let published = report["published"].as_u64().unwrap();
    let watched = report["watched"].as_u64().unwrap();
    assert!(watched * 100 > published * 98, "{report}");
    for number in (0..VEHICLES).step_by(10) {
        let path = format!("/trail?id=9000/{number:05}");
        let answer = get(map.http, &path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        // What the first run stored is in it, and what came since, or since the last kill.
        assert!(answer.json()["positions"].as_u64().unwrap() >= 3, "{path}: {}", answer.body);
    }
    let health = get(map.http, "/healthz").await.json();
    let counters = &health["counters"];
    for none in ["bad_topics", "bad_payloads", "saves_failed", "broker_losses"] {
        assert_eq!(counters[none], 0, "{none}: {health}");
    }
    assert_eq!(
        (&health["status"], health["feed"]["connected"].as_bool()),
        (&"ok".into(), Some(true))
    );
    assert!(
        counters["positions"].as_u64().unwrap() + counters["shed"].as_u64().unwrap() >= published
    );
    // A viewer who comes now sees the town alive.
    let mut events = Events::open(map.http, BBOX).await;
    events
        .until("somebody to drive", |name, data| {
            name == "positions" && data.as_array().is_some_and(|all| !all.is_empty())
        })
        .await;
    let log = map.stop();
    let killed = |what: &str| log.matches(&format!("chaos kills {what}")).count();
    let (vehicles, others) =
        (killed("a vehicle"), killed("a geofence") + killed("an organisation"));
    assert!(vehicles > 100 && others > 100, "{vehicles} vehicles, {others} others");
    println!(
        "{published} published, {watched} seen, {vehicles} vehicles and {others} others killed"
    );
    std::fs::remove_dir_all(&data).ok();
}
