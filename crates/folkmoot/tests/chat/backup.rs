//! `folkmoot backup` and `folkmoot restore`: taken from a server that is being written to, brought
//! back elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::process::listening_with;
use crate::profiles::png;
use crate::support::{Account, Client, PATIENT, Scratch, exchange};

/// Who write at once.
const WRITERS: usize = 3;
/// Taken while everything changes.
const BACKUPS: usize = 6;
/// Acknowledged before the backup begins.
const ACKED_BEFORE: usize = 300;

/// A server process that ends with its test.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(scratch: &Scratch, data: &Path) -> Self {
        let unlimited = ["accounts", "searches", "edits", "reactions", "uploads", "changes"];
        let unlimited = unlimited.map(|of| format!("{of}_per_minute = 0\n")).concat();
        let limits = format!(
            "messages_per_second = 0\nprofile_changes_per_minute = 0\n\
             cursors_per_minute = 0\n{unlimited}"
        );
        let settings = scratch.file("folkmoot.toml", &format!("[limits]\n{limits}\n{PATIENT}"));
        let (child, address) = listening_with(data, &settings);
        Self { child, address }
    }

    async fn sign_up(&self, name: &str) -> Account {
        let body = json!({"name": name, "password": "correct horse"}).to_string();
        let line = "POST /api/v1/accounts";
        let answer = exchange(self.address, line, None, &[], body.as_bytes()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let answer = answer.json();
        let text = |value: &Value| value.as_str().expect("the test's own data").to_owned();
        let (id, device) = (text(&answer["user"]["id"]), text(&answer["device"]));
        Account { id, token: text(&answer["token"]), device }
    }

    async fn connect(&self, account: &Account) -> Client {
        let mut client = Client::open(self.address).await;
        client.connect(&account.token).await.expect("the token is ours");
        client
    }

    /// As the power goes.
    fn kill(mut self) {
        self.child.kill().expect("the test's own data");
        self.child.wait().expect("the test's own data");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folkmoot(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(arguments);
    command.output().expect("the binary was built")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// Expects a refusal in one line that contains `words`.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("folkmoot: "), "{said}");
    assert!(words.iter().all(|word| line.contains(word)), "{line}");
}

/// Writes messages one after the other until told to stop; returns what was acknowledged.
async fn write(mut client: Client, room: String, writer: usize, load: Load) -> Vec<(u64, String)> {
    let mut acked = Vec::new();
    while !load.stops.load(Ordering::Relaxed) {
        let body = format!("writer {writer} says {}", acked.len());
        let request = json!({"room": room, "key": body, "body": body});
        // The kill comes in the middle of this.
        let id = client.post("rpc", json!({"method": "message.send", "data": request})).await;
        let Some(seq) = answer(&mut client, id).await else { break };
        acked.push((seq, body));
        load.acks.send_modify(|acks| acks.push(acked.last().expect("the test's own data").clone()));
    }
    acked
}

async fn answer(client: &mut Client, id: u64) -> Option<u64> {
    while client.closed.is_none() {
        if client.answered(id) {
            let reply = client.reply(id, "rpc").await.expect("the test's own data");
            return reply["data"]["seq"].as_u64();
        }
        client.receive().await;
    }
    None
}

#[derive(Clone)]
struct Load {
    stops: Arc<AtomicBool>,
    acks: Arc<watch::Sender<Vec<(u64, String)>>>,
}

/// All messages of a room, as history has them.
async fn history(client: &mut Client, room: &str) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(0, |(seq, _)| *seq);
        let request = json!({"room": room, "after": after, "limit": 100});
        let page = client.call("history.get", request).await;
        let messages = page["messages"].as_array().expect("the test's own data");
        if messages.is_empty() {
            return all;
        }
        all.extend(messages.iter().map(|message| {
            (
                message["seq"].as_u64().expect("the test's own data"),
                message["body"].as_str().expect("the test's own data").to_owned(),
            )
        }));
    }
}

/// Numbers without a gap, none of a writer's messages doubled or out of order.
fn are_whole(messages: &[(u64, String)]) {
    let mut said: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (expected, (seq, body)) in (1..).zip(messages) {
        assert_eq!(*seq, expected, "a gap");
        assert!(seen.insert(body), "{body:?} is there twice");
        let Some((writer, number)) = body.split_once(" says ") else { continue };
        let number: u64 = number.parse().expect("the test's own data");
        let next = said.entry(writer).or_default();
        assert_eq!(number, *next, "{writer} out of order");
        *next += 1;
    }
}

