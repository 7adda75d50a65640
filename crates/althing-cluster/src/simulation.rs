//! A whole cluster in one thread: the step functions of this crate under a seeded network, seeded
//! clocks and seeded faults.
//!
//! Links break, lose what is under way, or join no two nodes for a while; the authority's messages
//! are lost in both directions or in one, doubled, and overtake each other; clocks run at different
//! rates from different beginnings; nodes are paused, killed and started again, and what a killed
//! one had sent still arrives. Candidates for being the authority die, hang and go on late; their
//! store is away, does what it was asked without a word or long after it was given up, and its clock
//! jumps. What the drivers do with effects is done here by `node` and `world`, with the mailboxes
//! that the runtime has.

mod checks;
mod node;
mod world;

use self::world::{Faults, World};

/// Seeds of each test, unless `CLUSTER_SEEDS` says how many; few, because each takes seconds
/// without optimization. They begin with 0, or with what `CLUSTER_FROM` says. A failing one is
/// printed and is run alone, and told line by line, by `CLUSTER_SEED`. What has gone wrong before
/// stands in `router::tests`.
const SEEDS: u64 = 5;

fn sweep(faults: Faults) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match number("CLUSTER_SEED") {
        Some(seed) => vec![seed],
        None => {
            let first = number("CLUSTER_FROM").unwrap_or(0);
            let count = number("CLUSTER_SEEDS").unwrap_or(SEEDS);
            (first..first.saturating_add(count)).collect()
        }
    };
    let count = seeds.len();
    let mut ran = 0;
    for seed in seeds {
        println!("seed {seed}");
        ran += World::new(seed, faults).run();
    }
    println!("{count} seeds, {ran} messages");
}

#[test]
fn nothing_is_lost_doubled_or_reordered_while_nodes_join_and_leave_over_links_that_break() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 1_000,
        apart: true,
        ..Faults::default()
    });
}

#[test]
fn no_bucket_has_two_owners_though_nodes_are_killed_paused_and_cut_off() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 20_000,
        kills: true,
        partitions: true,
        apart: true,
        leaders_change: true,
        clocks_jump: true,
        upheavals: false,
    });
}

#[test]
fn nothing_is_lost_while_many_nodes_leave_at_once_or_are_drained_and_actors_take_long_to_stop() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 1_000,
        apart: true,
        leaders_change: true,
        upheavals: true,
        ..Faults::default()
    });
}

#[test]
fn no_bucket_has_two_owners_though_all_faults_meet_nodes_that_leave_many_at_once() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 20_000,
        kills: true,
        partitions: true,
        apart: true,
        leaders_change: true,
        clocks_jump: true,
        upheavals: true,
    });
}

#[test]
fn no_member_is_evicted_and_nothing_is_lost_though_leaders_die_and_hang_and_the_store_is_away() {
    sweep(Faults {
        joins_and_leaves: true,
        cuts: true,
        pauses_ms: 500,
        leaders_change: true,
        ..Faults::default()
    });
}
