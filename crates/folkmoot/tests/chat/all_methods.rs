//! Nothing can be asked without end: each method and each command has a limit per user that its
//! refusal names, and each list has pages or an end.

use std::path::Path;

use folkmoot_protocol::rpc::Rpc;
use serde_json::{Value, json};

use crate::support::{Client, Failure, Server};

/// Three of everything. Messages come back after a second, everything else after twenty.
const SETTINGS: &str = "[limits]\naccounts_per_minute = 0\nmessages_per_second = 1\n\
    message_burst = 3\nedits_per_minute = 3\nreactions_per_minute = 3\ntyping_per_minute = 3\n\
    rooms_per_minute = 3\ninvites_per_minute = 3\nprofile_changes_per_minute = 3\n\
    searches_per_minute = 3\nquestions_per_minute = 3\nchanges_per_minute = 3\n\
    cursors_per_minute = 3\nsubscriptions_per_minute = 3\n";
/// Slow machines earn some while they ask.
const PATIENCE: usize = 100;

/// A request that each method takes, whether or not what it names exists.
fn requests() -> Vec<(String, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../folkmoot-protocol/tests/golden/methods.jsonl");
    let lines = std::fs::read_to_string(path).expect("golden files are committed");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("it is valid")).collect();
    let request = |method: &str| {
        let line = lines.iter().find(|line| line["method"] == method);
        line.unwrap_or_else(|| panic!("no golden line for {method}"))["request"].clone()
    };
    Rpc::METHODS.iter().map(|method| ((*method).to_owned(), request(method))).collect()
}

