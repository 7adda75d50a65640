//! Saved messages: one's own list on every device, of what one may still read, and no more.

use folkmoot_protocol::limits::SAVED_MAX;
use serde_json::{Value, json};

use crate::support::{Account, Client, Server};

fn save(room: &str, seq: u64, on: bool) -> Value {
    json!({"room": room, "seq": seq, "on": on})
}

fn listed(page: &Value) -> Vec<(String, u64)> {
    let saved = page["saved"].as_array().expect("saved");
    let place = |one: &Value| {
        let message = &one["message"];
        let room = message["room"].as_str().expect("an id").to_owned();
        (room, message["seq"].as_u64().expect("a number"))
    };
    saved.iter().map(place).collect()
}

/// Numbers of one room that are saved: of the list, and of the marks.
async fn saved(client: &mut Client, room: &str) -> (Vec<u64>, Vec<u64>) {
    let page = client.call("saved.list", json!({})).await;
    let of_room = listed(&page).into_iter().filter(|(of, _)| of == room);
    let marks = client.call("saved.marks", json!({})).await;
    let marks = marks["rooms"][room].as_array().cloned().unwrap_or_default();
    let marks = marks.iter().map(|seq| seq.as_u64().expect("a number")).collect();
    (of_room.map(|(_, seq)| seq).collect(), marks)
}

