//! The map on a real broker: Debian's Mosquitto, started here on a loopback port, killed and
//! started again.
//!
//! Needs `mosquitto` on the machine: `apt-get install mosquitto`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{get, publish, publisher, settings, start, tram};
use realtime_map::{Broker, MqttUrl};

/// A broker process that ends with the test.
struct Mosquitto {
    process: Child,
    port: u16,
}

impl Mosquitto {
    fn start(port: u16) -> Self {
        let program = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists())
            .expect("this test needs mosquitto: apt-get install mosquitto");
        let process = Command::new(program)
            .args(["-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto starts");
        let broker = Self { process, port };
        let deadline = Instant::now() + Duration::from_secs(10);
        // A foreign process: there is nothing to await but its port.
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < deadline, "mosquitto does not listen on {port}");
            std::thread::sleep(Duration::from_millis(10));
        }
        broker
    }

    fn url(&self) -> MqttUrl {
        format!("mqtt://127.0.0.1:{}", self.port).parse().unwrap()
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_broker_is_shown_and_reached_again_with_growing_pauses() {
    let broker = Mosquitto::start(free_port());
    let (port, url) = (broker.port, broker.url());
    let mut chosen = settings(0);
    chosen.broker = Broker::External(url.clone());
    let (map, mut events) = start(chosen).await;
    let mut vehicle = publisher(&url).await;
    publish(&mut vehicle, &tram(30, 60.2, 20.6, -5)).await;
    events.sees("0040/00030").await;

    drop(broker);
    let lost = events
        .until("the loss to be shown", |name, data| {
            name == "overview"
                && data["feed"]["connected"] == false
                && data["feed"]["trouble"].is_string()
        })
        .await;
    assert_eq!(lost["feed"]["broker"], url.to_string());
    events
        .until("the pauses between attempts to grow", |name, data| {
            name == "overview" && data["feed"]["pause_ms"].as_u64().is_some_and(|ms| ms >= 500)
        })
        .await;
    let health = get(map.http(), "/healthz").await;
    assert_eq!((health.status, &health.json()["status"]), (200, &"degraded".into()));
    assert_eq!(get(map.http(), "/vehicle?id=40/30").await.status, 200);

    let broker = Mosquitto::start(port);
    events
        .until("the broker to be reached again", |name, data| {
            name == "overview" && data["feed"]["connected"] == true
        })
        .await;
    let mut vehicle = publisher(&broker.url()).await;
    publish(&mut vehicle, &tram(31, 60.2, 20.6, 0)).await;
    events.sees("0040/00031").await;
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_message_is_kept_away_by_the_broker() {
    let broker = Mosquitto::start(free_port());
    let mut chosen = settings(0);
    chosen.broker = Broker::External(broker.url());
    let (map, mut events) = start(chosen).await;
    let stands = get(map.http(), "/healthz").await.json();
    let mut vehicle = publisher(&broker.url()).await;
    let (topic, _) = tram(40, 60.2, 20.6, 0);
    vehicle.publish(&topic, &vec![b' '; 200_000]).await.unwrap();
    vehicle.publish(&topic, &vec![b' '; 10_000]).await.unwrap();
    publish(&mut vehicle, &tram(41, 60.2, 20.6, 0)).await;
    events.sees("0040/00041").await;
    let health = get(map.http(), "/healthz").await.json();
    let counters = &health["counters"];
    assert_eq!((&counters["received"], &counters["bad_payloads"]), (&2.into(), &1.into()));
    assert_eq!(counters["broker_losses"], stands["counters"]["broker_losses"], "{health}");
    map.shutdown().await;
}