/// A room with some words and a file in it, and a picture of Anna.
async fn furnish(server: &Process, anna: &Account, client: &mut Client) -> (String, Value) {
    let room = client.create_room("Tea").await;
    client.say(&room, "first", "a kettle of oolong").await;
    let line = format!("POST /api/v1/rooms/{room}/attachments?name=leaves.txt");
    let file = exchange(server.address, &line, Some(&anna.token), &[], b"dried leaves").await;
    let file = file.json();
    let request = json!({"room": room, "key": "file", "body": "", "attachments": [file["id"]]});
    client.call("message.send", request).await;
    (room, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_server_under_load_has_all_that_was_acknowledged_before_it_began() {
    let scratch = Scratch::new();
    let (data, other) = (scratch.path().join("data"), scratch.path().join("other"));
    let file = scratch.path().join("folkmoot.backup");
    let server = Process::start(&scratch, &data);
    let anna = server.sign_up("anna").await;
    let mut client = server.connect(&anna).await;
    let (room, leaves) = furnish(&server, &anna, &mut client).await;
    let position = client.subscribe(&room).await;

    let (acks, mut acked) = watch::channel(Vec::new());
    let load = Load { stops: Arc::default(), acks: Arc::new(acks) };
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let client = server.connect(&anna).await;
        writers.push(tokio::spawn(write(client, room.clone(), writer, load.clone())));
    }
    acked.wait_for(|acks| acks.len() >= ACKED_BEFORE).await.unwrap();
    let before = acked.borrow().clone();
    let (from, to) = (data.clone(), file.clone());
    let backed_up =
        tokio::task::spawn_blocking(move || folkmoot(&from, &["backup", text(&to)])).await.unwrap();
    assert!(backed_up.status.success(), "{backed_up:?}");
    let during = acked.borrow().len();
    assert!(during > before.len(), "nothing was written while the backup was taken");
    acked.wait_for(|acks| acks.len() > during).await.unwrap();
    server.kill();
    load.stops.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }

    let restored = folkmoot(&other, &["restore", text(&file)]);
    assert!(restored.status.success(), "{restored:?}");
    let server = Process::start(&scratch, &other);
    let mut client = server.connect(&anna).await;
    let found = history(&mut client, &room).await;
    are_whole(&found);
    for message in &before {
        assert!(found.contains(message), "{message:?} was acknowledged before the backup");
    }
    let line = format!("GET {}", leaves["url"].as_str().unwrap());
    let bytes = exchange(server.address, &line, Some(&anna.token), &[], b"").await;
    assert_eq!(bytes.body, b"dried leaves");
    let hits = client.call("search", json!({"query": "oolong"})).await;
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1), "{hits}");

    // Offsets go on from where they ended in the backup, under another epoch.
    let (offset, epoch) = (position["offset"].as_u64().unwrap(), position["epoch"].as_str());
    let recovered = client.recover(&room, offset, epoch.unwrap()).await;
    assert_ne!(recovered["recovered"], true, "{recovered}");
    assert_ne!(recovered["epoch"].as_str(), epoch);
    let last = found.last().unwrap().0;
    assert_eq!(client.say(&room, "later", "and it goes on").await, last + 1);
}

