//! One node of a world, as the runtime sees it: its tasks, its time, and what it tells of its
//! actors.
//!
//! Each node has a member of its own, so that a crash takes what belongs to it and nothing else.
//! What nodes will send each other, and what they keep on disk, belongs here too: between two
//! members, and in what outlives one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use althing::{ActorId, Fault, Node, Simulation, Step, Task, Timestamp, WeakNode};
use parking_lot::Mutex;

use crate::clock::Ground;
use crate::core::Core;
use crate::trace::Scene;

/// Wall-clock time at which every world begins: 2020-01-01 in UTC, in milliseconds since 1970.
const BEGINNING_MS: u64 = 1_577_836_800_000;

/// Names a node of a world; never reused, also not by a later node of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemberId(pub(crate) u32);

/// A node's part of the world.
pub(crate) struct Member {
    pub(crate) id: MemberId,
    name: Arc<str>,
    core: Arc<Core>,
    node: Mutex<Option<WeakNode>>,
    has_crashed: AtomicBool,
}

impl Member {
    pub(crate) fn new(id: MemberId, name: &str, core: Arc<Core>) -> Self {
        let (name, node, has_crashed) = (name.into(), Mutex::default(), AtomicBool::new(false));
        Self { id, name, core, node, has_crashed }
    }

    /// The node, if it stands.
    pub(crate) fn node(&self) -> Option<Node> {
        self.node.lock().as_ref().and_then(WeakNode::upgrade)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Ends the node as its process would end: its tasks are dropped where they are, its actors
    /// without a word.
    pub(crate) fn crash(&self) {
        if self.has_crashed.swap(true, Ordering::Relaxed) {
            return;
        }
        self.core.recorder.lock().crash(&self.scene(None));
        self.core.tasks.drop_those_of(Some(self.id));
        if let Some(node) = self.node() {
            node.kill();
        }
    }

    fn has_crashed(&self) -> bool {
        self.has_crashed.load(Ordering::Relaxed)
    }

    fn scene<'a>(&'a self, actor: Option<&'a ActorId>) -> Scene<'a> {
        Scene { at: self.core.clock.now(), member: self.id, node: &self.name, actor }
    }

    fn add(&self, task: Task, ground: Ground) {
        // A crashed node's last tasks are dropped here, which ends the lives they stand for.
        if !self.has_crashed() {
            self.core.tasks.add(task, Some(self.id), ground);
        }
    }

    fn sleep_on(&self, delay: Duration, ground: Ground) -> Task {
        if self.has_crashed() {
            return Box::pin(std::future::pending());
        }
        Box::pin(self.core.clock.sleep(delay, ground))
    }
}

impl Simulation for Member {
    fn spawn(&self, task: Task) {
        self.add(task, Ground::Fore);
    }

    fn spawn_in_background(&self, task: Task) {
        self.add(task, Ground::Back);
    }

    fn elapsed(&self) -> Duration {
        self.core.clock.now()
    }

    fn now(&self) -> Timestamp {
        let elapsed_ms = u64::try_from(self.core.clock.now().as_millis()).unwrap_or(u64::MAX);
        Timestamp(BEGINNING_MS.saturating_add(elapsed_ms))
    }

    fn sleep(&self, delay: Duration) -> Task {
        self.sleep_on(delay, Ground::Fore)
    }

    fn sleep_in_background(&self, delay: Duration) -> Task {
        self.sleep_on(delay, Ground::Back)
    }

    fn random_u64(&self) -> u64 {
        self.core.random.lock().next()
    }

    fn hash_seed(&self) -> u64 {
        self.core.seed
    }

    fn resident_bytes(&self) -> Option<u64> {
        *self.core.resident_bytes.lock()
    }

    fn is_running(&self) -> bool {
        self.core.is_running.load(Ordering::Relaxed) && !self.has_crashed()
    }

    fn fault(&self, actor: &ActorId, message: &'static str) -> Fault {
        let fault = self.core.faults.decide(
            actor.kind().as_str(),
            message,
            &mut self.core.fault_random.lock(),
        );
        if fault != Fault::None {
            self.core.recorder.lock().fault(&self.scene(Some(actor)), message, fault);
        }
        fault
    }

    fn observe(&self, actor: Option<&ActorId>, step: &Step<'_>) {
        self.core.recorder.lock().step(&self.scene(actor), step);
    }

    fn built(&self, node: &Node) {
        *self.node.lock() = Some(node.downgrade());
    }
}
