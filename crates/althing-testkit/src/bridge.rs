//! Several nodes in one process that reach each other's actors, through encode and decode and no
//! network.
//!
//! The bridge is a [`Cluster`]: it says where each actor lives and carries parcels. Everything
//! crosses as bytes, so what works over the bridge works over a wire. It has no failures of its
//! own; what a test cuts, it says ([`Bridge::lose`]).
//!
//! Order: parcels to one node pass one queue, which a courier actor of that node empties. While an
//! actor moves, parcels for it go on to its former node, which forwards them, until that node's
//! queue is empty: so nothing overtakes what was sent before.

mod courier;
mod frame;
mod relay;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use althing::remote::{Cargo, Cluster, Control, Location, Message, Parcel, Reply};
use althing::{ActorId, ActorRef, AskError, Epoch, Incarnation, Node, StopReason, WeakNode, Wire};
use parking_lot::Mutex;

use self::courier::{Courier, Crossing};
use self::frame::{Frame, Outcome};

/// Parcels on their way to one node from which on senders wait.
const CROSSING_MAX: usize = 1_024;

/// A way between the nodes that are built with [`Bridge::end`]. Cheap to clone.
///
/// An actor lives on the node that joined first, until [`Bridge::settle`] or [`Bridge::carry`] says
/// otherwise.
///
/// ```
/// use althing::{Node, actor};
/// use althing_testkit::{Bridge, World};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter", wire)]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// let (world, bridge) = (World::new(1), Bridge::new());
/// let here = |name| world.node(name).cluster(bridge.end()).actor(async |_| Ok(Counter::default()));
/// let (one, two) = (here("one").build(), here("two").build());
/// world.run(async {
///     one.get::<Counter>("alice").add(2).await.expect("it lives here");
///     let total = two.get::<Counter>("alice").add(3).await;
///     assert_eq!(total, Ok(5), "the same actor, over the bridge");
/// });
/// ```
#[derive(Clone, Default)]
pub struct Bridge {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    routes: Mutex<Routes>,
}

#[derive(Default)]
struct Routes {
    /// In the order in which they joined.
    joined: Vec<Incarnation>,
    nodes: BTreeMap<Incarnation, Joined>,
    homes: HashMap<ActorId, Home>,
    asks: HashMap<u64, Asked>,
    next_ask: u64,
}

struct Joined {
    node: WeakNode,
    courier: ActorRef<Courier>,
    crossing: usize,
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy)]
struct Home {
    node: Incarnation,
    epoch: Epoch,
    /// Where it lived before, as long as parcels are on their way there.
    former: Option<Incarnation>,
}

/// An ask that crossed and has no reply yet.
struct Asked {
    of: Incarnation,
    id: ActorId,
    reply: Reply,
}

/// One node's end of the bridge.
struct End {
    shared: Arc<Shared>,
    me: OnceLock<Incarnation>,
}

impl Bridge {
    /// A bridge without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// An end for one node, for `NodeBuilder::cluster`.
    pub fn end(&self) -> Arc<dyn Cluster> {
        Arc::new(End { shared: self.shared.clone(), me: OnceLock::new() })
    }

    /// Says that an actor that is not in memory anywhere lives on `node`.
    pub fn settle(&self, id: &ActorId, node: &Node) {
        self.shared.settle(id, node.incarnation(), None);
        self.relocate();
    }

    /// Moves an actor to another node: it is sealed where it runs, its `stopping` hook runs there,
    /// and what waits for it follows it. It starts on the other node with its next message.
    pub async fn carry(&self, id: &ActorId, to: &Node) {
        let home = self.shared.home(id);
        let Some(former) = home.and_then(|home| self.shared.node(home.node)) else { return };
        let mut sealed = former.seal(id).await;
        self.shared.settle(id, to.incarnation(), Some(former.incarnation()));
        loop {
            if let Some(sealed) = sealed {
                sealed.depart().await;
            }
            if !former.relocate().contains(id) {
                break;
            }
            // A message has started it since.
            sealed = former.seal(id).await;
        }
        let courier = self.shared.courier(former.incarnation());
        if let Some(courier) = courier {
            // Ready once nothing is on its way to the former node any more.
            _ = courier.send(courier::Settled(id.clone())).await;
        }
        self.relocate();
    }

    /// Says that a node is gone: whoever asked one of its actors or watches one hears so. What the
    /// node says from then on reaches nobody. Where its process is to end too, `World::crash` comes
    /// after this.
    pub fn lose(&self, node: &Node) {
        let lost = node.incarnation();
        let (asks, ids, others) = {
            let mut routes = self.shared.routes.lock();
            routes.nodes.remove(&lost);
            routes.joined.retain(|joined| *joined != lost);
            let asks: Vec<_> = routes.asks.extract_if(|_, asked| asked.of == lost).collect();
            let is_of_lost = |home: &Home| home.node == lost;
            let ids: Vec<_> =
                routes.homes.extract_if(|_, home| is_of_lost(home)).map(|(id, _)| id).collect();
            let others: Vec<_> = routes.nodes.values().filter_map(|at| at.node.upgrade()).collect();
            (asks, ids, others)
        };
        for (_, asked) in asks {
            (asked.reply)(Err(AskError::NodeLost(asked.id)));
        }
        for other in others {
            for id in &ids {
                let cargo =
                    Cargo::Control(Control::Ended { reason: StopReason::NodeLost, number: 0 });
                let parcel = Parcel { to: id.clone(), node: Some(other.incarnation()), cargo };
                _ = other.deliver(parcel);
            }
            other.relocate();
        }
    }

