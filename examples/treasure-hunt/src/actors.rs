//! The actors: players and regions, which chaos may kill at any moment, sessions and the leader
//! board.
//!
//! Killing is safe because nothing but the log is trusted across a life: an actor's factory
//! rebuilds it from there, an act carries its number, and whoever asks again with the same number
//! gets the same answer.

mod at_once;
mod board;
mod courier;
mod errand;
mod player;
mod region;
mod session;
mod settled;

pub use at_once::at_once;
pub use board::{BoardActor, BoardActorCalls, Standing};
pub use courier::{CourierActor, CourierActorCalls, ROUND_LEN};
pub use errand::{Acted, Client, Errand};
pub use player::{Joining, PlayerActor, PlayerActorCalls};
pub use region::{RegionActor, RegionActorCalls, Survey, Totals, View};
pub(crate) use region::{changes, latest};
pub use session::{SessionActor, SessionActorCalls};
pub use settled::{Done, Setback, Settled, is_worth_a_retry};

use std::sync::Arc;

use althing::{Node, NodeBuilder};

use crate::world::World;

/// Starts a node with all actors of `world`.
pub fn start(world: &Arc<World>) -> Node {
    let node = register(Node::builder("treasure-hunt"), world).build();
    world.settle_on(&node);
    node
}

fn register(builder: NodeBuilder, world: &Arc<World>) -> NodeBuilder {
    let (players, regions) = (world.clone(), world.clone());
    builder
        .actor(move |start| PlayerActor::load(start, players.clone()))
        .actor(move |start| RegionActor::load(start, regions.clone()))
        .actor(|_| async { Ok(BoardActor::default()) })
        .actor(|_| async { Ok(CourierActor) })
}
