//! `folkmoot migrate` that is killed at any moment, from before its first table to its last word,
//! of a store with something of everything: files, threads, read states, bans, sessions.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::storage_postgres::new_database;
use crate::support::{Account, Client, Server};

/// Kills, spread over the time that one migration takes.
const KILLS: u32 = 24;
const FILES: usize = 40;

struct House {
    server: Server,
    anna: Account,
    /// The same person on another device.
    phone: Account,
    bob: Account,
    /// Thrown out.
    eve: Account,
    room: String,
    files: Vec<String>,
}

fn id(answer: &Value) -> &str {
    answer["id"].as_str().unwrap()
}

async fn house() -> House {
    let mut server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    let phone = server.sign_in("anna").await;
    let (bob, eve) = (server.sign_up("bob").await, server.sign_up("eve").await);
    let mut client = server.connect(&anna).await;
    let (mut at_bob, mut at_eve) = (server.connect(&bob).await, server.connect(&eve).await);
    let room = client.create_room("Tea").await;
    client.invite(&room, &mut at_bob).await;
    client.invite(&room, &mut at_eve).await;
    let mut files = Vec::new();
    for n in 1..=FILES {
        let bytes = format!("leaves {n}");
        let file = server.upload(&anna, &room, "leaves.txt", bytes.as_bytes()).await.json();
        let said = json!({"room": room, "key": format!("{n}"), "body": format!("@bob cup {n}"),
            "attachments": [file["id"]], "reply_to": (n > 1).then_some(n / 2)});
        client.call("message.send", said).await;
        files.push(file["url"].as_str().unwrap().to_owned());
    }
    client.call("message.pin", json!({"room": room, "seq": 3, "on": true})).await;
    client.call("message.save", json!({"room": room, "seq": 4, "on": true})).await;
    client.call("message.react", json!({"room": room, "seq": 5, "emoji": "x", "on": true})).await;
    at_bob.call("read.set", json!({"room": room, "seq": 30})).await;
    client.call("room.ban", json!({"room": room, "user": eve.id, "on": true})).await;
    let direct = client.call("direct.open", json!({"user": bob.id})).await;
    client.say(id(&direct), "d", "only for you").await;
    drop((client, at_bob, at_eve));
    server.stop().await;
    House { server, anna, phone, bob, eve, room, files }
}

impl House {
    async fn is_whole(&self) {
        for account in [&self.anna, &self.phone] {
            self.server.connect(account).await;
        }
        let mut client = self.server.connect(&self.anna).await;
        let room = &self.room;
        let page = client.call("history.get", json!({"room": room, "limit": 100})).await;
        assert_eq!(page["messages"].as_array().map(Vec::len), Some(FILES));
        let thread = client.call("message.thread", json!({"room": room, "seq": 2})).await;
        let answers = thread["messages"].as_array().map(Vec::len);
        // 2, 4 and 5, 8 to 11, 16 to 23, 32 to 40.
        assert_eq!(answers, Some(24), "{thread}");
        let pins = client.call("room.pins", json!({"room": room})).await;
        assert_eq!(pins["pins"][0]["message"]["seq"], 3, "{pins}");
        let saved = client.call("saved.list", json!({})).await;
        assert_eq!(saved["saved"][0]["message"]["seq"], 4, "{saved}");
        let mut at_bob: Client = self.server.connect(&self.bob).await;
        let view = at_bob.call("room.get", json!({"room": room})).await;
        assert_eq!((&view["unread"], &view["mentions"]), (&json!(10), &json!(10)), "{view}");
        let mut at_eve = self.server.connect(&self.eve).await;
        assert_eq!(at_eve.fail("room.get", json!({"room": room})).await.code, 103);
        for (n, url) in (1..).zip(&self.files) {
            let bytes = self.server.exchange(&format!("GET {url}"), &self.anna, &[], b"").await;
            assert_eq!(bytes.body, format!("leaves {n}").into_bytes());
        }
    }
}

fn migrate(files: &Path, from: &str, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(files).args(["migrate", from, to]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn tables(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines = said.lines().filter(|line| line.contains("checksum"));
    lines.map(ToOwned::to_owned).collect()
}

/// Whether the one before was killed when all was there.
fn was_all_there(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    !output.status.success() && said.contains("is there already, and servers may begin on it")
}

/// Kills it again and again, each time a little later, until one has come to its end.
fn migrate_killed(files: &Path, from: &str, to: &str, takes: Duration) -> (u32, Output) {
    for kill in 1.. {
        let mut child = migrate(files, from, to).spawn().unwrap();
        let until = Instant::now() + takes * kill / KILLS;
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let has_ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if has_ended {
            return (kill - 1, output);
        }
    }
    unreachable!("each goes on where the last one was killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_is_killed_at_any_moment_goes_on_and_everything_is_there() {
    let mut house = house().await;
    let data = house.server.data();
    let data = data.to_str().unwrap();
    let (database, unhurt) = (new_database().await.to_string(), new_database().await.to_string());
    let begun = Instant::now();
    let expected = migrate(&house.server.beside("unhurt"), data, &unhurt).output().unwrap();
    let takes = begun.elapsed();
    let files = house.server.beside("files");
    let (kills, output) = migrate_killed(&files, data, &database, takes);
    assert!(kills > 3, "{kills}");
    if !was_all_there(&output) {
        assert_eq!(tables(&output), tables(&expected));
    }
    house.server.serve(files, &database).await;
    house.is_whole().await;
    house.server.stop().await;
    // And back, under the same kills.
    let back = house.server.beside("back");
    let files = house.server.beside("files");
    let (kills, output) = migrate_killed(&files, &database, back.to_str().unwrap(), takes);
    assert!(kills > 3, "{kills}");
    assert!(was_all_there(&output) || !tables(&output).is_empty());
    house.server.serve(back, "embedded").await;
    house.is_whole().await;
}
