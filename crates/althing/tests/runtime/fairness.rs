//! Nobody keeps others from getting on.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::support::{
    Count, Flex, Note, On, act, flex, lines, logging, node, nothing, soon, within,
};
use althing::{ActorOptions, Node};

/// An ask of an idle actor is answered without waiting, so a loop of asks never gives way by
/// itself.
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

/// A handler is run on its asker's own task as long as it is known to be quick, and no deadline
/// helps there.
#[test]
fn a_handler_that_has_become_slow_is_run_apart_from_its_askers_again() {
    within(On::Workers(2), async {
        let options = ActorOptions::default().deadline(Duration::from_millis(20));
        let actor = flex(&Node::builder("test").options::<Flex>(options).build());
        while actor.send(nothing()).await.is_err() {
            tokio::task::yield_now().await;
        }
        let begun = Instant::now();
        let slow = || act(|_, _| std::thread::sleep(Duration::from_millis(60)));
        while actor.send(slow()).await.is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no ask keeps its deadline");
        }
    });
}

/// Whoever is woken by a task of a worker's runs on that worker next, and no other takes it over;
/// who was woken before that is free.
#[test]
fn whom_a_handler_told_before_it_blocked_runs_unless_it_was_the_last() {
    within(On::Workers(3), async {
        let node = node();
        let ((first, log), last) = (logging(&node), flex(&node));
        let (release, wait) = mpsc::channel::<()>();
        let blocking = act(move |_, _| {
            first.send(Note(1)).try_tell().unwrap();
            last.send(Note(2)).try_tell().unwrap();
            wait.recv().ok();
        });
        flex(&node).send(blocking).try_tell().unwrap();
        let runs = async {
            while lines(&log).is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        soon("the first", runs).await;
        drop(release);
    });
}
