//! A relay with several nodes: what is published by one is heard on all, once and in order, while
//! owners of channels move; and what is asked of one node counts for all. The nodes are in one
//! process and talk over TCP; `crates/folkmoot/tests/relay_nodes` has real processes.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use althing_cluster::{Authority, Member, MemberConfig, Role, Tls};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, StartError, start_as_node};
use serde_json::{Value, json};
use support::asked::Asked;
use support::{Listener, post};

/// Nobody is killed here, and a busy machine must not look like that.
const LEASE: Duration = Duration::from_secs(10);

const SETTINGS: &str = "
[client]
allow_anonymous_connect_without_token = true
queue_max_size = 67108864
[client.token]
hmac_secret_key = 'secret'
[http_api]
key = 'key'
[channel.without_namespace]
allow_subscribe_for_client = true
allow_subscribe_for_anonymous = true
allow_history_for_subscriber = true
allow_history_for_anonymous = true
allow_publish_for_subscriber = true
history_size = 1000
history_ttl = '300s'
force_recovery = true
presence = true
[[channel.namespaces]]
name = 'plain'
allow_subscribe_for_client = true
allow_subscribe_for_anonymous = true
presence = true
join_leave = true
force_push_join_leave = true
";

/// An authority, and nodes that share their channels.
struct Cluster {
    _directory: tempfile::TempDir,
    authority: Authority,
    settings: String,
    nodes: Vec<Relay>,
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Cluster {
    async fn start(nodes: usize) -> Self {
        Self::start_with(nodes, "").await
    }

    /// Nodes with further settings.
    async fn start_with(nodes: usize, settings: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let tls = Tls::insecure_plaintext();
        let authority = Authority::start("moot", directory.path(), any_port(), LEASE, tls);
        let authority = authority.expect("it starts");
        let settings = format!("{SETTINGS}{settings}");
        let mut cluster = Self { _directory: directory, authority, settings, nodes: Vec::new() };
        for _ in 0..nodes {
            cluster.join().await;
        }
        cluster
    }

    fn member(&self, name: &str, role: Role) -> Arc<Member> {
        let authority = self.authority.address().to_string();
        let config = MemberConfig::new("moot", name, authority, Tls::insecure_plaintext());
        let config = config.role(role);
        Arc::new(Member::bind(config).expect("any port"))
    }

    /// One more node.
    async fn join(&mut self) {
        self.join_as(Role::Host).await;
    }

    async fn join_as(&mut self, role: Role) {
        let settings = Settings::from_toml(&self.settings).expect("they are valid");
        let member = self.member(&format!("n{}", self.nodes.len() + 1), role);
        self.nodes.push(start_as_node(settings, any_port(), member).await.expect("it joins"));
    }

    async fn end(self) {
        for node in self.nodes {
            node.stop().await;
        }
    }
}

/// What a method of the server API answers.
async fn call(node: &Relay, method: &str, params: Value) -> Value {
    let answer = post(node, method, &params).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let answer: Value = serde_json::from_str(body).expect("JSON");
    assert!(answer["error"].is_null(), "{method} {params}: {answer}");
    answer["result"].clone()
}

async fn publish(node: &Relay, channel: &str, data: usize) -> Value {
    call(node, "publish", json!({ "channel": channel, "data": data })).await
}

fn whole(data: &Value) -> usize {
    data.as_u64().and_then(|data| usize::try_from(data).ok()).expect("a number")
}

/// So many publications of one channel.
async fn heard(listener: &mut Listener, channel: &str, count: usize) -> Vec<usize> {
    let mut heard = Vec::new();
    while heard.len() < count {
        let (from, data) = listener.publication().await;
        if from == channel {
            heard
                .push(data.as_u64().and_then(|data| usize::try_from(data).ok()).expect("a number"));
        }
    }
    heard
}

async fn history(node: &Relay, channel: &str) -> (String, Vec<(u64, u64)>) {
    let page = call(node, "history", json!({ "channel": channel, "limit": -1 })).await;
    let publications = page["publications"].as_array().cloned().unwrap_or_default();
    let place = |one: &Value| {
        (one["offset"].as_u64().expect("a number"), one["data"].as_u64().expect("a number"))
    };
    (page["epoch"].as_str().expect("an epoch").to_owned(), publications.iter().map(place).collect())
}

/// Channels of several owners.
fn channels() -> Vec<String> {
    (0..16).map(|number| format!("channel{number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_on_two_nodes_hear_all_once_and_in_order_whichever_it_was_published_by() {
    let cluster = Cluster::start(2).await;
    let names = channels();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut listeners = Vec::new();
    for node in &cluster.nodes {
        listeners.push(Listener::subscribe(node, &names).await);
    }
    for number in 0..20 {
        for name in &names {
            publish(&cluster.nodes[number % 2], name, number).await;
        }
    }
    for listener in &mut listeners {
        let mut heard = vec![Vec::new(); names.len()];
        for _ in 0..20 * names.len() {
            let (channel, data) = listener.publication().await;
            let place = names.iter().position(|name| *name == channel).expect("one of them");
            heard[place].push(data.as_u64().unwrap());
        }
        assert!(heard.iter().all(|heard| *heard == (0..20).collect::<Vec<_>>()), "{heard:?}");
    }
    for name in &names {
        let (epoch, kept) = history(&cluster.nodes[0], name).await;
        assert_eq!(kept, (0..20).map(|number| (number + 1, number)).collect::<Vec<_>>());
        assert_eq!(history(&cluster.nodes[1], name).await, (epoch, kept));
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_publishes_once_whichever_nodes_it_is_given_to() {
    let cluster = Cluster::start(2).await;
    for name in channels() {
        let params = json!({ "channel": name, "data": 1, "idempotency_key": "k" });
        let first = call(&cluster.nodes[0], "publish", params.clone()).await;
        assert_eq!(call(&cluster.nodes[1], "publish", params).await, first);
        assert_eq!(history(&cluster.nodes[1], &name).await.1, [(1, 1)]);
    }
    cluster.end().await;
}

/// The id of the next one of whom somebody hears that it comes.
async fn who_comes(listener: &mut Listener) -> Value {
    loop {
        let message = listener.message().await;
        if !message["push"]["join"].is_null() {
            return message["push"]["join"]["info"]["client"].clone();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wants_all_or_nothing_is_not_subscribed_where_something_is_lost() {
    let settings = "
[[channel.namespaces]]
name = 'short'
allow_subscribe_for_client = true
allow_subscribe_for_anonymous = true
join_leave = true
force_push_join_leave = true
history_size = 1
history_ttl = '300s'
force_recovery = true
";
    let cluster = Cluster::start_with(2, settings).await;
    for text in ["a", "b", "c"] {
        call(&cluster.nodes[0], "publish", json!({ "channel": "short:x", "data": text })).await;
    }
    let mut all = Vec::new();
    for node in &cluster.nodes {
        let mut witness = Listener::subscribe(node, &["short:x"]).await;
        who_comes(&mut witness).await;
        let mut client = Listener::subscribe(node, &[]).await;
        let from = |offset: u64| json!({ "channel": "short:x", "recover": true, "offset": offset, "flag": 2 });
        let refused = client.reply(json!({ "id": 5, "subscribe": from(1) })).await;
        assert_eq!(refused["error"]["code"], 112);
        let whole = client.ask(json!({ "id": 6, "subscribe": from(2) })).await;
        assert_eq!(whole["subscribe"]["publications"][0]["data"], "c");
        client.ask(json!({ "id": 7, "unsubscribe": { "channel": "short:x" } })).await;
        // Who was refused has not come: it comes once, and goes.
        let came = who_comes(&mut witness).await;
        let next = witness.message().await;
        assert_eq!(next["push"]["leave"]["info"]["client"], came, "{next}");
        all.push((witness, client));
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn presence_and_channels_and_info_are_those_of_all_nodes() {
    let cluster = Cluster::start(2).await;
    let mut first = Listener::subscribe(&cluster.nodes[0], &["plain:a", "only-here"]).await;
    let mut second = Listener::subscribe(&cluster.nodes[1], &["plain:a"]).await;
    // Everybody hears who comes to any node, and of itself.
    let itself = who_comes(&mut first).await;
    let newcomer = who_comes(&mut first).await;
    assert!(itself != newcomer && who_comes(&mut second).await == newcomer);
    for node in &cluster.nodes {
        let present = call(node, "presence", json!({ "channel": "plain:a" })).await;
        let present = present["presence"].as_object().unwrap();
        assert_eq!(present.len(), 2);
        assert!(present.contains_key(newcomer.as_str().unwrap()));
        let stats = call(node, "presence_stats", json!({ "channel": "plain:a" })).await;
        assert_eq!(stats["num_clients"], 2);
        let listed = call(node, "channels", json!({})).await;
        assert_eq!(listed["channels"]["plain:a"]["num_clients"], 2);
        assert_eq!(listed["channels"]["only-here"]["num_clients"], 1);
        let info = call(node, "info", json!({})).await;
        let nodes = info["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes.iter().map(|node| node["num_clients"].as_u64().unwrap()).sum::<u64>(), 2);
        let ids: BTreeSet<_> = nodes.iter().map(|node| node["uid"].to_string()).collect();
        assert_eq!(ids.len(), 2);
    }
    second.ask(json!({"id": 50, "unsubscribe": {"channel": "plain:a"}})).await;
    loop {
        let message = first.message().await;
        if !message["push"]["leave"].is_null() {
            assert_eq!(message["push"]["leave"]["info"]["client"], newcomer);
            break;
        }
    }
    let stats = call(&cluster.nodes[0], "presence_stats", json!({ "channel": "plain:a" })).await;
    assert_eq!(stats["num_clients"], 1);
    cluster.end().await;
}

/// A connection of a user, with a token.
async fn user(node: &Relay) -> Listener {
    // {"sub":"ada"} signed with `secret`.
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEifQ.\
                 -G7HR4Se6onpiv1N_jWqt9jGA0VR0kRJ_2BoHWhkfhg";
    let mut listener = Listener::open(node, &[]).await;
    listener.ask(json!({"id": 1, "connect": {"token": token}})).await;
    listener
}

/// The next push of a kind.
async fn push(listener: &mut Listener, kind: &str) -> Value {
    loop {
        let message = listener.message().await;
        if !message["push"][kind].is_null() {
            return message["push"].clone();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_to_a_user_is_done_on_every_node() {
    let cluster = Cluster::start(2).await;
    let mut connections = [user(&cluster.nodes[0]).await, user(&cluster.nodes[1]).await];
    let node = &cluster.nodes[0];
    call(node, "subscribe", json!({ "user": "ada", "channel": "news" })).await;
    for connection in &mut connections {
        assert_eq!(push(connection, "subscribe").await["channel"], "news");
    }
    publish(&cluster.nodes[1], "news", 7).await;
    for connection in &mut connections {
        assert_eq!(connection.publication().await, ("news".to_owned(), json!(7)));
    }
    call(node, "refresh", json!({ "user": "ada", "expire_at": 4_000_000_000_i64 })).await;
    for connection in &mut connections {
        assert_eq!(push(connection, "refresh").await["refresh"]["expires"], true);
    }
    call(node, "unsubscribe", json!({ "user": "ada", "channel": "news" })).await;
    for connection in &mut connections {
        assert_eq!(push(connection, "unsubscribe").await["unsubscribe"]["code"], 2000);
    }
    call(node, "disconnect", json!({ "user": "ada" })).await;
    for connection in &mut connections {
        assert_eq!(connection.end().await.0, 3503);
    }
    let stats = call(node, "channels", json!({})).await;
    assert_eq!(stats["channels"], json!({}));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_others_publish_gets_all_since_its_position_once() {
    let cluster = Arc::new(Cluster::start(2).await);
    let name = "busy";
    let first = publish(&cluster.nodes[0], name, 0).await;
    let publisher = {
        let cluster = cluster.clone();
        tokio::spawn(async move {
            for number in 1..=300 {
                publish(&cluster.nodes[number % 2], name, number).await;
            }
        })
    };
    let mut listeners = Vec::new();
    for number in 0..12 {
        let mut listener = Listener::open(&cluster.nodes[number % 2], &[]).await;
        listener.ask(json!({"id": 1, "connect": {}})).await;
        let since = json!({
            "channel": name, "recover": true, "offset": first["offset"], "epoch": first["epoch"]
        });
        let reply = listener.ask(json!({"id": 2, "subscribe": since})).await;
        assert_eq!(reply["subscribe"]["recovered"], true, "{reply}");
        let missed = reply["subscribe"]["publications"].as_array().cloned().unwrap_or_default();
        let missed: Vec<_> = missed.iter().map(|one| whole(&one["data"])).collect();
        listeners.push((listener, missed));
    }
    publisher.await.unwrap();
    for (mut listener, mut all) in listeners {
        let rest = 300 - all.len();
        all.extend(heard(&mut listener, name, rest).await);
        assert_eq!(all, (1..=300).collect::<Vec<_>>());
    }
    Arc::into_inner(cluster).expect("nobody else has it").end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_hear_all_once_and_in_order_while_owners_move() {
    let mut cluster = Cluster::start(2).await;
    let names = channels();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut plain: Vec<_> = names.iter().map(|name| format!("plain:{name}")).collect();
    plain.extend(names.iter().map(ToString::to_string));
    let all: Vec<_> = plain.iter().map(String::as_str).collect();
    let mut listener = Listener::subscribe(&cluster.nodes[0], &all).await;
    let mut epochs = Vec::new();
    let mut next = 0;
    let mut round = async |cluster: &Cluster| {
        for name in &all {
            publish(&cluster.nodes[next % cluster.nodes.len()], name, next).await;
        }
        next += 1;
    };
    round(&cluster).await;
    for name in &names {
        epochs.push(history(&cluster.nodes[0], name).await.0);
    }
    // A node comes and gets its share, another one goes and gives its share away.
    cluster.join().await;
    for _ in 0..5 {
        round(&cluster).await;
    }
    let leaving = cluster.nodes.remove(1);
    let left = tokio::spawn(leaving.stop());
    for _ in 0..20 {
        round(&cluster).await;
    }
    left.await.unwrap();
    for _ in 0..4 {
        round(&cluster).await;
    }
    let mut heard = vec![Vec::new(); all.len()];
    for _ in 0..30 * all.len() {
        let (channel, data) = listener.publication().await;
        let place = all.iter().position(|name| *name == channel).expect("one of them");
        heard[place].push(data.as_u64().unwrap());
    }
    for (name, heard) in all.iter().zip(heard) {
        assert_eq!(heard, (0..30).collect::<Vec<_>>(), "{name}");
    }
    for (name, epoch) in names.iter().zip(epochs) {
        let kept: Vec<_> = (0..30).map(|number| (number + 1, number)).collect();
        assert_eq!(history(&cluster.nodes[1], name).await, (epoch, kept), "{name}");
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_only_takes_connections_owns_no_channels_and_its_clients_hear_all() {
    let mut cluster = Cluster::start(1).await;
    cluster.join_as(Role::Guest).await;
    let names = channels();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut listener = Listener::subscribe(&cluster.nodes[1], &names).await;
    for name in &names {
        publish(&cluster.nodes[1], name, 7).await;
        assert_eq!(listener.publication().await, (name.to_string(), json!(7)));
    }
    let page = support::get(&cluster.nodes[1], "/metrics", "").await;
    let owners = page.lines().filter(|line| line.contains("relay.owner"));
    let live = owners.filter(|line| line.starts_with("althing_actors_live"));
    assert!(live.clone().all(|line| line.ends_with(" 0")), "{:?}", live.collect::<Vec<_>>());
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_known_after_its_owner_has_moved() {
    let mut cluster = Cluster::start(1).await;
    let names = channels();
    let mut first = Vec::new();
    for name in &names {
        let params = json!({ "channel": name, "data": 1, "idempotency_key": "k" });
        first.push(call(&cluster.nodes[0], "publish", params).await);
    }
    cluster.join().await;
    // All of them move.
    cluster.nodes.remove(0).stop().await;
    for (name, first) in names.iter().zip(first) {
        let params = json!({ "channel": name, "data": 1, "idempotency_key": "k" });
        assert_eq!(call(&cluster.nodes[0], "publish", params).await, first);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_come_to_another_node_than_their_session_reach_it() {
    let cluster = Cluster::start(2).await;
    let connect = json!({"id": 1, "connect": {}}).to_string();
    let head = "POST /connection/http_stream HTTP/1.1";
    let mut stream = Asked::request(&cluster.nodes[0], head, &connect).await;
    let text = stream.until("\"node\"").await;
    let line = text.lines().find(|line| line.contains("\"node\"")).expect("a reply");
    let reply: Value = serde_json::from_str(line).expect("JSON");
    let (session, node) = (&reply["connect"]["session"], &reply["connect"]["node"]);
    let command = json!({"id": 2, "subscribe": {"channel": "news"}}).to_string();
    let body = json!({ "session": session, "node": node, "data": command }).to_string();
    let head = "POST /emulation HTTP/1.1";
    assert_eq!(Asked::request(&cluster.nodes[1], head, &body).await.status(), 204);
    stream.until("\"subscribe\"").await;
    publish(&cluster.nodes[1], "news", 3).await;
    stream.until("\"data\":3").await;
    let body = json!({ "session": "none", "node": "none", "data": "{}" }).to_string();
    assert_eq!(Asked::request(&cluster.nodes[1], head, &body).await.status(), 404);
    cluster.end().await;
}

/// How many messages the sites of these nodes have got from others.
async fn asked(nodes: &[Relay]) -> u64 {
    let mut all = 0;
    for node in nodes {
        let page = support::get(node, "/metrics", "").await;
        let line = "althing_messages_handled_total{actor=\"relay.site\"} ";
        let count =
            page.lines().find_map(|one| one.strip_prefix(line)).expect("a site has messages");
        all += count.parse::<u64>().expect("a number");
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_for_sessions_that_nobody_has_ask_one_node_at_most_and_not_for_long() {
    const JUNK: usize = 500;
    let cluster = Cluster::start(3).await;
    let head = "POST /emulation HTTP/1.1";
    let status = async |body: &str| Asked::request(&cluster.nodes[1], head, body).await.status();
    let connect = json!({"id": 1, "connect": {}}).to_string();
    let stream = "POST /connection/http_stream HTTP/1.1";
    let mut stream = Asked::request(&cluster.nodes[0], stream, &connect).await;
    let text = stream.until("\"node\"").await;
    let line = text.lines().find(|line| line.contains("\"node\"")).expect("a reply");
    let reply: Value = serde_json::from_str(line).expect("JSON");
    let (session, node) = (&reply["connect"]["session"], &reply["connect"]["node"]);
    let body = |node: &Value, session: &Value| {
        json!({ "session": session, "node": node, "data": "{}" }).to_string()
    };
    // Owners of channels begin, and ask each site.
    let mut before = 0;
    while before != asked(&cluster.nodes).await {
        before = asked(&cluster.nodes).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let unknown = body(&"none".into(), &"none".into());
    for _ in 0..JUNK {
        assert_eq!(status(&unknown).await, 404);
        assert_eq!(status(&"x".repeat(64 * 1024)).await, 400);
    }
    assert_eq!(asked(&cluster.nodes).await, before, "nobody was asked for what has no node");
    let stray = body(node, &"none".into());
    let mut refused = 0;
    for _ in 0..JUNK {
        refused += usize::from(status(&stray).await == 429);
    }
    let asked = usize::try_from(asked(&cluster.nodes).await - before).expect("a number");
    assert!(refused > JUNK / 2, "only {refused} were refused");
    assert!(asked <= JUNK - refused, "{asked} questions for {} requests", JUNK - refused);
    // Who has its session there, and another address, is heard all the while.
    let known = body(node, session);
    let other = "POST /emulation HTTP/1.1\r\nX-Forwarded-For: 203.0.113.5";
    assert_eq!(Asked::request(&cluster.nodes[1], other, &known).await.status(), 204);
    assert_eq!(Asked::request(&cluster.nodes[0], head, &known).await.status(), 204);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_one_outbox_are_heard_on_all_nodes_once_and_in_order_whichever_reads_them() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let consumer = format!(
        "[[consumers]]\nname = 'outbox'\ntype = 'postgresql'\n[consumers.postgresql]\n\
         dsn = '{}'\nnum_partitions = 2\npartition_select_limit = 3\n\
         partition_poll_interval = '5ms'\n",
        server.url()
    );
    let cluster = Cluster::start_with(2, &consumer).await;
    let mut listeners = Vec::new();
    for node in &cluster.nodes {
        listeners.push(Listener::subscribe(node, &["row0", "row1"]).await);
    }
    let client = support::database(&server.url()).await.expect("it connects");
    let known = "SELECT 1 FROM pg_tables WHERE tablename = 'centrifugo_outbox'";
    while client.query_opt(known, &[]).await.unwrap().is_none() {}
    for number in 0..100_i64 {
        for partition in 0..2_i32 {
            let payload = json!({ "channel": format!("row{partition}"), "data": number });
            let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                          VALUES ('publish', $1::text::jsonb, $2)";
            client.execute(insert, &[&payload.to_string(), &partition]).await.unwrap();
        }
    }
    for listener in &mut listeners {
        let mut heard = [Vec::new(), Vec::new()];
        for _ in 0..200 {
            let (channel, data) = listener.publication().await;
            heard[usize::from(channel == "row1")].push(whole(&data));
        }
        assert!(heard.iter().all(|heard| *heard == (0..100).collect::<Vec<_>>()), "{heard:?}");
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_several_nodes_cannot_keep_are_named_at_the_start() {
    let cluster = Cluster::start(0).await;
    let directory = tempfile::tempdir().unwrap();
    let durable = format!(
        "[channel]\nhistory_directory = '{}'\n[[channel.namespaces]]\nname = 'kept'\n\
         durable_history = true\nhistory_size = 1\nhistory_ttl = '1s'\n",
        directory.path().display()
    );
    let single = "[client.subscribe_to_user_personal_channel]\nenabled = true\n\
                  single_connection = true\n[channel.without_namespace]\n\
                  allow_user_limited_channels = true\n";
    for (text, setting) in [(&*durable, "kept: durable_history"), (single, "single_connection")] {
        let settings = Settings::from_toml(text).expect("a relay that is alone takes them");
        let error = start_as_node(settings, any_port(), cluster.member("n1", Role::Host))
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::Settings(_)), "{error}");
        assert!(error.to_string().contains(setting), "{error}");
    }
    cluster.end().await;
}

/// Many of them are far more than a frame between these nodes, which has four megabytes.
const LARGE: usize = 400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_publications_at_once_are_heard_on_all_nodes_once_and_in_order() {
    let cluster = Cluster::start(2).await;
    let mut listeners = Vec::new();
    for node in &cluster.nodes {
        listeners.push(Listener::subscribe(node, &["news"]).await);
    }
    let word = "x".repeat(LARGE);
    let publishing = async {
        let posts = (0..40).map(|_| {
            call(&cluster.nodes[0], "publish", json!({ "channel": "news", "data": word }))
        });
        futures_util::future::join_all(posts).await;
    };
    let hearing = async {
        for _ in 0..40 {
            for listener in &mut listeners {
                let (_, data) = listener.publication().await;
                assert_eq!(data.as_str().map(str::len), Some(LARGE));
            }
        }
    };
    tokio::join!(publishing, hearing);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_larger_than_a_frame_moves_with_its_owner() {
    let mut cluster = Cluster::start(1).await;
    let names: Vec<String> = (0..8).map(|number| format!("large{number}")).collect();
    let mut before = Vec::new();
    let large = "x".repeat(LARGE);
    for (name, is_tagged) in names.iter().zip([false, true].into_iter().cycle()) {
        for number in 0..15 {
            let (data, tag) = if is_tagged { ("", large.as_str()) } else { (large.as_str(), "") };
            let data = format!("{number} {data}");
            let one = json!({ "channel": name, "data": data, "tags": { "tag": tag } });
            call(&cluster.nodes[0], "publish", one).await;
        }
        before.push(call(&cluster.nodes[0], "history", json!({ "channel": name })).await);
    }
    cluster.join().await;
    // All of them move.
    cluster.nodes.remove(0).stop().await;
    for (name, before) in names.iter().zip(before) {
        let after = call(&cluster.nodes[0], "history", json!({ "channel": name })).await;
        assert_eq!((&after["epoch"], &after["offset"]), (&before["epoch"], &before["offset"]));
        let one = json!({ "channel": name, "limit": 1 });
        let first = call(&cluster.nodes[0], "history", one).await;
        assert!(
            first["publications"][0]["data"].as_str().is_some_and(|data| data.starts_with("0 "))
        );
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_no_frame_holds_is_set_aside_and_holds_nobody_up() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let consumer = format!(
        "[[consumers]]\nname = 'outbox'\ntype = 'postgresql'\n[consumers.postgresql]\ndsn = '{}'\n",
        server.url()
    );
    let cluster = Cluster::start_with(2, &consumer).await;
    let mut listener = Listener::subscribe(&cluster.nodes[0], &["news"]).await;
    let client = support::database(&server.url()).await.expect("it connects");
    let known = "SELECT 1 FROM pg_tables WHERE tablename = 'centrifugo_outbox'";
    while client.query_opt(known, &[]).await.unwrap().is_none() {}
    let insert = "INSERT INTO centrifugo_outbox (method, payload) SELECT 'broadcast',
                  jsonb_build_object('channels', $2::text[], 'data', repeat('x', $1))";
    // Some of them are the other node's.
    let many: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let news = vec!["news".to_owned()];
    for (len, channels) in [(34_000_000, &news), (34_000_000, &many), (1, &news)] {
        client.execute(insert, &[&len, channels]).await.unwrap();
    }
    assert_eq!(listener.publication().await.1, "x");
    let failed = "SELECT error FROM centrifugo_outbox_failed";
    let mut rows = Vec::new();
    while rows.len() < 2 {
        rows = client.query(failed, &[]).await.unwrap();
    }
    for row in rows {
        let error: &str = row.get(0);
        assert!(error.contains("bytes is over the limit of 33554432"), "{error}");
    }
    cluster.end().await;
}

/// Publishes so many numbers into each channel without waiting for the replies.
async fn publish_all(client: &mut Listener, names: &[String], rounds: usize, first_id: usize) {
    for round in 0..rounds {
        for (place, name) in names.iter().enumerate() {
            // Long ones, which take longer on their way, between short ones.
            let filling = if (round + place) % 3 == 1 { 20_000 } else { 1 };
            let data = json!([round, "x".repeat(filling)]);
            let id = first_id + round * names.len() + place;
            client.send(json!({ "id": id, "publish": { "channel": name, "data": data } })).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_publishes_comes_in_its_order_wherever_the_owner_is_and_moves_to() {
    const ROUNDS: usize = 40;
    let mut cluster = Cluster::start(2).await;
    let names = channels();
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    let mut witness = Listener::subscribe(&cluster.nodes[1], &all).await.beside();
    let mut client = Listener::subscribe(&cluster.nodes[0], &all).await;
    publish_all(&mut client, &names, ROUNDS, 100).await;
    // While owners move to a third node.
    tokio::join!(publish_all(&mut client, &names, ROUNDS, 10_000), cluster.join());
    let mut replies = BTreeSet::new();
    let mut refused = 0;
    while replies.len() < 2 * ROUNDS * names.len() {
        let message = client.message().await;
        if let Some(id) = message["id"].as_u64() {
            replies.insert(id);
            refused += usize::from(!message["error"].is_null());
        }
    }
    for name in &names {
        call(&cluster.nodes[2], "publish", json!({ "channel": name, "data": "end" })).await;
    }
    let mut heard = BTreeMap::<String, Vec<u64>>::new();
    let mut ended = 0;
    while ended < names.len() {
        let (channel, data) = witness.recv().await.expect("it listens");
        match data[0].as_u64() {
            Some(round) => heard.entry(channel).or_default().push(round),
            None => ended += 1,
        }
    }
    let count: usize = heard.values().map(Vec::len).sum();
    assert_eq!(count, replies.len() - refused);
    for (channel, rounds) in heard {
        // Each number once in the first half and once in the second.
        let falls = rounds.windows(2).filter(|pair| pair[1] <= pair[0]).count();
        assert!(falls <= 1, "{channel}: {rounds:?}");
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_nobody_would_keep_go_on_for_who_hears_them_while_their_owner_moves() {
    let short = "[[channel.namespaces]]\nname = 'short'\nallow_subscribe_for_anonymous = true\n\
                 history_size = 10\nhistory_ttl = '1s'\nhistory_meta_ttl = '1s'\n\
                 force_recovery = true\n";
    let mut cluster = Cluster::start_with(1, short).await;
    let names: Vec<String> = (0..16).map(|number| format!("short:{number}")).collect();
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    let mut listener = Listener::subscribe(&cluster.nodes[0], &all).await;
    for offset in 1..=2 {
        for name in &names {
            publish(&cluster.nodes[offset - 1], name, offset).await;
            let push = listener.message().await;
            let push = &push["push"];
            assert_eq!((&push["channel"], &push["pub"]["offset"]), (&json!(name), &json!(offset)));
        }
        if offset == 1 {
            // Longer than the numbers would be kept, were there nobody.
            tokio::time::sleep(Duration::from_millis(3_500)).await;
            cluster.join().await;
        }
    }
    cluster.end().await;
}
