//! Nodes in one process, with what no client can do to them.

use std::net::SocketAddr;
use std::time::Duration;

use althing_cluster::{Authority, MemberConfig, Role, Tls};
use bytes::Bytes;
use folkmoot_gateway::{Next, Outbox};
use folkmoot_protocol::frame::{SubscribeResult, Unsubscribe};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::FutureExt;
use serde_json::Value;

use super::*;
use crate::channels::{Answer, Attach, Begun, Channels, ChannelsCalls, Hub, Join, Post};
use crate::connection::Connection;
use crate::payload::Payload;
use crate::server::{Relay, start_as_node};
use crate::settings::Settings;
use crate::stream::Keep;

const PATIENCE: Duration = Duration::from_secs(60);
const KEEP: Keep =
    Keep { len_max: 100_000, ttl_ms: 600_000, numbers_ttl_ms: 600_000, is_durable: false };

struct World {
    _directory: tempfile::TempDir,
    _authority: Authority,
    nodes: Vec<Relay>,
}

async fn world() -> World {
    world_of([Role::Host; 2]).await
}

async fn world_of(roles: [Role; 2]) -> World {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let directory = tempfile::tempdir().unwrap();
    let (lease, tls) = (Duration::from_secs(10), Tls::insecure_plaintext());
    let authority = Authority::start("moot", directory.path(), any_port, lease, tls.clone());
    let authority = authority.unwrap();
    let mut nodes = Vec::new();
    for (name, role) in ["one", "two"].into_iter().zip(roles) {
        let at = authority.address().to_string();
        let config = MemberConfig::new("moot", name, at, tls.clone()).role(role);
        let member = Member::bind(config).unwrap();
        let relay = start_as_node(Settings::default(), any_port, Arc::new(member)).await;
        nodes.push(relay.unwrap());
    }
    World { _directory: directory, _authority: authority, nodes }
}

impl World {
    fn hub(&self, node: usize) -> &Hub {
        &self.nodes[node].server().hub
    }

    async fn subscribe(&self, node: usize, channel: &str) -> Arc<Connection> {
        self.subscribe_by(node, channel, Answer::Reply(1)).await
    }

    async fn subscribe_by(&self, node: usize, channel: &str, answer: Answer) -> Arc<Connection> {
        let connection = connection(node);
        let channel: Arc<str> = channel.into();
        let reserved = connection.reserve(&channel, 10).unwrap();
        let join = Join { answer, ..join(channel, &connection) };
        self.hub(node).join(join).await.unwrap().unwrap();
        drop(reserved);
        connection
    }

    /// The owner of a channel begins a new life, with nothing of the former one.
    async fn lose_owner(&self, channel: &str) {
        for node in 0..2 {
            let nodes = self.hub(node).nodes().unwrap();
            // The message does not travel: it reaches the owner from the node that it lives on.
            assert!(nodes.owner(Hub::shard(channel)).fail_by_panic().await.is_err());
        }
    }

    async fn end(self) {
        for node in self.nodes {
            node.stop().await;
        }
    }
}

fn connection(node: usize) -> Arc<Connection> {
    let (id, outbox) = (format!("client{node}"), Arc::new(Outbox::new(64 << 20)));
    let connection = Connection::new(id.into(), "42".into(), Bytes::new(), Format::Json, outbox);
    connection.go_live();
    Arc::new(connection)
}

fn join(channel: Arc<str>, connection: &Arc<Connection>) -> Join {
    Join {
        channel,
        connection: connection.clone(),
        info: Bytes::new(),
        has_presence: true,
        tells_coming: false,
        wants_comings: false,
        keep: Some(KEEP),
        since: None,
        recovery_limit: 10,
        recovers_newest: false,
        needs_all: false,
        filter: None,
        result: SubscribeResult { recoverable: true, ..SubscribeResult::default() },
        answer: Answer::Reply(1),
    }
}

fn post(data: String) -> Post {
    let payload = Arc::new(Payload { data: data.into(), ..Payload::default() });
    Post { payload, keep: Some(KEEP), key: None, row: None, version: None, may_be_delta: false }
}

