//! The tokio runtimes that programs run on, and starting a program there.
//!
//! Programs of one batch share the runtimes, so that they disturb each other. A batch in which
//! somebody hung leaves its runtimes behind: nothing that runs there can be trusted any more.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::course::course;
use crate::program::{Flavour, Program};
use crate::records::Violation;
use crate::stalls;
use crate::world::World;

/// The default deadline of asks, in ticks.
pub(crate) const DEADLINE_TICKS: u32 = 150;
/// Looks, a hundredth of a second apart, for what should come soon.
pub(crate) const LOOKS_MANY: u32 = 500;
/// For a program that has failed already.
pub(crate) const LOOKS_FEW: u32 = 150;
/// How long a program may run while nothing gets on: its own stages give up before.
const RUN_MAX: Duration = Duration::from_secs(30);
/// How long it may run in any case, so that its seed is told before the whole test is killed.
const RUN_MAX_BUSY: Duration = Duration::from_secs(400);

pub(crate) struct Runtimes {
    current: Handle,
    two: Option<Runtime>,
    three: Option<Runtime>,
    /// Ends the thread of the current-thread runtime when dropped.
    _ends: oneshot::Sender<()>,
}

impl Runtimes {
    pub(crate) fn new() -> Self {
        let (ends, end) = oneshot::channel::<()>();
        let (tell, told) = sync_channel(1);
        let run = move || {
            let runtime =
                Builder::new_current_thread().enable_all().build().expect("a runtime is built");
            tell.send(runtime.handle().clone()).ok();
            runtime.block_on(end).ok();
            runtime.shutdown_background();
        };
        thread::Builder::new().name("torture-current".into()).spawn(run).expect("a thread starts");
        let current = told.recv().expect("the thread says so");
        let (two, three) = (workers(2), workers(3));
        [&current, two.handle(), three.handle()].into_iter().for_each(stalls::watch_in);
        Self { current, two: Some(two), three: Some(three), _ends: ends }
    }

    /// The runtimes of a program's nodes.
    fn handles(&self, program: &Program) -> Vec<Handle> {
        let two = self.two.as_ref().expect("until the drop").handle();
        let three = self.three.as_ref().expect("until the drop").handle();
        let all = [three, &self.current, two];
        let node = |index: usize| match program.flavour {
            Flavour::Paused | Flavour::CurrentThread => self.current.clone(),
            Flavour::TwoWorkers => two.clone(),
            Flavour::ThreeWorkers => three.clone(),
            Flavour::Several => all[index % 3].clone(),
        };
        (0..program.nodes.len()).map(node).collect()
    }
}

impl Drop for Runtimes {
    fn drop(&mut self) {
        for runtime in [self.two.take(), self.three.take()].into_iter().flatten() {
            runtime.shutdown_background();
        }
    }
}

fn workers(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(workers).thread_name("torture-worker").enable_all();
    builder.build().expect("a runtime is built")
}

/// A program under way.
pub(crate) struct Run {
    pub(crate) world: Arc<World>,
    ended: Receiver<()>,
    run_max: Duration,
    began: Instant,
    over_at: Cell<Instant>,
    /// How far it was when `over_at` was set.
    seen: Cell<(&'static str, (i64, u64))>,
}

impl Run {
    pub(crate) fn start(program: Program, runtimes: &Runtimes, looks_max: u32) -> Self {
        let run_max = RUN_MAX.min(Duration::from_millis(u64::from(looks_max) * 100));
        let flavour = program.flavour;
        let handles = runtimes.handles(&program);
        let world = World::new(program, looks_max);
        let (end, ended) = sync_channel(1);
        if flavour == Flavour::Paused {
            let world = world.clone();
            let run = move || {
                let mut builder = Builder::new_current_thread();
                let runtime = builder.enable_all().start_paused(true).build();
                let runtime = runtime.expect("a runtime is built");
                let here = vec![runtime.handle().clone(); world.program.nodes.len()];
                let course = runtime.spawn(course(world, here));
                runtime.block_on(course).ok();
                end.send(()).ok();
                runtime.shutdown_background();
            };
            thread::Builder::new().name("torture-paused".into()).spawn(run).expect("it starts");
        } else {
            let first = handles[0].clone();
            let course = course(world.clone(), handles);
            first.spawn(async move {
                course.await;
                end.send(()).ok();
            });
        }
        let began = Instant::now();
        let (over_at, seen) = (Cell::new(began + run_max), Cell::new(("", (0, 0))));
        Self { world, ended, run_max, began, over_at, seen }
    }

    /// Whether its time is over. On a busy machine it has more, as long as it gets on.
    fn is_late(&self) -> bool {
        if self.began.elapsed() > RUN_MAX_BUSY {
            return true;
        }
        if Instant::now() <= self.over_at.get() {
            return false;
        }
        let now = (*self.world.stage.lock(), self.world.pulse());
        self.over_at.set(Instant::now() + self.run_max);
        self.seen.replace(now) == now
    }

    /// Whether it is still at work, and not only waiting for memory to go.
    pub(crate) fn is_busy(&self) -> bool {
        !["clearing", "over"].contains(&*self.world.stage.lock())
    }

    /// Whether `end` need not wait.
    pub(crate) fn has_ended(&self) -> bool {
        *self.world.stage.lock() == "over" || self.is_late()
    }

    fn has_come_to_its_end(&self) -> bool {
        let left = self.over_at.get().saturating_duration_since(Instant::now());
        self.ended.recv_timeout(left).is_ok()
    }

    /// Waits for the end; returns what was broken, and whether it hung.
    pub(crate) fn end(self) -> (Vec<Violation>, bool) {
        let mut is_over = self.has_come_to_its_end();
        while !is_over && !self.is_late() {
            is_over = self.has_come_to_its_end();
        }
        let mut violations = self.world.violations.lock().clone();
        let has_ended = *self.world.stage.lock() == "over";
        if !is_over || !has_ended {
            self.world.is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            let details = format!("it is at: {}", *self.world.stage.lock());
            violations.push(Violation { promise: "a run comes to its end", details });
        }
        (violations, !is_over)
    }
}

/// Runs a program several times at once on fresh runtimes, so that the runs disturb each other.
pub(crate) fn run_beside_itself(program: &Program, times: usize) -> Vec<Violation> {
    let runtimes = Runtimes::new();
    let start = |_| Run::start(program.clone(), &runtimes, LOOKS_FEW);
    let runs: Vec<_> = (0..times).map(start).collect();
    let (broken, hang): (Vec<_>, Vec<_>) = runs.into_iter().map(Run::end).unzip();
    if hang.contains(&true) {
        std::mem::forget(runtimes);
    }
    // The first of each run is nearest to the cause.
    broken.into_iter().filter_map(|broken| broken.into_iter().next()).collect()
}
