//! Actors that live only where the labels are that their kind asks for, over real sockets.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::remote::NotMoved;
use althing::{Actor, AskError, Context, Node, NodeBuilder, actor};
use althing_cluster::{
    Client, ClientConfig, ClientError, Member, MemberConfig, MoveError, Role, Tls,
};
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says where it lives, and asks for nothing.
struct Resident;

#[actor(name = "test.resident", wire)]
impl Resident {
    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }
}

/// Asks for two labels, in any order.
struct Index;

#[actor(name = "test.index", label = "region=eu", label = "disk=ssd", wire)]
impl Index {
    async fn place(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }

    async fn go(&mut self, node: String, ctx: &mut Context<Self>) -> String {
        format!("{:?}", ctx.move_to(&node))
    }
}

async fn node(cluster: &Cluster, name: &str, labels: &[&str]) -> (Member, Node) {
    node_of(cluster, name, labels, Role::Host).await
}

async fn node_of(cluster: &Cluster, name: &str, labels: &[&str], role: Role) -> (Member, Node) {
    let config = cluster.config(name).role(role);
    let config = labels.iter().fold(config, |config, label| config.label(*label));
    let knows = |node: NodeBuilder| node.actor(async |_| Ok(Resident)).actor(async |_| Ok(Index));
    joined(config, knows).await
}

const KEYS: u32 = 100;

/// Where the actors live that ask for labels, or why one could not be asked.
async fn places(node: &Node) -> Result<BTreeSet<String>, AskError> {
    let mut places = BTreeSet::new();
    for key in 0..KEYS {
        let index = node.get::<Index>(&*key.to_string());
        places.insert(index.place().timeout(PATIENCE).await?);
    }
    Ok(places)
}

