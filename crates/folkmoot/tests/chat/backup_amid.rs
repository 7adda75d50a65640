//! Backups of a server on which messages are retired, and users and rooms deleted, while they are
//! taken: whole, with all that was acknowledged before.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::sync::watch;

use crate::process::listening;
use crate::support::{Account, Client, PATIENT, Server, exchange};

const BACKUPS: usize = 4;

/// A message that was acknowledged, with the address of its file.
#[derive(Clone)]
struct Acked {
    seq: u64,
    body: String,
    file: String,
}

fn folkmoot(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(arguments).output().expect("the binary was built")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

async fn say_with_file(
    server: &Server,
    account: &Account,
    client: &mut Client,
    room: &str,
    body: &str,
) -> Acked {
    let file = server.upload(account, room, "leaves.txt", body.as_bytes()).await.json();
    let said = json!({"room": room, "key": body, "body": body, "attachments": [file["id"]]});
    let seq = client.call("message.send", said).await["seq"].as_u64().unwrap();
    Acked { seq, body: body.to_owned(), file: file["url"].as_str().unwrap().to_owned() }
}

/// Says messages with files that nobody takes away.
async fn keep(
    server: &Server,
    anna: &Account,
    room: &str,
    acked: &watch::Sender<Vec<Acked>>,
    stops: &AtomicBool,
) {
    let mut client = server.connect(anna).await;
    for n in 0.. {
        if stops.load(Ordering::Relaxed) {
            return;
        }
        let said = say_with_file(server, anna, &mut client, room, &format!("kept {n}")).await;
        acked.send_modify(|acked| acked.push(said));
    }
}

/// Says messages with files in a room that keeps few of them, and has the rest deleted.
async fn retire(server: &Server, anna: &Account, room: &str, stops: &AtomicBool) {
    let mut client = server.connect(anna).await;
    for round in 0.. {
        if stops.load(Ordering::Relaxed) {
            return;
        }
        for n in 0..8 {
            let body = format!("retired {round} {n}");
            let said = say_with_file(server, anna, &mut client, room, &body).await;
            let on = json!({"room": room, "seq": said.seq, "on": true});
            client.call("message.save", on.clone()).await;
            client.call("message.pin", on).await;
            let reply = json!({"room": room, "key": format!("re {body}"), "body": "what?",
                "reply_to": said.seq});
            client.call("message.send", reply).await;
        }
        let line = format!("PUT /api/v1/admin/rooms/{room}/retention");
        let set = server.http(&line, Some(&anna.token), "{\"messages\":3}").await;
        assert_eq!(set.status, 204, "{set:?}");
    }
}

/// Has people sign up, speak, show themselves and go, with their messages or without, and rooms of
/// theirs with them.
async fn come_and_go(server: &Server, common: &str, invite: &str, stops: &AtomicBool) {
    let picture = crate::profiles::png(16, 16);
    for n in 0.. {
        if stops.load(Ordering::Relaxed) {
            return;
        }
        let eve = server.sign_up(&format!("eve{n}")).await;
        let mut client = server.connect(&eve).await;
        client.call("invite.accept", json!({"code": invite})).await;
        let room = client.create_room(&format!("Hers {n}")).await;
        for room in [common, &room] {
            say_with_file(server, &eve, &mut client, room, &format!("eve {n}")).await;
        }
        let shown = server.exchange("PUT /api/v1/me/picture", &eve, &[], &picture).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        client.call("room.delete", json!({"room": room})).await;
        let messages = if n % 2 == 0 { "keep" } else { "erase" };
        let wish = json!({"password": "correct horse", "messages": messages, "rooms": "hand_over"});
        let line = "POST /api/v1/me/deletion";
        let gone = server.http(line, Some(&eve.token), &wish.to_string()).await;
        assert_eq!(gone.status, 204, "{gone:?}");
    }
}

/// Restores a backup and finds in it all that was acknowledged before it.
async fn has_all(file: &Path, data: &Path, anna: &Account, room: &str, before: &[Acked]) {
    let restored = folkmoot(data, &["restore", text(file)]);
    assert!(restored.status.success(), "{restored:?}");
    let checked = folkmoot(data, &["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let (mut child, server) = listening(data);
    let mut client = Client::open(server).await;
    client.connect(&anna.token).await.expect("the token is ours");
    for acked in before {
        let page = json!({"room": room, "before": acked.seq + 1, "limit": 1});
        let page = client.call("history.get", page).await;
        assert_eq!(page["messages"][0]["body"], acked.body, "{page}");
        let line = format!("GET {}", acked.file);
        let bytes = exchange(server, &line, Some(&anna.token), &[], b"").await;
        assert_eq!(bytes.body, acked.body.as_bytes());
    }
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    let checked = folkmoot(data, &["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

async fn unlimited() -> Server {
    let zero = [
        "accounts",
        "profile_changes",
        "changes",
        "questions",
        "invites",
        "rooms",
        "uploads",
        "edits",
        "searches",
    ];
    let zero: String = zero.iter().map(|what| format!("{what}_per_minute = 0\n")).collect();
    Server::with(&format!("[limits]\nmessages_per_second = 0\n{zero}{PATIENT}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_amid_retention_and_deletions_of_users_and_rooms_are_whole() {
    let server = unlimited().await;
    let anna = Account::of(&server.set_up("anna").await);
    let mut client = server.connect(&anna).await;
    let mut rooms = Vec::new();
    for name in ["Log", "Tea", "Common"] {
        rooms.push(client.create_room(name).await);
    }
    let invite = client.call("invite.create", json!({"room": rooms[2]})).await;
    let invite: String = invite["code"].as_str().unwrap_or_else(|| panic!("{invite}")).to_owned();
    let (acked, mut heard) = watch::channel(Vec::new());
    let stops = AtomicBool::new(false);
    let backing_up = async {
        for n in 0..BACKUPS {
            let before = heard.wait_for(|acked| acked.len() >= 10 * (n + 1)).await;
            let before = before.unwrap().clone();
            let (data, file) = (server.data(), server.beside(&format!("monday{n}")));
            let to = file.clone();
            let taken =
                tokio::task::spawn_blocking(move || folkmoot(&data, &["backup", text(&to)]));
            let taken = taken.await.unwrap();
            assert!(taken.status.success(), "{taken:?}");
            let said = String::from_utf8_lossy(&taken.stderr).into_owned();
            assert!(!said.contains("is missing"), "{said}");
            let other = server.beside(&format!("other{n}"));
            has_all(&file, &other, &anna, &rooms[0], &before).await;
        }
        stops.store(true, Ordering::Relaxed);
    };
    tokio::join!(
        backing_up,
        keep(&server, &anna, &rooms[0], &acked, &stops),
        retire(&server, &anna, &rooms[1], &stops),
        come_and_go(&server, &rooms[2], &invite, &stops),
    );
}
