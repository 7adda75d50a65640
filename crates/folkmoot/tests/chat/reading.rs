//! What is unread: cursors, mentions, several devices.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Client, Server};

async fn view(client: &mut Client, room: &str) -> Value {
    client.call("room.get", json!({"room": room})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_on_one_device_shows_on_the_other_and_never_moves_back() {
    let mut server = Server::start().await;
    let mut bob = server.join("bob").await;
    let account = server.sign_up("anna").await;
    let mut phone = server.connect(&account).await;
    let laptop_account = server.sign_in("anna").await;
    let mut laptop = server.connect(&laptop_account).await;
    let room = bob.create_room("Tea").await;
    bob.say(&room, "before", "said before anna came").await;
    bob.invite(&room, &mut phone).await;
    assert_eq!(view(&mut phone, &room).await["unread"], 0);
    for n in 1..=5 {
        bob.say(&room, &n.to_string(), "x").await;
    }
    assert_eq!(view(&mut phone, &room).await["unread"], 5);
    let state = phone.call("read.set", json!({"room": room, "seq": 4})).await;
    assert_eq!(state, json!({"read_seq": 4, "unread": 2, "mentions": 0}));
    let channel = format!("user:{}", account.id);
    let told = laptop.event(&channel, "read").await;
    assert_eq!((&told["read_seq"], &told["unread"]), (&json!(4), &json!(2)));
    let back = laptop.call("read.set", json!({"room": room, "seq": 2})).await;
    assert_eq!(back["read_seq"], 4);
    let beyond = laptop.call("read.set", json!({"room": room, "seq": 99})).await;
    assert_eq!(beyond, json!({"read_seq": 6, "unread": 0, "mentions": 0}));
    server.restart().await;
    let mut phone = server.connect(&account).await;
    assert_eq!(view(&mut phone, &room).await["read_seq"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn mentions_reach_the_mentioned_wherever_they_are() {
    let mut server = Server::start().await;
    let mut anna = server.join("anna").await;
    let account = server.sign_up("bob").await;
    let mut bob = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.say(&room, "1", "hello @bob, meet @nobody").await;
    // Bob has not subscribed to the room.
    let mention = bob.event(&format!("user:{}", account.id), "mention").await;
    assert_eq!((&mention["seq"], &mention["name"]), (&json!(1), &json!("anna")));
    anna.say(&room, "2", "@everyone tea is ready").await;
    let seen = view(&mut bob, &room).await;
    assert_eq!((&seen["unread"], &seen["mentions"]), (&json!(2), &json!(2)));
    server.restart().await;
    let mut bob = server.connect(&account).await;
    assert_eq!(view(&mut bob, &room).await["mentions"], 2);
    let state = bob.call("read.set", json!({"room": room, "seq": 1})).await;
    assert_eq!(state, json!({"read_seq": 1, "unread": 1, "mentions": 1}));
}

/// The event that lasts comes some seconds after a cursor has moved, and more was said meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_right_after_one_has_read_stays_unread_at_ones_devices() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let account = server.sign_up("bob").await;
    let mut bob = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.say(&room, "1", "hello @bob").await;
    let channel = format!("user:{}", account.id);
    bob.event(&channel, "mention").await;
    let state = bob.call("read.set", json!({"room": room, "seq": 1})).await;
    assert_eq!(state, json!({"read_seq": 1, "unread": 0, "mentions": 0}));
    anna.say(&room, "2", "@bob are you there?").await;
    anna.say(&room, "3", "@everyone tea is ready").await;
    bob.event(&channel, "mention").await;
    let told = bob.event(&channel, "read").await;
    let counts = (&told["read_seq"], &told["unread"], &told["mentions"]);
    assert_eq!(counts, (&json!(1), &json!(2), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_is_for_moderators() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    bob.say(&room, "1", "@everyone listen").await;
    assert_eq!(anna.message(&room).await["mention_all"], Value::Null);
    assert_eq!(view(&mut anna, &room).await["mentions"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_room_are_kept_and_told() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.call("room.notify", json!({"room": room, "notify": "mentions"})).await;
    let told = anna.event(&format!("user:{}", account.id), "settings").await;
    assert_eq!(told["notify"], "mentions");
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(view(&mut anna, &room).await["notify"], "mentions");
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_tells_only_the_rooms_that_changed() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let quiet = anna.create_room("Quiet").await;
    let busy = anna.create_room("Busy").await;
    let list = anna.call("rooms.list", json!({})).await;
    let known: serde_json::Map<String, Value> = list["rooms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|room| (room["id"].as_str().unwrap().to_owned(), room["offset"].clone()))
        .collect();
    assert!(known.contains_key(&quiet));
    anna.say(&busy, "1", "x").await;
    let changed = anna.call("sync", json!({"rooms": known})).await;
    let ids: Vec<_> = changed["rooms"].as_array().unwrap().iter().map(|room| &room["id"]).collect();
    assert_eq!(ids, [&json!(busy)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ones_own_messages_are_read() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.say(&room, "1", "hello").await;
    anna.say(&room, "1", "hello bob").await;
    assert_eq!(view(&mut anna, &room).await["unread"], 0);
    bob.say(&room, "2", "how are you?").await;
    assert_eq!(view(&mut anna, &room).await["unread"], 1);
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(view(&mut anna, &room).await["unread"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_and_invites_come_in_pages_that_miss_and_double_none() {
    let server = Server::with("[limits]\nrooms_per_minute = 0\ninvites_per_minute = 0\n").await;
    let mut anna = server.join("anna").await;
    let mut made = Vec::new();
    for n in 0..7 {
        made.push(anna.create_room(&format!("Room {n}")).await);
    }
    made.sort();
    for (method, list) in [("rooms.list", json!({"limit": 3})), ("sync", json!({"rooms": {}}))] {
        let (mut seen, mut request) = (Vec::new(), list.clone());
        loop {
            let page = anna.call(method, request.clone()).await;
            let rooms = page["rooms"].as_array().unwrap();
            seen.extend(rooms.iter().map(|room| room["id"].as_str().unwrap().to_owned()));
            let Some(next) = page.get("next") else { break };
            request["after"] = next.clone();
        }
        assert_eq!(seen, made, "{method}");
    }
    let room = &made[0];
    let mut codes = Vec::new();
    for _ in 0..7 {
        codes.push(anna.call("invite.create", json!({"room": room})).await["code"].clone());
    }
    let (mut seen, mut request) = (Vec::new(), json!({"room": room, "limit": 3}));
    loop {
        let page = anna.call("invite.list", request.clone()).await;
        seen.extend(page["invites"].as_array().unwrap().iter().map(|one| one["code"].clone()));
        let Some(next) = page.get("next") else { break };
        // The one that the next page goes on from may end meanwhile.
        anna.call("invite.revoke", json!({"code": next["code"]})).await;
        request["after"] = next.clone();
    }
    let sorted = |codes: Vec<serde_json::Value>| {
        let mut codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
        codes.sort();
        codes
    };
    assert_eq!(sorted(seen), sorted(codes));
}

/// Rooms in memory.
async fn rooms_awake(server: &Server) -> u64 {
    let page = server.http("GET /metrics", None, "").await.body;
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("althing_actors_live{actor=\"folkmoot.room\"} "));
    line.map_or(0, |count| count.parse().expect("a count"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_rooms_wakes_none_of_them() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    for name in ["Tea", "Cake", "Milk"] {
        let room = anna.create_room(name).await;
        anna.invite(&room, &mut bob).await;
        bob.say(&room, "1", "@everyone hello @anna").await;
        anna.say(&room, "2", &format!("@everyone {name}")).await;
    }
    let direct = bob.call("direct.open", json!({"user": account.id})).await;
    bob.say(direct["id"].as_str().unwrap(), "1", "just you").await;
    let awake = bob.call("rooms.list", json!({})).await;
    assert_eq!(awake["rooms"].as_array().unwrap().len(), 4);
    assert_eq!(rooms_awake(&server).await, 4, "the count counts");
    server.restart().await;
    let mut bob = server.connect(&bob_account).await;
    let asleep = bob.call("rooms.list", json!({})).await;
    assert_eq!(asleep, awake);
    assert_eq!(rooms_awake(&server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_outlives_a_restart_and_is_one_record_for_many_messages() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let mut bob = server.join("bob").await;
    let room = bob.create_room("Tea").await;
    bob.invite(&room, &mut anna).await;
    let channel = format!("user:{}", account.id);
    anna.event(&channel, "room_added").await;
    let own = json!({"channel": channel});
    let began = Instant::now();
    let before = anna.command("history", own.clone()).await.unwrap()["offset"].as_u64().unwrap();
    for n in 1..=20 {
        bob.say(&room, &n.to_string(), "x").await;
        anna.call("read.set", json!({"room": room, "seq": n})).await;
    }
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(view(&mut anna, &room).await["read_seq"], 20);
    let after = anna.command("history", own).await.unwrap()["offset"].as_u64().unwrap();
    // One for each five seconds, and one at the stop.
    let records_max = began.elapsed().as_secs() / 5 + 1;
    assert!((1..=records_max).contains(&(after - before)), "{before} to {after}");
}
