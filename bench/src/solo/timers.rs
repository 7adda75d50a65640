//! `timers`: 100,000 timers of one actor, set and cancelled, due all at once, and due one by one.
//!
//! Setting and cancelling are timed inside the handler. `fire` is the time from the common due time
//! to the last handler, per timer. `late-p99` is how long after its due time a timer's handler runs
//! when the timers are spread over half a second. Every timer must fire once, none of the
//! cancelled.

use crate::althing::Althing;
use althing::{Actor, ActorOptions, ActorRef, Context, Handler, TimerId};
use althing_bench_workloads::{Budget, Sample, System, median_ns, on_worker, percentile_ns};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const TIMERS: u32 = 100_000;
/// Until timers are due that are cancelled before.
const FAR: Duration = Duration::from_secs(3_600);
/// Until the first is due: longer than it takes to set them all.
const NEAR: Duration = Duration::from_millis(200);
/// Time over which the timers of the second half are spread.
const SPREAD: Duration = Duration::from_millis(500);
/// Longest wait until all have fired.
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Clock {
    set: Vec<TimerId>,
    late_ns: Vec<u32>,
    fired: mpsc::Sender<Vec<u32>>,
}

impl Actor for Clock {
    const NAME: &'static str = "bench.clock";

    fn options() -> ActorOptions {
        // Setting is one handler that takes many milliseconds.
        ActorOptions::default().deadline(WAIT_MAX)
    }
}

/// Fires at `due` on the node's clock.
struct Ring {
    due: Duration,
}

impl Handler<Ring> for Clock {
    type Reply = ();

    async fn handle(&mut self, ring: Ring, ctx: &mut Context<Self>) {
        let late = ctx.elapsed().saturating_sub(ring.due);
        self.late_ns.push(u32::try_from(late.as_nanos()).unwrap_or(u32::MAX));
        if self.late_ns.len() == TIMERS as usize {
            // The receiver waits for it.
            let _ = self.fired.send(std::mem::take(&mut self.late_ns));
        }
    }
}

/// Sets timers that are due from `first` on, spread over `spread`; replies how long that took.
struct Set {
    first: Duration,
    spread: Duration,
}

impl Handler<Set> for Clock {
    type Reply = Duration;

    async fn handle(&mut self, Set { first, spread }: Set, ctx: &mut Context<Self>) -> Duration {
        self.set.clear();
        let begun = Instant::now();
        let start = ctx.elapsed();
        for index in 0..TIMERS {
            let due = start + first + spread * index / TIMERS;
            let delay = due.saturating_sub(ctx.elapsed());
            self.set.push(ctx.after(delay, Ring { due }));
        }
        begun.elapsed()
    }
}

/// Cancels all timers; replies how long that took, and how many were still to fire.
struct Cancel;

impl Handler<Cancel> for Clock {
    type Reply = (Duration, usize);

    async fn handle(&mut self, _: Cancel, ctx: &mut Context<Self>) -> (Duration, usize) {
        let begun = Instant::now();
        let cancelled = self.set.drain(..).filter(|timer| ctx.cancel(*timer)).count();
        (begun.elapsed(), cancelled)
    }
}

/// What the batches showed.
#[derive(Default)]
struct Seen {
    set: Vec<Duration>,
    cancelled: Vec<Duration>,
    fired: Vec<Duration>,
    late_ns: Vec<u32>,
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Althing::start();
    let (tx, fired) = mpsc::channel();
    let clock = system.node().spawn(Clock { set: Vec::new(), late_ns: Vec::new(), fired: tx });
    let mut warm_up = Seen::default();
    set_and_cancel(&system, &clock, &mut warm_up)?;
    let mut seen = Seen::default();
    let measured = Budget { warm_up_seconds: 0.0, ..budget };
    measured.run(|| {
        let begun = Instant::now();
        set_and_cancel(&system, &clock, &mut seen)?;
        let burst = set_and_fire(&system, &clock, &fired, Duration::ZERO)?;
        let last_ns = burst.iter().copied().max().unwrap_or_default();
        seen.fired.push(Duration::from_nanos(u64::from(last_ns)));
        seen.late_ns.extend(set_and_fire(&system, &clock, &fired, SPREAD)?);
        Ok::<_, String>(begun.elapsed())
    })?;
    if fired.try_recv().is_ok() {
        return Err("more timers fired than were due".to_owned());
    }
    seen.late_ns.sort_unstable();
    let per_timer = |durations: &mut [Duration]| median_ns(durations) / f64::from(TIMERS);
    Ok(vec![
        Sample::new("set", "ns", per_timer(&mut seen.set)),
        Sample::new("cancel", "ns", per_timer(&mut seen.cancelled)),
        Sample::new("fire", "ns", per_timer(&mut seen.fired)),
        Sample::new("late-p50", "ns", percentile_ns(&seen.late_ns, 0.50)),
        Sample::new("late-p99", "ns", percentile_ns(&seen.late_ns, 0.99)),
    ])
}

fn set_and_cancel(
    system: &Althing,
    clock: &ActorRef<Clock>,
    seen: &mut Seen,
) -> Result<(), String> {
    seen.set.push(set(system, clock, FAR, Duration::ZERO)?);
    let asked = clock.clone();
    let answer = on_worker(system, async move { asked.send(Cancel).await });
    let (took, cancelled) = answer.map_err(|error| error.to_string())?;
    if cancelled != TIMERS as usize {
        return Err(format!("{cancelled} of {TIMERS} timers were cancelled"));
    }
    seen.cancelled.push(took);
    Ok(())
}

/// Sets timers and returns how late each was.
fn set_and_fire(
    system: &Althing,
    clock: &ActorRef<Clock>,
    fired: &mpsc::Receiver<Vec<u32>>,
    spread: Duration,
) -> Result<Vec<u32>, String> {
    let took = set(system, clock, NEAR, spread)?;
    if took >= NEAR {
        return Err(format!("the first timer was due before the last was set, {took:?}"));
    }
    fired.recv_timeout(WAIT_MAX).map_err(|_| "not all timers fired".to_owned())
}

fn set(
    system: &Althing,
    clock: &ActorRef<Clock>,
    first: Duration,
    spread: Duration,
) -> Result<Duration, String> {
    let clock = clock.clone();
    let asked = on_worker(system, async move { clock.send(Set { first, spread }).await });
    asked.map_err(|error| error.to_string())
}
