//! The one source of tasks, time and randomness of a node.
//!
//! On tokio, time is tokio's, so that its paused clock works in tests. A simulation brings its own
//! `Simulation`.

use std::cell::Cell;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::address::actor_id::ActorId;
use crate::metrics::step::Step;
use crate::node::shared::Node;
use crate::node::timestamp::Timestamp;
use crate::shield::shielded;
use crate::stable_hash::mix;

/// A boxed task.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A world of its own for deterministic tests: tasks, time and randomness of one node.
///
/// What is done "in the background" is the runtime's own housekeeping (the sweep for idle actors, a
/// timer task without timers). It goes on for as long as anything else does, and must not keep a
/// simulation alive by itself.
pub trait Simulation: Send + Sync + 'static {
    /// Runs a task.
    fn spawn(&self, task: Task);
    /// Runs a task of the runtime's own housekeeping.
    fn spawn_in_background(&self, task: Task) {
        self.spawn(task);
    }
    /// Time since the simulation began.
    fn elapsed(&self) -> Duration;
    /// Wall-clock time, milliseconds since 1970.
    fn now(&self) -> Timestamp;
    /// Resolves once `delay` has passed.
    fn sleep(&self, delay: Duration) -> Task;
    /// As `sleep`, for one who has nothing to do but to look again.
    fn sleep_in_background(&self, delay: Duration) -> Task {
        self.sleep(delay)
    }
    /// The next random number.
    fn random_u64(&self) -> u64;
    /// Decides the order in which hash tables are walked.
    fn hash_seed(&self) -> u64 {
        0
    }
    /// Memory that the process would use; decides what a memory budget unloads.
    fn resident_bytes(&self) -> Option<u64> {
        None
    }
    /// Whether the calling thread is running one of its tasks, so that idle actors may run in
    /// place.
    fn is_running(&self) -> bool;
    /// What shall happen to a message of that type (its full path) that is about to run; asked once
    /// for each message.
    fn fault(&self, _actor: &ActorId, _message: &'static str) -> Fault {
        Fault::None
    }
    /// Hears of each step that the node's actors take; `None` where no actor takes it.
    fn observe(&self, _actor: Option<&ActorId>, _step: &Step<'_>) {}
    /// Hears that its node stands.
    fn built(&self, _node: &Node) {}
}

/// What a simulation does to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing.
    None,
    /// The handler panics before its first line.
    Panic,
    /// The handler begins later.
    Delay(Duration),
    /// The handler does not run: an ask gets `AskError::Rejected`, a tell is lost.
    Refuse,
}

/// How long the runtime's housekeeping sleeps, and whether anything is waiting for it to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nap {
    /// Something will happen at its end.
    Due(Duration),
    /// It will only look again.
    Background(Duration),
    /// It will look again after `look`, and something will happen after `due`.
    Lookout { look: Duration, due: Duration },
}

pub(crate) enum Env {
    Tokio(TokioEnv),
    Simulated(Arc<dyn Simulation>),
}

pub(crate) struct TokioEnv {
    handle: Handle,
    runtime: tokio::runtime::Id,
    started: Instant,
    /// The wall clock as of `started`, by what it has said since.
    started_ms: AtomicU64,
    random: AtomicU64,
}

/// By how much the machine's clock has to be ahead of ours before we follow it.
const STEP_MS: u64 = 1_000;

impl TokioEnv {
    /// Follows the machine's clock when that is put forward, as after a machine has slept; never
    /// goes back, so that nothing waits for a moment that has been already.
    fn now(&self) -> Timestamp {
        // In this order: a pause between the two must not look like a step.
        let wall_ms = wall_ms();
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut started_ms = self.started_ms.load(Ordering::Relaxed);
        let by_wall = wall_ms.saturating_sub(elapsed_ms);
        if by_wall > started_ms.saturating_add(STEP_MS) {
            started_ms = self.started_ms.fetch_max(by_wall, Ordering::Relaxed).max(by_wall);
        }
        Timestamp(started_ms.saturating_add(elapsed_ms))
    }
}

/// Milliseconds since 1970, by the machine's clock.
fn wall_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

