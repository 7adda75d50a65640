//! Messages that are kept no longer: gone from everywhere, in batches, while people read, through
//! crashes, and nobody is handed a stream with a hole.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::process::{listening, listening_with};
use crate::support::{Account, Client, Scratch, Server};

/// A word that stands nowhere else.
const SECRET: &str = "xylophagous";

/// Has a room keep only so many messages, and waits until the others are gone.
async fn keep(server: &Server, by: &Account, room: &str, messages: u32) {
    let line = format!("PUT /api/v1/admin/rooms/{room}/retention");
    let body = json!({"messages": messages}).to_string();
    let set = server.http(&line, Some(&by.token), &body).await;
    assert_eq!(set.status, 204, "{set:?}");
    server.kept().await;
}

async fn say_many(client: &mut Client, room: &str, count: u64) {
    let mut ids = Vec::new();
    for n in 0..count {
        let data = json!({"room": room, "key": format!("many{n}"), "body": format!("number {n}")});
        ids.push(client.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for id in ids {
        client.reply(id, "rpc").await.expect("it is sent");
    }
}

fn seqs(page: &Value) -> Vec<u64> {
    let messages = page["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["seq"].as_u64().expect("a number")).collect()
}

/// Everything that a member can still get of a room and of their own stream.
async fn everything(client: &mut Client, room: &str, user: &str) -> String {
    let own = json!({"channel": format!("user:{user}"), "limit": 1000});
    let mut all = client.command("history", own).await.expect("a member may ask").to_string();
    let recover = json!({"channel": format!("room:{room}"), "recover": true, "offset": 1});
    all += &client.command("subscribe", recover).await.expect("a member may ask").to_string();
    all += &client.call("history.get", json!({"room": room})).await.to_string();
    all += &client.call("rooms.list", json!({})).await.to_string();
    all += &client.call("search", json!({"query": SECRET})).await["hits"].to_string();
    let channel = json!({"channel": format!("room:{room}")});
    client.command("unsubscribe", channel).await.expect("it was subscribed");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_no_longer_is_gone_from_everywhere() {
    let mut server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let bob_account = server.sign_up("bob").await;
    let mut anna = server.connect(&admin).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let file = server.upload(&admin, &room, "a.txt", b"in a file").await.json();
    let body = format!("@bob {SECRET}");
    let said = json!({"room": room, "key": "1", "body": body, "attachments": [file["id"]]});
    anna.call("message.send", said).await;
    anna.call("message.react", json!({"room": room, "seq": 1, "emoji": "👍", "on": true})).await;
    bob.event(&format!("user:{}", bob_account.id), "mention").await;
    let quote = json!({"room": room, "key": "q", "body": "what?", "reply_to": 1});
    anna.call("message.send", quote).await;
    // After its quote, so that its text is in the stream behind the last message that goes.
    let edited = format!("@bob again {SECRET}");
    anna.call("message.edit", json!({"room": room, "seq": 1, "body": edited})).await;
    anna.subscribe(&room).await;
    keep(&server, &admin, &room, 1).await;

    assert_eq!(anna.event(&format!("room:{room}"), "expired").await["up_to"], 1);
    let read = bob.event(&format!("user:{}", bob_account.id), "read").await;
    assert_eq!(read["mentions"], 0, "the badge is gone");
    let found = everything(&mut bob, &room, &bob_account.id).await;
    assert!(found.contains("what?") && !found.contains(SECRET), "{found}");
    for (method, request) in [
        ("message.edit", json!({"room": room, "seq": 1, "body": "?"})),
        ("message.delete", json!({"room": room, "seq": 1})),
        ("message.react", json!({"room": room, "seq": 1, "emoji": "👍", "on": true})),
        ("message.send", json!({"room": room, "key": "r", "body": "?", "reply_to": 1})),
    ] {
        assert_eq!(anna.fail(method, request).await.code, 404, "{method}");
    }
    let line = format!("GET /api/v1/attachments/{}", file["id"].as_str().expect("text"));
    assert_eq!(server.http(&line, Some(&admin.token), "").await.status, 404);
    server.restart().await;
    let mut bob = server.connect(&bob_account).await;
    let found = everything(&mut bob, &room, &bob_account.id).await;
    assert!(found.contains("what?") && !found.contains(SECRET), "{found}");
    let page = bob.call("history.get", json!({"room": room})).await;
    assert_eq!((seqs(&page), &page["first_seq"]), (vec![2], &json!(2)));
    drop(bob);
    server.stop().await;
    let database = std::fs::read(server.data().join("folkmoot.sqlite")).expect("it is there");
    let has = |text: &str| database.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("what?") && !has(SECRET), "the file of the database still has the text");
    is_whole(&server.data());
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_pins_and_saved_messages_go_on_with_what_is_kept() {
    let mut server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let mut anna = server.connect(&admin).await;
    let room = anna.create_room("Tea").await;
    for seq in 1..=6_u64 {
        let mut said =
            json!({"room": room, "key": format!("t{seq}"), "body": format!("cup {seq}")});
        if seq > 1 {
            said["reply_to"] = json!(if seq == 6 { 2 } else { seq - 1 });
        }
        anna.call("message.send", said).await;
    }
    for seq in 1..=6 {
        let on = json!({"room": room, "seq": seq, "on": true});
        anna.call("message.pin", on.clone()).await;
        anna.call("message.save", on).await;
    }
    keep(&server, &admin, &room, 3).await;
    for _ in 0..2 {
        let mut anna = server.connect(&admin).await;
        let (page, saved) = (json!({"room": room}), json!({}));
        let of = |list: &Value| -> Vec<u64> {
            let list = list.as_array().expect("a list").iter();
            list.map(|it| it["message"]["seq"].as_u64().expect("a number")).collect()
        };
        let sorted = |mut seqs: Vec<u64>| {
            seqs.sort_unstable();
            seqs
        };
        let pins = anna.call("room.pins", page.clone()).await;
        assert_eq!(sorted(of(&pins["pins"])), [4, 5, 6], "{pins}");
        let list = anna.call("saved.list", saved.clone()).await;
        assert_eq!(sorted(of(&list["saved"])), [4, 5, 6], "{list}");
        let marks = anna.call("saved.marks", saved).await;
        assert_eq!(marks["rooms"][&room], json!([4, 5, 6]));
        let thread = anna.call("message.thread", json!({"room": room, "seq": 4})).await;
        assert_eq!(seqs(&thread), [4, 5], "what answers what is gone is another thread");
        let gone = anna.call("message.thread", json!({"room": room, "seq": 2})).await;
        assert_eq!(seqs(&gone), [0; 0], "it is as if it had never been");
        let history = anna.call("history.get", page).await;
        assert_eq!(seqs(&history), [4, 5, 6]);
        let text = history.to_string() + &thread.to_string() + &pins.to_string();
        assert!(!["cup 1", "cup 2", "cup 3"].iter().any(|cup| text.contains(cup)), "{text}");
        let again = json!({"room": room, "seq": 2, "on": false});
        assert_eq!(anna.fail("message.pin", again).await.code, 404);
        let found = anna.call("search", json!({"query": "cup"})).await["hits"].clone();
        let found = found.as_array().expect("hits").len();
        assert_eq!(found, 3);
        drop(anna);
        server.restart().await;
    }
    server.stop().await;
    is_whole(&server.data());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_history_meanwhile_gets_pages_without_holes() {
    let server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let mut anna = server.connect(&admin).await;
    let room = anna.create_room("Tea").await;
    say_many(&mut anna, &room, 5_000).await;
    let deleting = keep(&server, &admin, &room, 100);
    let reading = async {
        let mut pages = 0;
        let mut before = 5_001;
        loop {
            let request = json!({"room": room, "before": before, "limit": 100});
            let page = anna.call("history.get", request).await;
            let (found, first) = (seqs(&page), page["first_seq"].as_u64().expect("a number"));
            let Some(oldest) = found.first().copied() else {
                // Nothing older is left: that is said, and the next look begins at the end.
                assert!(first >= before.min(4_901), "{page}");
                before = 5_001;
                continue;
            };
            let newest = oldest + found.len() as u64 - 1;
            assert_eq!(found, (oldest..=newest).collect::<Vec<_>>(), "a hole in a page");
            assert_eq!(newest, before - 1, "a hole between two pages");
            assert!(oldest >= first, "{page}");
            pages += 1;
            if first == 4_901 {
                return pages;
            }
            before = oldest;
        }
    };
    let ((), pages) = tokio::join!(deleting, reading);
    assert!(pages > 0);
    let page = anna.call("history.get", json!({"room": room, "after": 0, "limit": 100})).await;
    assert_eq!(seqs(&page), (4_901..=5_000).collect::<Vec<_>>());
    let around = json!({"room": room, "around": 10, "limit": 10});
    assert_eq!(seqs(&anna.call("history.get", around).await), (4_901..=4_910).collect::<Vec<_>>());
    let view = anna.call("room.get", json!({"room": room})).await;
    assert_eq!(view["last_seq"], 5_000, "numbers go on where they were");
    assert_eq!(anna.say(&room, "next", "next").await, 5_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_away_for_longer_than_messages_are_kept_is_told_to_fetch_anew() {
    let mut server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let mut anna = server.connect(&admin).await;
    let room = anna.create_room("Tea").await;
    let position = anna.subscribe(&room).await;
    let epoch = position["epoch"].as_str().expect("text").to_owned();
    let joined = position["offset"].as_u64().expect("an offset");
    say_many(&mut anna, &room, 20).await;
    keep(&server, &admin, &room, 5).await;
    // First from memory, then from the store.
    for _ in 0..2 {
        let mut late = server.connect(&admin).await;
        for missed_from in [joined, joined + 7, joined + 14] {
            let result = late.recover(&room, missed_from, &epoch).await;
            assert_eq!(result["recovered"], Value::Null, "{missed_from}: {result}");
            assert_eq!(result["was_recovering"], true);
            assert_eq!(result["offset"], joined + 21);
            let channel = json!({"channel": format!("room:{room}")});
            late.command("unsubscribe", channel).await.expect("it was subscribed");
        }
        let result = late.recover(&room, joined + 15, &epoch).await;
        assert_eq!(result["recovered"], true, "{result}");
        let offsets: Vec<u64> = result["publications"]
            .as_array()
            .expect("events")
            .iter()
            .map(|event| event["offset"].as_u64().expect("an offset"))
            .collect();
        assert_eq!(offsets, (joined + 16..=joined + 21).collect::<Vec<_>>());
        drop(late);
        server.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_messages_that_are_gone_count_no_more() {
    let server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let mut anna = server.connect(&admin).await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    say_many(&mut anna, &room, 30).await;
    let unread = |view: Value| view["unread"].as_u64().expect("a count");
    assert_eq!(unread(bob.call("room.get", json!({"room": room})).await), 30);
    keep(&server, &admin, &room, 10).await;
    assert_eq!(unread(bob.call("room.get", json!({"room": room})).await), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_administrators_say_how_long_messages_are_kept_and_a_room_goes_before_the_server() {
    let server = Server::start().await;
    let admin = Account::of(&server.set_up("anna").await);
    let bob = server.sign_up("bob").await;
    let mut anna = server.connect(&admin).await;
    let (tea, coffee) = (anna.create_room("Tea").await, anna.create_room("Coffee").await);
    for room in [&tea, &coffee] {
        say_many(&mut anna, room, 10).await;
    }
    let of_tea = format!("/api/v1/admin/rooms/{tea}/retention");
    for line in [
        "GET /api/v1/admin/retention".to_owned(),
        "PUT /api/v1/admin/retention".to_owned(),
        format!("PUT {of_tea}"),
        format!("DELETE {of_tea}"),
    ] {
        assert_eq!(server.http(&line, Some(&bob.token), "{}").await.status, 403, "{line}");
    }
    let token = Some(admin.token.as_str());
    for wrong in ["{\"days\":0}", "{\"messages\":0}", "{\"day\":1}"] {
        let refused = server.http("PUT /api/v1/admin/retention", token, wrong).await;
        assert_eq!(refused.status, 400, "{wrong}: {refused:?}");
    }
    let missing = "PUT /api/v1/admin/rooms/00000000000000zz/retention";
    assert_eq!(server.http(missing, token, "{\"messages\":1}").await.status, 404);
    // Tea keeps all, whatever the server says; an empty rule is one, too.
    assert_eq!(server.http(&format!("PUT {of_tea}"), token, "{}").await.status, 204);
    let set = server.http("PUT /api/v1/admin/retention", token, "{\"messages\":4}").await;
    let rule = json!([{"room": tea, "name": "Tea", "rule": {}}]);
    assert_eq!(set.json(), json!({"server": {"messages": 4}, "rooms": rule}));
    server.kept().await;
    let kept = |page: Value| seqs(&page).len();
    assert_eq!(kept(anna.call("history.get", json!({"room": tea})).await), 10);
    assert_eq!(kept(anna.call("history.get", json!({"room": coffee})).await), 4);
    assert_eq!(server.http(&format!("DELETE {of_tea}"), token, "").await.status, 204);
    server.kept().await;
    assert_eq!(kept(anna.call("history.get", json!({"room": tea})).await), 4);
}

fn folkmoot(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(arguments).output().expect("the binary was built")
}

/// Runs a task; what it says.
fn says(data: &Path, arguments: &[&str]) -> String {
    let output = folkmoot(data, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn is_whole(data: &Path) {
    says(data, &["check"]);
}

/// A directory with one room of two, and the token of the first of them.
fn seeded(scratch: &Scratch, messages: u64) -> (std::path::PathBuf, String) {
    let (data, tokens) = (scratch.path().join("data"), scratch.path().join("tokens"));
    let room = format!("2:{messages}");
    let file = tokens.to_str().expect("text");
    says(&data, &["seed", "--users", "2", "--room", &room, "--tokens", file]);
    let tokens = std::fs::read_to_string(&tokens).expect("it was written");
    (data, tokens.lines().next().expect("a token").to_owned())
}

async fn enter(server: std::net::SocketAddr, token: &str) -> (Client, String) {
    let mut client = Client::open(server).await;
    client.connect(token).await.expect("the account is there");
    let rooms = client.call("rooms.list", json!({})).await;
    let room = rooms["rooms"][0]["id"].as_str().expect("a room").to_owned();
    (client, room)
}

/// The first message that a room keeps.
async fn first(client: &mut Client, room: &str) -> u64 {
    let page = client.call("history.get", json!({"room": room, "after": 0, "limit": 1})).await;
    page["first_seq"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_deletes_by_age_and_count_in_a_room_of_a_hundred_thousand_messages() {
    let scratch = Scratch::new();
    let (data, token) = seeded(&scratch, 100_000);
    assert!(says(&data, &["retention"]).contains("the server keeps all messages"));
    // Seeded messages are spread over the last thirty days.
    let said = says(&data, &["retention", "--days", "10"]);
    assert!(said.contains("the server keeps messages for 10 days"), "{said}");
    let deleted: u64 = said
        .lines()
        .find_map(|line| line.strip_suffix(" messages were deleted")?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!((66_000..67_500).contains(&deleted), "{deleted}");
    is_whole(&data);
    let said = says(&data, &["retention", "--days", "10", "--messages", "1000"]);
    assert!(said.contains(&format!("{} messages were deleted", 99_000 - deleted)), "{said}");
    is_whole(&data);
    let (mut child, server) = listening(&data);
    let (mut client, room) = enter(server, &token).await;
    assert_eq!(first(&mut client, &room).await, 99_001);
    let page = client.call("history.get", json!({"room": room, "limit": 100})).await;
    assert_eq!(seqs(&page), (99_901..=100_000).collect::<Vec<_>>());
    let mut page = json!({"behind": 1});
    while !page["behind"].is_null() {
        // The index is made anew, and says how far it is.
        page = client.call("search", json!({"query": "lunch"})).await;
    }
    let hits = page["hits"].as_array().expect("hits").clone();
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["seq"].as_u64() > Some(99_000)));
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
}

#[test]
fn the_command_that_is_killed_amid_its_deletion_loses_nothing_and_goes_on_when_given_again() {
    let scratch = Scratch::new();
    let (data, _) = seeded(&scratch, 30_000);
    let mut killed = 0;
    for wait_ms in (20..).step_by(20).take(12) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        command.arg("--data").arg(&data).args(["retention", "--messages", "500"]);
        let mut child = command.spawn().expect("the binary was built");
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        killed += u32::from(child.try_wait().expect("it is ours").is_none());
        child.kill().expect("our own child can be killed");
        child.wait().expect("it was not waited for");
        is_whole(&data);
    }
    assert!(killed > 0, "it was never killed amid its work");
    says(&data, &["retention", "--messages", "500"]);
    let checked = says(&data, &["check"]);
    assert!(checked.contains("500 messages in 1 rooms"), "{checked}");
    let said = says(&data, &["retention"]);
    assert!(said.contains("0 messages were deleted"), "{said}");
}

#[test]
fn a_rule_for_a_directory_that_is_none_is_refused_and_makes_none() {
    let scratch = Scratch::new();
    let data = scratch.path().join("mistyped");
    let output = folkmoot(&data, &["retention", "--days", "30"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("mistyped is neither"), "{output:?}");
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_amid_the_deletion_loses_nothing_that_is_kept_and_the_next_start_goes_on() {
    let scratch = Scratch::new();
    let (data, token) = seeded(&scratch, 12_000);
    let settings = scratch.file("folkmoot.toml", "[search]\nenabled = false\n");
    let (mut child, server) = listening_with(&data, &settings);
    let said = says(&data, &["retention", "--messages", "500"]);
    assert!(said.contains("a server runs here"), "{said}");
    let (mut client, room) = enter(server, &token).await;
    assert_eq!(first(&mut client, &room).await, 1, "it looks once an hour and at its start");
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    let (mut before, mut cut_short) = (1, 0);
    while before < 11_501 {
        let (mut child, server) = listening_with(&data, &settings);
        let (mut client, room) = enter(server, &token).await;
        let mut now = first(&mut client, &room).await;
        assert!(now >= before, "messages came back: {before}, then {now}");
        while now == before {
            now = first(&mut client, &room).await;
        }
        child.kill().expect("our own child can be killed");
        child.wait().expect("it was not waited for");
        is_whole(&data);
        before = now;
        cut_short += u32::from(now < 11_501);
    }
    assert!(cut_short > 0, "it was never cut short");
    let (mut child, server) = listening_with(&data, &settings);
    let (mut client, room) = enter(server, &token).await;
    let page = client.call("history.get", json!({"room": room, "after": 0, "limit": 100})).await;
    assert_eq!(seqs(&page), (11_501..=11_600).collect::<Vec<_>>());
    assert_eq!(client.say(&room, "next", "next").await, 12_001);
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    is_whole(&data);
}
