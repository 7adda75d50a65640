//! Starting actors at the wrong moment: while the node shuts down, or after the end of who would be
//! their parent.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::{Flex, On, act, flex, node, nothing, settle, soon, within};
use althing::{Actor, ActorRef, Node};
use parking_lot::Mutex;

/// Rounds of a race that was lost within the first ten.
const ROUNDS: usize = 60;
/// As above, where each round may wait for the node to forget a sleeping address: it looks once a
/// second.
const ROUNDS_BY_NAME: usize = 10;

/// Counts those that are in memory.
struct Counted(Arc<AtomicU32>);

impl Counted {
    fn new(alive: &Arc<AtomicU32>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(alive.clone())
    }
}

impl Actor for Counted {
    const NAME: &'static str = "test.counted";
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Starts actors on a thread of its own until the node refuses, keeping nothing of them.
fn spawn_until_refused(node: &Node, alive: &Arc<AtomicU32>, has_begun: &Barrier) {
    for n in 0_u32.. {
        if n == 5 {
            has_begun.wait();
        }
        let is_refused = node.spawn(Counted::new(alive)).is_stopped();
        let named = node.spawn_named(n.to_string(), Counted::new(alive)).expect("a new name");
        if is_refused && named.is_stopped() {
            return;
        }
    }
}

#[test]
fn who_is_spawned_while_the_node_shuts_down_does_not_outlive_it() {
    within(On::Workers(2), async {
        for _ in 0..ROUNDS {
            let (node, alive) = (node(), Arc::new(AtomicU32::new(0)));
            let has_begun = Arc::new(Barrier::new(2));
            let spawner = std::thread::spawn({
                let (node, alive, has_begun) = (node.clone(), alive.clone(), has_begun.clone());
                let runtime = tokio::runtime::Handle::current();
                move || {
                    let _entered = runtime.enter();
                    spawn_until_refused(&node, &alive, &has_begun);
                }
            });
            tokio::task::block_in_place(|| has_begun.wait());
            // As long as somebody starts, there is somebody to stop: it lasts until its deadline.
            node.shutdown(Duration::from_millis(20)).await;
            tokio::task::block_in_place(|| spawner.join()).expect("the spawner ends");
            let gone = async {
                while alive.load(SeqCst) > 0 {
                    tokio::task::yield_now().await;
                }
            };
            soon("the end of them all", gone).await;
        }
    });
}

#[test]
fn a_child_that_is_started_after_its_parents_end_ends_at_once() {
    within(On::OneThread, async {
        let node = node();
        let parent = flex(&node);
        let made = Arc::new(Mutex::new(Vec::new()));
        let making = made.clone();
        let make = act(move |_, ctx| {
            making.lock().extend([ctx.child(Flex::default()), ctx.child(Flex::default())]);
        });
        parent.send(make).await.unwrap();
        parent.stop().await;
        let weak = parent.downgrade();
        drop(parent);
        let (first, second) = {
            let mut made = made.lock();
            (made.pop().expect("two"), made.pop().expect("two"))
        };
        let anonymous = first.start();
        let named = second.named("kid").start().expect("the name is free");
        for child in [anonymous, named] {
            soon("the child's end", child.stopped()).await;
            assert!(child.send(nothing()).await.is_err());
        }
        assert!(weak.upgrade().is_none(), "nothing of the parent stays");
    });
}

/// A child has a name, so others may end it before its parent has taken note of it.
#[test]
fn a_parent_does_not_keep_a_named_child_that_others_end_as_it_starts() {
    within(On::Workers(2), async {
        let node = node();
        let parent = flex(&node);
        let is_over = Arc::new(AtomicBool::new(false));
        let killer = std::thread::spawn({
            let (node, is_over) = (node.clone(), is_over.clone());
            let runtime = tokio::runtime::Handle::current();
            move || {
                let _entered = runtime.enter();
                while !is_over.load(SeqCst) {
                    node.get::<Flex>("kid").kill();
                }
            }
        });
        let mut children = Vec::new();
        while children.len() < ROUNDS_BY_NAME {
            let started = Arc::new(Mutex::new(None::<ActorRef<Flex>>));
            let starting = started.clone();
            let start = act(move |_, ctx| {
                *starting.lock() = ctx.child(Flex::default()).named("kid").start().ok();
            });
            parent.send(start).await.unwrap();
            let Some(child) = started.lock().take() else { continue };
            child.kill();
            soon("the child's end", child.stopped()).await;
            children.push(child.downgrade());
        }
        is_over.store(true, SeqCst);
        tokio::task::block_in_place(|| killer.join()).expect("the killer ends");
        settle().await;
        let kept = children.iter().filter(|child| child.upgrade().is_some()).count();
        assert_eq!(kept, 0);
    });
}