impl Env {
    /// The environment of the current tokio runtime.
    ///
    /// # Panics
    /// Outside a runtime, or in one without timers, with tokio's own words.
    pub(crate) fn tokio() -> Self {
        // Now, rather than in the first ask that has to wait, or unseen in the task that unloads.
        drop(tokio::time::sleep(Duration::ZERO));
        Self::Tokio(TokioEnv {
            handle: Handle::current(),
            runtime: Handle::current().id(),
            started: Instant::now(),
            started_ms: AtomicU64::new(wall_ms()),
            random: AtomicU64::new(random_seed()),
        })
    }

    /// The node's runtime; none in a simulation.
    pub(crate) fn handle(&self) -> Option<Handle> {
        match self {
            Self::Tokio(tokio) => Some(tokio.handle.clone()),
            Self::Simulated(_) => None,
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(tokio) => drop(tokio.handle.spawn(task)),
            Self::Simulated(simulation) => simulation.spawn(Box::pin(task)),
        }
    }

    /// Runs work that may block its thread; at once in a simulation, which has one thread.
    pub(crate) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Tokio(tokio) => drop(tokio.handle.spawn_blocking(work)),
            Self::Simulated(_) => work(),
        }
    }

    /// Spawns the runtime's own housekeeping.
    pub(crate) fn spawn_in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(tokio) => drop(tokio.handle.spawn(task)),
            Self::Simulated(simulation) => simulation.spawn_in_background(Box::pin(task)),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Tokio(tokio) => tokio.started.elapsed(),
            Self::Simulated(simulation) => simulation.elapsed(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Tokio(tokio) => tokio.now(),
            Self::Simulated(simulation) => simulation.now(),
        }
    }

    pub(crate) fn sleep(&self, delay: Duration) -> Task {
        match self {
            Self::Tokio(tokio) => {
                // A sleep belongs to a runtime, and the caller may be a thread that is in none.
                let _entered = tokio.handle.enter();
                Box::pin(tokio::time::sleep(delay))
            }
            Self::Simulated(simulation) => simulation.sleep(delay),
        }
    }

    /// Sleeps as the runtime's housekeeping does.
    pub(crate) fn nap(&self, nap: Nap) -> Task {
        match (self, nap) {
            (Self::Simulated(simulation), Nap::Background(pause)) => {
                simulation.sleep_in_background(pause)
            }
            (Self::Simulated(simulation), Nap::Lookout { look, due }) => {
                let look = simulation.sleep_in_background(look);
                Box::pin(first_of(look, simulation.sleep(due)))
            }
            (_, Nap::Due(pause) | Nap::Background(pause) | Nap::Lookout { look: pause, .. }) => {
                self.sleep(pause)
            }
        }
    }

    /// Keys for hash tables: random, so that nobody can make keys collide; in a simulation by its
    /// seed, so that their order is too.
    pub(crate) fn hash_keys(&self) -> HashKeys {
        match self {
            Self::Tokio(_) => HashKeys::Random(RandomState::new()),
            Self::Simulated(simulation) => HashKeys::Fixed(simulation.hash_seed()),
        }
    }

    pub(crate) fn random_u64(&self) -> u64 {
        match self {
            Self::Tokio(tokio) => {
                split_mix(tokio.random.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed))
            }
            Self::Simulated(simulation) => simulation.random_u64(),
        }
    }

    /// Whether time is virtual.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// The world this node lives in, if it is simulated.
    pub(crate) fn simulation(&self) -> Option<&dyn Simulation> {
        match self {
            Self::Tokio(_) => None,
            Self::Simulated(simulation) => Some(&**simulation),
        }
    }

    /// Whether the calling thread is in the node's runtime.
    #[inline]
    pub(crate) fn is_entered(&self) -> bool {
        match self {
            Self::Tokio(tokio) => tokio.is_current(),
            Self::Simulated(_) => true,
        }
    }

    /// Whether a runtime can be made the current one: on a thread that is going away, it cannot.
    pub(crate) fn may_enter() -> bool {
        !Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed())
    }

    /// Makes the node's runtime the current one on a thread that is in none or in another.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        match self {
            Self::Tokio(tokio) if !tokio.is_current() => Some(Entered::new(&tokio.handle)),
            _ => None,
        }
    }

    /// Whether the calling thread is one on which the node's handlers may run: inside the node's
    /// own runtime, in a task or in `block_on`.
    #[inline]
    pub(crate) fn is_in_task(&self) -> bool {
        match self {
            Self::Tokio(tokio) => tokio.is_current(),
            Self::Simulated(simulation) => simulation.is_running(),
        }
    }

    /// As `sleep`, to be awaited in any runtime; over when the node's has ended.
    pub(crate) fn sleep_anywhere(&self, delay: Duration) -> Task {
        match self {
            Self::Tokio(_) => until_over(self.sleep(delay)),
            Self::Simulated(_) => self.sleep(delay),
        }
    }

    /// Where the caller is polled. A task keeps to its runtime, which is looked up outside of tasks
    /// only.
    pub(crate) fn whereabouts(&self) -> Whereabouts {
        let task = match self {
            Self::Tokio(_) => tokio::task::try_id(),
            Self::Simulated(_) => return Whereabouts { task: None, runtime: None },
        };
        let runtime = match task {
            Some(_) => None,
            None => Handle::try_current().ok().map(|current| current.id()),
        };
        Whereabouts { task, runtime }
    }

    /// Resolves once `delay` has passed, by the clock of whoever waits: a node's runtime may be
    /// gone, or driven by nobody.
    pub(crate) fn sleep_here(&self, delay: Duration) -> Task {
        match self {
            Self::Tokio(tokio) if tokio.is_current() => self.sleep(delay),
            Self::Tokio(_) if Handle::try_current().is_ok() => {
                shielded("a sleep outside the node's runtime", || -> Task {
                    Box::pin(tokio::time::sleep(delay))
                })
                // That runtime has no timers.
                .unwrap_or_else(|| until_over(self.sleep(delay)))
            }
            Self::Tokio(_) => until_over(self.sleep(delay)),
            Self::Simulated(_) => self.sleep(delay),
        }
    }
}

