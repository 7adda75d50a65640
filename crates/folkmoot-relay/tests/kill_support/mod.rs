//! A relay as a process that can be killed, and a subscriber that comes back.

#![allow(dead_code)] // Not every test uses all of it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// A relay that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    settings: PathBuf,
    address: String,
    /// What runs it, where that is not the system itself.
    by: Vec<String>,
    child: Option<Child>,
}

impl Process {
    pub(crate) fn start(directory: &Path, settings: &Value) -> Self {
        Self::start_by(Vec::new(), directory, settings)
    }

    /// The same, run by another program, which it takes the place of.
    pub(crate) fn start_by(by: Vec<String>, directory: &Path, settings: &Value) -> Self {
        let path = directory.join("relay.json");
        std::fs::write(&path, settings.to_string()).expect("it is written");
        let address = "127.0.0.1:0".to_owned();
        let mut process = Self { settings: path, address, by, child: None };
        process.start_again();
        process
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The most memory that it has had.
    pub(crate) fn memory_peak_kib(&self) -> u64 {
        let id = self.child.as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it is Linux");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        peak.and_then(|peak| peak.parse().ok()).expect("the kernel tells it")
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
        }
    }

    /// Stops it where it is: connections stay, and it does nothing.
    pub(crate) fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on after `pause`.
    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "signal {name} could not be sent");
    }

    /// Starts it at the address it had, unless it runs; returns when it listens.
    pub(crate) fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let test = std::env::current_exe().expect("a test knows its file");
        let build = test.parent().and_then(Path::parent).expect("it is in target/…/deps");
        let relay = build.join("examples/relay");
        let mut command = match self.by.split_first() {
            None => Command::new(relay),
            Some((first, others)) => {
                let mut command = Command::new(first);
                command.args(others).arg(relay);
                command
            }
        };
        command.arg(&self.settings).arg(&self.address);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo has built the example `relay`");
        let mut address = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut address).expect("it says where it listens");
        address.trim_end().clone_into(&mut self.address);
        assert!(!self.address.is_empty(), "the relay did not start");
        self.child = Some(child);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Calls the server API; an error if it does not answer.
pub(crate) async fn call(address: &str, method: &str, params: &Value) -> std::io::Result<Value> {
    let mut socket = TcpStream::connect(address).await?;
    let (body, mut answer) = (params.to_string(), String::new());
    let head = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: here\r\nX-API-Key: key\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await?;
    socket.read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(serde_json::from_str(body)?)
}

/// What a subscriber saw of what was committed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) committed: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) out_of_order: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, seen: &[u64], committed: u64) {
        let mut times = vec![0_u64; usize::try_from(committed).expect("it fits") + 1];
        for number in seen {
            times[usize::try_from(*number).expect("it fits")] += 1;
        }
        self.committed += committed;
        self.lost += times.iter().skip(1).filter(|times| **times == 0).count() as u64;
        self.doubled += times.iter().map(|times| times.saturating_sub(1)).sum::<u64>();
        let falls = seen.windows(2).filter(|pair| pair[1] < pair[0]).count();
        self.out_of_order += falls as u64;
    }

    pub(crate) fn check(&self) {
        let nothing = Self { committed: self.committed, ..Self::default() };
        assert_eq!(*self, nothing);
        assert!(self.committed > 0);
    }
}

/// A subscriber of one channel that comes back from where it was.
pub(crate) struct Follower {
    seen: watch::Receiver<Vec<u64>>,
    /// Whether it was ever subscribed.
    subscribed: watch::Receiver<bool>,
    following: JoinHandle<()>,
}

impl Follower {
    pub(crate) fn start(address: &str, partition: i32) -> Self {
        let (seeing, seen) = watch::channel(Vec::new());
        let (subscribing, subscribed) = watch::channel(false);
        let (url, channel) =
            (format!("ws://{address}/connection/websocket"), format!("news:{partition}"));
        let following = tokio::spawn(follow(url, channel, seeing, subscribing));
        Self { seen, subscribed, following }
    }

