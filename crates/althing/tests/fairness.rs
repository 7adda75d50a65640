//! Nobody keeps others from getting on.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use support::{Count, On, flex, node, nothing, within};

/// An ask of an idle actor is answered without waiting, so a loop of asks never gives way by itself.
#[test]
fn a_task_that_asks_in_a_loop_lets_others_run() {
    within(On::OneThread, async {
        let actor = flex(&node());
        actor.send(nothing()).await.unwrap();
        let turns = Arc::new(AtomicU64::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
            }
        });
        tokio::task::yield_now().await;
        let before = turns.load(SeqCst);
        let begun = Instant::now();
        while turns.load(SeqCst) == before && begun.elapsed() < Duration::from_secs(1) {
            actor.send(Count).await.unwrap();
        }
        other.abort();
        assert!(turns.load(SeqCst) > before, "no other task had a turn in a second");
    });
}