/// Changes something of every kind until told to stop: edits, deletions, files, pictures, pins,
/// reactions, and how far one has read.
async fn change(
    server: SocketAddr,
    anna: Account,
    mut client: Client,
    room: String,
    stops: Arc<AtomicBool>,
) {
    let picture = png(16, 16);
    let upload = format!("POST /api/v1/rooms/{room}/attachments?name=leaves.txt");
    for round in 0.. {
        if stops.load(Ordering::Relaxed) {
            return;
        }
        let file = exchange(server, &upload, Some(&anna.token), &[], b"dried leaves").await.json();
        let key = format!("changed {round}");
        let said = json!({"room": room, "key": key, "body": "x", "attachments": [file["id"]]});
        let seq = client.call("message.send", said).await["seq"].clone();
        let on = |more: Value| {
            let mut request = json!({"room": room, "seq": seq});
            let more = more.as_object().expect("an object").clone();
            request.as_object_mut().expect("an object").extend(more);
            request
        };
        client.call("message.edit", on(json!({"body": "y"}))).await;
        client.call("message.react", on(json!({"emoji": "🍵", "on": true}))).await;
        client.call("message.pin", on(json!({"on": true}))).await;
        client.call("read.set", json!({"room": room, "seq": seq})).await;
        let line = "PUT /api/v1/me/picture";
        let shown = exchange(server, line, Some(&anna.token), &[], &picture).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        if round % 2 == 0 {
            client.call("message.delete", on(json!({}))).await;
        } else {
            client.call("message.pin", on(json!({"on": false}))).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_amid_edits_deletions_files_and_pictures_are_whole() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let server = Process::start(&scratch, &data);
    let anna = server.sign_up("anna").await;
    let mut client = server.connect(&anna).await;
    let stops = Arc::new(AtomicBool::new(false));
    let mut changing = Vec::new();
    for n in 0..WRITERS {
        let room = client.create_room(&format!("Tea {n}")).await;
        let (client, anna) = (server.connect(&anna).await, anna.clone());
        changing.push(tokio::spawn(change(server.address, anna, client, room, stops.clone())));
    }
    for n in 0..BACKUPS {
        let at = |name: &str| scratch.path().join(format!("{name}{n}"));
        let (from, file, other) = (data.clone(), at("monday"), at("other"));
        let tasks = move || {
            let backed_up = folkmoot(&from, &["backup", text(&file)]);
            assert!(backed_up.status.success(), "{backed_up:?}");
            let said = String::from_utf8_lossy(&backed_up.stderr).into_owned();
            assert!(!said.contains("is missing"), "{said}");
            let restored = folkmoot(&other, &["restore", text(&file)]);
            assert!(restored.status.success(), "{restored:?}");
            let checked = folkmoot(&other, &["check"]);
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        };
        tokio::task::spawn_blocking(tasks).await.unwrap();
    }
    stops.store(true, Ordering::Relaxed);
    for changing in changing {
        changing.await.unwrap();
    }
}

/// A backup of a small server that has stopped.
async fn small_backup(scratch: &Scratch) -> PathBuf {
    let data = scratch.path().join("data");
    let server = Process::start(scratch, &data);
    let anna = server.sign_up("anna").await;
    let mut client = server.connect(&anna).await;
    furnish(&server, &anna, &mut client).await;
    server.kill();
    let file = scratch.path().join("folkmoot.backup");
    let output = folkmoot(&data, &["backup", text(&file)]);
    assert!(output.status.success(), "{output:?}");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let whole = std::fs::read(small_backup(&scratch).await).unwrap();
    let other = scratch.path().join("other");
    let damaged = |name: &str, bytes: &[u8], words: &[&str]| {
        let file = scratch.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        refused(&folkmoot(&other, &["restore", text(&file)]), words);
        assert!(!other.exists() || std::fs::read_dir(&other).unwrap().next().is_none(), "{name}");
    };
    for place in [20, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        damaged("flipped", &bytes, &["flipped", "damaged at byte", "nothing was changed"]);
    }
    damaged("cut", &whole[..whole.len() - 30], &["cut off", "nothing was changed"]);
    damaged("letter", b"Dear Anna, how are you?", &["not a Folkmoot backup"]);
    damaged("empty", b"", &["not a Folkmoot backup"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_file_nor_a_directory_is_overwritten() {
    let scratch = Scratch::new();
    let file = small_backup(&scratch).await;
    let data = scratch.path().join("data");
    let before = std::fs::read(&file).unwrap();
    let output = folkmoot(&data, &["backup", text(&file)]);
    refused(&output, &["folkmoot.backup", "is there already", "name another file"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);

    refused(&folkmoot(&data, &["restore", text(&file)]), &["data", "is not empty"]);
    let other = scratch.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.txt"), "do not lose").unwrap();
    refused(&folkmoot(&other, &["restore", text(&file)]), &["other", "is not empty"]);
    assert_eq!(std::fs::read_to_string(other.join("thesis.txt")).unwrap(), "do not lose");
}

#[test]
fn what_is_no_data_directory_is_not_backed_up() {
    let scratch = Scratch::new();
    let file = scratch.path().join("folkmoot.backup");
    let output = folkmoot(scratch.path(), &["backup", text(&file)]);
    refused(&output, &["neither empty nor a data directory", "VERSION"]);
    assert!(!file.exists());
}
