//! `reminders`: a million reminders of 1,000 actors, set as fast as the embedded store takes them,
//! and due one after the other within one minute; `reminders-postgres` is the same on a real server.
//!
//! `set` is the time until all are acknowledged, `late-…` how long after its time each came to its
//! actor, `cpu` what this process used of one processor while they came (a server beside it is not
//! in it). Every reminder has to come, and none too early; one that comes twice is counted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use althing::{ActorError, Context, Node, Start, Timestamp, Wire, actor};
use althing_bench_workloads::{Sample, System, on_worker};
use althing_store::{Courier, PostError, Reminder, Saved, State, Store, When};
use rustix::time::{ClockId, clock_gettime};

use super::kept::{Kept, On};
use crate::althing::Althing;

const ACTORS: u64 = 1_000;
/// Reminders that an actor sets in one turn.
const SET_AT_ONCE: u64 = 100;
/// They are due within so long.
const WITHIN_MS: u64 = 60_000;
/// The first of them is due so long after the first was set: all have to be set by then.
const BEFORE_FIRST_MS: u64 = 90_000;
/// How long the last of them may be late before the run has failed.
const LATE_MAX: Duration = Duration::from_secs(120);
/// Lateness is counted in milliseconds up to this.
const LATE_MS_MAX: usize = 120_000;

#[derive(Default, Wire)]
struct Nothing;

impl State for Nothing {}

/// What has come, of all actors: how many by how late they were.
struct Lateness {
    by_ms: Vec<AtomicU64>,
    came: AtomicU64,
    early: AtomicU64,
}

struct Clock {
    saved: Saved<Nothing>,
    /// Reminders that have come, by their places.
    came: Vec<bool>,
    lateness: Arc<Lateness>,
}

#[actor(name = "bench.clock", wire, durable = saved)]
impl Clock {
    /// Sets reminders from one place on, each due some time after the one before.
    #[wire(skip)]
    async fn set(
        &mut self,
        places: std::ops::Range<u64>,
        first: u64,
        apart_us: u64,
        ctx: &mut Context<Self>,
    ) -> Result<(), PostError> {
        let me = ctx.address();
        for place in places {
            let when = When::At(Timestamp(first + place * apart_us / 1_000));
            self.saved.post().remind(&place.to_string(), when, |reminder| me.ring(reminder))?;
        }
        Ok(())
    }

    async fn ring(&mut self, reminder: Reminder, ctx: &mut Context<Self>) {
        let place: usize = reminder.name.parse().expect("it was set by `set`");
        if self.came.len() <= place {
            self.came.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.came[place], true) {
            return;
        }
        let lateness = &self.lateness;
        let Some(late_ms) = ctx.now().0.checked_sub(reminder.due.0) else {
            lateness.early.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let late_ms = usize::try_from(late_ms).unwrap_or(usize::MAX).min(LATE_MS_MAX);
        lateness.by_ms[late_ms].fetch_add(1, Ordering::Relaxed);
        lateness.came.fetch_add(1, Ordering::Relaxed);
    }
}

impl Lateness {
    fn new() -> Arc<Self> {
        let by_ms = (0..=LATE_MS_MAX).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { by_ms, came: AtomicU64::new(0), early: AtomicU64::new(0) })
    }

    /// As so many milliseconds late as that share is at most.
    fn share(&self, share: f64) -> f64 {
        let all = self.came.load(Ordering::Relaxed);
        let rank = (all as f64 * share) as u64;
        let mut seen = 0;
        let place = self.by_ms.iter().position(|count| {
            seen += count.load(Ordering::Relaxed);
            seen > rank.min(all.saturating_sub(1))
        });
        place.unwrap_or(LATE_MS_MAX) as f64
    }
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

pub(crate) fn run(on: On, reminders: u64) -> Result<Vec<Sample>, String> {
    let each = (reminders / ACTORS).max(1);
    let all = each * ACTORS;
    let system = Althing::start();
    let (_kept, store) = Kept::start(&system, on)?;
    let courier = Arc::new(Courier::new(store));
    let lateness = Lateness::new();
    let node = system.enter_with(|| {
        let (store, lateness): (Arc<dyn Store>, _) = (courier.clone(), lateness.clone());
        let open = move |start: Start<Clock>| {
            let (store, lateness) = (store.clone(), lateness.clone());
            async move {
                let saved = Saved::load(store, &start).await?;
                Ok::<_, ActorError>(Clock { saved, came: Vec::new(), lateness })
            }
        };
        let node = Node::builder("reminders").actor(open).build();
        courier.start(&node);
        node
    });
    let first = node.now().0 + BEFORE_FIRST_MS;
    let took = set_all(&system, &node, each, first)?;
    if first < node.now().0 {
        return Err(format!("the first was due before the last was set, after {took:?}"));
    }
    std::thread::sleep(Duration::from_millis(first.saturating_sub(node.now().0)));
    let (began, before) = (Instant::now(), cpu());
    let until = began + Duration::from_millis(WITHIN_MS) + LATE_MAX;
    while lateness.came.load(Ordering::Relaxed) < all && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (used, lasted) = (cpu() - before, began.elapsed());
    let (came, early) = (lateness.came.load(Ordering::Relaxed), &lateness.early);
    node.kill();
    if came < all || early.load(Ordering::Relaxed) > 0 {
        return Err(format!("{came} of {all} reminders came, {early:?} too early"));
    }
    Ok(vec![
        Sample::new("set", "s", took.as_secs_f64()),
        Sample::new("late-p50", "ms", lateness.share(0.5)),
        Sample::new("late-p99", "ms", lateness.share(0.99)),
        Sample::new("late-max", "ms", lateness.share(1.0)),
        Sample::new("cpu", "% of CPU", used.as_secs_f64() / lasted.as_secs_f64() * 100.0),
    ])
}

/// Has each actor set its reminders; those of all actors are due in turn.
fn set_all(system: &Althing, node: &Node, each: u64, first: u64) -> Result<Duration, String> {
    let node = node.clone();
    on_worker(system, async move {
        let begun = Instant::now();
        let apart_us = WITHIN_MS * 1_000 / each;
        let setting: Vec<_> = (0..ACTORS)
            .map(|index| {
                let clock = node.get::<Clock>(index.to_string());
                // So that not all are due at the same moments.
                let first = first + index * apart_us / 1_000 / ACTORS;
                tokio::spawn(async move {
                    for from in (0..each).step_by(SET_AT_ONCE as usize) {
                        let places = from..(from + SET_AT_ONCE).min(each);
                        let set = clock.set(places, first, apart_us);
                        let set = set.timeout(Duration::from_secs(120)).await;
                        set.map_err(|error| error.to_string())?
                            .map_err(|error| error.to_string())?;
                    }
                    Ok::<_, String>(())
                })
            })
            .collect();
        for set in setting {
            set.await.map_err(|error| error.to_string())??;
        }
        Ok(begun.elapsed())
    })
}
