//! A Kafka of a test's own: it can be killed, stopped and started again, and it ends with the test.
//!
//! One process is broker and controller, so there is no ZooKeeper. Once it is dropped, or its process
//! ends in any way, nothing of it is left but its jars in the user's cache: a small process that
//! waits for the end of ours sees to it. A start takes some seconds, so tests should share one. It may
//! have a second door, which takes clients over TLS only, and only with a password.

mod settings;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::maven::{self, Artifact};
use super::one_process::{OneProcess, free_ports, own_address};

const KAFKA: Artifact =
    Artifact { group: "org.apache.kafka", name: "kafka_2.13", version: "4.1.1" };

/// Without it Kafka says nothing.
const LOGGING: Artifact = Artifact { group: "org.slf4j", name: "slf4j-simple", version: "1.7.36" };

/// Said by the server once it takes requests.
const READY: &str = "Kafka Server started";

/// Starts that fail because somebody else took a port in between.
const STARTS_MAX: u32 = 5;

/// What a door that takes only TLS is made of.
#[derive(Clone, Debug)]
pub struct KafkaGuard {
    /// Its certificate, and those that vouch for it; PEM.
    pub certificate: String,
    /// Its key; PEM of PKCS #8.
    pub key: String,
    /// Who is let in by SASL PLAIN: user and password. For SCRAM see [`KafkaServer::set_password`].
    pub plain: (String, String),
}

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
    address: String,
    /// For clients, for the controller, and for clients by the guarded door.
    ports: [u16; 3],
    guard: Option<KafkaGuard>,
    process: OneProcess,
}

impl KafkaServer {
    /// Starts a new server without topics; returns when it takes requests. The first one of a user
    /// waits for Maven to bring it.
    ///
    /// # Panics
    /// If Java or Maven is not installed, or it does not start.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// The same with a second door, at [`Self::guarded_host`].
    ///
    /// # Panics
    /// As [`Self::start`], or if the guard is made of nothing.
    pub fn start_guarded(guard: KafkaGuard) -> Self {
        Self::start_with(Some(guard))
    }

    /// The address that a server of this process has, for which a certificate can be made before.
    pub fn own_address() -> String {
        own_address()
    }

    fn start_with(guard: Option<KafkaGuard>) -> Self {
        let jars = maven::jars("kafka", &[KAFKA, LOGGING]);
        let (address, process) = (own_address(), OneProcess::new("kafka"));
        let mut server = Self { jars, address, ports: [0; 3], guard, process };
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            server.ports = free_ports(&[&server.address]);
            server.format();
            match server.run() {
                Ok(()) => return server,
                Err(log) => said = log,
            }
            let _ = fs::remove_dir_all(server.process.directory().join("data"));
        }
        panic!("Kafka does not start:\n{said}");
    }

    /// Host and port, where a client finds it.
    pub fn host(&self) -> String {
        format!("{}:{}", self.address, self.ports[0])
    }

    /// Where a client finds the guarded door.
    pub fn guarded_host(&self) -> String {
        format!("{}:{}", self.address, self.ports[2])
    }

    /// Lets a user in by SASL with this password, and no other: by `SCRAM-SHA-256` or `SCRAM-SHA-512`,
    /// of which a user has one. Takes some seconds: Kafka's own tool does it.
    ///
    /// # Panics
    /// If the tool says that it has not done it.
    pub fn set_password(&self, mechanism: &str, user: &str, password: &str) {
        let password = format!("{mechanism}=[iterations=4096,password={password}]");
        let mut command = Command::new("java");
        command.args(settings::FLAGS).arg("-cp").arg(self.jars.join("*"));
        command.args(["kafka.admin.ConfigCommand", "--bootstrap-server", &self.host(), "--alter"]);
        command.args(["--entity-type", "users", "--entity-name", user]);
        command.args(["--add-config", &password]).stdin(Stdio::null());
        let said = command.output().expect("Java runs, as the server does");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{}{text}", String::from_utf8_lossy(&said.stdout));
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
        self.run().unwrap_or_else(|log| panic!("Kafka does not start again:\n{log}"));
    }

    /// Stops it where it is: connections stay, and nobody answers.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it go on after `pause`.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Writes what Kafka's own tool writes before the first start, which would start Java once more.
    fn format(&self) {
        let data = self.process.directory().join("data");
        fs::create_dir_all(&data).expect("there is room");
        fs::write(data.join("meta.properties"), settings::META).expect("there is room");
        let file = self.process.directory().join("server.properties");
        let store = self.process.directory().join("guard.pem");
        let guard = self.guard.as_ref().map(|KafkaGuard { certificate, key, plain }| {
            fs::write(&store, format!("{key}{certificate}")).expect("there is room");
            settings::Guard { store: &store, user: &plain.0, password: &plain.1 }
        });
        let properties = settings::properties(&data, &self.address, self.ports, guard.as_ref());
        fs::write(file, properties).expect("there is room");
    }

    /// Runs the server until it takes requests; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let directory = self.process.directory();
        let mut command = Command::new("java");
        command.args(settings::FLAGS).arg("-cp").arg(self.jars.join("*")).arg("kafka.Kafka");
        command.arg(directory.join("server.properties"));
        self.process.run_java(&mut command, READY, |_| {})
    }
}
