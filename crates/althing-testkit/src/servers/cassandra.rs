//! A Cassandra of a test's own: it can be killed, stopped and started again, and it ends with the
//! test.
//!
//! Once it is dropped, or its process ends in any way, nothing of it is left but its jars in the
//! user's cache: a small process that waits for the end of ours sees to it. A start takes about ten
//! seconds, so tests should share one.

mod peers;
mod programs;
mod settings;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use self::peers::Peers;
use self::settings::Node;
use super::process::{signal, wait_for_end};
use super::watcher::{END_BY_ID, Watcher};

/// Said by the server once it takes connections.
const READY: &str = "Startup complete";

/// Starts that fail because somebody else took a port in between.
const STARTS_MAX: u32 = 5;

/// Addresses of three nodes, and where their parts of the ring begin: a third of it each.
const THREE: [(&str, i64); 3] =
    [("127.0.0.1", i64::MIN / 3 * 2), ("127.0.0.2", 0), ("127.0.0.3", i64::MAX / 3 * 2)];

/// A real Cassandra of one node in a temporary directory, with a heap of 512 MB, and every write
/// synced.
///
/// ```no_run
/// let mut server = althing_testkit::servers::CassandraServer::start();
/// println!("{}", server.host());
/// server.kill();
/// server.start_again();
/// ```
#[derive(Debug)]
pub struct CassandraServer {
    jars: PathBuf,
    /// Before the directory, because it is dropped first.
    _watcher: Watcher,
    directory: TempDir,
    node: Node,
    peers: Peers,
    server: Option<Child>,
}

impl CassandraServer {
    /// Starts a new, empty server; returns when it takes connections. The first one of a user
    /// waits for Maven to bring it.
    ///
    /// # Panics
    /// If Java or Maven is not installed, or it does not start.
    pub fn start() -> Self {
        // An address of its own for each test process makes it rare that two choose the same port.
        let address = format!("127.0.0.{}", 2 + std::process::id() % 250);
        let [server] = start_all([(&address, 0)]);
        server
    }

