//! The load generator: publishes positions at a steady rate from a second process, and watches how
//! soon they come out again.
//!
//! The schedule is open-loop: a publisher that falls behind catches up, it does not slow down. Each
//! message carries the time it was due, so what the watcher sees is the whole way (publisher,
//! broker, vehicle, viewport, socket), and a stall counts for all it delayed.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::clock::{format_timestamp, unix_ms};
use crate::geo::Place;
use crate::hfp::VehicleId;
use crate::mqtt_url::MqttUrl;
use crate::publisher::Publisher;

/// Publishers wake this often.
const TICK: Duration = Duration::from_millis(2);
/// Operators of invented vehicles, apart from those of the simulator.
const OPERATOR: u32 = 9_000;
const VEHICLES_PER_OPERATOR: u32 = 100_000;
/// Milliseconds told apart; what takes longer counts as this.
const LATENCY_MS_MAX: usize = 10_000;
/// How long the watcher waits for the last positions.
const DRAIN: Duration = Duration::from_millis(500);
/// The place around which vehicles drive.
const CENTRE: (f64, f64) = (60.20, 20.60);

/// What to do.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where to publish.
    pub broker: MqttUrl,
    /// Different vehicles, in turn.
    pub vehicles: u32,
    /// Positions per second, all together.
    pub rate: u32,
    /// How long.
    pub seconds: u32,
    /// MQTT connections.
    pub connections: u32,
    /// HTTP address whose event stream is watched.
    pub watch: Option<SocketAddr>,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoadReport {
    /// Positions written to the broker.
    pub published: u64,
    /// Seconds that took.
    pub seconds: f64,
    /// Positions per second.
    pub rate: f64,
    /// Positions seen in the event stream. One that leads into another cell is told in both, and
    /// seen twice if the stream writes in between.
    pub watched: u64,
    /// Milliseconds from a position being due to the stream: half of the positions are faster.
    pub p50_ms: u64,
    /// 99 of 100 are faster.
    pub p99_ms: u64,
    /// 999 of 1,000 are faster.
    pub p999_ms: u64,
    /// The slowest.
    pub max_ms: u64,
}

/// Runs a load to its end.
///
/// # Errors
/// If the broker or the watched server is lost.
pub async fn run(load: Load) -> anyhow::Result<LoadReport> {
    let latencies = Arc::new(Latencies::default());
    let watcher = match load.watch {
        Some(address) => {
            let stream = open_stream(address).await?;
            Some(tokio::spawn(watch(stream, unix_ms(), latencies.clone())))
        }
        None => None,
    };
    let started = Instant::now();
    let publishers: Vec<_> = (0..load.connections.max(1))
        .map(|index| tokio::spawn(publish(load.clone(), index)))
        .collect();
    let mut published = 0;
    for publisher in publishers {
        published += publisher.await??;
    }
    let seconds = started.elapsed().as_secs_f64();
    if let Some(watcher) = watcher {
        tokio::time::sleep(DRAIN).await;
        watcher.abort();
    }
    let rate = published as f64 / seconds;
    Ok(LoadReport { published, seconds, rate, ..latencies.report() })
}

/// The invented vehicle of an index.
fn vehicle(index: u32) -> Option<VehicleId> {
    VehicleId::new(OPERATOR + index / VEHICLES_PER_OPERATOR, index % VEHICLES_PER_OPERATOR).ok()
}

/// A place on the vehicle's own small circle; every place lies in the watched box.
fn place(index: u32, round: u64) -> Place {
    let spread = |step: u32, width: f64| (f64::from(index % step) / f64::from(step) - 0.5) * width;
    let angle = round as f64 * 0.2 + f64::from(index);
    let lat = CENTRE.0 + spread(997, 0.14) + 0.0008 * angle.sin();
    let lon = CENTRE.1 + spread(1_009, 0.42) + 0.0016 * angle.cos();
    Place::from_degrees(lat, lon).expect("near the centre")
}

/// Publishes every `connections`-th vehicle.
async fn publish(load: Load, index: u32) -> io::Result<u64> {
    let id = format!("realtime-map-load-{:x}-{index}", std::process::id());
    let mut publisher = Publisher::connect(&load.broker.host, load.broker.port, id).await?;
    let step = load.connections.max(1);
    let total = u64::from(load.rate) * u64::from(load.seconds) / u64::from(step);
    let per_second = f64::from(load.rate) / f64::from(step);
    let (mut topic, mut payload) = (String::new(), String::new());
    let (mut sent, mut next, mut round) = (0_u64, index % load.vehicles.max(1), 0_u64);
    let (started, started_ms) = (Instant::now(), unix_ms());
    let (mut stamp, mut stamp_ms) = (String::new(), 0);
    while sent < total {
        let due = (started.elapsed().as_secs_f64() * per_second) as u64;
        while sent < due.min(total) {
            let due_ms = started_ms + (sent as f64 * 1_000.0 / per_second) as u64;
            if due_ms != stamp_ms {
                (stamp, stamp_ms) = (format_timestamp(due_ms), due_ms);
            }
            let id = vehicle(next)
                .ok_or_else(|| io::Error::other("more vehicles than there are numbers"))?;
            message(id, place(next, round), &stamp, &mut topic, &mut payload);
            publisher.publish(&topic, payload.as_bytes()).await?;
            next += step;
            if next >= load.vehicles {
                next = index % load.vehicles.max(1);
                round += 1;
            }
            sent += 1;
        }
        publisher.flush().await?;
        tokio::time::sleep(TICK).await;
    }
    Ok(sent)
}

