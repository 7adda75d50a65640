//! Nodes that are no members any more, or lack what others have, and those who still count on them.
//! Over real sockets.

use std::time::Duration;

use crate::support::LEASE;
use crate::support::cluster::{Cluster, joined};
use crate::support::proxy::Proxy;
use althing::{Actor, ActorRef, AskError, Context, Handler, Node, Terminated, actor};
use althing_cluster::{Member, MemberConfig, MoveError, State};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says where it lives, and starts others without names.
struct Villager;

#[actor(name = "test.villager", wire)]
impl Villager {
    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }

    async fn bear(&mut self, ctx: &mut Context<Self>) -> ActorRef<Villager> {
        ctx.node().spawn(Villager)
    }
}

/// Only some nodes know this kind.
struct Stranger;

#[actor(name = "test.stranger", wire)]
impl Stranger {
    async fn greet(&mut self) {}
}

/// Says why others have ended.
struct Witness(UnboundedSender<String>);

struct Watch(ActorRef<Villager>);

impl Actor for Witness {
    const NAME: &'static str = "test.bystander";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        _ = self.0.send(format!("{:?}", other.reason));
    }
}

impl Handler<Watch> for Witness {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

async fn node(config: MemberConfig) -> (Member, Node) {
    joined(config, |node| node.actor(async |_| Ok(Villager))).await
}

async fn sees(member: &Member, members: usize) {
    let seen = async {
        let mut views = member.views();
        while member.view().members.len() != members
            || member.view().members.iter().any(|member| member.buckets == 0)
        {
            views.changed().await.expect("it lives");
        }
    };
    timeout(PATIENCE, seen).await.expect("it learns it");
}

/// An actor that lives on the node, as seen from the other one.
fn villager_on(member: &Member, there: &Node, here: &Node) -> ActorRef<Villager> {
    let all = (0..200).map(|n| here.get::<Villager>(format!("villager-{n}")));
    let mut on_it = all.filter(|it| member.owner_of(&it.id()) == Some(there.incarnation()));
    on_it.next().expect("one of 200 is there")
}

/// Others have its actors: whoever asks on that node must not reach a second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_member_is_dropped_runs_nothing_any_more() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = node(cluster.config("two")).await;
    sees(&one, 2).await;
    let villager = villager_on(&one, &second, &second);
    assert_eq!(villager.home().timeout(PATIENCE).await.as_deref(), Ok("two"));
    drop(two);
    sees(&one, 1).await;
    let key = villager.id().key().expect("it has a name").to_string();
    let home = first.get::<Villager>(&*key).home().timeout(PATIENCE).await;
    assert_eq!(home.as_deref(), Ok("one"));
    let second_life = villager.home().timeout(LEASE).await;
    assert!(second_life.is_err(), "it lives on both nodes: {second_life:?}");
}

/// A node that the others have given up has nothing to hand over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_evicted_leaves_at_once() {
    let cluster = Cluster::new();
    let proxy = Proxy::new().await;
    proxy.target.set(cluster.authority.address()).expect("once");
    let (one, _first) = node(cluster.config("one")).await;
    let config = cluster.config("two").authorities([proxy.address.to_string()]);
    let (two, _second) = node(config).await;
    sees(&one, 2).await;
    proxy.stop().await;
    sees(&one, 1).await;
    // It learns that while it waits for others to take what it has.
    let leaves = tokio::spawn(async move {
        two.leave(Duration::from_secs(120)).await;
        two
    });
    proxy.go_on();
    let two = timeout(PATIENCE, leaves).await.expect("nothing is left to wait for");
    assert_eq!(*two.expect("no panic").state().borrow(), State::Evicted);
}

/// Nobody does any more what it has asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_a_node_has_asked_for_ends_with_its_membership() {
    let cluster = Cluster::new();
    let proxy = Proxy::new().await;
    proxy.target.set(cluster.authority.address()).expect("once");
    let (one, _first) = node(cluster.config("one")).await;
    let config = cluster.config("two").authorities([proxy.address.to_string()]);
    let (two, second) = node(config).await;
    sees(&two, 2).await;
    let id = villager_on(&two, &second, &second).id();
    proxy.stop().await;
    let moves = tokio::spawn(async move { two.move_to(&id, "one").await });
    sees(&one, 1).await;
    proxy.go_on();
    let moved = timeout(PATIENCE, moves).await.expect("it waits no longer");
    assert_eq!(moved.expect("no panic"), Err(MoveError::Left));
}

/// An actor without a name, which somebody knows by a reply, goes with its node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_an_actor_without_a_name_hears_of_the_death_of_its_node() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = node(cluster.config("two")).await;
    sees(&one, 2).await;
    let child = villager_on(&one, &second, &first).bear().timeout(PATIENCE).await.expect("it runs");
    assert_eq!(child.home().timeout(PATIENCE).await.as_deref(), Ok("two"));
    let (says, mut heard): (_, UnboundedReceiver<String>) = unbounded_channel();
    let witness = first.spawn(Witness(says));
    witness.send(Watch(child.clone())).await.expect("it runs");
    drop((two, second));
    sees(&one, 1).await;
    let why = timeout(PATIENCE, heard.recv()).await.expect("it is told").expect("it lives");
    assert_eq!(why, "NodeLost");
    let asked = child.home().timeout(PATIENCE).await;
    assert!(matches!(asked, Err(AskError::NodeLost(_) | AskError::Stopped(_))), "{asked:?}");
}

/// A node that knows a kind which others do not.
async fn newer(cluster: &Cluster) -> (Member, Node) {
    joined(cluster.config("new"), |node| {
        node.actor(async |_| Ok(Villager)).actor(async |_| Ok(Stranger))
    })
    .await
}

/// One of those whose owner does not know them.
fn stranger_elsewhere(member: &Member, node: &Node) -> ActorRef<Stranger> {
    let all = (0..200).map(|n| node.get::<Stranger>(format!("stranger-{n}")));
    let mut elsewhere =
        all.filter(|it| member.owner_of(&it.id()).is_some_and(|at| at != node.incarnation()));
    elsewhere.next().expect("one of 200 is there")
}

/// As during an upgrade: a node that is older does not know what newer ones have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_of_a_kind_that_its_owner_does_not_know_fails_by_name() {
    let cluster = Cluster::new();
    let (one, _first) = node(cluster.config("one")).await;
    let (member, node) = newer(&cluster).await;
    sees(&one, 2).await;
    let stranger = stranger_elsewhere(&member, &node);
    sees(&member, 2).await;
    let asked = timeout(PATIENCE, stranger.greet().timeout(PATIENCE * 2)).await;
    let why = asked.expect("it is answered").expect_err("nobody there knows it").to_string();
    assert!(why.contains("test.stranger"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_the_end_of_an_actor_whose_kind_its_owner_does_not_know() {
    let cluster = Cluster::new();
    let (_one, _first) = node(cluster.config("one")).await;
    let (member, node) = newer(&cluster).await;
    sees(&member, 2).await;
    let stranger = stranger_elsewhere(&member, &node);
    timeout(PATIENCE, stranger.stopped()).await.expect("it has no life there");
    timeout(PATIENCE, stranger.stop()).await.expect("it has no life there");
}