/// What comes to a client until something of that kind has.
async fn pushes(connection: &Connection, kind: &str) -> Vec<Value> {
    let mut pushes = Vec::new();
    while !pushes.iter().any(|push: &Value| push[kind].is_object()) {
        let next = tokio::time::timeout(PATIENCE, connection.outbox.next()).await;
        let Next::Messages(messages) = next.expect("it comes") else { panic!("it is closed") };
        for message in messages {
            let text = std::str::from_utf8(&message).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            pushes.extend(lines.map(|line| line["push"].clone()).filter(Value::is_object));
        }
    }
    pushes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_an_owner_panics_subscribers_on_all_nodes_are_told_to_come_back() {
    let world = world().await;
    let subscribers = [world.subscribe(0, "news").await, world.subscribe(1, "news").await];
    world.hub(1).publish("news".into(), post("1".to_owned())).await.unwrap();
    for subscriber in &subscribers {
        assert_eq!(pushes(subscriber, "pub").await[0]["pub"]["data"], 1);
    }
    world.lose_owner("news").await;
    for subscriber in &subscribers {
        let told = pushes(subscriber, "unsubscribe").await;
        assert_eq!(told.last().unwrap()["unsubscribe"]["code"], 2500);
    }
    world.end().await;
}

/// Why a connection ends.
async fn end_of(connection: &Connection) -> Next {
    loop {
        let next = tokio::time::timeout(PATIENCE, connection.outbox.next()).await;
        let next = next.expect("it ends");
        if matches!(next, Next::Close(_)) {
            return next;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_the_server_subscribed_connects_anew_when_its_place_is_lost() {
    let world = world().await;
    let by_token = world.subscribe_by(0, "news", Answer::Connect).await;
    let by_backend = world.subscribe_by(1, "news", Answer::Push).await;
    world.hub(1).publish("news".into(), post("1".to_owned())).await.unwrap();
    for subscriber in [&by_token, &by_backend] {
        assert_eq!(pushes(subscriber, "pub").await.last().unwrap()["pub"]["data"], 1);
    }
    world.lose_owner("news").await;
    for subscriber in [&by_token, &by_backend] {
        let end = end_of(subscriber).await;
        assert_eq!(end, Next::Close(DisconnectCode::InsufficientState.into()));
    }
    world.end().await;
}

/// What a node asks the owner of a channel about a client that subscribes.
async fn question(channels: &ActorRef<Channels>, join: Join) -> Attach {
    // It has its place in the connection for the rest of the test.
    std::mem::forget(join.connection.reserve(&join.channel, 10));
    match channels.begin(join).await.unwrap() {
        Begun::Ask(attach) => *attach,
        begun => panic!("{begun:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_question_from_before_a_panic_is_none_to_who_asks_after_it() {
    let world = world().await;
    let channels = world.hub(0).of("news");
    let owner = world.hub(0).nodes().unwrap().owner(Hub::shard("news"));
    let before = question(channels, join("news".into(), &connection(0))).await;
    assert!(channels.fail_by_panic().await.is_err());
    let after = question(channels, join("news".into(), &connection(1))).await;
    let (old, new) = (before.number, after.number);
    assert!(old < new, "the owner would take it for an older one");
    let found = owner.attach(before).await.unwrap();
    let begun = channels.finish("news".into(), old, found).await.unwrap();
    assert!(matches!(begun, Begun::Gone), "{begun:?}");
    let found = owner.attach(after).await.unwrap();
    let begun = channels.finish("news".into(), new, found).await.unwrap();
    assert!(matches!(begun, Begun::Joined(_)), "{begun:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_unsubscribed_while_it_waits_for_an_owner_is_not_subscribed() {
    let world = world().await;
    let (channels, client) = (world.hub(0).of("news"), connection(0));
    let asked = question(channels, join("news".into(), &client)).await;
    let number = asked.number;
    let owner = world.hub(0).nodes().unwrap().owner(Hub::shard("news"));
    let found = owner.attach(asked).await.unwrap();
    let why = Unsubscribe { code: 2000, reason: "server unsubscribe".to_owned() };
    channels.expel("news".into(), client.id.clone(), why).await.unwrap();
    let begun = channels.finish("news".into(), number, found).await.unwrap();
    assert!(matches!(begun, Begun::Gone), "{begun:?}");
    assert_eq!(channels.count().await.unwrap().subscriptions, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_given_up_while_it_waits_for_an_owner_may_come_again() {
    let world = world().await;
    let mut given_up = 0;
    for node in 0..2 {
        let (hub, client, channel) = (world.hub(node), connection(node), Arc::<str>::from("news"));
        let _place = client.reserve(&channel, 10).unwrap();
        let mut joining = Box::pin(hub.join(join(channel.clone(), &client)));
        if joining.as_mut().now_or_never().is_some() {
            // Its owner is on this node, and has answered.
            continue;
        }
        hub.of("news").give_up(channel, client.id.clone()).await.unwrap();
        let why = joining.await.unwrap().unwrap_err();
        assert!(RpcError::from(why).code.is_temporary(), "{why:?}");
        given_up += 1;
    }
    assert!(given_up > 0, "an owner on another node does not answer at once");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_gone_while_it_waited_for_an_owner_never_came() {
    let world = world().await;
    let (witness, client) = (connection(1), connection(0));
    let reserved = witness.reserve(&"news".into(), 10).unwrap();
    let wants = Join { wants_comings: true, ..join("news".into(), &witness) };
    world.hub(1).join(wants).await.unwrap().unwrap();
    drop(reserved);
    let channels = world.hub(0).of("news");
    let owner = world.hub(0).nodes().unwrap().owner(Hub::shard("news"));
    let tells = Join { tells_coming: true, ..join("news".into(), &client) };
    owner.attach(question(channels, tells).await).await.unwrap();
    channels.give_up("news".into(), client.id.clone()).await.unwrap();
    world.hub(0).publish("news".into(), post("1".to_owned())).await.unwrap();
    let heard = pushes(&witness, "pub").await;
    assert!(heard.iter().all(|push| push["join"].is_null()), "{heard:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_far_behind_its_owner_gets_all_once_and_in_order() {
    let world = world().await;
    let subscribers = [world.subscribe(0, "news").await, world.subscribe(1, "news").await];
    // More than may wait for a node, faster than it is told.
    let (rounds, each) = (40, 500);
    for round in 0..rounds {
        let posts = (0..each).map(|number| {
            let data = (round * each + number).to_string();
            ("news".into(), post(data))
        });
        for published in world.hub(round % 2).publish_all(posts.collect()).await {
            published.unwrap();
        }
    }
    for subscriber in &subscribers {
        let mut heard = Vec::new();
        while heard.len() < rounds * each {
            let pushes = pushes(subscriber, "pub").await;
            heard.extend(pushes.iter().map(|push| push["pub"]["data"].as_u64().unwrap()));
        }
        assert_eq!(heard, (0..(rounds * each) as u64).collect::<Vec<_>>());
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_behind_when_it_is_lost_hears_of_no_channel_any_more() {
    // All owners are on the second node.
    let mut world = world_of([Role::Guest, Role::Host]).await;
    let _subscriber = world.subscribe(0, "news").await;
    let owner = world.hub(1).nodes().unwrap().owner(Hub::shard("news")).clone();
    let heard_by = || async { owner.hearers("news".into()).await.unwrap() };
    let [lost] = *heard_by().await else { panic!("one node hears of it") };
    let (reads, until) = tokio::sync::oneshot::channel();
    owner.fall_behind(lost, until).await.unwrap();
    world.nodes.remove(0).stop().await;
    let nodes = world.hub(0).nodes().unwrap().clone();
    let forgotten = async {
        while nodes.has(lost) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(reads);
        while !heard_by().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, forgotten).await.expect("it is a hearer for ever");
    world.end().await;
}
