//! Relay processes that are nodes of one relay, with their PostgreSQL, and a subscriber of one of
//! them.

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
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
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
pub(crate) const CHANNELS: usize = 32;

pub(crate) struct Cluster {
    folder: PathBuf,
    pub(crate) postgres: PostgresServer,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    port: u16,
    pub(crate) process: Child,
}

impl Cluster {
    pub(crate) async fn start(test: &str, nodes: usize) -> Self {
        let postgres = tokio::task::block_in_place(PostgresServer::start);
        Self::start_on(postgres, test, &vec!["both"; nodes], "").await
    }

    /// Nodes in these roles, with further settings for all of them.
    pub(crate) async fn start_on(
        postgres: PostgresServer,
        test: &str,
        roles: &[&str],
        settings: &str,
    ) -> Self {
        let folder =
            std::env::temp_dir().join(format!("folkmoot-relays-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary directory can be written");
        std::fs::write(folder.join("cluster.toml"), CLUSTER).expect("it can be written");
        let settings = format!("{SETTINGS}{settings}");
        std::fs::write(folder.join("relay.toml"), settings).expect("it can be written");
        let mut init = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        init.args(["cluster", "init", "--cluster", "relays"]).arg(folder.join("tls"));
        for number in 1..=roles.len() {
            init.args(["--node", &format!("n{number}")]);
        }
        assert!(init.stdout(Stdio::null()).status().await.expect("it runs").success());
        let mut cluster = Self { folder, postgres, nodes: Vec::new() };
        for (number, role) in (1..).zip(roles) {
            let node = cluster.launch(&format!("n{number}"), role).await;
            cluster.nodes.push(node);
        }
        cluster
    }

    async fn launch(&self, name: &str, role: &str) -> Node {
        let mut process = Command::new(env!("CARGO_BIN_EXE_folkmoot"))
            .env("FOLKMOOT_STORE", self.postgres.url())
            .args(["--cluster-name", "relays", "--node", name, "--role", role, "--log", "warn"])
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
    pub(crate) async fn call(&self, node: usize, method: &str, params: &Value) -> Value {
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

    pub(crate) async fn end(mut self) {
        for node in &mut self.nodes {
            node.process.kill().await.expect("our own child can be killed");
        }
        std::fs::remove_dir_all(&self.folder).expect("the directory is ours");
    }
}

impl Node {
    /// Asks it to stop, as SIGTERM does.
    pub(crate) async fn terminate(&self) {
        let id = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.expect("there is a command kill").success());
    }

    /// Waits until it has stopped that was asked to.
    pub(crate) async fn stopped(mut self) {
        let ended = timeout(PATIENCE, self.process.wait()).await.expect("it ends in time");
        assert!(ended.expect("it is our child").success());
    }

    pub(crate) async fn metrics(&self) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await.expect("it is up");
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).await.expect("it reads");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("it answers in text");
        response
    }

    pub(crate) async fn post(&self, method: &str, params: &Value) -> Value {
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

pub(crate) struct Subscriber {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

impl Subscriber {
    pub(crate) async fn connect(node: &Node) -> Self {
        let url = format!("ws://127.0.0.1:{}/connection/websocket", node.port);
        let (socket, _) = connect_async(url).await.expect("it takes connections");
        let mut subscriber = Self { socket, waiting: Vec::new() };
        subscriber.ask(json!({"id": 1, "connect": {}})).await;
        subscriber
    }

    /// Sends a command; its reply, which is no error.
    pub(crate) async fn ask(&mut self, command: Value) -> Value {
        let message = self.reply(&command).await;
        assert!(message["error"].is_null(), "{command}: {message}");
        message
    }

    /// The same, again while the reply says that it is worth that.
    pub(crate) async fn ask_again(&mut self, command: Value) -> Value {
        loop {
            let message = self.reply(&command).await;
            if message["error"]["temporary"] != true {
                assert!(message["error"].is_null(), "{command}: {message}");
                return message;
            }
        }
    }

    async fn reply(&mut self, command: &Value) -> Value {
        let id = command["id"].clone();
        self.socket.send(Message::text(command.to_string())).await.expect("it is open");
        let mut pushes = Vec::new();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                self.waiting.splice(0..0, pushes);
                return message;
            }
            pushes.push(message);
        }
    }

    pub(crate) async fn subscribe(&mut self, channel: &str) {
        let id = channel.bytes().fold(2_u64, |id, byte| id * 31 % 1_000_003 + u64::from(byte));
        self.ask(json!({"id": id + 2, "subscribe": {"channel": channel}})).await;
    }

    async fn message(&mut self) -> Value {
        self.message_or_end().await.expect("it is open")
    }

    /// `None`: the connection has ended.
    async fn message_or_end(&mut self) -> Option<Value> {
        loop {
            if !self.waiting.is_empty() {
                return Some(self.waiting.remove(0));
            }
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            match frame?.ok()? {
                Message::Text(text) if text == "{}" => {
                    // It may end just now.
                    let _ = self.socket.send(Message::text("{}")).await;
                }
                Message::Text(text) => {
                    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
                    self.waiting = lines.collect();
                }
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// The next push that is a publication or the end of a subscription: its channel and content.
    pub(crate) async fn push(&mut self) -> (String, Value) {
        self.push_or_end().await.expect("it is open")
    }

    /// The same; `None`: the connection has ended.
    pub(crate) async fn push_or_end(&mut self) -> Option<(String, Value)> {
        loop {
            let push = self.message_or_end().await?["push"].clone();
            if push["pub"].is_object() || push["unsubscribe"].is_object() {
                return Some((push["channel"].as_str().expect("a channel").to_owned(), push));
            }
        }
    }

    /// So many publications of each channel, in the order in which they came.
    pub(crate) async fn hear(&mut self, channels: &[String], count: usize) -> Vec<Vec<u64>> {
        let mut heard = vec![Vec::new(); channels.len()];
        for _ in 0..count * channels.len() {
            let (channel, push) = self.push().await;
            let place = channels.iter().position(|name| *name == channel).expect("one of them");
            heard[place].push(push["pub"]["data"].as_u64().unwrap_or_else(|| panic!("{push}")));
        }
        heard
    }
}

pub(crate) fn names(prefix: &str) -> Vec<String> {
    (0..CHANNELS).map(|number| format!("{prefix}{number}")).collect()
}
