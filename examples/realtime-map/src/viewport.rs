//! The viewport actor: one open event stream. It listens to the cells its box touches and writes
//! what changed.
//!
//! Each vehicle has at most one sighting waiting: a reader that is slow gets fewer and newer ones,
//! never a queue that grows.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorOptions, Context, MailboxKind, Published, Subscription, actor};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::digits::push_number;
use crate::geo::Bounds;
use crate::geofence::FenceEvent;
use crate::hfp::VehicleId;
use crate::overview::Overview;
use crate::vehicle::Sighting;
use crate::world::World;

/// Chunks on their way to the socket; with [`Viewport`] holding the rest, two keep it busy.
pub(crate) const CHUNKS_MAX: usize = 2;
/// Vehicles with a sighting waiting; more than any screen can show apart.
const PENDING_LEN_MAX: usize = 50_000;
/// Crossings waiting; the oldest are dropped.
const CROSSINGS_LEN_MAX: usize = 100;
/// Sightings that arrive within this time share a chunk. Well under the 50 ms that a position may
/// take.
const GATHER: Duration = Duration::from_millis(5);
/// Sightings of a whole city that may wait while the actor writes.
const MAILBOX_LEN_MAX: u32 = 65_536;

/// One event stream.
pub(crate) struct Viewport {
    world: Arc<World>,
    bounds: Bounds,
    out: mpsc::Sender<Bytes>,
    subscriptions: Vec<Subscription>,
    pending: HashMap<VehicleId, Sighting>,
    crossings: VecDeque<String>,
    overview: Option<String>,
    is_flush_due: bool,
}

fn options() -> ActorOptions {
    ActorOptions::default().mailbox(MailboxKind::Bounded(MAILBOX_LEN_MAX))
}

impl Viewport {
    /// A stream of what happens in `bounds`, to be spawned.
    pub(crate) fn new(world: Arc<World>, bounds: Bounds, out: mpsc::Sender<Bytes>) -> Self {
        Self {
            world,
            bounds,
            out,
            subscriptions: Vec::new(),
            pending: HashMap::new(),
            crossings: VecDeque::new(),
            overview: None,
            is_flush_due: false,
        }
    }

    fn note(&mut self, sighting: Sighting) {
        if self.pending.len() >= PENDING_LEN_MAX && !self.pending.contains_key(&sighting.id) {
            return;
        }
        let waiting = self.pending.entry(sighting.id).or_insert(sighting);
        if waiting.report.at_ms <= sighting.report.at_ms {
            *waiting = sighting;
        }
    }

    fn note_crossing(&mut self, event: &FenceEvent) {
        if self.crossings.len() == CROSSINGS_LEN_MAX {
            self.crossings.pop_front();
        }
        self.crossings.push_back(json(event));
    }

    fn schedule(&mut self, after: Duration, ctx: &mut Context<Self>) {
        if !self.is_flush_due {
            self.is_flush_due = true;
            ctx.after(after, viewport_messages::Flush);
        }
    }

    /// Everything that waits, as server-sent events.
    fn write_chunk(&mut self) -> String {
        let mut chunk = String::with_capacity(96 * self.pending.len() + 64);
        let mut gone = String::new();
        for sighting in self.pending.values() {
            if sighting.awake {
                let before = if chunk.is_empty() { "event: positions\ndata: [" } else { "," };
                chunk.push_str(before);
                write_sighting(&mut chunk, sighting);
            } else {
                gone.push_str(if gone.is_empty() { "event: asleep\ndata: [" } else { "," });
                write!(gone, "\"{}\"", sighting.id).expect("a string takes all");
            }
        }
        for list in [&mut chunk, &mut gone] {
            if !list.is_empty() {
                list.push_str("]\n\n");
            }
        }
        chunk.push_str(&gone);
        for crossing in &self.crossings {
            write!(chunk, "event: crossing\ndata: {crossing}\n\n").expect("a string takes all");
        }
        if let Some(overview) = &self.overview {
            write!(chunk, "event: overview\ndata: {overview}\n\n").expect("a string takes all");
        }
        chunk
    }

    fn clear(&mut self) {
        self.pending.clear();
        self.crossings.clear();
        self.overview = None;
    }
}

