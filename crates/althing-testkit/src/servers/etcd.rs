//! An etcd of a test's own: it can be killed, stopped and started again, and it ends with the test.
//!
//! Once it is dropped, or its process ends in any way, nothing of it is left: a small process that
//! waits for the end of ours sees to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::one_process::{OneProcess, free_ports, own_address};

/// Starts that fail because somebody else took a port in between.
const STARTS_MAX: u32 = 5;

/// Longer than a busy machine needs for a start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines of its log that are kept for the case that it does not start.
const LOG_LINES_MAX: usize = 200;

/// Pause between two questions whether it is ready, which it tells nobody by itself.
const POLL: Duration = Duration::from_millis(10);

/// A real etcd of one server in a temporary directory.
///
/// ```
/// let mut server = althing_testkit::servers::EtcdServer::start();
/// println!("{}", server.host());
/// server.kill();
/// server.start_again();
/// ```
#[derive(Debug)]
pub struct EtcdServer {
    address: String,
    /// For clients, and for its peers.
    ports: [u16; 2],
    process: OneProcess,
}

impl EtcdServer {
    /// Starts a new, empty server; returns when it takes writes.
    ///
    /// # Panics
    /// If etcd is not installed, or does not start.
    pub fn start() -> Self {
        let (address, process) = (own_address(), OneProcess::new("etcd"));
        let mut server = Self { address, ports: [0; 2], process };
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            server.ports = free_ports(&[&server.address]);
            match server.run() {
                Ok(()) => return server,
                Err(log) => said = log,
            }
            _ = std::fs::remove_dir_all(server.process.directory().join("data"));
        }
        panic!("etcd does not start:\n{said}");
    }

    /// Host and port, where a client finds it.
    pub fn host(&self) -> String {
        format!("{}:{}", self.address, self.ports[0])
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
        self.run().unwrap_or_else(|log| panic!("etcd does not start again:\n{log}"));
    }

    /// Stops it where it is: connections stay, and nobody answers.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it go on after `pause`.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Runs the server until it takes writes; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let [clients, peers] = self.ports.map(|port| format!("http://{}:{port}", self.address));
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(self.process.directory().join("data"))
            .args(["--name", "one"]);
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("one={peers}"), "--logger", "zap"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let install = "etcd is missing: apt-get install etcd-server";
        let server = self.process.spawn(&mut command, install);
        let log = BufReader::new(server.stderr.take().expect("it is piped"));
        // A pipe that nobody reads would hold the server up. Ends with the server.
        let log = std::thread::spawn(move || {
            let mut lines = log.lines().map_while(Result::ok);
            let first: Vec<String> = lines.by_ref().take(LOG_LINES_MAX).collect();
            lines.for_each(drop);
            first.join("\n")
        });
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.process.has_ended() {
                break;
            }
            if self.is_ready().unwrap_or(false) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        self.process.kill();
        Err(log.join().unwrap_or_default())
    }

    fn is_ready(&self) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((&*self.address, self.ports[0]))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let host = self.host();
        write!(stream, "GET /health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.contains(r#""health":"true""#))
    }
}
