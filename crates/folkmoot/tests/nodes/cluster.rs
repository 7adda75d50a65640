//! Several folkmoot processes with one PostgreSQL: the nodes of one server.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// A short lease, so that a lost node is missed soon.
const LEASE_MS: u64 = 4_000;
/// Limits that are in nobody's way. Pings are rare: who waits for hundreds of others to connect
/// answers none meanwhile.
const SETTINGS: &str = "[limits]\nmessages_per_second = 0\n\
                        accounts_per_minute = 0\nsearches_per_minute = 0\n\
                        [gateway]\nping_s = 60\n";
/// Generous: a machine that builds and tests at once is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what a node says of itself.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Cluster {
    folder: PathBuf,
    postgres: PostgresServer,
    pub(crate) nodes: Vec<Node>,
}

pub(crate) struct Node {
    pub(crate) name: String,
    role: &'static str,
    pub(crate) port: u16,
    process: Option<Child>,
}

impl Cluster {
    /// Starts so many nodes, which are called `n1`, `n2` and so on.
    pub(crate) async fn start(test: &str, nodes: usize) -> Self {
        Self::start_as(test, &vec!["both"; nodes]).await
    }

    /// Starts a node for each role.
    pub(crate) async fn start_as(test: &str, roles: &[&'static str]) -> Self {
        Self::start_with(test, roles, &[], LEASE_MS).await
    }

    /// Two nodes that miss each other only after so long.
    pub(crate) async fn start_patient(test: &str, lease_ms: u64) -> Self {
        Self::start_with(test, &["both"; 2], &[], lease_ms).await
    }

    /// Starts a node for each role on a store that `folkmoot seed` has filled first. Their many clients
    /// keep a busy machine busy, so a node may be slow for longer before the others give it up.
    pub(crate) async fn start_seeded(test: &str, roles: &[&'static str], seed: &[&str]) -> Self {
        Self::start_with(test, roles, seed, 4 * LEASE_MS).await
    }

    async fn start_with(test: &str, roles: &[&'static str], seed: &[&str], lease_ms: u64) -> Self {
        let folder =
            std::env::temp_dir().join(format!("folkmoot-nodes-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary directory can be written");
        let settings = format!("[cluster]\nlease_ms = {lease_ms}\n{SETTINGS}");
        std::fs::write(folder.join("settings.toml"), settings).expect("it can be written");
        let postgres = tokio::task::block_in_place(PostgresServer::start);
        let names: Vec<String> = (1..=roles.len()).map(|number| format!("n{number}")).collect();
        let mut init = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        init.args(["cluster", "init", "--cluster", "moot"]).arg(folder.join("tls"));
        for name in &names {
            init.args(["--node", name]);
        }
        assert!(init.stdout(Stdio::null()).status().await.expect("it runs").success());
        let mut cluster = Self { folder, postgres, nodes: Vec::new() };
        if !seed.is_empty() {
            cluster.seed(seed).await;
        }
        for (name, role) in names.into_iter().zip(roles) {
            let process = cluster.launch(&name, role, 0);
            cluster.nodes.push(Node { name, role, port: 0, process: Some(process) });
        }
        for node in &mut cluster.nodes {
            node.listening().await;
        }
        cluster
    }

    async fn seed(&self, flags: &[&str]) {
        let mut seed = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        seed.env("FOLKMOOT_STORE", self.postgres.url()).arg("--data").arg(self.folder.join("seed"));
        seed.arg("seed").args(flags).arg("--tokens").arg(self.folder.join("tokens"));
        assert!(seed.stdout(Stdio::null()).status().await.expect("it runs").success());
    }

    /// The tokens of the seed, one of each person.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let tokens = std::fs::read_to_string(self.folder.join("tokens")).expect("it was seeded");
        tokens.lines().map(str::to_owned).collect()
    }

    /// `folkmoot load` with all nodes and the tokens of the seed.
    pub(crate) fn load(&self, flags: &[&str]) -> Child {
        let mut load = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        load.arg("load").arg("--tokens").arg(self.folder.join("tokens")).args(flags);
        for node in &self.nodes {
            load.args(["--server", &format!("127.0.0.1:{}", node.port)]);
        }
        load.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        load.spawn().expect("the binary is built")
    }

    fn launch(&self, name: &str, role: &str, port: u16) -> Child {
        Command::new(env!("CARGO_BIN_EXE_folkmoot"))
            .env("FOLKMOOT_STORE", self.postgres.url())
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--cluster-name", "moot", "--node", name])
            .args(["--role", role])
            .arg("--cluster-certificates")
            .arg(self.folder.join("tls"))
            .arg("--attachments")
            .arg(self.folder.join("attachments"))
            .arg("--data")
            .arg(self.folder.join(name))
            .arg("--config")
            .arg(self.folder.join("settings.toml"))
            .args(["--log", "warn"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary is built")
    }

    pub(crate) fn port(&self, node: usize) -> u16 {
        self.nodes[node].port
    }

    /// Messages that all nodes together have taken.
    pub(crate) async fn messages(&self) -> u64 {
        let mut sum = 0;
        for node in &self.nodes {
            sum += node.counted("folkmoot_messages_total").await;
        }
        sum
    }

    /// Commands that a node has read.
    pub(crate) async fn commands(&self, node: usize) -> u64 {
        self.nodes[node].counted("folkmoot_commands_total").await
    }

    /// Waits until a node has read more commands than so many.
    pub(crate) async fn reads_more_commands(&self, node: usize, than: u64) {
        let reads = async {
            while self.commands(node).await <= than {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, reads).await.expect("it does in time");
    }

    /// Waits until a node that was told to stop has begun to.
    pub(crate) async fn takes_no_connections(&self, node: usize) {
        let stops = async {
            while TcpStream::connect(("127.0.0.1", self.port(node))).await.is_ok() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, stops).await.expect("it does in time");
    }

    /// Which node has the only room in memory.
    pub(crate) async fn home_of_the_room(&self) -> usize {
        for (index, node) in self.nodes.iter().enumerate() {
            if node.process.is_some() && node.live("folkmoot.room").await > 0 {
                return index;
            }
        }
        panic!("no node has the room in memory");
    }

    /// SIGKILL; returns once the process is gone.
    pub(crate) async fn kill(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().expect("it runs");
        process.kill().await.expect("our own child can be killed");
    }

    /// Starts a node again that was killed.
    pub(crate) async fn start_again(&mut self, node: usize) {
        self.start_again_at(node, 0).await;
    }

    /// Asks a node to stop, and starts it again where clients know it.
    pub(crate) async fn restart(&mut self, node: usize) {
        self.stop(node).await;
        self.start_again_at(node, self.port(node)).await;
        self.answers_readyz(node, "200").await;
    }

    async fn start_again_at(&mut self, node: usize, port: u16) {
        let process = self.launch(&self.nodes[node].name, self.nodes[node].role, port);
        self.nodes[node].process = Some(process);
        self.nodes[node].listening().await;
    }

    /// Asks a node to stop, and waits until it has.
    pub(crate) async fn stop(&mut self, node: usize) {
        self.signal(node, "TERM").await;
        self.stopped(node).await;
    }

    /// Waits until a node has stopped that was asked to.
    pub(crate) async fn stopped(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().expect("it runs");
        let ended = tokio::time::timeout(PATIENCE, process.wait()).await.expect("it ends in time");
        assert!(ended.expect("it is our child").success());
    }

    /// SIGSTOP, SIGCONT or SIGTERM.
    pub(crate) async fn signal(&self, node: usize, name: &str) {
        signal(self.nodes[node].process.as_ref().expect("it runs"), name).await;
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn ended(&mut self, node: usize) {
        let mut process = self.nodes[node].process.take().expect("it runs");
        let ended = tokio::time::timeout(PATIENCE, process.wait()).await.expect("it ends in time");
        assert!(!ended.expect("it is our child").success(), "a node that was given up fails");
    }

    /// SIGKILL of the database.
    pub(crate) fn kill_postgres(&mut self) {
        tokio::task::block_in_place(|| self.postgres.kill());
    }

    pub(crate) fn start_postgres_again(&mut self) {
        tokio::task::block_in_place(|| self.postgres.start_again());
    }

    /// Waits until a node answers `/readyz` with that status.
    pub(crate) async fn answers_readyz(&self, node: usize, status: &str) {
        let answers = async {
            let line = format!("HTTP/1.1 {status}");
            while !request(self.port(node), "GET", "/readyz", "", "").await.0.starts_with(&line) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, answers).await.expect("it does in time");
    }

    /// Changes the database, and tells nobody.
    pub(crate) async fn store(&self, sql: &str) {
        let url = self.postgres.url();
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it is there");
        tokio::spawn(connection);
        client.batch_execute(sql).await.expect("it may be done");
    }

    /// Kills all that is left, and removes what it has written.
    pub(crate) async fn end(mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].process.is_some() {
                self.kill(node).await;
            }
        }
        std::fs::remove_dir_all(&self.folder).expect("the directory is ours");
    }
}

impl Node {
    async fn listening(&mut self) {
        let said = self.process.as_mut().expect("it runs").stdout.take().expect("it is ours");
        let mut lines = BufReader::new(said).lines();
        let line =
            tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it starts in time");
        let line = line.expect("its output is text").expect("a node says where it listens");
        let (_, port) = line.trim().rsplit_once(':').unwrap_or_else(|| panic!("no port: {line}"));
        self.port = port.parse().unwrap_or_else(|_| panic!("no port in: {line}"));
        // Whoever says more must not find the pipe closed.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    }

    /// What it has counted under that name.
    async fn counted(&self, name: &str) -> u64 {
        let (_, page) = request(self.port, "GET", "/metrics", "", "").await;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.parse().ok()).expect("a number")
    }

    /// How many actors of that name it has in memory.
    pub(crate) async fn live(&self, actor: &str) -> u64 {
        let (_, page) = request(self.port, "GET", "/metrics", "", "").await;
        let line = page.lines().find(|line| {
            line.starts_with("althing_actors_live") && line.contains(&format!("\"{actor}\""))
        });
        let count = line.and_then(|line| line.rsplit(' ').next());
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    }
}

/// An HTTP request, with a token unless it is empty; the head and the body of the response.
pub(crate) async fn request(
    port: u16,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (String, String) {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("the node is up");
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("the node reads");
    let mut response = String::new();
    socket.read_to_string(&mut response).await.expect("the node answers in text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

/// What a node answers to a handshake of the WebSocket protocol that it refuses.
pub(crate) async fn handshake(port: u16) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("the node is up");
    let request = format!(
        "GET /connection/websocket HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.expect("the node reads");
    // The connection stays open for another request: this is read to the end of its document.
    let mut answer = String::new();
    while !answer.ends_with('}') {
        let mut bytes = [0; 4_096];
        let count = socket.read(&mut bytes).await.expect("the node answers");
        assert!(count > 0, "it ends behind {answer}");
        answer.push_str(std::str::from_utf8(&bytes[..count]).expect("in text"));
    }
    answer
}

async fn signal(process: &Child, name: &str) {
    let id = process.id().expect("it runs").to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await;
    assert!(sent.expect("there is a command kill").success());
}
