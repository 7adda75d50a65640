//! Pinned messages: who pins, what everybody sees of it, how it ends, and that it lasts.

use folkmoot_protocol::limits::PINS_PER_ROOM_MAX;
use serde_json::{Value, json};

use crate::process::listening;
use crate::support::{Account, Client, Scratch, Server, exchange};

/// Anna, who owns the room, and Bob, both subscribed; three messages by Bob.
async fn house(server: &Server) -> (Client, Client, String) {
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    bob.subscribe(&room).await;
    for n in 1..=3 {
        bob.say(&room, &n.to_string(), &format!("message {n}")).await;
    }
    (anna, bob, room)
}

fn pin(room: &str, seq: u64, on: bool) -> Value {
    json!({"room": room, "seq": seq, "on": on})
}

fn seqs(page: &Value) -> Vec<u64> {
    let pins = page["pins"].as_array().expect("pins");
    pins.iter().map(|pin| pin["message"]["seq"].as_u64().expect("a number")).collect()
}

/// The numbers of the pinned messages: of the list, and of the history's marks.
async fn pinned(client: &mut Client, room: &str) -> (Vec<u64>, Vec<u64>) {
    let list = client.call("room.pins", json!({"room": room})).await;
    let page = client.call("history.get", json!({"room": room, "limit": 100})).await;
    let messages = page["messages"].as_array().expect("messages");
    let marked = messages.iter().filter(|message| message["pinned"] == true);
    let marked = marked.map(|message| message["seq"].as_u64().expect("a number"));
    (seqs(&list), marked.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_sees_a_pin_live_after_recovery_and_in_the_list() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = house(&server).await;
    let position = bob.call("room.get", json!({"room": room})).await;
    for seq in [2, 1, 3] {
        anna.call("message.pin", pin(&room, seq, true)).await;
    }
    anna.call("message.pin", pin(&room, 1, false)).await;
    let channel = format!("room:{room}");
    let mut live = Vec::new();
    for _ in 0..4 {
        live.push(bob.event(&channel, "pinned").await);
    }
    let told: Vec<_> = live.iter().map(|event| (event["seq"].as_u64(), &event["on"])).collect();
    let (on, off) = (json!(true), json!(false));
    assert_eq!(told, [(Some(2), &on), (Some(1), &on), (Some(3), &on), (Some(1), &off)]);
    bob.command("unsubscribe", json!({"channel": channel})).await.expect("it was subscribed");
    let offset = position["offset"].as_u64().expect("a number");
    let epoch = position["epoch"].as_str().expect("text");
    let recovered = bob.recover(&room, offset, epoch).await;
    let recovered = recovered["publications"].as_array().expect("publications");
    assert_eq!(recovered.iter().map(|one| one["data"].clone()).collect::<Vec<_>>(), live);
    // The one pinned last comes first, as it is now.
    bob.call("message.edit", json!({"room": room, "seq": 2, "body": "better"})).await;
    assert_eq!(pinned(&mut bob, &room).await, (vec![3, 2], vec![2, 3]));
    let first = bob.call("room.pins", json!({"room": room, "limit": 1})).await;
    assert_eq!((seqs(&first), &first["pins"][0]["by"]["name"]), (vec![3], &json!("anna")));
    let next = json!({"room": room, "limit": 1, "after": first["next"]});
    let second = bob.call("room.pins", next).await;
    assert_eq!((seqs(&second), &second["next"]), (vec![2], &Value::Null));
    assert_eq!(second["pins"][0]["message"]["body"], "better");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_pin_is_told_why() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = house(&server).await;
    let mut cara = server.join("cara").await;
    let refused = bob.fail("message.pin", pin(&room, 1, true)).await;
    assert_eq!((refused.code, refused.message.contains("moderators")), (103, true), "{refused:?}");
    assert_eq!(cara.fail("message.pin", pin(&room, 1, true)).await.code, 103);
    assert_eq!(cara.fail("room.pins", json!({"room": room})).await.code, 103);
    assert_eq!(anna.fail("message.pin", pin(&room, 4, true)).await.code, 404);
    assert_eq!(anna.fail("message.pin", pin("0000000000007", 1, true)).await.code, 404);
    for wrong in [
        json!({"room": room, "seq": 1}),
        json!({"room": room, "seq": "x", "on": true}),
        json!({"room": room, "seq": 1, "on": "yes"}),
    ] {
        assert_eq!(anna.fail("message.pin", wrong).await.code, 400);
    }
    for limit in [0, PINS_PER_ROOM_MAX + 1] {
        let refused = anna.fail("room.pins", json!({"room": room, "limit": limit})).await;
        assert!(refused.message.contains("limit"), "{refused:?}");
    }
    let page = json!({"room": room, "after": u64::MAX >> 11});
    assert!(seqs(&anna.call("room.pins", page).await).is_empty());
    anna.call("room.archive", json!({"room": room, "on": true})).await;
    assert_eq!(anna.fail("message.pin", pin(&room, 1, true)).await.code, 103);
    assert!(seqs(&anna.call("room.pins", json!({"room": room})).await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_of_a_direct_conversation_pin() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let direct = anna.call("direct.open", json!({"user": bob_account.id})).await;
    let room = direct["id"].as_str().expect("an id").to_owned();
    anna.say(&room, "1", "the key is under the mat").await;
    bob.call("message.pin", pin(&room, 1, true)).await;
    assert_eq!(pinned(&mut anna, &room).await, (vec![1], vec![1]));
    anna.call("message.pin", pin(&room, 1, false)).await;
    assert_eq!(pinned(&mut bob, &room).await, (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_has_a_limit_of_pins_that_is_named() {
    let server = Server::with("[limits]\nmessages_per_second = 0\nchanges_per_minute = 0\n").await;
    let (mut anna, _bob, room) = house(&server).await;
    let max = u64::from(PINS_PER_ROOM_MAX);
    for seq in 4..=max + 1 {
        anna.say(&room, &seq.to_string(), "tea").await;
    }
    for seq in 1..=max {
        anna.call("message.pin", pin(&room, seq, true)).await;
    }
    let refused = anna.fail("message.pin", pin(&room, max + 1, true)).await;
    let names_it = refused.message.contains(&format!("at most {max} pinned messages"));
    assert!(refused.code == 106 && names_it, "{refused:?}");
    anna.call("message.pin", pin(&room, 9, false)).await;
    anna.call("message.pin", pin(&room, max + 1, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_goes_with_its_message_however_that_goes() {
    let server = Server::start().await;
    let admin = Account::of(&server.set_up("root").await);
    let (mut anna, mut bob, room) = house(&server).await;
    let cara_account = server.sign_up("cara").await;
    let mut cara = server.connect(&cara_account).await;
    anna.invite(&room, &mut cara).await;
    cara.say(&room, "4", "message 4").await;
    anna.say(&room, "5", "message 5").await;
    for seq in 1..=5 {
        anna.call("message.pin", pin(&room, seq, true)).await;
    }
    // Deleted by its author.
    bob.call("message.delete", json!({"room": room, "seq": 2})).await;
    assert_eq!(pinned(&mut anna, &room).await, (vec![5, 4, 3, 1], vec![1, 3, 4, 5]));
    assert_eq!(anna.fail("message.pin", pin(&room, 2, false)).await.code, 404);
    // Erased with the account.
    let wish = json!({"password": "correct horse", "messages": "erase", "rooms": "hand_over"});
    let wish = wish.to_string();
    let line = "POST /api/v1/me/deletion";
    assert_eq!(server.http(line, Some(&cara_account.token), &wish).await.status, 204);
    server.erased().await;
    assert_eq!(pinned(&mut anna, &room).await, (vec![5, 3, 1], vec![1, 3, 5]));
    // Kept no longer.
    let line = format!("PUT /api/v1/admin/rooms/{room}/retention");
    assert_eq!(server.http(&line, Some(&admin.token), "{\"messages\":2}").await.status, 204);
    server.kept().await;
    assert_eq!(pinned(&mut anna, &room).await, (vec![5], vec![5]));
    assert_eq!(anna.fail("message.pin", pin(&room, 1, true)).await.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_loses_no_pin_that_was_acknowledged() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (mut child, server) = listening(&data);
    let anna = json!({"name": "anna", "password": "correct horse"}).to_string();
    let signed = exchange(server, "POST /api/v1/accounts", None, &[], anna.as_bytes()).await;
    let token = signed.json()["token"].as_str().expect("a token").to_owned();
    let mut anna = Client::open(server).await;
    anna.connect(&token).await.expect("the token is good");
    let room = anna.create_room("Tea").await;
    for n in 1..=3 {
        anna.say(&room, &n.to_string(), "tea").await;
    }
    for (seq, on) in [(1, true), (3, true), (2, true), (3, false)] {
        anna.call("message.pin", pin(&room, seq, on)).await;
    }
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    let (mut child, server) = listening(&data);
    let mut anna = Client::open(server).await;
    anna.connect(&token).await.expect("the token is good");
    assert_eq!(pinned(&mut anna, &room).await, (vec![2, 1], vec![1, 2]));
    // The room knows it too: nothing changes by what is so already.
    let before = anna.call("room.get", json!({"room": room})).await;
    anna.call("message.pin", pin(&room, 1, true)).await;
    let after = anna.call("room.get", json!({"room": room})).await;
    assert_eq!(before["offset"], after["offset"]);
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
}