/// Where a future is polled: by which task, or in which runtime outside of tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    task: Option<tokio::task::Id>,
    runtime: Option<tokio::runtime::Id>,
}

/// The runtime of a node is the current one until this drops, also in a task of another runtime.
pub(crate) struct Entered<'a> {
    _entered: tokio::runtime::EnterGuard<'a>,
}

impl<'a> Entered<'a> {
    fn new(handle: &'a Handle) -> Self {
        AT_HOME.set(None);
        Self { _entered: handle.enter() }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // What was found meanwhile holds no longer.
        AT_HOME.set(None);
    }
}

thread_local! {
    /// The task and the node's runtime that were last found to belong together on this thread.
    static AT_HOME: Cell<Option<(tokio::task::Id, tokio::runtime::Id)>> = const { Cell::new(None) };
}

impl TokioEnv {
    /// Whether the calling thread is in the node's runtime. A task seldom changes its runtime
    /// (`Entered`), so it is looked up once per task in a row.
    #[inline]
    fn is_current(&self) -> bool {
        let Some(task) = tokio::task::try_id() else { return self.is_entered() };
        if AT_HOME.get() == Some((task, self.runtime)) {
            return true;
        }
        let is_entered = self.is_entered();
        if is_entered {
            AT_HOME.set(Some((task, self.runtime)));
        }
        is_entered
    }

    fn is_entered(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.runtime)
    }
}

/// A sleep by the timers of another runtime than the one that polls it, if there is one. It is over
/// when that runtime has ended: tokio panics then.
fn until_over(mut sleep: Task) -> Task {
    Box::pin(poll_fn(move |cx| {
        let what = "a sleep of a runtime that has ended";
        shielded(what, || sleep.as_mut().poll(cx)).unwrap_or(Poll::Ready(()))
    }))
}

/// Resolves with the first of the two.
pub(crate) async fn first_of(one: Task, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (one, pin!(other));
    poll_fn(|cx| match (one.as_mut().poll(cx), other.as_mut().poll(cx)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What SplitMix64 gives for a state.
fn split_mix(state: u64) -> u64 {
    mix(state.wrapping_add(GOLDEN_GAMMA))
}

fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Builds the hashers of a node's tables.
#[derive(Clone, Debug)]
pub(crate) enum HashKeys {
    Random(RandomState),
    Fixed(u64),
}

impl BuildHasher for HashKeys {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        match self {
            Self::Random(keys) => keys.build_hasher(),
            Self::Fixed(seed) => {
                let mut hasher = DefaultHasher::new();
                hasher.write_u64(*seed);
                hasher
            }
        }
    }
}
