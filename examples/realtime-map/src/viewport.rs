//! The viewport actor: one open event stream. It listens to the cells its box touches and writes what changed.
//!
//! Each vehicle has at most one sighting waiting: a reader that is slow gets fewer and newer ones, never a queue that grows.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorError, ActorOptions, Context, Gap, MailboxKind, Published, Sequence, Subscription, Topic,
    actor,
};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

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
/// Sightings that arrive within this time share a chunk. Well under the 50 ms that a position may take.
const GATHER: Duration = Duration::from_millis(10);
/// When the reader has not taken the last chunks yet.
const TRY_AGAIN: Duration = Duration::from_millis(50);
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

/// `["0055/01216",60.17,24.94,352,1370,-37,"bus","550",1,1795269600123]`: as short as it can be read.
fn write_sighting(out: &mut String, sighting: &Sighting) {
    let report = &sighting.report;
    let line = json(report.line.as_str());
    write!(
        out,
        "[\"{}\",{:.5},{:.5},{},{},{},\"{}\",{line},{},{}]",
        sighting.id,
        report.place.lat(),
        report.place.lon(),
        report.heading_deg.unwrap_or(0),
        report.speed_cm_s.unwrap_or(0),
        report.delay_s,
        report.mode.as_str(),
        report.direction,
        report.at_ms
    )
    .expect("a string takes all");
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("maps of numbers and text have no unwritable key")
}

/// What a topic still keeps.
fn kept<T: Send + Sync + 'static>(topic: &Topic<T>) -> Vec<Arc<Published<T>>> {
    topic.replay_since(Sequence(0)).unwrap_or_else(|Gap { oldest, .. }| {
        topic.replay_since(Sequence(oldest.0.saturating_sub(1))).unwrap_or_default()
    })
}

#[actor(name = "map.viewport", options = options)]
impl Viewport {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.world.counters.viewports.add(1);
        let (node, me) = (ctx.node(), ctx.address());
        for cell in self.bounds.cells() {
            let topic = self.world.cell_topic(&node, cell);
            self.subscriptions.push(topic.subscribe(&me));
            for event in kept(&topic) {
                if self.bounds.contains(event.payload.report.place) {
                    self.note(event.payload);
                }
            }
        }
        let fences = self.world.fence_topic(&node);
        self.subscriptions.push(fences.subscribe(&me));
        for event in kept(&fences) {
            self.note_crossing(&event.payload);
        }
        let overviews = self.world.overview_topic(&node);
        self.subscriptions.push(overviews.subscribe(&me));
        for event in kept(&overviews) {
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
        self.is_flush_due = false;
        if self.out.capacity() == 0 && !self.out.is_closed() {
            return self.schedule(TRY_AGAIN, ctx);
        }
        let chunk = self.write_chunk();
        match self.out.try_send(Bytes::from(chunk)) {
            Ok(()) => self.clear(),
            Err(TrySendError::Full(_)) => self.schedule(TRY_AGAIN, ctx),
            Err(TrySendError::Closed(_)) => ctx.stop(),
        }
    }

    async fn stopping(&mut self) {
        self.subscriptions.clear();
        self.world.counters.viewports.sub(1);
    }
}