/// `["0055/01216",60.17000,24.94000,352,1370,-37,"bus","550",1,1795269600123]`: as short as it can
/// be read. By hand, because formatting fifty thousand positions a second is a good part of what an
/// open map costs.
fn write_sighting(out: &mut String, sighting: &Sighting) {
    let report = &sighting.report;
    out.push_str("[\"");
    out.push_str(sighting.id.key().as_ref());
    out.push_str("\",");
    report.place.write_degrees(out);
    for number in [
        i64::from(report.heading_deg.unwrap_or(0)),
        i64::from(report.speed_cm_s.unwrap_or(0)),
        i64::from(report.delay_s),
    ] {
        out.push(',');
        push_number(out, number);
    }
    out.push_str(",\"");
    out.push_str(report.mode.as_str());
    out.push_str("\",");
    push_text(out, report.line.as_str());
    out.push(',');
    push_number(out, i64::from(report.direction));
    out.push(',');
    push_number(out, i64::try_from(report.at_ms).unwrap_or(i64::MAX));
    out.push(']');
}

/// Text as JSON; names of lines seldom need escapes.
fn push_text(out: &mut String, text: &str) {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&json(text));
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("maps of numbers and text have no unwritable key")
}

#[actor(name = "map.viewport", options = options)]
impl Viewport {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.world.counters.viewports.add(1);
        let (node, me) = (ctx.node(), ctx.address());
        for cell in self.bounds.cells() {
            let topic = self.world.cell_topic(&node, cell);
            self.subscriptions.push(topic.subscribe(&me));
            for event in topic.kept() {
                if self.bounds.contains(event.payload.report.place) {
                    self.note(event.payload);
                }
            }
        }
        let fences = self.world.fence_topic(&node);
        self.subscriptions.push(fences.subscribe(&me));
        for event in fences.kept() {
            self.note_crossing(&event.payload);
        }
        let overviews = self.world.overview_topic(&node);
        self.subscriptions.push(overviews.subscribe(&me));
        for event in overviews.kept() {
            self.overview = Some(json(&event.payload));
        }
        self.schedule(Duration::ZERO, ctx);
        Ok(())
    }

    #[event]
    async fn on_sighting(&mut self, event: &Published<Sighting>, ctx: &mut Context<Self>) {
        self.note(event.payload);
        self.schedule(GATHER, ctx);
    }

    #[event]
    async fn on_crossing(&mut self, event: &Published<FenceEvent>, ctx: &mut Context<Self>) {
        self.note_crossing(&event.payload);
        self.schedule(GATHER, ctx);
    }

    #[event]
    async fn on_overview(&mut self, event: &Published<Overview>, ctx: &mut Context<Self>) {
        self.overview = Some(json(&event.payload));
        self.schedule(GATHER, ctx);
    }

    async fn flush(&mut self, ctx: &mut Context<Self>) {
        if self.out.is_closed() {
            return ctx.stop();
        }
        let Ok(room) = self.out.clone().try_reserve_owned() else {
            // The reader has not taken the last chunks yet: what comes meanwhile replaces what
            // waits here.
            let out = self.out.clone();
            let room = async move { out.reserve().await.map(drop) };
            return ctx.pipe(room, |_| viewport_messages::Flush);
        };
        self.is_flush_due = false;
        room.send(Bytes::from(self.write_chunk()));
        self.clear();
    }

    async fn stopping(&mut self) {
        self.subscriptions.clear();
        self.world.counters.viewports.sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::Place;
    use crate::hfp::{Line, Mode, Report};

    #[test]
    fn a_sighting_reads_as_json_with_every_sign_and_character() {
        for (lat, lon, line) in
            [(60.2, 20.6, "550"), (-0.000_01, -179.999_99, "a\"b"), (0.0, 5.0, "")]
        {
            let report = Report {
                at_ms: 1_795_269_600_123,
                place: Place::from_degrees(lat, lon).unwrap(),
                speed_cm_s: Some(1_370),
                heading_deg: None,
                delay_s: -37,
                mode: Mode::Tram,
                direction: 2,
                line: Line::new(line),
            };
            let mut out = String::new();
            let id = VehicleId::new(55, 1_216).unwrap();
            write_sighting(&mut out, &Sighting { id, report, awake: true });
            let read: serde_json::Value = serde_json::from_str(&out).expect(&out);
            let expected = serde_json::json!([
                "0055/01216",
                lat,
                lon,
                0,
                1_370,
                -37,
                "tram",
                line,
                2,
                1_795_269_600_123_u64
            ]);
            let near = |index: usize, degrees: f64| {
                (read[index].as_f64().unwrap() - degrees).abs() < 0.000_005_1
            };
            assert!(near(1, lat) && near(2, lon), "{out}");
            for index in [0, 3, 4, 5, 6, 7, 8, 9] {
                assert_eq!(read[index], expected[index], "{out}");
            }
        }
    }
}