    fn relocate(&self) {
        let nodes: Vec<_> = {
            let routes = self.shared.routes.lock();
            routes.nodes.values().filter_map(|at| at.node.upgrade()).collect()
        };
        for node in nodes {
            node.relocate();
        }
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes = self.shared.routes.lock().nodes.len();
        f.debug_struct("Bridge").field("nodes", &nodes).finish()
    }
}

impl Shared {
    fn home(&self, id: &ActorId) -> Option<Home> {
        self.routes.lock().home(id)
    }

    fn node(&self, node: Incarnation) -> Option<Node> {
        self.routes.lock().nodes.get(&node).and_then(|at| at.node.upgrade())
    }

    fn courier(&self, node: Incarnation) -> Option<ActorRef<Courier>> {
        self.routes.lock().nodes.get(&node).map(|at| at.courier.clone())
    }

    fn settle(&self, id: &ActorId, node: Incarnation, former: Option<Incarnation>) {
        let mut routes = self.routes.lock();
        let epoch = routes.home(id).map_or(Epoch(1), |home| home.epoch.next());
        routes.homes.insert(id.clone(), Home { node, epoch, former });
    }

    /// Puts a parcel into the queue of a node.
    fn send(&self, from: Incarnation, parcel: Parcel) {
        let mut routes = self.routes.lock();
        if !routes.nodes.contains_key(&from) {
            // What a lost node says reaches nobody.
            return drop(routes);
        }
        let home = routes.home(&parcel.to);
        let to = match (parcel.node, home) {
            (Some(node), _) => Some(node),
            // Its former node knows best what is still on its way.
            (None, Some(Home { former: Some(former), .. })) if former != from => Some(former),
            (None, home) => home.map(|home| home.node),
        };
        let Some(to) = to.filter(|to| routes.nodes.contains_key(to)) else {
            // Dropped or answered after the lock: replies are foreign.
            drop(routes);
            return fail(parcel, AskError::NodeLost);
        };
        let frame = routes.pack(from, to, parcel);
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let at = routes.nodes.get_mut(&to).expect("looked up above");
        at.crossing += 1;
        let courier = at.courier.clone();
        // Under the lock, so that parcels arrive in the order in which they were sent; a courier's
        // mailbox has no bound.
        _ = courier.send(Crossing(bytes)).try_tell();
    }

    /// Takes the reply of an ask that crossed.
    fn answer(&self, ask: u64, bytes: &[u8]) {
        let asked = self.routes.lock().asks.remove(&ask);
        let Some(asked) = asked else { return };
        (asked.reply)(match Outcome::decode(bytes) {
            Ok(Outcome::Replied(reply)) => Ok(reply),
            Ok(Outcome::Failed(why)) => Err(why),
            Err(error) => Err(AskError::NotUnderstood(asked.id, error.to_string())),
        });
    }
}

impl Routes {
    fn home(&self, id: &ActorId) -> Option<Home> {
        if let Some((node, _)) = id.origin() {
            return Some(Home { node, epoch: Epoch(1), former: None });
        }
        let first = || {
            let node = *self.joined.first()?;
            Some(Home { node, epoch: Epoch(1), former: None })
        };
        self.homes.get(id).copied().or_else(first)
    }

    fn pack(&mut self, from: Incarnation, to: Incarnation, parcel: Parcel) -> Frame {
        let Parcel { to: id, node, cargo } = parcel;
        let frame = Frame::about(id.clone(), node, from);
        match cargo {
            Cargo::Control(control) => Frame { control: Some(control), ..frame },
            Cargo::Message(Message { name, body, priority, chain, reply }) => {
                let ask = reply.map(|reply| {
                    self.next_ask += 1;
                    self.asks.insert(self.next_ask, Asked { of: to, id, reply });
                    self.next_ask
                });
                Frame { name, body, chain, ask, ..frame }.with_priority(priority)
            }
        }
    }
}

impl Cluster for End {
    fn locate(&self, id: &ActorId) -> Location {
        match (self.shared.home(id), self.me.get()) {
            (Some(home), Some(me)) if home.node != *me => Location::Elsewhere,
            (Some(Home { former: Some(_), epoch, .. }), _) => Location::Arriving(epoch),
            (home, _) => Location::Here(home.map_or(Epoch(1), |home| home.epoch)),
        }
    }

    fn poll_room(&self, to: &ActorId, cx: &mut Context<'_>) -> Poll<()> {
        let mut routes = self.shared.routes.lock();
        let home = routes.home(to);
        let Some(at) = home.and_then(|home| routes.nodes.get_mut(&home.node)) else {
            return Poll::Ready(());
        };
        if at.crossing < CROSSING_MAX {
            return Poll::Ready(());
        }
        at.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn send(&self, parcel: Parcel) {
        if let Some(me) = self.me.get() {
            self.shared.send(*me, parcel);
        }
    }

    fn has(&self, node: Incarnation) -> bool {
        self.shared.routes.lock().nodes.contains_key(&node)
    }

    fn built(&self, node: &Node) {
        let me = node.incarnation();
        _ = self.me.set(me);
        let courier = node.spawn(Courier::new(self.shared.clone(), me));
        let joined = Joined { node: node.downgrade(), courier, crossing: 0, waiting: Vec::new() };
        let mut routes = self.shared.routes.lock();
        routes.joined.push(me);
        routes.nodes.insert(me, joined);
    }
}

fn fail(parcel: Parcel, why: fn(ActorId) -> AskError) {
    if let Cargo::Message(Message { reply: Some(reply), .. }) = parcel.cargo {
        reply(Err(why(parcel.to)));
    }
}
