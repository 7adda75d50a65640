//! A whole cluster in one thread: the step functions of this crate under a seeded network, seeded
//! clocks and seeded faults.
//!
//! Links break and lose what is under way, the authority's messages are lost, doubled by repetition
//! and overtake each other, clocks run at different rates from different beginnings, nodes are
//! paused, killed and started again, the authority stops and comes back from its disk. What the
//! drivers do with effects is done here by `node`, with the mailboxes that the runtime has.

mod checks;
mod node;
mod world;

use self::world::{Faults, World};

/// Seeds of each test; a failing one is printed and can be run alone by `CLUSTER_SEED`.
const SEEDS: u64 = 40;

fn sweep(faults: Faults) {
    let only = std::env::var("CLUSTER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        println!("seed {seed}");
        World::new(seed, faults).run();
    }
}

#[test]
fn nothing_is_lost_doubled_or_reordered_while_nodes_join_and_leave_over_links_that_break() {
    sweep(Faults { joins_and_leaves: true, cuts: true, pauses_ms: 1_000, ..Faults::default() });
}

#[test]
fn no_bucket_has_two_owners_though_nodes_are_killed_paused_and_cut_off() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 20_000,
        kills: true,
        partitions: true,
        authority_stops: true,
    });
}