/// Until they live on exactly these; no ask fails meanwhile.
async fn live_on(node: &Node, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    let live = async {
        while places(node).await.expect("no ask fails") != expected {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, live).await.expect("they come there");
}

async fn refusal(node: &Node) -> AskError {
    let index = node.get::<Index>("ada");
    let asked = timeout(PATIENCE / 2, index.place().timeout(PATIENCE))
        .await
        .expect("it does not wait for its deadline");
    asked.expect_err("no node has the labels")
}

fn names_kind_and_labels(error: &AskError) {
    let text = error.to_string();
    assert!(text.contains("test.index") && text.contains("disk=ssd,region=eu"), "{text}");
    assert!(!error.may_have_run(), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_live_only_on_nodes_that_have_all_labels_of_their_kind_while_nodes_come_and_go() {
    let cluster = Cluster::new();
    let all = ["disk=ssd", "region=eu"];
    let (plain, first) = node(&cluster, "plain", &[]).await;
    names_kind_and_labels(&refusal(&first).await);
    let (_half, _second) = node(&cluster, "half", &["disk=ssd", "region=us"]).await;
    let (_gateway, gateway) = node_of(&cluster, "gateway", &all, Role::Guest).await;
    names_kind_and_labels(&refusal(&gateway).await);

    let (one, _third) = node(&cluster, "one", &all).await;
    live_on(&gateway, &["one"]).await;
    let (two, fourth) = node(&cluster, "two", &["region=eu", "rack=7", "disk=ssd"]).await;
    live_on(&first, &["one", "two"]).await;
    // By hand it comes to a node that has the labels, and to no other.
    let index = first.get::<Index>("ada");
    for there in ["two", "one", "two"] {
        timeout(PATIENCE, plain.move_to(&index.id(), there))
            .await
            .expect("in time")
            .expect("it has");
        assert_eq!(index.place().timeout(PATIENCE).await.expect("no ask fails"), there);
    }
    let id = index.id();
    let moved = plain.move_to(&id, "half").await.expect_err("it has not all labels");
    let labels = "region=eu".to_owned();
    assert_eq!(moved, MoveError::LacksLabels { id, node: "half".to_owned(), labels });
    let view = plain.view();
    let seen = view.members.iter().find(|member| member.name == "two").expect("it is there");
    assert_eq!(seen.labels, ["disk=ssd", "rack=7", "region=eu"]);

    // It has others to give them to, so no ask fails.
    one.leave(PATIENCE).await;
    live_on(&first, &["two"]).await;
    // The last one has nobody to give them to, and does not wait for one.
    let left = timeout(PATIENCE / 2, two.leave(PATIENCE)).await;
    left.expect("only what others may have is given away");
    drop(fourth);
    let gone = async {
        while plain.view().members.iter().any(|member| member.name == "two") {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("it has left");
    names_kind_and_labels(&refusal(&first).await);
    // Whoever asks for nothing is not concerned.
    for key in 0..KEYS {
        let resident = first.get::<Resident>(&*key.to_string());
        resident.home().timeout(PATIENCE).await.expect("no ask fails");
    }
    let (_three, _fifth) = node(&cluster, "three", &all).await;
    live_on(&first, &["three"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_node_with_labels_that_dies_fails_and_the_next_one_is_asked_anew() {
    let cluster = Cluster::new();
    let (plain, first) = node(&cluster, "plain", &[]).await;
    let (one, second) = node(&cluster, "one", &["disk=ssd", "region=eu"]).await;
    live_on(&first, &["one"]).await;
    let before = plain.view().number;
    second.kill();
    drop(one);
    // Whoever asks while nobody knows of its death hears of it then.
    let mut asked = 0;
    let failed = loop {
        asked += 1;
        let index = first.get::<Index>(&*asked.to_string());
        match timeout(PATIENCE, index.place().timeout(PATIENCE)).await.expect("in time") {
            Err(error @ AskError::NotStarted(..)) => break error,
            Err(AskError::NodeLost(_)) => assert!(asked < 1_000, "its end is known soon"),
            other => panic!("{other:?}"),
        }
    };
    names_kind_and_labels(&failed);
    assert!(plain.view().number > before);
    let (_two, _third) = node(&cluster, "two", &["disk=ssd", "region=eu"]).await;
    live_on(&first, &["two"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_gives_actors_to_nodes_with_their_labels_and_keeps_those_that_no_other_has()
{
    let cluster = Cluster::new();
    let all = ["disk=ssd", "region=eu"];
    let (plain, first) = node(&cluster, "plain", &[]).await;
    let (_one, _second) = node(&cluster, "one", &all).await;
    let (_two, _third) = node(&cluster, "two", &all).await;
    live_on(&first, &["one", "two"]).await;
    let at = [plain.address().to_string()];
    let config = ClientConfig::new("test", at, Tls::insecure_plaintext());
    let client = Client::connect(config).await.expect("it listens");
    client.drain("one", PATIENCE).await.expect("the others take all");
    live_on(&first, &["two"]).await;
    assert_eq!(client.drain("two", PATIENCE).await, Err(ClientError::NobodyElse));
    live_on(&first, &["two"]).await;
    // Whoever asks for nothing has left both.
    for key in 0..KEYS {
        let resident = first.get::<Resident>(&*key.to_string());
        assert_eq!(resident.home().timeout(PATIENCE).await.as_deref(), Ok("plain"));
    }
    let (_three, _fourth) = node(&cluster, "three", &all).await;
    live_on(&first, &["three"]).await;
}

#[test]
fn a_node_with_what_is_no_label_does_not_start() {
    let config = MemberConfig::new("test", "one", "127.0.0.1:1", Tls::insecure_plaintext());
    let error = Member::bind(config.label("ssd")).expect_err("it is none");
    assert!(error.to_string().contains("`ssd`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_sees_labels_and_finds_actors_that_ask_for_some() {
    let cluster = Cluster::new();
    let (plain, _first) = node(&cluster, "plain", &[]).await;
    let at = [plain.address().to_string()];
    let config = ClientConfig::new("test", at, Tls::insecure_plaintext());
    let client = Client::connect(config).await.expect("it listens");
    let kind = <Index as Actor>::NAME;
    assert_eq!(client.find(kind, "ada").await.expect("it is known").node, None);
    let index = client.get::<Index>("ada").expect("it may talk");
    let refused = index.place().timeout(PATIENCE).await.expect_err("no node has the labels");
    names_kind_and_labels(&refused);
    let (_one, second) = node(&cluster, "one", &["region=eu", "disk=ssd"]).await;
    live_on(&second, &["one"]).await;
    let place = async {
        // The node that it asks may not know yet.
        while client.find(kind, "ada").await.expect("it is known").node.is_none() {
            sleep(Duration::from_millis(5)).await;
        }
        index.place().timeout(PATIENCE).await
    };
    assert_eq!(timeout(PATIENCE, place).await.expect("in time"), Ok("one".to_owned()));
    let view = client.view().await.expect("it answers");
    let labels = view.members.iter().map(|member| (&*member.name, member.labels.join(" ")));
    let labels: Vec<_> = labels.collect();
    assert!(labels.contains(&("one", "disk=ssd region=eu".to_owned())), "{labels:?}");
    assert!(labels.contains(&("plain", String::new())), "{labels:?}");
    let moved = client.move_to(&index.id(), "plain", PATIENCE).await;
    assert!(matches!(moved, Err(ClientError::LacksLabels { .. })), "{moved:?}");
    let why = moved.expect_err("it has none").to_string();
    assert!(why.contains("`plain`") && why.contains("disk=ssd,region=eu"), "{why}");
    let moved = client.move_to(&index.id(), "nine", PATIENCE).await;
    assert_eq!(moved, Err(ClientError::UnknownNode("nine".to_owned())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_asks_to_be_moved_hears_which_labels_a_node_lacks() {
    let cluster = Cluster::new();
    let all = ["disk=ssd", "region=eu"];
    let (one, first) = node(&cluster, "one", &all).await;
    let (_half, _second) = node(&cluster, "half", &["disk=ssd"]).await;
    let (_gateway, _third) = node_of(&cluster, "gateway", &all, Role::Guest).await;
    let mut views = one.views();
    while one.view().members.len() < 3 {
        timeout(PATIENCE, views.changed()).await.expect("they join").expect("it lives");
    }
    let index = first.get::<Index>("ada");
    let asked = async |node: &str| index.go(node.to_owned()).timeout(PATIENCE).await;
    let (id, labels) = (index.id(), "region=eu".to_owned());
    let lacks = NotMoved::LacksLabels { id, node: "half".to_owned(), labels };
    assert!(lacks.to_string().contains("region=eu"), "{lacks}");
    assert_eq!(asked("half").await, Ok(format!("{:?}", Err::<(), _>(lacks))));
    // One that has them all, and takes no actors.
    let unknown = NotMoved::UnknownNode("gateway".to_owned());
    assert_eq!(asked("gateway").await, Ok(format!("{:?}", Err::<(), _>(unknown))));
    assert_eq!(asked("one").await, Ok("Ok(())".to_owned()));
    assert_eq!(index.place().timeout(PATIENCE).await.as_deref(), Ok("one"));
}
