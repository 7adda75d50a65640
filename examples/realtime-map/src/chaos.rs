//! The chaos switch: kills actors at random while everything runs, without warning and without
//! their last word.
//!
//! A killed vehicle comes back with its next position and what the store had of it; an organisation
//! counts anew, a fence too. Kills are announced in the log.

use std::sync::Arc;
use std::time::Duration;

use althing::Node;

use crate::geofence::Geofence;
use crate::organization::Organization;
use crate::vehicle::Vehicle;
use crate::world::World;

/// Runs until dropped.
pub(crate) async fn run(node: Node, world: Arc<World>, every: Duration) {
    let mut turn = 0_usize;
    loop {
        node.sleep(every).await;
        turn += 1;
        let random = random_number(&node);
        // Two vehicles for each of the few others.
        match turn % 4 {
            0 if !world.city.fences.is_empty() => {
                let fence = &world.city.fences[random % world.city.fences.len()].id;
                node.get::<Geofence>(fence).kill();
                tracing::warn!(%fence, "chaos kills a geofence");
            }
            2 if !world.city.routes.is_empty() => {
                let operator = world.city.routes[random % world.city.routes.len()].operator;
                node.get::<Organization>(operator.to_string()).kill();
                tracing::warn!(operator, "chaos kills an organisation");
            }
            _ => {
                let Some(id) = world.store.any_known(random) else { continue };
                node.get::<Vehicle>(id).kill();
                tracing::warn!(%id, "chaos kills a vehicle");
            }
        }
    }
}

fn random_number(node: &Node) -> usize {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(node.elapsed()) as usize
}
