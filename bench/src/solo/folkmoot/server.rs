//! The server under test: the release build of `folkmoot`, as a process of its own.

use super::client::Client;
use super::report::Report;
use crate::build::{build_directory, up_to_date};
use crate::solo::kept::On;
use althing_testkit::servers::{CassandraServer, PostgresServer};
use anyhow::{Context, Result, bail, ensure};
use folkmoot_protocol::chat::{AccountCreate, SignedIn};
use std::any::Any;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs, process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::block_in_place;
use tokio::time::timeout;

/// The environment's variable for a server that is built already.
const NAMED: &str = "FOLKMOOT_BINARY";
/// What the server prints before its address.
const GREETING: &str = "Folkmoot listens on http://";
/// A directory of 100,000 users has its index of search to make first.
pub(super) const START_MAX: Duration = Duration::from_secs(60);
pub(super) const STOP_MAX: Duration = Duration::from_secs(60);
/// The workloads measure the road of a message, not the guards in front of it.
const SETTINGS: &str = "[limits]\n\
    messages_per_second = 0\n\
    accounts_per_minute = 0\n\
    log_ins_per_minute = 0\n\
    rooms_per_minute = 0\n\
    invites_per_minute = 0\n\
    questions_per_minute = 0\n\
    subscriptions_per_minute = 0\n";

/// What the server does with memory that it has freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solo) enum Freed {
    /// Its allocator keeps it for a while.
    Kept,
    /// It goes back at once, so that what a process takes is what it uses.
    Returned,
}

/// A running server; ended, and its data removed, when dropped.
pub(in crate::solo) struct Server {
    process: Child,
    address: SocketAddr,
    directory: PathBuf,
    store: Option<String>,
    /// Where its data is, if not in the directory; ends when dropped.
    _database: Option<Box<dyn Any + Send>>,
}

impl Server {
    /// Builds and starts the server on a free port, with a new data directory beside the build, and a
    /// database of its own if it is to be on one.
    pub(in crate::solo) async fn start(on: On) -> Result<Self> {
        let directory = prepare()?;
        let (store, database): (_, Option<Box<dyn Any + Send>>) = match on {
            On::Embedded => (None, None),
            On::Postgres => {
                let database = block_in_place(PostgresServer::start);
                (Some(database.url()), Some(Box::new(database)))
            }
            On::Cassandra => {
                let database = block_in_place(CassandraServer::start);
                let url = format!("cassandra://{}/bench?replicas=1", database.host());
                (Some(url), Some(Box::new(database)))
            }
        };
        let (process, address) = spawn(&directory, store.as_deref(), Freed::Kept).await?;
        Ok(Self { process, address, directory, store, _database: database })
    }

    /// The same on a directory that `folkmoot seed` has filled as these flags say; a device of each
    /// user is signed in.
    pub(in crate::solo) async fn seeded(seed: &[String]) -> Result<Self> {
        let directory = filled(seed).await?;
        let (process, address) = spawn(&directory, None, Freed::Kept).await?;
        Ok(Self { process, address, directory, store: None, _database: None })
    }

    /// Ends the server as an operator would, and starts it on the same data.
    pub(in crate::solo) async fn restart(&mut self, freed: Freed) -> Result<()> {
        let pid = i32::try_from(self.pid()?).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.context("a process has a number above 0")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let ended = timeout(STOP_MAX, self.process.wait()).await;
        let status = ended.context("folkmoot did not stop in time")??;
        ensure!(status.success(), "folkmoot stopped with {status}");
        (self.process, self.address) = spawn(&self.directory, self.store.as_deref(), freed).await?;
        Ok(())
    }

    pub(in crate::solo) fn pid(&self) -> Result<u32> {
        self.process.id().context("folkmoot has ended")
    }