/// Asks until it is refused for the number of times.
async fn is_limited(client: &mut Client, what: &str, command: &str, request: &Value) {
    for n in 0..PATIENCE {
        let answer: Result<Value, Failure> = client.command(command, request.clone()).await;
        let Err(refused) = answer else { continue };
        if refused.code == 429 {
            assert!(n >= 3, "{what} was refused at the {n}th time");
            let names_it = refused.message.contains("the limit is 3 a minute")
                || refused.message.contains("the limit is 1 a second");
            assert!(names_it && refused.message.contains("try again in"), "{what}: {refused:?}");
            return;
        }
    }
    panic!("{what} has no limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_and_command_has_a_limit_per_user_that_is_named() {
    let server = Server::with(SETTINGS).await;
    for (n, (method, request)) in requests().into_iter().enumerate() {
        let mut client = server.join(&format!("user{n}")).await;
        let call = json!({"method": method, "data": request});
        is_limited(&mut client, &method, "rpc", &call).await;
    }
    let channel = json!({"channel": "room:0000000000007"});
    let publish = json!({"channel": "room:0000000000007", "data": {"body": "tea"}});
    for (command, request) in [
        ("subscribe", &channel),
        ("unsubscribe", &channel),
        ("sub_refresh", &channel),
        ("presence", &channel),
        ("presence_stats", &channel),
        ("history", &channel),
        ("publish", &publish),
    ] {
        let mut client = server.join(&format!("{command}er")).await;
        is_limited(&mut client, command, command, request).await;
    }
    let account = server.sign_up("refresher").await;
    let mut client = server.connect(&account).await;
    is_limited(&mut client, "refresh", "refresh", &json!({"token": account.token})).await;
}

/// How long the list in the answer of a method can get.
enum Listed {
    /// No list.
    No,
    /// In pages: the field with the list, what to ask, and what says where the next page begins.
    Pages(&'static str, Value, &'static str),
    /// Ends at a number that is in the protocol's limits.
    Ends,
}

fn listed(method: &str, room: &str) -> Listed {
    let pages = |list, request: Value, next| Listed::Pages(list, request, next);
    match method {
        "rooms.list" => pages("rooms", json!({"limit": 1}), "next"),
        "rooms.browse" => pages("rooms", json!({"limit": 1}), "next"),
        "room.members" => pages("members", json!({"room": room, "limit": 1}), "next"),
        "invite.list" => pages("invites", json!({"room": room, "limit": 1}), "next"),
        "search" => pages("hits", json!({"query": "tea", "limit": 1}), "next"),
        "message.thread" => pages("messages", json!({"room": room, "seq": 1, "limit": 1}), "next"),
        "room.pins" => pages("pins", json!({"room": room, "limit": 1}), "next"),
        "saved.list" => pages("saved", json!({"limit": 1}), "next"),
        // The numbers of the room's first and last message say whether there is more.
        "history.get" => pages("messages", json!({"room": room, "limit": 1}), "last_seq"),
        // ROOMS_PAGE_MAX; USERS_FOUND_MAX; BLOCKED_USERS_MAX; DEVICES_MAX;
        // REACTIONS_PER_MESSAGE_MAX and REACTION_USERS_MAX; SAVED_MAX.
        "sync" | "users.find" | "users.blocked" | "devices.list" | "message.reactions"
        | "saved.marks" => Listed::Ends,
        "room.create" | "room.get" | "room.update" | "room.archive" | "room.delete"
        | "room.leave" | "room.add" | "room.set_role" | "room.kick" | "room.ban" | "room.mute"
        | "room.notify" | "direct.open" | "direct.hide" | "invite.create" | "invite.revoke"
        | "invite.get" | "invite.accept" | "message.send" | "message.edit" | "message.delete"
        | "message.react" | "message.pin" | "message.save" | "read.set" | "typing.set"
        | "user.get" | "user.block" | "profile.update" | "status.set" | "devices.revoke"
        | "room.join" | "room.access" | "room.set_access" | "presence.watch" => Listed::No,
        method => panic!("does the answer of {method} have a list?"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_comes_in_pages_or_ends() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    let coffee = anna.create_room("Coffee").await;
    for room in [&room, &coffee] {
        anna.call("room.set_access", json!({"room": room, "access": "open"})).await;
    }
    for _ in 0..2 {
        anna.invite(&room, &mut bob).await;
    }
    for key in ["1", "2"] {
        anna.say(&room, key, "tea").await;
    }
    let answer = json!({"room": room, "key": "3", "body": "yes", "reply_to": 1});
    anna.call("message.send", answer).await;
    for method in ["message.pin", "message.save"] {
        for seq in [1, 2] {
            anna.call(method, json!({"room": room, "seq": seq, "on": true})).await;
        }
    }
    for method in Rpc::METHODS {
        let Listed::Pages(list, request, next) = listed(method, &room) else { continue };
        let page = anna.call(method, request).await;
        assert_eq!(page[list].as_array().map(Vec::len), Some(1), "{method}: {page}");
        assert!(!page[next].is_null(), "{method}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_user_have_a_limit_that_is_named() {
    let server = Server::with("[gateway]\nconnections_per_user_max = 3\n").await;
    let account = server.sign_up("anna").await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(server.connect(&account).await);
    }
    let mut fourth = Client::open(server.address()).await;
    let refused = fourth.connect(&account.token).await.unwrap_err();
    assert_eq!(refused.code, 106);
    assert!(refused.message.contains("3 connections"), "{refused:?}");
    assert_eq!(fourth.closed().await, 3504);
    // Others have theirs, and a place that is given back can be taken.
    server.join("bob").await.call("rooms.list", json!({})).await;
    open.pop().expect("three").vanish();
    loop {
        let mut again = Client::open(server.address()).await;
        if again.connect(&account.token).await.is_ok() {
            break;
        }
    }
    for client in &mut open {
        client.call("rooms.list", json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_device_too_many_signs_out_the_one_unseen_for_longest() {
    let server = Server::start().await;
    let first = server.sign_up("anna").await;
    let mut connected = server.connect(&first).await;
    let mut last = first.clone();
    for _ in 0..folkmoot_protocol::limits::DEVICES_MAX {
        last = server.sign_in("anna").await;
    }
    assert_eq!(connected.closed().await, 3500);
    let devices = server.connect(&last).await.call("devices.list", json!({})).await;
    let devices = devices["devices"].as_array().unwrap();
    assert_eq!(devices.len(), folkmoot_protocol::limits::DEVICES_MAX as usize);
    assert_eq!(server.http("GET /api/v1/me", Some(&first.token), "").await.status, 401);
}
