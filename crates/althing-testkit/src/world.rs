//! The world as a test holds it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use althing::{Actor, Fault, Node, NodeBuilder};

use crate::client::Client;
use crate::clock::Ground;
use crate::core::Core;
use crate::faults::Often;
use crate::report;
use crate::trace::Trace;

/// Virtual time that a run may take: six weeks, more than any timer of a test.
const TIME_LIMIT: Duration = Duration::from_secs(1_000 * 3_600);

/// A deterministic world. Cheap to clone; clones are the same world, and with the last of them its
/// nodes end.
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
///     (world.elapsed(), world.fingerprint())
/// };
/// assert_eq!(day(7), day(7));
/// assert_eq!(day(7).0, Duration::from_secs(86_400));
/// ```
#[derive(Clone)]
pub struct World {
    owner: Arc<Owner>,
}

/// Ends the world with its last handle.
struct Owner {
    core: Arc<Core>,
}

impl World {
    /// A world whose schedule, time and randomness follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::of(Core::new(seed, false))
    }

    /// A world of one of many seeds.
    pub(crate) fn swept(seed: u64) -> Self {
        Self::of(Core::new(seed, true))
    }

    fn of(core: Core) -> Self {
        Self { owner: Arc::new(Owner { core: Arc::new(core) }) }
    }

    fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// The number that everything here follows from.
    pub fn seed(&self) -> u64 {
        self.core().seed
    }

    /// Starts building a node in this world.
    pub fn node(&self, name: &str) -> NodeBuilder {
        Node::builder(name).simulation(self.core().add_member(name))
    }

    /// Ends a node as if its process were killed: its tasks are dropped where they stand, no hook
    /// runs, the state of its actors is gone. Asks that wait for it fail, and its addresses refuse
    /// from then on. A node of the same name may be built after it.
    ///
    /// # Panics
    /// If the node is not of this world.
    pub fn crash(&self, node: &Node) {
        let members = self.core().members.lock().clone();
        let member = members.iter().find(|member| member.node().as_ref() == Some(node));
        member.expect("the node is of this world").crash();
    }

    /// Runs `future` beside the test's own: it acts whenever the seed says so. Await the client for
    /// its output.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Client<T> {
        let (client, task) = Client::new(future);
        self.core().tasks.add(Box::pin(task), None, Ground::Fore);
        client
    }

    /// Resolves once `delay` has passed, whatever becomes of any node.
    pub fn sleep(&self, delay: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.core().clock.sleep(delay, Ground::Fore)
    }

    /// Time since the world began.
    pub fn elapsed(&self) -> Duration {
        self.core().clock.now()
    }

    /// A number of the test's own choice by the seed; draws of actors and of the schedule do not
    /// depend on it.
    pub fn random_u64(&self) -> u64 {
        self.core().test_random.lock().next()
    }

    /// What has happened so far, in words.
    pub fn trace(&self) -> Trace {
        self.core().recorder.lock().trace()
    }

    /// A number that stands for every choice made and every step taken so far: the same seed and
    /// program give the same one.
    pub fn fingerprint(&self) -> u64 {
        self.core().recorder.lock().fingerprint()
    }

    /// Sets how much memory nodes with a memory budget believe the process uses.
    pub fn set_resident_bytes(&self, bytes: u64) {
        *self.core().resident_bytes.lock() = Some(bytes);
    }

    /// Sets how often tasks may be polled before virtual time must go on; the default is a million.
    /// Tasks that wake each other for ever fail the test there.
    pub fn set_polls_at_once_max(&self, polls: u64) {
        self.core().polls_at_once_max.store(polls, Ordering::Relaxed);
    }

    /// Runs `future`, and whatever it starts, until it ends.
    ///
    /// # Panics
    /// If everybody waits and nobody is left who could wake them; if the test takes more than 1,000
    /// hours of virtual time, or more polls than it may; if a fault was asked for that no message
    /// has met. The message names the seed, and the last steps are printed. So they are if `future`
    /// or the future of a client panics.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.run_for(TIME_LIMIT, future)
    }

    /// As `run`, with another limit of virtual time.
    ///
    /// # Panics
    /// As `run`.
    pub fn run_for<T>(&self, limit: Duration, future: impl Future<Output = T>) -> T {
        let output = self.core().run(limit, future);
        if self.core().checks_faults.load(Ordering::Relaxed) {
            report::unmet_faults(self.core());
        }
        output
    }

    /// Makes the next `times` messages of type `M` to actors of type `A` panic where their handler
    /// would begin.
    pub fn panic_next<A: Actor, M: 'static>(&self, times: u32) {
        self.core().faults.add::<A, M>(Often::Next(times), Fault::Panic);
    }

    /// Makes messages of type `M` to actors of type `A` panic where their handler would begin, each
    /// with that chance.
    pub fn panic_sometimes<A: Actor, M: 'static>(&self, per_mille: u32) {
        self.core().faults.add::<A, M>(Often::PerMille(per_mille), Fault::Panic);
    }

    /// Delays the next `times` messages of type `M` to actors of type `A`; those behind them wait
    /// too.
    pub fn delay_next<A: Actor, M: 'static>(&self, times: u32, delay: Duration) {
        self.core().faults.add::<A, M>(Often::Next(times), Fault::Delay(delay));
    }

    /// Delays messages of type `M` to actors of type `A`, each with that chance; those behind them
    /// wait too.
    pub fn delay_sometimes<A: Actor, M: 'static>(&self, per_mille: u32, delay: Duration) {
        self.core().faults.add::<A, M>(Often::PerMille(per_mille), Fault::Delay(delay));
    }

    /// Refuses the next `times` messages of type `M` to actors of type `A`: asks get
    /// `AskError::Rejected`, tells are lost.
    pub fn refuse_next<A: Actor, M: 'static>(&self, times: u32) {
        self.core().faults.add::<A, M>(Often::Next(times), Fault::Refuse);
    }

    /// Refuses messages of type `M` to actors of type `A`, each with that chance.
    pub fn refuse_sometimes<A: Actor, M: 'static>(&self, per_mille: u32) {
        self.core().faults.add::<A, M>(Often::PerMille(per_mille), Fault::Refuse);
    }

    /// Ends all faults.
    pub fn clear_faults(&self) {
        self.core().faults.clear();
    }

    /// Lets a run end well though some fault has met no message.
    pub fn allow_unmet_faults(&self) {
        self.core().checks_faults.store(false, Ordering::Relaxed);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // What is dropped may panic, and a second panic would take the process along.
        if !std::thread::panicking() {
            self.core.end();
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("seed", &self.seed()).finish_non_exhaustive()
    }
}
