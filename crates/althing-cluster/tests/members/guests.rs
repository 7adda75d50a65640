//! Nodes on which no actor of the cluster lives, over real sockets.

use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::{Context, Node, actor};
use althing_cluster::{Member, MoveError, Role};
use tokio::time::timeout;

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says where it lives.
struct Resident;

#[actor(name = "test.resident", wire)]
impl Resident {
    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }
}

async fn node(cluster: &Cluster, name: &str, role: Role) -> (Member, Node) {
    let config = cluster.config(name).role(role);
    joined(config, |node| node.actor(async |_| Ok(Resident))).await
}

async fn home(node: &Node, key: &str) -> String {
    node.get::<Resident>(key).home().timeout(PATIENCE).await.expect("no ask fails")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_reaches_every_actor_and_none_lives_on_it() {
    let cluster = Cluster::new();
    // Whoever comes first is given everything, unless it is a guest.
    let (guest, gateway) = node(&cluster, "gateway", Role::Guest).await;
    let (one, first) = node(&cluster, "one", Role::Host).await;
    for key in 0..200 {
        assert_eq!(home(&gateway, &key.to_string()).await, "one");
    }
    let (_two, _second) = node(&cluster, "two", Role::Host).await;
    for key in 0..200 {
        let on = home(&gateway, &key.to_string()).await;
        assert!(["one", "two"].contains(&&*on), "{key} lives on {on}");
    }
    let view = guest.view();
    let seen = |name| view.members.iter().find(|member| member.name == name).expect("it is there");
    assert_eq!((seen("gateway").role, seen("gateway").buckets), (Role::Guest, 0));
    assert_eq!(seen("one").role, Role::Host);
    let resident = first.get::<Resident>("ada");
    let moved = one.move_to(&resident.id(), "gateway").await;
    assert_eq!(moved, Err(MoveError::UnknownNode("gateway".to_owned())));
    // It has nothing to give away, so its leaving takes nobody's time.
    guest.leave(PATIENCE).await;
    home(&first, "ada").await;
    is_gone(&one, "gateway").await;
}

/// Until a member knows that another one is none any more.
async fn is_gone(member: &Member, name: &str) {
    let knows = async {
        let mut views = member.views();
        while member.view().members.iter().any(|other| other.name == name) {
            views.changed().await.expect("it is a member");
        }
    };
    timeout(PATIENCE, knows).await.expect("it hears of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_guest_asks_waits_while_there_is_no_host() {
    let cluster = Cluster::new();
    let (guest, gateway) = node(&cluster, "gateway", Role::Guest).await;
    let asked = tokio::spawn(async move {
        let before = home(&gateway, "ada").await;
        (before, gateway)
    });
    let (one, _first) = node(&cluster, "one", Role::Host).await;
    let (before, gateway) = asked.await.expect("no ask fails");
    assert_eq!(before, "one");
    // The last host leaves; nobody is there to give its actors to but a guest. What was on the way
    // to it is lost with it, so the guest asks when it knows.
    one.leave(PATIENCE).await;
    is_gone(&guest, "one").await;
    let asked = tokio::spawn(async move { home(&gateway, "ada").await });
    let (_two, _second) = node(&cluster, "two", Role::Host).await;
    assert_eq!(asked.await.expect("no ask fails"), "two");
}
