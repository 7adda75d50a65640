//! The log of moderation: what belongs in it is there, in order, for good.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{Account, Client, Scratch, Server, request};

/// The log, the oldest first: who, what, whom, where.
fn told(page: &Value) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let entries = page["entries"].as_array().expect("a page has entries").iter().rev();
    let entry = |entry: &Value| {
        let by = text(&entry["by"]["name"]);
        let (action, user) = (text(&entry["action"]), text(&entry["user"]["name"]));
        [by, action, user, text(&entry["room"]["name"])]
    };
    entries.map(entry).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_who_did_what_to_whom_and_where() {
    let server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    let bob = server.sign_up("bob").await;
    let mut owner = server.connect(&anna).await;
    let mut member = server.connect(&bob).await;
    let room = owner.create_room("Tea").await;
    owner.invite(&room, &mut member).await;
    member.say(&room, "1", "my own").await;
    member.say(&room, "2", "not for long").await;
    member.call("message.delete", json!({"room": room, "seq": 1})).await;
    owner.call("message.delete", json!({"room": room, "seq": 2})).await;
    let user = |more: Value| {
        let mut request = json!({"room": room, "user": bob.id});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    owner.call("room.mute", user(json!({"until": 32_503_680_000_000_u64}))).await;
    owner.call("room.mute", user(json!({}))).await;
    owner.call("room.set_role", user(json!({"role": "moderator"}))).await;
    owner.call("room.kick", user(json!({}))).await;
    owner.call("room.ban", user(json!({"on": true}))).await;
    owner.call("room.ban", user(json!({"on": false}))).await;
    for access in ["open", "open", "invite", "hidden"] {
        owner.call("room.set_access", json!({"room": room, "access": access})).await;
    }
    let patch = format!("PATCH /api/v1/admin/users/{}", bob.id);
    for change in [json!({"disabled": true}), json!({"disabled": true}), json!({"disabled": false})]
    {
        server.http(&patch, Some(&anna.token), &change.to_string()).await;
    }
    let line = "GET /api/v1/admin/moderation";
    let page = server.http(line, Some(&anna.token), "").await.json();
    let expected = [
        ["anna", "set_up", "anna", "-"],
        ["anna", "invite_made", "-", "Tea"],
        ["anna", "message_deleted", "bob", "Tea"],
        ["anna", "muted", "bob", "Tea"],
        ["anna", "unmuted", "bob", "Tea"],
        ["anna", "role_set", "bob", "Tea"],
        ["anna", "kicked", "bob", "Tea"],
        ["anna", "banned", "bob", "Tea"],
        ["anna", "unbanned", "bob", "Tea"],
        ["anna", "room_made_open", "-", "Tea"],
        ["anna", "room_made_listed", "-", "Tea"],
        ["anna", "room_made_hidden", "-", "Tea"],
        ["anna", "user_disabled", "bob", "-"],
        ["anna", "user_enabled", "bob", "-"],
    ];
    assert_eq!(told(&page), expected.map(|entry| entry.map(str::to_owned)));
    let entries = page["entries"].as_array().unwrap();
    let found = |action: &str| entries.iter().find(|entry| entry["action"] == action).unwrap();
    assert_eq!(found("muted")["until"], 32_503_680_000_000_u64);
    assert_eq!(found("role_set")["role"], "moderator");
    // By pages it is the same log.
    let mut paged = Vec::new();
    let mut next = String::new();
    loop {
        let line = format!("{line}?limit=4{next}");
        let page = server.http(&line, Some(&anna.token), "").await.json();
        paged.extend(page["entries"].as_array().unwrap().clone());
        match page["next"].as_u64() {
            Some(before) => next = format!("&before={before}"),
            None => break,
        }
    }
    assert_eq!(&paged, entries);
}

/// Starts the binary; returns its address and what it prints after that.
async fn launch(data: &Path) -> (Child, SocketAddr, Lines<BufReader<ChildStdout>>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary was built");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let listens = lines.next_line().await.expect("it is read").expect("it says where it listens");
    let address =
        listens.rsplit('/').next().and_then(|text| text.parse().ok()).expect("an address");
    (child, address, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_in_the_log_after_sigkill() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (mut first, address, mut lines) = launch(&data).await;
    let link = lines.next_line().await.unwrap().expect("a new server prints a link");
    let (_, token) = link.split_once('#').expect("the token stands behind a #");
    let body = json!({"token": token, "name": "anna", "password": "correct horse"}).to_string();
    let anna = Account::of(&request(address, "POST /api/v1/setup", None, &body).await);
    let body = json!({"name": "bob", "password": "correct horse"}).to_string();
    let bob = Account::of(&request(address, "POST /api/v1/accounts", None, &body).await);
    let mut owner = Client::open(address).await;
    owner.connect(&anna.token).await.unwrap();
    let mut member = Client::open(address).await;
    member.connect(&bob.token).await.unwrap();
    let room = owner.create_room("Tea").await;
    owner.invite(&room, &mut member).await;
    owner.call("room.kick", json!({"room": room, "user": bob.id})).await;
    first.kill().await.expect("it runs");
    let (mut second, address, _) = launch(&data).await;
    let log = request(address, "GET /api/v1/admin/moderation", Some(&anna.token), "").await;
    let actions: Vec<String> =
        told(&log.json()).into_iter().map(|[_, action, ..]| action).collect();
    assert_eq!(actions, ["set_up", "invite_made", "kicked"]);
    second.kill().await.expect("it runs");
}
