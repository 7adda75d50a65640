//! A Kafka of a test's own: it can be killed, stopped and started again, and it ends with the test.
//!
//! One process is broker and controller, so there is no ZooKeeper. Once it is dropped, or its process
//! ends in any way, nothing of it is left but its jars in the user's cache: a small process that
//! waits for the end of ours sees to it. A start takes some seconds, so tests should share one.

mod settings;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::maven::{self, Artifact};
use super::process::{signal, wait_for_end};
use super::watcher::{END_BY_ID, Watcher};

const KAFKA: Artifact =
    Artifact { group: "org.apache.kafka", name: "kafka_2.13", version: "4.1.1" };

/// Without it Kafka says nothing.
const LOGGING: Artifact = Artifact { group: "org.slf4j", name: "slf4j-simple", version: "1.7.36" };

/// Said by the server once it takes requests.
const READY: &str = "Kafka Server started";

/// Starts that fail because somebody else took a port in between.
const STARTS_MAX: u32 = 5;

/// A real Kafka of one node in a temporary directory, with a heap of 256 MB.
///
/// ```no_run
/// let mut server = althing_testkit::servers::KafkaServer::start();
/// println!("{}", server.host());
/// server.kill();
/// server.start_again();
/// ```
#[derive(Debug)]
pub struct KafkaServer {
    jars: PathBuf,
    /// Before the directory, because it is dropped first.
    _watcher: Watcher,
    directory: TempDir,
    address: String,
    /// For clients, and for the controller.
    ports: [u16; 2],
    server: Option<Child>,
}

impl KafkaServer {
    /// Starts a new server without topics; returns when it takes requests. The first one of a user
    /// waits for Maven to bring it.
    ///
    /// # Panics
    /// If Java or Maven is not installed, or it does not start.
    pub fn start() -> Self {
        let jars = maven::jars("kafka", &[KAFKA, LOGGING]);
        let directory = tempfile::Builder::new()
            .prefix("kafka-")
            .tempdir()
            .expect("a temporary directory can be made");
        let watcher = Watcher::start(END_BY_ID, directory.path());
        // An address of its own for each test process makes it rare that two choose the same port.
        let address = format!("127.0.0.{}", 2 + std::process::id() % 250);
        let mut server =
            Self { jars, directory, address, ports: [0; 2], server: None, _watcher: watcher };
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            // Both are held until both are known, so that they differ.
            let free = [(); 2]
                .map(|()| TcpListener::bind((&*server.address, 0)).expect("there is a free port"));
            server.ports = free.map(|free| free.local_addr().expect("it is bound").port());
            server.format();
            match server.run() {
                Ok(()) => return server,
                Err(log) => said = log,
            }
            let _ = fs::remove_dir_all(server.directory.path().join("data"));
        }
        panic!("Kafka does not start:\n{said}");
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
        self.run().unwrap_or_else(|log| panic!("Kafka does not start again:\n{log}"));
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

    /// Writes what Kafka's own tool writes before the first start, which would start Java once more.
    fn format(&self) {
        let data = self.directory.path().join("data");
        fs::create_dir_all(&data).expect("there is room");
        fs::write(data.join("meta.properties"), settings::META).expect("there is room");
        let file = self.directory.path().join("server.properties");
        let properties = settings::properties(&data, &self.address, self.ports);
        fs::write(file, properties).expect("there is room");
    }

    /// Runs the server until it takes requests; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let directory = self.directory.path();
        let mut command = Command::new("java");
        command.args(settings::FLAGS).arg("-cp").arg(self.jars.join("*")).arg("kafka.Kafka");
        command.arg(directory.join("server.properties"));
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
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
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

impl Drop for KafkaServer {
    fn drop(&mut self) {
        self.kill();
    }
}
