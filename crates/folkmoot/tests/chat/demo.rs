//! `--demo`: rooms with a month behind them that go on living, made once.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Client, Server};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

async fn room_named(client: &mut Client, name: &str) -> Value {
    let rooms = client.call("rooms.list", json!({})).await;
    let rooms = rooms["rooms"].as_array().expect("a list").clone();
    let found = rooms.into_iter().find(|room| room["name"] == name);
    found.unwrap_or_else(|| panic!("the demo has no {name}"))
}

/// Everything said in a room so far.
async fn said(client: &mut Client, room: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let request = json!({"room": room, "after": messages.len(), "limit": 100});
        let page = client.call("history.get", request).await;
        let page = page["messages"].as_array().expect("a page").clone();
        if page.is_empty() {
            return messages;
        }
        messages.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_are_let_into_rooms_that_live_and_are_greeted() {
    let server = Server::demo().await;
    let mut anna = server.join("anna").await;
    let square = room_named(&mut anna, "Town square").await;
    let room = square["id"].as_str().unwrap().to_owned();
    assert_eq!(square["unread"], 0, "nobody has to catch up with a month");
    anna.subscribe(&room).await;
    assert_ne!(anna.message(&room).await["body"], "");
    let rooms = anna.call("rooms.list", json!({})).await;
    let rooms = rooms["rooms"].as_array().unwrap();
    let direct = rooms.iter().find(|room| room["kind"] == "direct").expect("a greeting");
    assert_eq!((&direct["peer"]["name"], &direct["unread"]), (&json!("mira"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_are_there_where_they_talk_and_where_they_greet() {
    let mut server = Server::demo().await;
    let account = server.sign_up("anna").await;
    for _start in 0..2 {
        let mut anna = server.connect(&account).await;
        let square = room_named(&mut anna, "Town square").await["id"].clone();
        let members = anna.call("room.members", json!({"room": square, "limit": 50})).await;
        let members = members["members"].as_array().expect("a page").clone();
        let (bots, people): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|member| member["name"] != "anna");
        assert_eq!((bots.len(), people.len()), (8, 1));
        assert!(bots.iter().all(|bot| bot["online"] == true), "{bots:?}");
        assert_eq!(people[0]["online"], false, "she does not look at it");
        let rooms = anna.call("rooms.list", json!({})).await;
        let rooms = rooms["rooms"].as_array().unwrap();
        let direct = rooms.iter().find(|room| room["kind"] == "direct").expect("a greeting");
        let room = direct["id"].as_str().unwrap();
        let mira = direct["peer"]["id"].clone();
        anna.subscribe(room).await;
        anna.call("presence.watch", json!({"room": room, "users": [mira]})).await;
        let told = anna.event(&format!("room:{room}"), "presence").await;
        assert_eq!(told["online"], json!([mira]));
        server.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_a_month_of_history_and_a_restart_adds_none() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut server = Server::demo().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = room_named(&mut anna, "Code corner").await["id"].clone();
    let past = |messages: Vec<Value>| -> Vec<(u64, String)> {
        let old = messages.into_iter().filter(|message| message["at"].as_u64() <= Some(now));
        let told = |message: Value| (message["at"].as_u64().unwrap(), message["body"].to_string());
        old.map(told).collect()
    };
    let all = said(&mut anna, &room).await;
    assert!(all.iter().any(|message| message["reply_to"]["seq"].as_u64() > Some(0)));
    assert!(all.iter().any(|message| !message["reactions"].as_array().unwrap().is_empty()));
    let before = past(all);
    assert!(before.len() > 30, "{} messages", before.len());
    assert!(before.is_sorted_by_key(|(at, _)| *at), "the past is in order");
    assert!(before[0].0 < now - 25 * DAY_MS, "the past is a month long");
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(room_named(&mut anna, "Code corner").await["id"], room, "no second room");
    assert_eq!(past(said(&mut anna, &room).await), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_anybody_came_is_found_at_once() {
    let server = Server::demo().await;
    let metrics = server.http("GET /metrics", None, "").await.body;
    let behind =
        metrics.lines().find_map(|line| line.strip_prefix("folkmoot_search_behind_records "));
    let behind: u64 = behind.and_then(|behind| behind.parse().ok()).expect("a number");
    assert!(behind < 20, "what the bots have said since: {behind} records");
    let mut anna = server.join("anna").await;
    let page = anna.call("search", json!({"query": "Flammkuchen"})).await;
    assert!(page["behind"].is_null(), "the index is behind: {page}");
    assert!(!page["hits"].as_array().expect("a list").is_empty(), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_are_no_administrators_and_nobody_signs_in_as_one() {
    let server = Server::demo().await;
    assert!(server.setup_token().is_some(), "a demo needs its administrator, too");
    for password in ["", "!", "correct horse"] {
        let body = json!({"name": "mira", "password": password}).to_string();
        assert_eq!(server.http("POST /api/v1/sessions", None, &body).await.status, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_answers_who_writes_to_her_also_after_a_restart() {
    let mut server = Server::demo().await;
    let account = server.sign_up("anna").await;
    for question in ["What time is it?", "And now?"] {
        let mut anna = server.connect(&account).await;
        let rooms = anna.call("rooms.list", json!({})).await;
        let rooms = rooms["rooms"].as_array().unwrap();
        let direct = rooms.iter().find(|room| room["kind"] == "direct").expect("a greeting");
        let room = direct["id"].as_str().unwrap().to_owned();
        anna.subscribe(&room).await;
        anna.say(&room, question, question).await;
        assert_eq!(anna.message(&room).await["body"], question);
        let answer = anna.message(&room).await;
        assert_eq!(answer["user"], direct["peer"]["id"], "{answer}");
        server.restart().await;
    }
}
