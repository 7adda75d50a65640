//! A Cassandra of a test's own: it can be killed, stopped and started again, and it ends with the
//! test.
//!
//! Once it is dropped, or its process ends in any way, nothing of it is left but its jars in the
//! user's cache: a small process that waits for the end of ours sees to it. A start takes about ten
//! seconds, so tests should share one.

mod programs;
mod settings;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::process::{signal, wait_for_end};
use super::watcher::{END_BY_ID, Watcher};

/// Said by the server once it takes connections.
const READY: &str = "Startup complete";

/// Starts that fail because somebody else took a port in between.
const STARTS_MAX: u32 = 5;

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
    address: String,
    ports: [u16; 2],
    server: Option<Child>,
}

impl CassandraServer {
    /// Starts a new, empty server; returns when it takes connections. The first one of a user
    /// waits for Maven to bring it.
    ///
    /// # Panics
    /// If Java or Maven is not installed, or it does not start.
    pub fn start() -> Self {
        let jars = programs::jars();
        let directory = tempfile::Builder::new()
            .prefix("cassandra-")
            .tempdir()
            .expect("a temporary directory can be made");
        // An address of its own for each test process makes it rare that two choose the same port.
        let address = format!("127.0.0.{}", 2 + std::process::id() % 250);
        let watcher = Watcher::start(END_BY_ID, directory.path());
        let mut server =
            Self { jars, directory, address, ports: [0; 2], server: None, _watcher: watcher };
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            // Both are held until both are known, so that they differ.
            let free = [(); 2]
                .map(|()| TcpListener::bind((&*server.address, 0)).expect("there is a free port"));
            server.ports = free.map(|free| free.local_addr().expect("it is bound").port());
            match server.run() {
                Ok(()) => return server,
                Err(log) if log.contains("in use") => said = log,
                Err(log) => panic!("Cassandra does not start:\n{log}"),
            }
            _ = fs::remove_dir_all(server.directory.path().join("data"));
        }
        panic!("Cassandra found every port taken:\n{said}");
    }

    /// Host and port, where a client finds it.
    pub fn host(&self) -> String {
        format!("{}:{}", self.address, self.ports[0])
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

    /// Runs the server until it takes connections; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let directory = self.directory.path();
        let (yaml, logging) = (directory.join("cassandra.yaml"), directory.join("logback.xml"));
        let settings = settings::yaml(directory, &self.address, self.ports);
        fs::write(&yaml, settings).expect("there is room");
        fs::write(&logging, settings::LOGGING).expect("there is room");
        let mut command = Command::new("java");
        command.args(settings::flags());
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
        while let Some(Ok(line)) = lines.next() {
            if line.contains(READY) {
                self.server = Some(server);
                // A pipe that nobody reads would hold the server up. Ends with the server.
                std::thread::spawn(move || lines.for_each(drop));
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

fn url(file: &Path) -> String {
    format!("file://{}", file.display())
}