    fn new(jars: &Path, node: Node) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("cassandra-")
            .tempdir()
            .expect("a temporary directory can be made");
        let watcher = Watcher::start(END_BY_ID, directory.path());
        let (jars, peers) = (jars.to_owned(), Peers::default());
        Self { jars, directory, node, peers, server: None, _watcher: watcher }
    }

    /// Starts three nodes of one cluster at 127.0.0.1 to 127.0.0.3; returns when each takes
    /// connections and knows the others.
    ///
    /// # Panics
    /// As `start`.
    pub fn start_three() -> [Self; 3] {
        let servers = start_all(THREE);
        for server in &servers {
            server.wait_until_known(&servers);
        }
        servers
    }

    /// Host and port, where a client finds it.
    pub fn host(&self) -> String {
        format!("{}:{}", self.node.address, self.node.ports[0])
    }

    /// Kills it at once, as a crash would; it stays away until it is started again.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        signal("KILL", &[server.id()]);
        server.wait().expect("it is our child");
        wait_for_end(&[server.id()]);
    }

    /// Starts it again at the same address, with what it has kept.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.kill();
        self.run().unwrap_or_else(|log| panic!("Cassandra does not start again:\n{log}"));
    }

    /// Stops it where it is: connections stay, and nobody answers.
    pub fn pause(&self) {
        if let Some(server) = &self.server {
            signal("STOP", &[server.id()]);
        }
    }

    /// Lets it go on after `pause`.
    pub fn resume(&self) {
        if let Some(server) = &self.server {
            signal("CONT", &[server.id()]);
        }
    }

    /// Waits until all others believe that it is there.
    ///
    /// # Panics
    /// If they do not come to.
    pub fn wait_until_known(&self, nodes: &[Self]) {
        self.wait_for_others(nodes, true);
    }

    /// Waits until all others have noticed that it was killed.
    ///
    /// # Panics
    /// If they do not.
    pub fn wait_until_missed(&self, nodes: &[Self]) {
        self.wait_for_others(nodes, false);
    }

    fn wait_for_others(&self, nodes: &[Self], is_up: bool) {
        let peer = format!("{}:{}", self.node.address, self.node.ports[1]);
        let others = nodes.iter().filter(|it| it.node.address != self.node.address);
        for other in others.filter(|it| it.server.is_some()) {
            other.peers.wait_until(&peer, is_up);
        }
    }

    /// Runs the server until it takes connections; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let directory = self.directory.path();
        let (yaml, logging) = (directory.join("cassandra.yaml"), directory.join("logback.xml"));
        let settings = settings::yaml(directory, &self.node);
        fs::write(&yaml, settings).expect("there is room");
        fs::write(&logging, settings::LOGGING).expect("there is room");
        let mut command = Command::new("java");
        command.args(settings::flags(&self.node));
        command.arg(format!("-javaagent:{}", programs::agent(&self.jars).display()));
        command.arg(format!("-Dcassandra.config={}", url(&yaml)));
        command.arg(format!("-Dlogback.configurationFile={}", url(&logging)));
        command.arg(format!("-Dcassandra.storagedir={}", directory.join("data").display()));
        command
            .arg("-cp")
            .arg(self.jars.join("*"))
            .arg("org.apache.cassandra.service.CassandraDaemon");
        command.current_dir(directory).stdin(Stdio::null());
        let errors = directory.join("errors");
        let to_errors = fs::File::create(&errors).expect("there is room");
        command.stdout(Stdio::piped()).stderr(to_errors);
        let mut server =
            command.spawn().expect("Java 17 is installed: apt-get install openjdk-17-jre-headless");
        fs::write(directory.join("id"), server.id().to_string()).expect("there is room");
        let mut lines = BufReader::new(server.stdout.take().expect("it is piped")).lines();
        let mut log = String::new();
        let peers = self.peers.clone();
        peers.forget();
        while let Some(Ok(line)) = lines.next() {
            peers.hear(&line);
            if line.contains(READY) {
                self.server = Some(server);
                // A pipe that nobody reads would hold the server up. Ends with the server.
                std::thread::spawn(move || {
                    lines.map_while(Result::ok).for_each(|it| peers.hear(&it))
                });
                return Ok(());
            }
            log.push_str(&line);
            log.push('\n');
        }
        server.wait().expect("it is our child");
        log.push_str(&fs::read_to_string(&errors).unwrap_or_default());
        Err(log)
    }
}

impl Drop for CassandraServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts nodes one after the other; the first one is whom the others ask.
fn start_all<const N: usize>(nodes: [(&str, i64); N]) -> [CassandraServer; N] {
    let jars = programs::jars();
    let seed = nodes[0].0;
    let mut said = String::new();
    for _ in 0..STARTS_MAX {
        let ports = free_ports(&nodes.map(|(address, _)| address));
        let mut servers = nodes.map(|(address, token)| {
            let (address, seed) = (address.to_owned(), seed.to_owned());
            CassandraServer::new(&jars, Node { address, ports, seed, token })
        });
        let mut started = servers.iter_mut().map(CassandraServer::run);
        match started.find_map(Result::err) {
            None => return servers,
            Some(log) if log.contains("in use") => said = log,
            Some(log) => panic!("Cassandra does not start:\n{log}"),
        }
    }
    panic!("Cassandra found every port taken:\n{said}");
}

/// Two ports that are free at the addresses: all nodes have the same, as clients expect it.
fn free_ports(addresses: &[&str]) -> [u16; 2] {
    let bind = |address: &str, port| TcpListener::bind((address, port));
    for _ in 0..100 {
        // All are held until all are known, so that they differ.
        let held = [(); 2].map(|()| bind(addresses[0], 0).expect("there is a free port"));
        let ports = held.each_ref().map(|it| it.local_addr().expect("it is bound").port());
        let mut others = addresses[1..].iter().flat_map(|it| ports.map(|port| bind(it, port)));
        if others.all(|bound| bound.is_ok()) {
            return ports;
        }
    }
    panic!("no two ports are free at {addresses:?}");
}

fn url(file: &Path) -> String {
    format!("file://{}", file.display())
}