    /// Tokens of the seeded users, in the order of their numbers.
    pub(in crate::solo) fn tokens(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.directory.join("tokens"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Connects as one of the seeded users.
    pub(in crate::solo) async fn enter(&self, number: usize, token: &str) -> Result<Client> {
        let client = Client::connect(self.address, number, token.to_owned()).await;
        client.with_context(|| format!("client {number}"))
    }

    /// What the process keeps in memory of its own, in bytes: pages of files are not counted.
    pub(in crate::solo) fn memory_bytes(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let line = line.context("/proc has no RssAnon")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1_024.0)
    }

    /// Puts it under load with `folkmoot load`, a process of its own.
    ///
    /// # Errors
    /// Anything was lost, doubled or out of order, or a connection broke.
    pub(in crate::solo) async fn load(&self, flags: &[String]) -> Result<Report> {
        let mut command = Command::new(program()?);
        command.args(["load", "--json", "--server", &self.address.to_string()]);
        command.args(["--server-pid", &self.pid()?.to_string()]);
        command.arg("--tokens").arg(self.directory.join("tokens")).args(flags);
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
        Report::of(&output.context("cannot start folkmoot")?)
    }

    /// Creates an account and connects as its user.
    pub(in crate::solo) async fn sign_up(&self, name: &str) -> Result<Client> {
        let account = AccountCreate {
            name: name.to_owned(),
            password: format!("{name} and a long password"),
            display_name: None,
            device: None,
            invite: None,
        };
        let body = post(self.address, "/api/v1/accounts", &serde_json::to_vec(&account)?)
            .await
            .with_context(|| format!("sign up {name}"))?;
        let signed_in: SignedIn = serde_json::from_slice(&body)?;
        Client::connect(self.address, 0, signed_in.token).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Should either fail, the child ends with `kill_on_drop` and its data lies in the build
        // directory.
        let _ = self.process.start_kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The server's program: the one that is named, or that in the profile and directory of this one.
pub(super) fn program() -> Result<PathBuf> {
    match env::var_os(NAMED) {
        Some(named) => Ok(named.into()),
        None => Ok(build_directory()?.join("folkmoot")),
    }
}

/// Builds the server unless one is named, and makes an empty directory for its data with its
/// settings.
///
/// Not in `/tmp`, which may be memory, where fsync costs nothing.
pub(super) fn prepare() -> Result<PathBuf> {
    let release = build_directory()?;
    if env::var_os(NAMED).is_none() {
        up_to_date("folkmoot", &[], &release)?;
    }
    let directory = release.join(format!("folkmoot-bench-{}", process::id()));
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("folkmoot.toml"), SETTINGS)?;
    Ok(directory)
}

/// A new directory whose `data` is what `folkmoot seed` makes with these flags.
pub(in crate::solo) async fn filled(seed: &[String]) -> Result<PathBuf> {
    let directory = prepare()?;
    let mut command = Command::new(program()?);
    command.arg("--data").arg(directory.join("data")).arg("seed").args(seed);
    command.arg("--tokens").arg(directory.join("tokens"));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.context("cannot start folkmoot")?;
    if !output.status.success() {
        let _ = fs::remove_dir_all(&directory);
        bail!("folkmoot seed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(directory)
}

/// Starts the server on the data of a directory.
async fn spawn(directory: &Path, store: Option<&str>, freed: Freed) -> Result<(Child, SocketAddr)> {
    let mut command = Command::new(program()?);
    if let Some(store) = store {
        command.env("FOLKMOOT_STORE", store);
    }
    if freed == Freed::Returned {
        command.env("MIMALLOC_PURGE_DELAY", "0");
    }
    let mut process = command
        .args(["--listen", "127.0.0.1:0", "--log", "warn"])
        .arg("--data")
        .arg(directory.join("data"))
        .arg("--config")
        .arg(directory.join("folkmoot.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start folkmoot")?;
    let stdout = process.stdout.take().context("its output is piped")?;
    let mut lines = BufReader::new(stdout).lines();
    let greeting = timeout(START_MAX, lines.next_line())
        .await
        .context("folkmoot did not start in time")??
        .context("folkmoot ended at once")?;
    let address = greeting.strip_prefix(GREETING);
    let address = address.with_context(|| format!("unexpected greeting {greeting}"))?;
    Ok((process, address.parse()?))
}

/// Builds an example of the server's package; returns its program.
pub(in crate::solo) fn example(name: &str) -> Result<PathBuf> {
    let release = build_directory()?;
    up_to_date("folkmoot", &["--example", name], &release)?;
    Ok(release.join("examples").join(name))
}

/// The one HTTP request that this needs: no client library for it.
async fn post(address: SocketAddr, path: &str, json: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        json.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(json).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let split = response.windows(4).position(|window| window == b"\r\n\r\n");
    let split = split.context("the response has no head")?;
    let (head, body) = (String::from_utf8_lossy(&response[..split]), &response[split + 4..]);
    if !head.starts_with("HTTP/1.1 201") {
        bail!("{}: {}", head.lines().next().unwrap_or_default(), String::from_utf8_lossy(body));
    }
    Ok(body.to_vec())
}
