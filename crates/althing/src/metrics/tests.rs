//! The counters' own promises, without actors.

use super::shard::SAMPLE_EVERY;
use super::*;
use crate::address::actor_id::KindName;

fn name() -> &'static str {
    "Message"
}

/// Counts `messages` as a runner does.
fn handle(metrics: &KindMetrics, messages: u64) {
    for _ in 0..messages {
        let shard = metrics.shard().expect("metrics are on");
        if shard.handle() {
            shard.record(name, 1_000);
        }
    }
}

#[test]
fn no_count_is_lost_when_threads_end() {
    let metrics = KindMetrics::new(Metrics::On);
    for round in 1..=4 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| handle(&metrics, 1_000));
            }
        });
        let kind = metrics.totals().into_snapshot(KindName::new("test"));
        assert_eq!(kind.handled, round * 8_000);
    }
}

#[test]
fn threads_beyond_the_slots_share_a_shard_and_lose_nothing() {
    let metrics = KindMetrics::new(Metrics::On);
    let threads = slot::SHARED as u64 + 8;
    let barrier = std::sync::Barrier::new(slot::SHARED + 8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                handle(&metrics, 1);
                // All are alive at once, so that some found no slot.
                barrier.wait();
                handle(&metrics, 999);
            });
        }
    });
    assert_eq!(metrics.totals().into_snapshot(KindName::new("test")).handled, threads * 1_000);
    assert!(metrics.shards[slot::SHARED].get().is_some(), "nobody had to share");
}

#[test]
fn one_message_in_each_interval_is_timed_on_each_thread() {
    let metrics = KindMetrics::new(Metrics::On);
    let per_thread = [1, SAMPLE_EVERY, SAMPLE_EVERY + 1, 10 * SAMPLE_EVERY];
    let counted = &metrics;
    std::thread::scope(|scope| {
        for messages in per_thread {
            // Joined one by one, each thread gets the same slot and goes on where the last one
            // stopped.
            scope.spawn(move || handle(counted, messages)).join().expect("counts without panic");
        }
    });
    let kind = metrics.totals().into_snapshot(KindName::new("test"));
    let shards = metrics.shards.iter().filter_map(OnceLock::get);
    let timed: u64 = shards.map(|shard| shard.handled().div_ceil(SAMPLE_EVERY)).sum();
    assert_eq!(kind.handled, per_thread.iter().sum::<u64>());
    assert_eq!(kind.handling.count(), timed);
    assert_eq!(kind.messages.len(), 1);
    assert_eq!(kind.messages[0].sampled, timed);
    assert_eq!(kind.messages[0].max, std::time::Duration::from_micros(1));
}

#[test]
fn a_message_put_aside_is_counted_when_it_comes_again() {
    let metrics = KindMetrics::new(Metrics::On);
    let shard = metrics.shard().expect("metrics are on");
    assert!(shard.handle());
    shard.unhandle(1);
    assert!(shard.handle(), "still the first");
    assert_eq!(shard.handled(), 1);
}

#[test]
fn nothing_is_counted_when_off() {
    let metrics = KindMetrics::new(Metrics::Off);
    metrics.count(Counter::Panicked);
    assert!(metrics.shard().is_none());
    assert_eq!(
        metrics.totals().into_snapshot(KindName::new("test")),
        KindSnapshot { name: KindName::new("test"), ..KindSnapshot::default() }
    );
}
