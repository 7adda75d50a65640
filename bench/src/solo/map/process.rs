//! Processes under test: they print `map on http://ADDRESS`, and end with their handle.

use super::{Health, Report};
use crate::build::{bench_directory, build_directory, go_program, up_to_date};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GREETING: &str = "map on http://";
const BROKER: &str = "broker on ";
const MQTT_CONNECTIONS: &str = "4";
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A server that was started here; ended when dropped.
pub(super) struct Server {
    process: Child,
    address: String,
    /// The line after the greeting, of those that print one.
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

/// The map with a broker inside and a fresh store.
pub(super) struct Map {
    pub(super) server: Server,
    broker: String,
    program: PathBuf,
    directory: PathBuf,
}

impl Server {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().with_context(|| {
                format!("cannot start {}", command.get_program().to_string_lossy())
            })?;
        let stdout = process.stdout.take().context("its output is piped")?;
        let mut server =
            Self { process, address: String::new(), lines: BufReader::new(stdout).lines() };
        let greeting = server.next_line()?;
        let address = greeting.strip_prefix(GREETING);
        server.address = address.with_context(|| format!("unexpected greeting {greeting}"))?.into();
        Ok(server)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    fn next_line(&mut self) -> Result<String> {
        Ok(self.lines.next().context("the server ended at once")??)
    }

    /// A field of `/proc/PID/status` in megabytes.
    pub(super) fn resident_mb(&self, field: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with(field));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        let kib: f64 = number.with_context(|| format!("no {field} in the status"))?.parse()?;
        Ok(kib * 1_024.0 / 1_000_000.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Should it have ended already, there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Map {
    /// Builds and starts the map without simulated vehicles.
    pub(super) fn start(arguments: &[&str]) -> Result<Self> {
        let release = build_directory()?;
        up_to_date("realtime-map", &[], &release)?;
        let program = release.join("realtime-map");
        let directory = release.join(format!("map-{}", std::process::id()));
        fs::remove_dir_all(&directory).ok();
        let mut command = Command::new(&program);
        command.args(["--port", "0", "--vehicles", "0", "--data"]).arg(&directory).args(arguments);
        let mut server = Server::start(&mut command)?;
        let line = server.next_line()?;
        let broker =
            line.strip_prefix(BROKER).with_context(|| format!("unexpected line {line}"))?;
        let broker = broker.to_owned();
        Ok(Self { server, broker, program, directory })
    }

    /// Publishes from a second process; with `watch`, measures how soon positions come out.
    pub(super) fn load(
        &self,
        vehicles: u32,
        rate: u32,
        seconds: u32,
        watch: bool,
    ) -> Result<Report> {
        let mut command = Command::new(&self.program);
        command.args(["load", "--json", "--mqtt", &self.broker, "--connections", MQTT_CONNECTIONS]);
        command.args(["--vehicles", &vehicles.to_string(), "--rate", &rate.to_string()]);
        command.args(["--seconds", &seconds.to_string()]);
        if watch {
            command.args(["--watch", self.server.address()]);
        }
        let output = command.output().context("cannot start the load generator")?;
        let trouble = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "load generator: {trouble}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    pub(super) fn health(&self) -> Result<Health> {
        let mut socket = TcpStream::connect(self.server.address())?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        socket.write_all(b"GET /healthz HTTP/1.1\r\nhost: map\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        let (_, body) = text.split_once("\r\n\r\n").context("an answer without a body")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = self.server.process.kill();
        // What cannot be removed lies in the build directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Builds the Go peers; returns the program.
pub(super) fn build_peers() -> Result<PathBuf> {
    let directory = bench_directory().join("peers/go-map");
    go_program(&directory, ".", "go-map").map_err(anyhow::Error::msg)
}
