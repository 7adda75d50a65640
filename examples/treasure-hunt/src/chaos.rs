//! Kills players and regions at random, the whole time, as a failing machine would: without
//! warning, in the middle of things.

use std::sync::Arc;
use std::time::Duration;

use crate::map::mix;
use crate::place::RegionId;
use crate::world::World;

/// One in so many players and regions dies in each period.
const ONE_IN: u64 = 10;
/// Blows per period: deaths are spread over it.
const BLOWS: u32 = 30;

/// Kills a tenth of all players and regions in each `period`, until dropped.
pub async fn rage(world: Arc<World>, period: Duration) {
    let node = world.node().clone();
    let mut luck = node.now().0;
    let mut dice = move |sides: u64| {
        luck = mix(luck);
        luck.is_multiple_of(sides)
    };
    loop {
        node.sleep(period / BLOWS).await;
        let sides = ONE_IN * u64::from(BLOWS);
        for player in world.attendance.players() {
            if dice(sides) {
                world.player(player).kill();
                world.counters.killed.count();
            }
        }
        for region in RegionId::all() {
            if dice(sides) && world.region(region).is_active() {
                world.region(region).kill();
                world.counters.killed.count();
            }
        }
    }
}
