//! A server of one process: where it keeps its files, how it starts, and how it ends with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::process::{signal, wait_for_end};
use super::watcher::{END_BY_ID, Watcher};

/// The process, once it runs, and its temporary directory, which goes when this is dropped.
#[derive(Debug)]
pub(super) struct OneProcess {
    /// Before the directory, because it is dropped first.
    _watcher: Watcher,
    directory: TempDir,
    server: Option<Child>,
}

impl OneProcess {
    /// An empty directory whose name begins with the server's; nothing runs yet.
    pub(super) fn new(name: &str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir()
            .expect("a temporary directory can be made");
        let watcher = Watcher::start(END_BY_ID, directory.path());
        Self { directory, server: None, _watcher: watcher }
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn is_running(&self) -> bool {
        self.server.is_some()
    }

    /// Starts it.
    ///
    /// # Panics
    /// With `install`, which says how to get the program, if there is none.
    pub(super) fn spawn(&mut self, command: &mut Command, install: &str) -> &mut Child {
        let started = command.stdin(Stdio::null()).spawn();
        let server = started.unwrap_or_else(|error| panic!("{install}: {error}"));
        let id = self.directory.path().join("id");
        fs::write(id, server.id().to_string()).expect("there is room");
        self.server.insert(server)
    }

    /// Starts a Java program and waits for the line that says that it is ready; otherwise returns
    /// what it said. `hear` is given each line that it prints, also later ones.
    pub(super) fn run_java(
        &mut self,
        command: &mut Command,
        ready: &str,
        mut hear: impl FnMut(&str) + Send + 'static,
    ) -> Result<(), String> {
        let errors = self.directory.path().join("errors");
        let to_errors = fs::File::create(&errors).expect("there is room");
        command.current_dir(&self.directory).stdout(Stdio::piped()).stderr(to_errors);
        let install = "Java 17 is missing: apt-get install openjdk-17-jre-headless";
        let said = self.spawn(command, install).stdout.take().expect("it is piped");
        let mut lines = BufReader::new(said).lines();
        let mut log = String::new();
        while let Some(Ok(line)) = lines.next() {
            hear(&line);
            if line.contains(ready) {
                // A pipe that nobody reads would hold the server up. Ends with the server.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(|it| hear(&it)));
                return Ok(());
            }
            log.push_str(&line);
            log.push('\n');
        }
        self.kill();
        log.push_str(&fs::read_to_string(&errors).unwrap_or_default());
        Err(log)
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        let server = self.server.as_mut();
        server.is_none_or(|it| it.try_wait().expect("it is our child").is_some())
    }

    /// Kills it at once, as a crash would.
    pub(super) fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        signal("KILL", &[server.id()]);
        server.wait().expect("it is our child");
        wait_for_end(&[server.id()]);
    }

    /// Stops it where it is: connections stay, and nobody answers.
    pub(super) fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on after `pause`.
    pub(super) fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        if let Some(server) = &self.server {
            signal(name, &[server.id()]);
        }
    }
}

impl Drop for OneProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address of this machine for this test process: with one for each, it is rare that two choose
/// the same port.
pub(super) fn own_address() -> String {
    format!("127.0.0.{}", 2 + std::process::id() % 250)
}

/// Ports that are free at all of the addresses: nodes of one cluster have the same.
pub(super) fn free_ports<const N: usize>(addresses: &[&str]) -> [u16; N] {
    let bind = |address: &str, port| TcpListener::bind((address, port));
    for _ in 0..100 {
        // All are held until all are known, so that they differ.
        let held = [(); N].map(|()| bind(addresses[0], 0).expect("there is a free port"));
        let ports = held.each_ref().map(|it| it.local_addr().expect("it is bound").port());
        let mut others = addresses[1..].iter().flat_map(|it| ports.map(|port| bind(it, port)));
        if others.all(|bound| bound.is_ok()) {
            return ports;
        }
    }
    panic!("no {N} ports are free at {addresses:?}");
}
