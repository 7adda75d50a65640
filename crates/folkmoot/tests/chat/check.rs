//! `folkmoot check`: finds what is damaged on purpose, names it, and finds nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::profiles::{LIMITS, png, show};
use crate::support::Server;

/// Looks at a server that changes; some meet a change.
const CHECKS: usize = 40;

/// So many that erasing them takes longer than a look.
const MESSAGES: usize = 600;

fn check(data: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).arg("check");
    command.output().expect("the binary was built")
}

/// What is said line by line; `Err` with it if something is wrong.
fn verdict(data: &Path) -> Result<String, String> {
    let output = check(data);
    let said = String::from_utf8(output.stdout).unwrap();
    match output.status.code() {
        Some(0) => Ok(said),
        Some(1) => Err(said),
        _ => panic!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn finds(data: &Path, words: &[&str]) {
    let said = verdict(data).expect_err("the damage is not noticed");
    let is_named = |line: &str| words.iter().all(|word| line.contains(word));
    assert!(said.lines().any(is_named), "{words:?} in {said}");
}

struct Furnished {
    server: Server,
    room: String,
    file: Value,
}

impl Furnished {
    async fn new() -> Self {
        let server = Server::start().await;
        let anna = server.sign_up("anna").await;
        let mut client = server.connect(&anna).await;
        let room = client.create_room("Tea").await;
        let line = format!("POST /api/v1/rooms/{room}/attachments?name=leaves.txt");
        let file = server.exchange(&line, &anna, &[], b"dried leaves").await.json();
        let request = json!({"room": room, "key": "f", "body": "", "attachments": [file["id"]]});
        client.call("message.send", request).await;
        for n in 0..20 {
            client.say(&room, &n.to_string(), &format!("cup number {n}")).await;
        }
        Self { server, room, file }
    }

    async fn stopped() -> Self {
        let mut furnished = Self::new().await;
        furnished.server.stop().await;
        furnished
    }

    fn data(&self) -> PathBuf {
        self.server.data()
    }

    fn file(&self) -> PathBuf {
        self.data().join("attachments/files").join(self.file["id"].as_str().unwrap())
    }

    /// The segment with the records of all messages.
    fn segment(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.data().join("log")).unwrap();
        let mut segments: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        segments.sort();
        segments.remove(0)
    }

    fn database(&self) -> Connection {
        Connection::open(self.data().join("folkmoot.sqlite")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_with_a_server_that_runs_nor_after_it_has_stopped() {
    let mut furnished = Furnished::new().await;
    // The newest messages may be in the log only.
    let said = verdict(&furnished.data()).unwrap();
    assert!(said.contains("in 1 rooms, 1 files"), "{said}");
    furnished.server.stop().await;
    assert!(verdict(&furnished.data()).unwrap().contains("21 messages in 1 rooms, 1 files"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_the_log_is_found() {
    let furnished = Furnished::stopped().await;
    let segment = furnished.segment();
    let whole = std::fs::read(&segment).unwrap();
    let position = |text: &str| {
        let found = whole.windows(text.len()).position(|bytes| bytes == text.as_bytes());
        found.unwrap_or_else(|| panic!("{text:?} is not in the log"))
    };
    // In the middle, in the very last record, and in the segment's header.
    for place in [position("cup number 3"), position("cup number 19"), 9] {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x20;
        std::fs::write(&segment, damaged).unwrap();
        finds(&furnished.data(), &[segment.to_str().unwrap()]);
    }
    std::fs::write(&segment, whole).unwrap();
    verdict(&furnished.data()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_of_the_database_is_found() {
    let furnished = Furnished::stopped().await;
    let path = furnished.data().join("folkmoot.sqlite");
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'";
    let page: u32 = furnished.database().query_row(root, [], |row| row.get(0)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The header of the table's first page says what kind of page it is.
    bytes[(page as usize - 1) * 4096] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    assert!(verdict(&furnished.data()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_and_one_that_was_cut_short_are_found() {
    let furnished = Furnished::stopped().await;
    let file = furnished.file();
    let name = file.to_str().unwrap();
    std::fs::write(&file, "dried").unwrap();
    finds(&furnished.data(), &[name, "has 5 bytes", "12"]);
    std::fs::remove_file(&file).unwrap();
    finds(&furnished.data(), &[name, "is missing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_is_replaced_meanwhile_is_no_damage_and_one_that_is_missing_is() {
    let mut server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let picture = png(32, 32);
    show(&server, &anna, &picture).await;
    let data = server.data();
    let checking =
        tokio::task::spawn_blocking(move || (0..CHECKS).map(|_| verdict(&data)).collect());
    while !checking.is_finished() {
        assert_eq!(show(&server, &anna, &picture).await.status, 200);
    }
    let verdicts: Vec<Result<String, String>> = checking.await.unwrap();
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    server.stop().await;
    let portraits = server.data().join("attachments/portraits");
    let portrait = std::fs::read_dir(portraits).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&portrait).unwrap();
    finds(&server.data(), &[portrait.to_str().unwrap(), "is missing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_of_an_account_that_is_being_deleted_is_not_missing() {
    let server = Server::with(&format!("{LIMITS}messages_per_second = 0\n")).await;
    let eve = server.sign_up("eve").await;
    show(&server, &eve, &png(32, 32)).await;
    let mut client = server.connect(&eve).await;
    let (mut bob, room) = (server.join("bob").await, client.create_room("Tea").await);
    client.invite(&room, &mut bob).await;
    for n in 0..MESSAGES {
        client.say(&room, &n.to_string(), "cup").await;
    }
    let wish = json!({"password": "correct horse", "messages": "erase", "rooms": "hand_over"});
    let line = "POST /api/v1/me/deletion";
    let begun = server.http(line, Some(&eve.token), &wish.to_string()).await;
    assert_eq!(begun.status, 204, "{begun:?}");
    let data = server.data();
    let checking =
        tokio::task::spawn_blocking(move || (0..CHECKS / 4).map(|_| verdict(&data)).collect());
    let (verdicts, ()) = tokio::join!(checking, server.erased());
    let verdicts: Vec<Result<String, String>> = verdicts.unwrap();
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gaps_and_references_to_nothing_are_found() {
    let furnished = Furnished::stopped().await;
    let (data, room) = (furnished.data(), furnished.room.as_str());
    let cases: [(&str, &[&str]); 6] = [
        ("DELETE FROM messages WHERE seq IN (7, 8)", &[room, "messages 7 to 8 are missing"]),
        ("DELETE FROM messages WHERE seq = 21", &[room, "message 21 is missing"]),
        ("DELETE FROM room_events WHERE offset = 5", &[room, "events 1 to", "are there"]),
        ("DELETE FROM users", &[room, "message 2 is by an account that is not there"]),
        ("DELETE FROM attachments", &[room, "message 1 shows file", "not known"]),
        ("DELETE FROM rooms", &["message 2 is of room", room, "not there"]),
    ];
    let whole = std::fs::read(data.join("folkmoot.sqlite")).unwrap();
    for (damage, words) in cases {
        let database = furnished.database();
        assert!(database.execute(damage, []).unwrap() > 0, "{damage}");
        database.close().unwrap();
        finds(&data, words);
        std::fs::write(data.join("folkmoot.sqlite"), &whole).unwrap();
    }
    verdict(&data).unwrap();
}
