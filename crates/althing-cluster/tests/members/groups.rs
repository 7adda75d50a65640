//! Groups whose members live on several nodes, over real sockets.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::{ActorId, ActorRef, Context, Incarnation, Node, actor};
use althing_cluster::{GroupError, Member, SharedGroup};
use tokio::time::timeout;

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts what it is told.
#[derive(Default)]
struct Worker(u64);

#[actor(name = "test.worker", wire, derive(Clone))]
impl Worker {
    async fn add(&mut self, n: u64) {
        self.0 += n;
    }

    async fn sum(&mut self) -> u64 {
        self.0
    }

    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }
}

async fn node(cluster: &Cluster, name: &str) -> (Member, Node) {
    joined(cluster.config(name), |node| node.actor(async |_| Ok(Worker::default()))).await
}

fn group(member: &Member) -> SharedGroup<Worker> {
    member.group("encoders").expect("the name is short")
}

/// Until a node sees so many members.
async fn counts(group: &SharedGroup<Worker>, wanted: usize) {
    let mut changes = group.changes();
    let counts = timeout(PATIENCE, changes.wait_for(|count| *count == wanted)).await;
    let Ok(counts) = counts else { panic!("{wanted} are wanted: {group:?}") };
    counts.expect("the group is held");
}

fn ids(group: &SharedGroup<Worker>) -> Vec<ActorId> {
    group.members().iter().map(ActorRef::id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_all_nodes_are_seen_and_told_on_all_nodes() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    let workers: Vec<_> = (0..4).map(|_| first.spawn(Worker::default())).collect();
    let others: Vec<_> = (0..2).map(|_| second.spawn(Worker::default())).collect();
    workers.iter().for_each(|worker| group_of(&one, worker));
    others.iter().for_each(|worker| group_of(&two, worker));
    // One that comes later hears of all who were there.
    let (three, _third) = node(&cluster, "three").await;
    let groups = [group(&one), group(&two), group(&three)];
    for group in &groups {
        counts(group, 6).await;
        assert_eq!(ids(group), ids(&groups[0]), "in the same order");
    }
    let homes = async {
        let mut homes = BTreeSet::new();
        for _ in 0..6 {
            let worker = groups[2].round_robin().expect("there are six");
            homes.insert(worker.home().timeout(PATIENCE).await.expect("it is there"));
        }
        homes
    };
    assert_eq!(homes.await, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
    for key in ["alice", "bob", "carol"] {
        let picked = groups.each_ref().map(|group| group.by_hash(key).expect("there are six"));
        assert!(picked.iter().all(|worker| worker.id() == picked[0].id()), "the same for {key}");
    }
    assert_eq!(groups[2].broadcast(&worker_messages::Add { n: 3 }), 6);
    for worker in groups[2].members() {
        assert_eq!(worker.sum().timeout(PATIENCE).await, Ok(3), "behind what it was told");
    }
    // Another group is another one.
    assert!(three.group::<Worker>("others").expect("it is short").members().is_empty());
}

fn group_of(member: &Member, worker: &ActorRef<Worker>) {
    group(member).join(worker).expect("it lives here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_or_leaves_is_gone_everywhere_and_so_are_all_of_a_node_that_died() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    let here: Vec<_> = (0..3).map(|_| first.spawn(Worker::default())).collect();
    let there: Vec<_> = (0..3).map(|_| second.spawn(Worker::default())).collect();
    let (left, right) = (group(&one), group(&two));
    here.iter().for_each(|worker| left.join(worker).expect("it lives here"));
    there.iter().for_each(|worker| right.join(worker).expect("it lives here"));
    left.join(&here[0]).expect("again");
    counts(&left, 6).await;
    counts(&right, 6).await;
    here[0].stop().await;
    right.leave(&there[0]);
    counts(&left, 4).await;
    counts(&right, 4).await;
    // Who has left may stop, and come back as another.
    there[0].stop().await;
    let again = second.spawn(Worker::default());
    right.join(&again).expect("it lives here");
    counts(&left, 5).await;
    drop((two, second));
    counts(&left, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_in_a_group_is_refused_with_its_reason() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    let long = one.group::<Worker>(&"x".repeat(257)).map(drop);
    assert_eq!(long, Err(GroupError::TooLong { len: 257, len_max: 256 }));
    let foreign = second.spawn(Worker::default());
    group(&two).join(&foreign).expect("it lives there");
    counts(&group(&one), 1).await;
    let seen = group(&one).members().remove(0);
    assert_eq!(group(&one).join(&seen), Err(GroupError::Elsewhere(foreign.id())));
    let key = "k".repeat(2_000);
    let named = first.get::<Worker>(key);
    assert!(matches!(group(&one).join(&named), Err(GroupError::TooLong { len_max: 1_024, .. })));
    assert_ne!(first.incarnation(), Incarnation(0));
    assert_eq!(ids(&group(&one)), [foreign.id()]);
}