/// Anna's room with Bob in it and three messages of hers.
async fn house(server: &Server) -> (Client, Account, Client, String) {
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    for n in 1..=3 {
        anna.say(&room, &n.to_string(), &format!("message {n}")).await;
    }
    (anna, bob_account, bob, room)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_is_on_all_devices_of_its_user_and_nobody_elses() {
    let mut server = Server::start().await;
    let (mut anna, bob_account, mut bob, room) = house(&server).await;
    let phone = server.sign_in("bob").await;
    let mut phone = server.connect(&phone).await;
    for seq in [2, 1, 3] {
        bob.call("message.save", save(&room, seq, true)).await;
    }
    bob.call("message.save", save(&room, 2, true)).await;
    bob.call("message.save", save(&room, 1, false)).await;
    let own = format!("user:{}", bob_account.id);
    for (seq, on) in [(2, true), (1, true), (3, true), (2, true), (1, false)] {
        let event = phone.event(&own, "saved").await;
        assert_eq!((&event["room"], &event["seq"]), (&json!(room), &json!(seq)));
        assert_eq!(event["on"], on);
    }
    assert_eq!(saved(&mut phone, &room).await, (vec![3, 2], vec![2, 3]));
    assert_eq!(saved(&mut anna, &room).await, (vec![], vec![]));
    anna.call("message.edit", json!({"room": room, "seq": 3, "body": "better"})).await;
    server.restart().await;
    let mut bob = server.connect(&bob_account).await;
    let first = bob.call("saved.list", json!({"limit": 1})).await;
    assert_eq!(first["saved"][0]["message"]["body"], "better");
    let second = bob.call("saved.list", json!({"limit": 1, "after": first["next"]})).await;
    assert_eq!((listed(&second), &second["next"]), (vec![(room, 2)], &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_one_may_read_is_shown_and_what_is_deleted_is_gone() {
    let server = Server::start().await;
    let (mut anna, bob_account, mut bob, room) = house(&server).await;
    for seq in 1..=3 {
        bob.call("message.save", save(&room, seq, true)).await;
    }
    anna.call("message.delete", json!({"room": room, "seq": 2})).await;
    assert_eq!(saved(&mut bob, &room).await, (vec![3, 1], vec![1, 3]));
    anna.call("room.kick", json!({"room": room, "user": bob_account.id})).await;
    assert_eq!(saved(&mut bob, &room).await, (vec![], vec![]));
    assert_eq!(bob.fail("message.save", save(&room, 1, true)).await.code, 103);
    // What is one's own can be taken away from outside.
    bob.call("message.save", save(&room, 3, false)).await;
    anna.invite(&room, &mut bob).await;
    assert_eq!(saved(&mut bob, &room).await, (vec![1], vec![1]));
    anna.call("room.delete", json!({"room": room})).await;
    server.erased().await;
    assert_eq!(bob.call("saved.list", json!({})).await, json!({"saved": []}));
    assert_eq!(bob.call("saved.marks", json!({})).await, json!({"rooms": {}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_no_longer_is_saved_no_longer() {
    let server = Server::start().await;
    let admin = Account::of(&server.set_up("root").await);
    let (_anna, _, mut bob, room) = house(&server).await;
    for seq in [1, 3] {
        bob.call("message.save", save(&room, seq, true)).await;
    }
    let line = format!("PUT /api/v1/admin/rooms/{room}/retention");
    assert_eq!(server.http(&line, Some(&admin.token), "{\"messages\":1}").await.status, 204);
    server.kept().await;
    assert_eq!(saved(&mut bob, &room).await, (vec![3], vec![3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_makes_no_sense_is_refused() {
    let server = Server::start().await;
    let (mut anna, _, _bob, room) = house(&server).await;
    let mut cara = server.join("cara").await;
    assert_eq!(cara.fail("message.save", save(&room, 1, true)).await.code, 103);
    for seq in [0, 4, u64::MAX >> 11] {
        assert_eq!(anna.fail("message.save", save(&room, seq, true)).await.code, 404);
    }
    assert_eq!(anna.fail("message.save", save("0000000000007", 1, true)).await.code, 404);
    for wrong in [json!({"room": room, "seq": 1}), json!({"seq": 1, "on": true})] {
        assert_eq!(anna.fail("message.save", wrong).await.code, 400);
    }
    for wrong in [json!({"limit": 0}), json!({"limit": 101}), json!({"after": -1})] {
        assert_eq!(anna.fail("saved.list", wrong).await.code, 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_messages_have_a_limit_that_is_named_and_rooms_left_behind_do_not_count() {
    let settings = "[limits]\nmessages_per_second = 0\nchanges_per_minute = 0\n";
    let server = Server::with(settings).await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let (left, room) = (anna.create_room("Left").await, anna.create_room("Tea").await);
    anna.invite(&left, &mut bob).await;
    let max = u64::from(SAVED_MAX);
    let mut ids = Vec::new();
    for seq in 1..=max {
        let data = json!({"room": room, "key": format!("k{seq}"), "body": "tea"});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for id in ids {
        anna.reply(id, "rpc").await.expect("it is sent");
    }
    anna.invite(&room, &mut bob).await;
    anna.say(&left, "1", "tea").await;
    bob.call("message.save", save(&left, 1, true)).await;
    let mut ids = Vec::new();
    for seq in 1..max {
        let data = json!({"method": "message.save", "data": save(&room, seq, true)});
        ids.push(bob.post("rpc", data).await);
    }
    for id in ids {
        bob.reply(id, "rpc").await.expect("it is saved");
    }
    let refused = bob.fail("message.save", save(&room, max, true)).await;
    let names_it = refused.message.contains(&format!("at most {max} messages"));
    assert!(refused.code == 106 && names_it, "{refused:?}");
    bob.call("room.leave", json!({"room": left})).await;
    bob.call("message.save", save(&room, max, true)).await;
    let marks = bob.call("saved.marks", json!({})).await;
    assert_eq!(marks["rooms"][&room].as_array().map(Vec::len), Some(SAVED_MAX as usize));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_account_has_saved_goes_with_it() {
    let server = Server::start().await;
    let (_anna, bob_account, mut bob, room) = house(&server).await;
    bob.call("message.save", save(&room, 1, true)).await;
    let wish = json!({"password": "correct horse", "messages": "keep", "rooms": "hand_over"});
    let line = "POST /api/v1/me/deletion";
    let token = Some(bob_account.token.as_str());
    assert_eq!(server.http(line, token, &wish.to_string()).await.status, 204);
    server.erased().await;
    let database = rusqlite::Connection::open(server.data().join("folkmoot.sqlite"));
    let database = database.expect("it is there");
    let count = database.query_row("SELECT count(*) FROM saved", [], |row| row.get::<_, u32>(0));
    assert_eq!(count.expect("the table is there"), 0);
}
