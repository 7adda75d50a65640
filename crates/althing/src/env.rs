//! The one source of tasks, time and randomness of a node.
//!
//! On tokio, time is tokio's, so that its paused clock works in tests. A simulation brings its own `Simulation`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::time::Instant;

/// A boxed task.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wall-clock time: milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

/// A world of its own for deterministic tests: tasks, time and randomness.
pub trait Simulation: Send + Sync + 'static {
    /// Runs a task.
    fn spawn(&self, task: Task);
    /// Time since the simulation began.
    fn elapsed(&self) -> Duration;
    /// Wall-clock time, milliseconds since 1970.
    fn now(&self) -> Timestamp;
    /// Resolves once `delay` has passed.
    fn sleep(&self, delay: Duration) -> Task;
    /// The next random number.
    fn random_u64(&self) -> u64;
    /// Whether the calling thread is running one of its tasks, so that idle actors may run in place.
    fn is_running(&self) -> bool;
    /// What shall happen to the next handler of an actor type; asked only for messages that do not run in place.
    fn fault(&self, _actor: &str, _message: &str) -> Fault {
        Fault::None
    }
}

/// What a simulation does to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The handler panics before its first line.
    Panic,
    /// The handler begins later.
    Delay(Duration),
}

pub(crate) enum Env {
    Tokio(TokioEnv),
    Simulated(Arc<dyn Simulation>),
}

pub(crate) struct TokioEnv {
    handle: Handle,
    started: Instant,
    started_ms: u64,
    random: AtomicU64,
}

impl Env {
    /// The environment of the current tokio runtime.
    pub(crate) fn tokio() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Tokio(TokioEnv {
            handle: Handle::current(),
            started: Instant::now(),
            started_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            random: AtomicU64::new(random_seed()),
        })
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

    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Tokio(tokio) => tokio.started.elapsed(),
            Self::Simulated(simulation) => simulation.elapsed(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Tokio(tokio) => {
                let elapsed = u64::try_from(tokio.started.elapsed().as_millis());
                Timestamp(tokio.started_ms.saturating_add(elapsed.unwrap_or(u64::MAX)))
            }
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

    /// Makes the node's runtime the current one on a thread that runs none of its tasks.
    pub(crate) fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        match self {
            Self::Tokio(tokio) if tokio::task::try_id().is_none() => Some(tokio.handle.enter()),
            _ => None,
        }
    }

    /// Whether the calling thread is running a task, so that a handler may run in place.
    #[inline]
    pub(crate) fn is_in_task(&self) -> bool {
        match self {
            Self::Tokio(_) => tokio::task::try_id().is_some(),
            Self::Simulated(simulation) => simulation.is_running(),
        }
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn split_mix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN_GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