fn message(id: VehicleId, place: Place, now: &str, topic: &mut String, payload: &mut String) {
    topic.clear();
    payload.clear();
    write!(topic, "/hfp/v2/journey/ongoing/vp/bus/{id}/9001/1/Load/12:00/1000001/0/60;20/00/00/00")
        .expect("a string takes all");
    write!(
        payload,
        concat!(
            r#"{{"VP":{{"desi":"L","dir":"1","oper":{},"veh":{},"tst":"{}","tsi":0,"spd":9.5,"hdg":90,"lat":{:.6},"#,
            r#""long":{:.6},"acc":0.1,"dl":-12,"odo":1420,"drst":0,"oday":"2026-01-01","jrn":1,"line":1,"start":"12:00","#,
            r#""loc":"GPS","stop":null,"route":"9001","occu":0}}}}"#
        ),
        id.operator(),
        id.number(),
        now,
        place.lat(),
        place.lon()
    )
    .expect("a string takes all");
}

struct Latencies {
    buckets: Vec<AtomicU64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: (0..=LATENCY_MS_MAX).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Latencies {
    fn note(&self, ms: u64) {
        let bucket = (ms as usize).min(LATENCY_MS_MAX);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self) -> LoadReport {
        let counts: Vec<u64> =
            self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let watched: u64 = counts.iter().sum();
        let at = |share: f64| {
            let wanted = (watched as f64 * share).ceil() as u64;
            let mut seen = 0;
            let found = counts.iter().position(|count| {
                seen += count;
                seen >= wanted.max(1)
            });
            found.unwrap_or(0) as u64
        };
        LoadReport {
            watched,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: at(1.0),
            ..LoadReport::default()
        }
    }
}

async fn open_stream(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let mut socket = TcpStream::connect(address).await?;
    let (lat, lon) = CENTRE;
    let (west, south, east, north) = (lon - 0.3, lat - 0.1, lon + 0.3, lat + 0.1);
    let request = format!(
        "GET /events?bbox={west:.2},{south:.2},{east:.2},{north:.2} HTTP/1.1\r\nhost: {address}\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await?;
    let mut stream = BufReader::with_capacity(256 * 1_024, socket);
    let mut status = String::new();
    timeout(Duration::from_secs(5), stream.read_line(&mut status)).await??;
    if !status.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("event stream: {}", status.trim())));
    }
    Ok(stream)
}

/// Reads lines for ever; those of positions hold `[…,at_ms]` once per position. A stream begins
/// with what was there before: that is older than `since_ms` and not counted.
async fn watch(mut stream: BufReader<TcpStream>, since_ms: u64, latencies: Arc<Latencies>) {
    let mut line = Vec::new();
    while matches!(stream.read_until(b'\n', &mut line).await, Ok(1..)) {
        if line.starts_with(b"data: [[") {
            let now_ms = unix_ms();
            for at_ms in times_of_invented(&line).filter(|at_ms| *at_ms >= since_ms) {
                latencies.note(now_ms.saturating_sub(at_ms));
            }
        }
        line.clear();
    }
}

/// The last number of each position of an invented vehicle.
fn times_of_invented(line: &[u8]) -> impl Iterator<Item = u64> {
    let positions = line.split(|byte| *byte == b']');
    positions.filter(|position| position.windows(3).take(12).any(|w| w == b"[\"9")).filter_map(
        |position| {
            let number = position.rsplit(|byte| *byte == b',').next()?;
            std::str::from_utf8(number).ok()?.parse().ok()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hfp::read_message;

    #[test]
    fn invented_messages_are_real_ones() {
        let (mut topic, mut payload) = (String::new(), String::new());
        let now_ms = 1_795_269_600_123;
        let now = format_timestamp(now_ms);
        message(vehicle(123_456).unwrap(), place(5, 7), &now, &mut topic, &mut payload);
        let (id, report) = read_message(topic.as_bytes(), payload.as_bytes()).unwrap().unwrap();
        assert_eq!((id.to_string().as_str(), report.at_ms), ("9001/23456", now_ms));
    }

    #[test]
    fn times_of_invented_vehicles_are_found() {
        let line = br#"data: [["9000/00001",60.1,20.6,90,950,-12,"bus","L",1,1795269600123],["0040/00001",60.1,20.6,90,950,-12,"tram","4",1,5],["9001/00002",60.1,20.6,90,950,-12,"bus","L",1,1795269600124]]"#;
        let times: Vec<_> = times_of_invented(line).collect();
        assert_eq!(times, [1_795_269_600_123, 1_795_269_600_124]);
    }

    #[test]
    fn quantiles_are_of_all_that_was_noted() {
        let latencies = Latencies::default();
        (1..=1_000).for_each(|ms| latencies.note(ms));
        latencies.note(1_000_000);
        let report = latencies.report();
        assert_eq!((report.watched, report.p50_ms, report.p99_ms), (1_001, 501, 991));
        assert_eq!((report.p999_ms, report.max_ms), (1_000, LATENCY_MS_MAX as u64));
    }
}
