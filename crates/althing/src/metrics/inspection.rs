//! Looks at living actors from outside: which are busy, which are behind. Costs nothing while
//! nobody looks.
//!
//! A quiet actor is passed by one plain load; only a mailbox with something in it is locked, for
//! the moment of reading its length. Past `VISITS_MAX` actors a look is a sample, taken from
//! another part of the directory each time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::actor_id::{ActorId, KindName};
use crate::address::place::{AnyPlace, Header};
use crate::metrics::{Counter, KindSnapshot, Snapshot};
use crate::node::shared::{Node, NodeShared};

/// Actors visited for a snapshot of metrics: about a millisecond.
const SNAPSHOT_VISITS: usize = 16_384;
/// Actors visited by an inspector: tens of milliseconds and 32 MB while it lives.
pub(super) const VISITS_MAX: usize = 1 << 20;

/// What one actor is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorView {
    /// Who it is.
    pub id: ActorId,
    /// Messages that wait.
    pub depth: usize,
    /// How long it has not taken a message that waits; in whole seconds, zero if none waits.
    pub oldest: Duration,
    /// Whether it has its state in memory.
    pub is_active: bool,
    /// Messages it has taken since the look before, or since it began if this is the first.
    pub handled: u32,
}

/// An actor at work, as the look before saw it.
pub(super) struct Seen {
    pub(super) tally: u32,
    pub(super) since: Duration,
}

/// What an inspector saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// Those that took the most messages since the look before, the busiest first.
    pub hot: Vec<ActorView>,
    /// Those with the most messages waiting, the deepest first.
    pub deep: Vec<ActorView>,
    /// Actors looked at.
    pub visited: usize,
}

/// Looks at the actors of a node again and again, and tells what happened in between.
///
/// ```
/// use althing::{Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("shop").build();
/// let counter = node.spawn(Counter::default());
/// counter.add(2).await?;
/// let inspection = node.inspector().look(10);
/// assert_eq!(inspection.visited, 1);
/// # Ok(())
/// # }
/// ```
pub struct Inspector {
    node: Arc<NodeShared>,
    /// Tallies of the look before, by serial.
    pub(super) before: HashMap<u64, u32>,
    /// Actors that were at work at the look before for long-running handlers, by serial.
    pub(super) at_work: HashMap<u64, Seen>,
}

impl Inspector {
    fn new(node: Arc<NodeShared>) -> Self {
        Self { node, before: HashMap::new(), at_work: HashMap::new() }
    }

    pub(crate) fn node(&self) -> &NodeShared {
        &self.node
    }

    /// The `limit` busiest actors since the look before, and the `limit` deepest mailboxes now.
    pub fn look(&mut self, limit: usize) -> Inspection {
        let now_s = self.node.tick_coarse();
        let mut hot = Top::new(limit);
        let mut deep = Top::new(limit);
        let mut tallies = HashMap::with_capacity(self.before.len());
        let visited = self.node.holdings().directory.sample(VISITS_MAX, |place| {
            let header = place.header();
            let tally = header.mailbox.tally();
            let before = self.before.get(&header.serial()).copied().unwrap_or(0);
            tallies.insert(header.serial(), tally);
            hot.offer(tally.wrapping_sub(before), place);
            deep.offer(u32::try_from(depth(header)).unwrap_or(u32::MAX), place);
        });
        let before = std::mem::replace(&mut self.before, tallies);
        let view = |place: Arc<dyn AnyPlace>| {
            let header = place.header();
            let known = self.before.get(&header.serial()).copied().unwrap_or(0);
            let handled = known.wrapping_sub(before.get(&header.serial()).copied().unwrap_or(0));
            view(header, handled, now_s)
        };
        Inspection {
            hot: hot.into_descending().into_iter().map(view).collect(),
            deep: deep.into_descending().into_iter().map(view).collect(),
            visited,
        }
    }
}