    /// Waits until it is subscribed for the first time.
    pub(crate) async fn subscribes(&mut self) {
        let subscribed = self.subscribed.wait_for(|is| *is);
        let subscribed = timeout(PATIENCE, subscribed).await.map(|is| is.is_ok());
        assert_eq!(subscribed, Ok(true), "it is not subscribed");
    }

    /// Waits until so many more publications were seen.
    pub(crate) async fn hears(&mut self, more: u64) {
        let wanted = self.seen.borrow().len() as u64 + more;
        self.waits(wanted).await;
    }

    /// Waits until so many publications were seen in all.
    pub(crate) async fn waits(&mut self, wanted: u64) {
        let heard = self.seen.wait_for(|seen| seen.len() as u64 >= wanted);
        let heard = timeout(PATIENCE, heard).await.map(|heard| heard.is_ok());
        assert_eq!(heard, Ok(true), "of {wanted} only {} came", self.seen.borrow().len());
    }

    /// All that was seen, once that is as much as was committed and nothing more comes.
    pub(crate) async fn end(mut self, committed: u64) -> Vec<u64> {
        self.waits(committed).await;
        // Long enough for what would be published a second time.
        sleep(Duration::from_secs(1)).await;
        self.following.abort();
        self.seen.borrow().clone()
    }
}

/// Subscribes again and again with the last position.
async fn follow(
    url: String,
    channel: String,
    seeing: watch::Sender<Vec<u64>>,
    subscribing: watch::Sender<bool>,
) {
    let mut position = None;
    loop {
        let _ = one_connection(&url, &channel, &mut position, &seeing, &subscribing).await;
        sleep(RETRY_AFTER).await;
    }
}

/// Follows as long as the connection lasts.
async fn one_connection(
    url: &str,
    channel: &str,
    position: &mut Option<(u64, String)>,
    seeing: &watch::Sender<Vec<u64>>,
    subscribing: &watch::Sender<bool>,
) -> Option<()> {
    let (mut socket, _) = connect_async(url).await.ok()?;
    let mut subscribe = json!({ "channel": channel, "recoverable": true });
    if let Some((offset, epoch)) = &*position {
        subscribe["recover"] = json!(true);
        (subscribe["offset"], subscribe["epoch"]) = (json!(offset), json!(epoch));
    }
    let opening = format!(
        "{}\n{}",
        json!({"id": 1, "connect": {}}),
        json!({"id": 2, "subscribe": subscribe})
    );
    socket.send(Message::text(opening)).await.ok()?;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        for line in text.lines() {
            if line == "{}" {
                socket.send(Message::text("{}")).await.ok()?;
                continue;
            }
            let reply: Value = serde_json::from_str(line).expect("JSON");
            assert!(reply["error"].is_null(), "{reply}");
            let result = &reply["subscribe"];
            if result.is_object() {
                let was_away = position.is_some();
                assert_eq!(result["recovered"].as_bool().unwrap_or(false), was_away, "{channel}");
                let epoch = result["epoch"].as_str().expect("an epoch").to_owned();
                let offset =
                    position.as_ref().map_or(result["offset"].as_u64().unwrap_or(0), |at| at.0);
                *position = Some((offset, epoch));
                subscribing.send_replace(true);
            }
            let recovered = result["publications"].as_array().into_iter().flatten();
            let pushed = reply["push"].get("pub");
            for publication in recovered.chain(pushed) {
                let offset = publication["offset"].as_u64().expect("an offset");
                let at = position.as_mut().expect("it is subscribed");
                assert_eq!(offset, at.0 + 1, "the offsets have no gaps");
                at.0 = offset;
                let number = publication["data"].as_u64().expect("a number");
                seeing.send_modify(|seen| seen.push(number));
            }
        }
    }
    Some(())
}
