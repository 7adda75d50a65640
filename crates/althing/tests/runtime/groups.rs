//! What groups promise.

use std::collections::HashMap;
use std::fmt::Write;

use crate::support::{On, within};
use althing::{Actor, ActorRef, Context, Group, Handler, Node};
use tokio::sync::oneshot;

#[derive(Default)]
struct Worker {
    jobs: u32,
}

#[derive(Clone)]
struct Job;
struct Jobs;
struct Hold(oneshot::Receiver<()>);

impl Actor for Worker {
    const NAME: &'static str = "test.worker";
}

impl Handler<Job> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Job, _ctx: &mut Context<Self>) {
        self.jobs += 1;
    }
}

impl Handler<Jobs> for Worker {
    type Reply = u32;

    async fn handle(&mut self, _: Jobs, _ctx: &mut Context<Self>) -> u32 {
        self.jobs
    }
}

impl Handler<Hold> for Worker {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _ctx: &mut Context<Self>) {
        release.await.ok();
    }
}

fn workers(count: usize) -> (Vec<ActorRef<Worker>>, Group<Worker>) {
    let node = Node::builder("test").build();
    let workers: Vec<_> = (0..count).map(|_| node.spawn(Worker::default())).collect();
    let group = workers.iter().cloned().collect();
    (workers, group)
}

#[tokio::test]
async fn round_robin_takes_turns() {
    let (workers, group) = workers(3);
    for _ in 0..9 {
        group.round_robin().expect("three members").send(Job).await.expect("running");
    }
    for worker in workers {
        assert_eq!(worker.send(Jobs).await, Ok(3));
    }
}

#[tokio::test]
async fn least_loaded_avoids_who_is_behind() {
    let (workers, group) = workers(2);
    let (_release, wait) = oneshot::channel();
    workers[0].send(Hold(wait)).try_tell().expect("room");
    workers[0].send(Job).try_tell().expect("room");
    assert_eq!(group.least_loaded(), Some(workers[1].clone()));
}

#[tokio::test]
async fn by_hash_moves_only_the_keys_of_who_left() {
    let (workers, group) = workers(5);
    let before: HashMap<u32, _> =
        (0..200).map(|key| (key, group.by_hash(key).expect("five members"))).collect();
    workers[2].stop().await;
    for (key, worker) in before {
        let now = group.by_hash(key).expect("four members");
        assert_eq!(now == worker, worker != workers[2], "key {key}");
    }
    assert_eq!(group.members().len(), 4);
}

#[tokio::test]
async fn broadcast_reaches_everybody_once() {
    let (workers, group) = workers(4);
    assert_eq!(group.broadcast(&Job), 4);
    for worker in workers {
        assert_eq!(worker.send(Jobs).await, Ok(1));
    }
}

#[tokio::test]
async fn an_empty_group_picks_nobody() {
    let group = Group::<Worker>::new();
    assert!(group.round_robin().is_none() && group.by_hash(1).is_none());
    assert_eq!(group.broadcast(&Job), 0);
}

#[tokio::test]
async fn a_pick_that_meets_a_member_that_has_stopped_drops_all_that_have() {
    let (workers, group) = workers(4);
    for stopped in [&workers[0], &workers[3]] {
        stopped.stop().await;
    }
    group.round_robin().expect("two members");
    let left: Group<_> = workers[1..3].iter().cloned().collect();
    assert_eq!(format!("{group:?}"), format!("{left:?}"));
}

#[tokio::test]
async fn a_broadcast_drops_members_that_have_stopped() {
    let (mut workers, group) = workers(2);
    let stops = workers.pop().expect("there are two");
    stops.stop().await;
    let weak = stops.downgrade();
    drop(stops);
    assert_eq!(group.broadcast(&Job), 1);
    assert!(weak.upgrade().is_none(), "the group keeps it");
    assert_eq!(group.members(), workers);
}

/// Adds a member whenever something is written to it.
struct Joining(Group<Worker>, ActorRef<Worker>);

impl Write for Joining {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        self.0.join(&self.1);
        Ok(())
    }
}

#[test]
fn a_group_may_be_joined_while_it_is_printed() {
    within(On::OneThread, async {
        let group = Group::new();
        let worker = Node::builder("test").build().spawn(Worker::default());
        let mut joining = Joining(group.clone(), worker);
        write!(joining, "{group:?}").expect("nothing fails");
        assert_eq!(group.members().len(), 1);
    });
}
