//! The server under test: the release build of `folkmoot`, as a process of its own.

use super::client::Client;
use anyhow::{Context, Result, bail, ensure};
use folkmoot_protocol::chat::{AccountCreate, SignedIn};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs, process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// What the server prints before its address.
const GREETING: &str = "Folkmoot listens on http://";
const START_MAX: Duration = Duration::from_secs(10);
/// The workload measures the road of a message, not the guards in front of it.
const SETTINGS: &str = "[limits]\n\
    messages_per_second = 0\n\
    accounts_per_minute = 0\n\
    log_ins_per_minute = 0\n";

/// A running server; ended, and its data removed, when dropped.
pub(super) struct Server {
    process: Child,
    address: SocketAddr,
    directory: PathBuf,
}

impl Server {
    /// Builds and starts the server on a free port, with a new data directory beside the build.
    ///
    /// Not in `/tmp`, which may be memory, where fsync costs nothing.
    pub(super) async fn start() -> Result<Self> {
        let own = env::current_exe()?;
        let release = own.parent().context("the program lies in a directory")?;
        build(release).await?;
        let directory = release.join(format!("chat-send-{}", process::id()));
        fs::create_dir_all(&directory)?;
        let settings = directory.join("folkmoot.toml");
        fs::write(&settings, SETTINGS)?;
        let mut process = Command::new(release.join("folkmoot"))
            .args(["--listen", "127.0.0.1:0", "--log", "warn"])
            .arg("--data")
            .arg(directory.join("data"))
            .arg("--config")
            .arg(settings)
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
        let address = greeting
            .strip_prefix(GREETING)
            .with_context(|| format!("unexpected greeting {greeting}"))?
            .parse()?;
        Ok(Self { process, address, directory })
    }

    /// Creates an account and connects as its user.
    pub(super) async fn sign_up(&self, name: &str) -> Result<Client> {
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
        Client::connect(self.address, signed_in.token).await
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

/// Brings the server's binary up to date, in the profile and directory of this program.
async fn build(release: &Path) -> Result<()> {
    let target = release.parent().context("a profile lies in the target directory")?;
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "folkmoot", "--target-dir"])
        .arg(target)
        .current_dir(crate::build::bench_directory())
        .status()
        .await
        .context("cannot run cargo")?;
    ensure!(status.success(), "folkmoot does not build");
    Ok(())
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
