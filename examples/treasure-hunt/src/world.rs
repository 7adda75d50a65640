//! What all actors of a world share: the seed, the log, the arena, the counters, and who is played
//! by whom.

mod attendance;
mod counters;

use std::sync::OnceLock;

use althing::{ActorRef, Node};

pub use attendance::{Attendance, Seat, SocketId};
pub use counters::{Counter, Counters};

use crate::actors::{BoardActor, PlayerActor, RegionActor};
use crate::arena::Arena;
use crate::journal::Journal;
use crate::place::{PlayerId, RegionId};
use crate::sight::Block;

/// Couriers: more than there are cores to run them at once.
const COURIERS: u32 = 16;

/// One world.
#[derive(Debug)]
pub struct World {
    /// Everything about the ground follows from it.
    pub seed: u64,
    /// The event log.
    pub journal: Journal,
    /// Where the players' tile caches live.
    pub arena: Arena<Block>,
    /// What has happened, in numbers.
    pub counters: Counters,
    /// Who is played by which connection.
    pub attendance: Attendance,
    addresses: OnceLock<Addresses>,
}

#[derive(Debug)]
struct Addresses {
    node: Node,
    regions: Vec<ActorRef<RegionActor>>,
    board: ActorRef<BoardActor>,
}

impl World {
    /// A world whose actors are not known yet.
    pub fn new(seed: u64, journal: Journal, attendance: Attendance) -> Self {
        Self {
            seed,
            journal,
            arena: Arena::new(),
            counters: Counters::default(),
            attendance,
            addresses: OnceLock::new(),
        }
    }

    /// Says which node its actors live on; once, before any of them is asked.
    pub fn settle_on(&self, node: &Node) {
        let regions = RegionId::all().map(|region| node.get(region.number().to_string()));
        let addresses = Addresses {
            node: node.clone(),
            regions: regions.collect(),
            board: node.get::<BoardActor>("board"),
        };
        let couriers = (0..COURIERS).map(|number| node.get(number.to_string()));
        self.journal.deliver_by(couriers.collect());
        self.addresses.set(addresses).expect("a world settles once");
    }

    fn addresses(&self) -> &Addresses {
        self.addresses.get().expect("a world settles before it is used")
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.addresses().node
    }

    /// A region's actor.
    pub fn region(&self, region: RegionId) -> &ActorRef<RegionActor> {
        &self.addresses().regions[region.index()]
    }

    /// A player's actor.
    pub fn player(&self, player: PlayerId) -> ActorRef<PlayerActor> {
        self.node().get(player.0.to_string())
    }

    /// The leader board.
    pub fn board(&self) -> &ActorRef<BoardActor> {
        &self.addresses().board
    }
}