impl Node {
    /// Counters of each actor type, and what waits in the mailboxes.
    pub fn metrics(&self) -> Snapshot {
        let shared = self.shared();
        let mut kinds: Vec<_> = shared
            .holdings()
            .kinds
            .all()
            .iter()
            .map(|kind| kind.metrics.totals().into_snapshot(kind.id.clone()))
            .collect();
        kinds.sort_by(|one, other| one.name.cmp(&other.name));
        // Two types of one name, of which the second is refused, are one to whoever reads this.
        kinds.dedup_by(|later, earlier| {
            let is_same = later.name == earlier.name;
            if is_same {
                earlier.absorb(std::mem::take(later));
            }
            is_same
        });
        let visited = measure_mailboxes(shared, &mut kinds);
        Snapshot { kinds, visited }
    }

    /// Counts that changes of an actor were acknowledged and are lost, for whoever keeps its state:
    /// so does `althing-store` for what it was to write later and what its store did not take.
    pub fn count_lost(&self, id: &ActorId) {
        if let Some(kind) = self.shared().holdings().kinds.of_name(id.kind().as_str()) {
            kind.metrics.count(Counter::Lost);
        }
    }

    /// The names of all kinds of actors that the node knows by now, in no order.
    pub fn kinds(&self) -> Vec<KindName> {
        self.shared().holdings().kinds.all().iter().map(|kind| kind.id.clone()).collect()
    }

    /// An onlooker that finds hot actors and deep mailboxes.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.shared().clone())
    }
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("known", &self.before.len()).finish()
    }
}

/// Fills in what waits in the mailboxes of each type; returns how many were looked at.
fn measure_mailboxes(node: &Arc<NodeShared>, kinds: &mut [KindSnapshot]) -> usize {
    let now_s = node.tick_coarse();
    node.holdings().directory.sample(SNAPSHOT_VISITS, |place| {
        let header = place.header();
        let depth = depth(header);
        if depth == 0 {
            return;
        }
        // Sorted by name; actors of a type that was registered since then are left to the next
        // snapshot.
        if let Ok(index) = kinds.binary_search_by(|kind| kind.name.cmp(&header.kind.id)) {
            let kind = &mut kinds[index];
            kind.depth += depth as u64;
            kind.depth_max = kind.depth_max.max(depth as u64);
            kind.oldest = kind.oldest.max(since_active(header, now_s));
        }
    })
}

fn depth(header: &Header) -> usize {
    if header.mailbox.is_quiet() { 0 } else { header.mailbox.depth() }
}

fn since_active(header: &Header, now_s: u32) -> Duration {
    let last_s = header.last_active_s.load(Ordering::Relaxed);
    Duration::from_secs(now_s.saturating_sub(last_s).into())
}

pub(super) fn view(header: &Header, handled: u32, now_s: u32) -> ActorView {
    let inner = header.mailbox.lock();
    let (depth, is_active) = (inner.len(), inner.is_active());
    drop(inner);
    let oldest = if depth > 0 { since_active(header, now_s) } else { Duration::ZERO };
    ActorView { id: header.id(), depth, oldest, is_active, handled }
}

/// The actors with the highest scores, zero excluded.
struct Top {
    limit: usize,
    /// The lowest of those kept is on top; the serial keeps order total.
    heap: BinaryHeap<Reverse<(u32, u64)>>,
    places: HashMap<u64, Arc<dyn AnyPlace>>,
    /// Kept until the end: dropped under the directory's lock, a last reference could come back to
    /// it.
    displaced: Vec<Arc<dyn AnyPlace>>,
}

impl Top {
    fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new(), places: HashMap::new(), displaced: Vec::new() }
    }

    fn offer(&mut self, score: u32, place: &Arc<dyn AnyPlace>) {
        if score == 0 || self.limit == 0 {
            return;
        }
        if self.heap.len() == self.limit {
            let lowest = self.heap.peek().map_or(0, |lowest| lowest.0.0);
            if score <= lowest {
                return;
            }
            if let Some(Reverse((_, serial))) = self.heap.pop() {
                self.displaced.extend(self.places.remove(&serial));
            }
        }
        let serial = place.header().serial();
        self.heap.push(Reverse((score, serial)));
        self.places.insert(serial, place.clone());
    }

    fn into_descending(mut self) -> Vec<Arc<dyn AnyPlace>> {
        let ascending = self.heap.into_sorted_vec();
        ascending.iter().filter_map(|Reverse((_, serial))| self.places.remove(serial)).collect()
    }
}
