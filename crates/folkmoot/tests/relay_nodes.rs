//! Several `folkmoot relay` processes with one PostgreSQL: the nodes of one relay. A subscriber on
//! each hears all that any of them publishes, and what follows when one of them is killed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Generous: a machine that builds and tests at once is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// A short lease, so that a lost node is missed soon.
const CLUSTER: &str = "[cluster]\nlease_ms = 4000\n";
const SETTINGS: &str = "
[client]
allow_anonymous_connect_without_token = true
[http_api]
key = 'key'
[channel.without_namespace]
allow_subscribe_for_anonymous = true
history_size = 1000
history_ttl = '300s'
force_recovery = true
[[channel.namespaces]]
name = 'plain'
allow_subscribe_for_anonymous = true
presence = true
";
/// As many that each node has owners of some.
const CHANNELS: usize = 32;

struct Cluster {
    folder: PathBuf,
    postgres: PostgresServer,
    nodes: Vec<Node>,
}

struct Node {
    port: u16,
    process: Child,
}

impl Cluster {
    async fn start(test: &str, nodes: usize) -> Self {
        let folder =
            std::env::temp_dir().join(format!("folkmoot-relays-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary directory can be written");
        std::fs::write(folder.join("cluster.toml"), CLUSTER).expect("it can be written");
        std::fs::write(folder.join("relay.toml"), SETTINGS).expect("it can be written");
        let postgres = tokio::task::block_in_place(PostgresServer::start);
        let mut init = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        init.args(["cluster", "init", "--cluster", "relays"]).arg(folder.join("tls"));
        for number in 1..=nodes {
            init.args(["--node", &format!("n{number}")]);
        }
        assert!(init.stdout(Stdio::null()).status().await.expect("it runs").success());
        let mut cluster = Self { folder, postgres, nodes: Vec::new() };
        for number in 1..=nodes {
            let node = cluster.launch(&format!("n{number}")).await;
            cluster.nodes.push(node);
        }
        cluster
    }

    async fn launch(&self, name: &str) -> Node {
        let mut process = Command::new(env!("CARGO_BIN_EXE_folkmoot"))
            .env("FOLKMOOT_STORE", self.postgres.url())
            .args(["--cluster-name", "relays", "--node", name, "--log", "warn"])
            .arg("--cluster-certificates")
            .arg(self.folder.join("tls"))
            .arg("--config")
            .arg(self.folder.join("cluster.toml"))
            .args(["relay", "--at", "127.0.0.1:0", "--settings"])
            .arg(self.folder.join("relay.toml"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary is built");
        let said = process.stdout.take().expect("it is ours");
        let mut lines = BufReader::new(said).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it starts in time");
        let line = line.expect("its output is text").expect("a node says where it listens");
        let (_, port) = line.rsplit_once(':').unwrap_or_else(|| panic!("no port: {line}"));
        let port = port.parse().unwrap_or_else(|_| panic!("no port in: {line}"));
        Node { port, process }
    }

    /// Calls a method of the server API on a node, again while it says that it is worth that.
    async fn call(&self, node: usize, method: &str, params: &Value) -> Value {
        let until_answered = async {
            loop {
                let answer = self.nodes[node].post(method, params).await;
                match answer["error"]["code"].as_u64() {
                    None => return answer["result"].clone(),
                    Some(100 | 111 | 112 | 1_000..) => {}
                    Some(_) => panic!("{method}: {answer}"),
                }
            }
        };
        timeout(PATIENCE, until_answered).await.expect("it is answered in time")
    }

    async fn end(mut self) {
        for node in &mut self.nodes {
            node.process.kill().await.expect("our own child can be killed");
        }
        std::fs::remove_dir_all(&self.folder).expect("the directory is ours");
    }
}

impl Node {
    async fn post(&self, method: &str, params: &Value) -> Value {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await.expect("it is up");
        let body = params.to_string();
        let request = format!(
            "POST /api/{method} HTTP/1.1\r\nhost: here\r\nx-api-key: key\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.expect("it reads");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("it answers in text");
        let (_, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).expect("JSON")
    }
}

struct Subscriber {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

impl Subscriber {
    async fn connect(node: &Node) -> Self {
        let url = format!("ws://127.0.0.1:{}/connection/websocket", node.port);
        let (socket, _) = connect_async(url).await.expect("it takes connections");
        let mut subscriber = Self { socket, waiting: Vec::new() };
        subscriber.ask(json!({"id": 1, "connect": {}})).await;
        subscriber
    }

    /// Sends a command; its reply, which is no error.
    async fn ask(&mut self, command: Value) -> Value {
        let id = command["id"].clone();
        self.socket.send(Message::text(command.to_string())).await.expect("it is open");
        let mut pushes = Vec::new();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{command}: {message}");
                self.waiting.splice(0..0, pushes);
                return message;
            }
            pushes.push(message);
        }
    }

    async fn subscribe(&mut self, channel: &str) {
        let id = channel.bytes().fold(2_u64, |id, byte| id * 31 % 1_000_003 + u64::from(byte));
        self.ask(json!({"id": id + 2, "subscribe": {"channel": channel}})).await;
    }

    async fn message(&mut self) -> Value {
        loop {
            if !self.waiting.is_empty() {
                return self.waiting.remove(0);
            }
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            match frame.expect("it is open").expect("it reads") {
                Message::Text(text) if text == "{}" => {
                    self.socket.send(Message::text("{}")).await.expect("it is open");
                }
                Message::Text(text) => {
                    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
                    self.waiting = lines.collect();
                }
                _ => {}
            }
        }
    }

    /// The next push that is a publication or the end of a subscription: its channel and content.
    async fn push(&mut self) -> (String, Value) {
        loop {
            let push = self.message().await["push"].clone();
            if push["pub"].is_object() || push["unsubscribe"].is_object() {
                return (push["channel"].as_str().expect("a channel").to_owned(), push);
            }
        }
    }

    /// So many publications of each channel, in the order in which they came.
    async fn hear(&mut self, channels: &[String], count: usize) -> Vec<Vec<u64>> {
        let mut heard = vec![Vec::new(); channels.len()];
        for _ in 0..count * channels.len() {
            let (channel, push) = self.push().await;
            let place = channels.iter().position(|name| *name == channel).expect("one of them");
            heard[place].push(push["pub"]["data"].as_u64().unwrap_or_else(|| panic!("{push}")));
        }
        heard
    }
}

fn names(prefix: &str) -> Vec<String> {
    (0..CHANNELS).map(|number| format!("{prefix}{number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_of_two_processes_hear_all_once_and_in_order_and_history_is_the_same() {
    let cluster = Cluster::start("both", 2).await;
    let channels = names("c");
    let mut subscribers = Vec::new();
    for node in &cluster.nodes {
        let mut subscriber = Subscriber::connect(node).await;
        for channel in &channels {
            subscriber.subscribe(channel).await;
        }
        subscribers.push(subscriber);
    }
    for number in 0..10 {
        for channel in &channels {
            cluster.call(number % 2, "publish", &json!({"channel": channel, "data": number})).await;
        }
    }
    for subscriber in &mut subscribers {
        let heard = subscriber.hear(&channels, 10).await;
        assert!(heard.iter().all(|heard| *heard == (0..10).collect::<Vec<_>>()), "{heard:?}");
    }
    for channel in &channels {
        let asked = json!({"channel": channel, "limit": -1});
        let kept = cluster.call(0, "history", &asked).await;
        assert_eq!(kept["publications"].as_array().map(Vec::len), Some(10));
        assert_eq!(cluster.call(1, "history", &asked).await, kept);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_node_is_killed_its_channels_begin_anew_and_subscribers_are_told() {
    let mut cluster = Cluster::start("kill", 3).await;
    let (channels, plain) = (names("c"), names("plain:p"));
    let mut subscriber = Subscriber::connect(&cluster.nodes[0]).await;
    let mut lost = Subscriber::connect(&cluster.nodes[2]).await;
    for channel in channels.iter().chain(&plain) {
        subscriber.subscribe(channel).await;
        lost.subscribe(channel).await;
    }
    let mut epochs = Vec::new();
    for channel in channels.iter().chain(&plain) {
        cluster.call(0, "publish", &json!({"channel": channel, "data": 0})).await;
    }
    for channel in &channels {
        let kept = cluster.call(0, "history", &json!({"channel": channel})).await;
        epochs.push(kept["epoch"].clone());
    }
    let all: Vec<_> = channels.iter().chain(&plain).cloned().collect();
    subscriber.hear(&all, 1).await;
    cluster.nodes[2].process.kill().await.expect("our own child can be killed");
    cluster.nodes.remove(2);

    // Nobody publishes yet, and who has a position is told that it is lost.
    let mut first = Some(subscriber.push().await);
    assert_eq!(first.as_ref().unwrap().1["unsubscribe"]["code"], 2500, "{first:?}");

    // Every channel is published into again, by whichever node, and no subscription is silent.
    for channel in &all {
        // What was asked of the node that was killed may be asked again.
        let again = json!({"channel": channel, "data": 1, "idempotency_key": "after"});
        cluster.call(1, "publish", &again).await;
    }
    let (mut told, mut kept) = (0, 0);
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < all.len() {
        let (channel, push) = match first.take() {
            Some(first) => first,
            None => subscriber.push().await,
        };
        assert!(seen.insert(channel.clone()), "{channel} is told once: {push}");
        match push["unsubscribe"]["code"].as_u64() {
            None => {
                assert_eq!(push["pub"]["data"], 1, "{channel}");
                kept += 1;
            }
            Some(code) => {
                assert_eq!((code, channel.starts_with("plain:")), (2500, false), "{channel}");
                let place = channels.iter().position(|name| *name == channel).expect("one of them");
                let since = json!({
                    "channel": channel, "recover": true, "offset": 1, "epoch": epochs[place],
                });
                let reply = subscriber.ask(json!({"id": 900_000 + place, "subscribe": since}));
                let reply = reply.await["subscribe"].clone();
                assert_ne!(reply["recovered"], true, "{reply}");
                assert_ne!(reply["epoch"], epochs[place]);
                told += 1;
            }
        }
    }
    // Some were owned by the node that was killed, others were not and went on.
    assert!(told > 0 && kept > CHANNELS, "{told} told, {kept} kept");
    // Nobody is present any more who was on the node that was killed.
    let stats = cluster.call(0, "presence_stats", &json!({"channel": plain[0]})).await;
    assert_eq!(stats["num_clients"], 1);
    cluster.end().await;
}

/// Where a subscriber is in a channel.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    epoch: String,
    offset: u64,
}

impl Place {
    fn of(told: &Value) -> Self {
        let epoch = told["epoch"].as_str().expect("an epoch").to_owned();
        Self { epoch, offset: told["offset"].as_u64().unwrap_or_default() }
    }

    fn hear(&mut self, publication: &Value) {
        let offset = publication["offset"].as_u64().expect("an offset");
        assert_eq!(offset, self.offset + 1, "missed, doubled or out of order: {publication}");
        self.offset = offset;
    }
}

/// Subscribes from a place on; where the subscriber is then.
async fn come_back(subscriber: &mut Subscriber, id: usize, channel: &str, was: &Place) -> Place {
    let Place { epoch, offset } = was;
    let since = json!({"channel": channel, "recover": true, "epoch": epoch, "offset": offset});
    let reply = subscriber.ask(json!({"id": id, "subscribe": since})).await["subscribe"].clone();
    let now = Place::of(&reply);
    if reply["recovered"] == true {
        let mut place = was.clone();
        let missed = reply["publications"].as_array().cloned().unwrap_or_default();
        missed.iter().for_each(|one| place.hear(one));
        assert_eq!(place, now, "a recovery that says it is whole");
    }
    now
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_node_is_killed_no_subscriber_misses_anything_without_being_told() {
    let mut cluster = Cluster::start("load", 3).await;
    let channels = names("c");
    let mut subscriber = Subscriber::connect(&cluster.nodes[0]).await;
    let mut places = Vec::new();
    for (id, channel) in (2..).zip(&channels) {
        let asked = json!({"id": id, "subscribe": {"channel": channel}});
        places.push(Place::of(&subscriber.ask(asked).await["subscribe"]));
    }
    let killed = cluster.nodes.pop().expect("three of them");
    let publishing = async {
        for number in 0..60 {
            for (place, channel) in channels.iter().enumerate() {
                let key = format!("{number}");
                let post = json!({"channel": channel, "data": number, "idempotency_key": key});
                cluster.call((number + place) % 2, "publish", &post).await;
            }
        }
        let mut tops = Vec::new();
        for channel in &channels {
            let asked = json!({"channel": channel, "limit": 0});
            tops.push(Place::of(&cluster.call(0, "history", &asked).await));
        }
        tops
    };
    let killing = async {
        let mut process = killed.process;
        // Some have been published by then, and most have not.
        cluster.call(1, "info", &json!({})).await;
        process.kill().await.expect("our own child can be killed");
    };
    let mut done = Box::pin(async { tokio::join!(publishing, killing).0 });
    let (mut tops, mut told) = (None, 0);
    while tops.as_ref() != Some(&places) {
        let (channel, push) = tokio::select! {
            all = &mut done, if tops.is_none() => {
                tops = Some(all);
                continue;
            }
            push = subscriber.push() => push,
        };
        let at = channels.iter().position(|name| *name == channel).expect("one of them");
        if push["pub"].is_object() {
            places[at].hear(&push["pub"]);
        } else {
            assert_eq!(push["unsubscribe"]["code"], 2500);
            told += 1;
            let id = 1_000 + told;
            places[at] = come_back(&mut subscriber, id, &channel, &places[at].clone()).await;
        }
    }
    assert!(told > 0, "the node that was killed owned some of the channels");
    drop(done);
    cluster.end().await;
}
