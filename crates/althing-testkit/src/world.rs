//! The world: one thread, a seeded choice of the next task, virtual time, and a trace of what was chosen.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use althing::{Fault, Node, NodeBuilder, Simulation, Task, Timestamp};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::faults::Faults;
use crate::random::{Random, mix};

/// Wall-clock time at which every world begins: 2020-01-01 in UTC, in milliseconds since 1970.
const BEGINNING_MS: u64 = 1_577_836_800_000;
/// Id of the future that `run` was given.
const MAIN: u64 = 0;

/// A deterministic world. Cheap to clone; clones are the same world.
///
/// ```
/// use std::time::Duration;
///
/// use althing_testkit::World;
///
/// let day = |seed| {
///     let world = World::new(seed);
///     let node = world.node("test").build();
///     world.run(async { node.sleep(Duration::from_secs(86_400)).await });
///     (world.elapsed(), world.trace())
/// };
/// assert_eq!(day(7), day(7));
/// assert_eq!(day(7).0, Duration::from_secs(86_400));
/// ```
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    clock: Arc<Clock>,
    faults: Faults,
    /// Chooses tasks.
    schedule: Mutex<Random>,
    /// What actors draw; apart, so that an actor's draw does not change the schedule.
    random: Mutex<Random>,
    tasks: Mutex<Tasks>,
    ready: Arc<Mutex<Vec<u64>>>,
    trace: Mutex<u64>,
    running: AtomicBool,
}

#[derive(Default)]
struct Tasks {
    waiting: HashMap<u64, Task>,
    next_id: u64,
}

struct Ready {
    id: u64,
    list: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let mut list = self.list.lock();
        if !list.contains(&self.id) {
            list.push(self.id);
        }
    }
}

impl World {
    /// A world whose schedule, time and randomness follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let shared = Shared {
            seed,
            clock: Arc::default(),
            faults: Faults::default(),
            schedule: Mutex::new(Random::new(seed)),
            random: Mutex::new(Random::new(mix(seed))),
            tasks: Mutex::default(),
            ready: Arc::default(),
            trace: Mutex::new(mix(seed)),
            running: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts building a node in this world.
    pub fn node(&self, name: &str) -> NodeBuilder {
        Node::builder(name).simulation(self.shared.clone())
    }

    /// The faults that handlers in this world meet.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Time since the world began.
    pub fn elapsed(&self) -> Duration {
        self.shared.clock.now()
    }

    /// A number that stands for every choice made so far: the same seed and program give the same one.
    pub fn trace(&self) -> u64 {
        *self.shared.trace.lock()
    }

    /// Runs `future`, and whatever it starts, until it ends.
    ///
    /// # Panics
    /// If `future` waits and nobody is left who could wake it; the message names the seed.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut main = pin!(future);
        self.shared.ready.lock().push(MAIN);
        loop {
            let Some(id) = self.shared.choose() else {
                let now = self.shared.clock.skip();
                let Some(now) = now else {
                    panic!("everybody waits for ever (seed {})", self.shared.seed)
                };
                self.shared.note(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
                continue;
            };
            self.shared.note(id);
            let waker = self.shared.waker(id);
            let mut cx = Context::from_waker(&waker);
            self.shared.running.store(true, Ordering::Relaxed);
            let outcome = if id == MAIN {
                main.as_mut().poll(&mut cx).map(Some)
            } else {
                self.shared.poll_task(id, &mut cx);
                Poll::Pending
            };
            self.shared.running.store(false, Ordering::Relaxed);
            if let Poll::Ready(Some(output)) = outcome {
                return output;
            }
        }
    }
}

impl Shared {
    /// The next task to poll, by the seed.
    fn choose(&self) -> Option<u64> {
        let mut ready = self.ready.lock();
        if ready.is_empty() {
            return None;
        }
        let index = self.schedule.lock().below(ready.len());
        Some(ready.swap_remove(index))
    }

    fn poll_task(&self, id: u64, cx: &mut Context<'_>) {
        // Taken out while it runs, because it may spawn others.
        let Some(mut task) = self.tasks.lock().waiting.remove(&id) else { return };
        if Pin::new(&mut task).poll(cx).is_pending() {
            self.tasks.lock().waiting.insert(id, task);
        }
    }

    fn waker(&self, id: u64) -> Waker {
        Waker::from(Arc::new(Ready { id, list: self.ready.clone() }))
    }

    fn note(&self, what: u64) {
        let mut trace = self.trace.lock();
        *trace = mix(*trace ^ what).wrapping_add(1);
    }
}

impl Simulation for Shared {
    fn spawn(&self, task: Task) {
        let mut tasks = self.tasks.lock();
        tasks.next_id += 1;
        let id = tasks.next_id;
        tasks.waiting.insert(id, task);
        drop(tasks);
        self.ready.lock().push(id);
    }

    fn elapsed(&self) -> Duration {
        self.clock.now()
    }

    fn now(&self) -> Timestamp {
        let elapsed_ms = u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX);
        Timestamp(BEGINNING_MS.saturating_add(elapsed_ms))
    }

    fn sleep(&self, delay: Duration) -> Task {
        Box::pin(self.clock.sleep(delay))
    }

    fn random_u64(&self) -> u64 {
        self.random.lock().next()
    }

    fn is_running(&self) -> bool {
        // With faults about, every message takes the queue, where faults happen.
        self.running.load(Ordering::Relaxed) && self.faults.is_empty()
    }

    fn fault(&self, actor: &str, message: &str) -> Fault {
        self.faults.decide(actor, message, &mut self.schedule.lock())
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("seed", &self.shared.seed).finish_non_exhaustive()
    }
}
