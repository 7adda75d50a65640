//! A map of its own for each test, and clients that wait for what the server says instead of for
//! time to pass.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use realtime_map::{Broker, City, Map, MqttUrl, Publisher, Settings, format_timestamp, unix_ms};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nothing awaited here takes longer on a busy machine; beyond it the test fails with what it
/// waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The whole of Thingvik.
pub const ALL: &str = "20,60,21,61";

/// Settings of a map on free ports with a broker inside and a store of its own.
pub fn settings(vehicles: usize) -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        broker: Broker::Embedded { port: 0, vehicles },
        filters: Vec::new(),
        data: scratch(),
        idle: Duration::from_secs(600),
        city: City::thingvik(),
        chaos: None,
    }
}

/// A directory that no other test uses.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("realtime-map-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::remove_dir_all(&path).ok();
    path
}

/// Starts a map and waits until it hears its broker.
pub async fn start(settings: Settings) -> (Map, Events) {
    let map = Map::start(settings).await.unwrap();
    let mut events = Events::open(map.http(), ALL).await;
    events
        .until("the feed to stand", |name, data| {
            name == "overview" && data["feed"]["connected"] == true
        })
        .await;
    (map, events)
}

pub async fn publisher(broker: &MqttUrl) -> Publisher {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let id = format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Publisher::connect(&broker.host, broker.port, id).await.unwrap()
}

/// Topic and payload of a tram at a place, `seconds` from now.
pub fn tram(number: u32, lat: f64, lon: f64, seconds: i64) -> (String, String) {
    let at = format_timestamp(unix_ms().saturating_add_signed(seconds * 1_000));
    let topic = format!(
        "/hfp/v2/journey/ongoing/vp/tram/0040/{number:05}/1001/1/Ting Square/12:00/1000001/4/60;20/26/00/00"
    );
    let payload = format!(
        r#"{{"VP":{{"desi":"4","dir":"1","oper":40,"veh":{number},"tst":"{at}","spd":8.5,"hdg":90,"lat":{lat},"long":{lon},"dl":-70}}}}"#
    );
    (topic, payload)
}

pub async fn publish(publisher: &mut Publisher, (topic, payload): &(String, String)) {
    publisher.publish(topic, payload.as_bytes()).await.unwrap();
    publisher.flush().await.unwrap();
}

/// An answer: status, head, body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// `GET path`.
pub async fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path).await
}

pub async fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: map\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut text)).await.expect("an answer").unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// An open event stream.
pub struct Events {
    stream: BufReader<TcpStream>,
}

impl Events {
    pub async fn open(address: SocketAddr, bbox: &str) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /events?bbox={bbox} HTTP/1.1\r\nhost: map\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        Self { stream: BufReader::new(socket) }
    }

    /// Reads events until one fits.
    pub async fn until(&mut self, what: &str, mut fits: impl FnMut(&str, &Value) -> bool) -> Value {
        let found = timeout(PATIENCE, async {
            loop {
                let (name, data) = self.next().await;
                if fits(&name, &data) {
                    return data;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }

    /// Waits until a vehicle is seen; returns its sighting.
    pub async fn sees(&mut self, id: &str) -> Value {
        let mut sighting = Value::Null;
        self.until(&format!("{id} to be seen"), |name, data| {
            let found = data.as_array().and_then(|all| all.iter().find(|one| one[0] == id));
            sighting = found.cloned().unwrap_or_default();
            name == "positions" && !sighting.is_null()
        })
        .await;
        sighting
    }

    async fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).await.unwrap();
            assert!(read > 0, "the stream has ended");
            if let Some(text) = line.strip_prefix("event: ") {
                text.trim_end().clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(text).unwrap());
            }
        }
    }
}
