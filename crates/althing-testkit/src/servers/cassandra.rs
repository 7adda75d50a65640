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
use std::path::{Path, PathBuf};
use std::process::Command;

use self::peers::Peers;
use self::settings::Node;
use super::one_process::{OneProcess, free_ports, own_address};

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
    node: Node,
    peers: Peers,
    process: OneProcess,
}

impl CassandraServer {
    /// Starts a new, empty server; returns when it takes connections. The first one of a user
    /// waits for Maven to bring it.
    ///
    /// # Panics
    /// If Java or Maven is not installed, or it does not start.
    pub fn start() -> Self {
        let [server] = start_all([(&own_address(), 0)]);
        server
    }

    fn new(jars: &Path, node: Node) -> Self {
        let (jars, process) = (jars.to_owned(), OneProcess::new("cassandra"));
        Self { jars, node, peers: Peers::default(), process }
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
        self.process.kill();
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
        self.process.pause();
    }

    /// Lets it go on after `pause`.
    pub fn resume(&self) {
        self.process.resume();
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
        for other in others.filter(|it| it.process.is_running()) {
            other.peers.wait_until(&peer, is_up);
        }
    }

    /// Runs the server until it takes connections; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let directory = self.process.directory();
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
        let peers = self.peers.clone();
        peers.forget();
        self.process.run_java(&mut command, READY, move |line| peers.hear(line))
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

fn url(file: &Path) -> String {
    format!("file://{}", file.display())
}
