//! Who is there, told to those who have them on screen.

use serde_json::{Value, json};

use crate::support::{Client, Server};

const NO_LIMITS: &str = "[limits]\naccounts_per_minute = 0\nquestions_per_minute = 0\n";

/// Names those on a client's screen, and takes what the room says of them at once.
async fn watch(client: &mut Client, room: &str, users: &[&str]) -> Value {
    client.call("presence.watch", json!({"room": room, "users": users})).await;
    presence(client, room).await
}

/// The next that names somebody; counts alone may come in between.
async fn presence(client: &mut Client, room: &str) -> Value {
    loop {
        let told = client.event(&format!("room:{room}"), "presence").await;
        if told["online"] != json!([]) || told["away"] != json!([]) {
            return told;
        }
    }
}

fn told(room: &str, online: &[&str], away: &[&str], users: u32) -> Value {
    json!({"type": "presence", "room": room, "online": online, "away": away, "users": users})
}

#[tokio::test(flavor = "multi_thread")]
async fn those_on_screen_are_told_of_as_they_come_and_go() {
    let server = Server::with(NO_LIMITS).await;
    let (bob_account, cara_account) = (server.sign_up("bob").await, server.sign_up("cara").await);
    let mut anna = server.join("anna").await;
    let mut bob = server.connect(&bob_account).await;
    let mut cara = server.connect(&cara_account).await;
    let room = anna.create_room("Tea").await;
    for client in [&mut bob, &mut cara] {
        anna.invite(&room, client).await;
        client.subscribe(&room).await;
    }
    anna.subscribe(&room).await;
    let (bob_id, cara_id) = (bob_account.id.as_str(), cara_account.id.as_str());
    assert_eq!(watch(&mut anna, &room, &[bob_id]).await, told(&room, &[bob_id], &[], 3));
    // A second connection of somebody who is there, and the loss of one of two, change nothing.
    let mut phone = server.connect(&bob_account).await;
    phone.subscribe(&room).await;
    bob.vanish();
    let channel = json!({"channel": format!("room:{room}")});
    while anna.command("presence_stats", channel.clone()).await.unwrap()["num_clients"] != 3 {}
    phone.vanish();
    assert_eq!(presence(&mut anna, &room).await, told(&room, &[], &[bob_id], 2));
    let mut bob = server.connect(&bob_account).await;
    bob.subscribe(&room).await;
    assert_eq!(presence(&mut anna, &room).await, told(&room, &[bob_id], &[], 3));
    // Somebody else on screen instead: nothing more of Bob, also when he is removed.
    assert_eq!(watch(&mut anna, &room, &[cara_id]).await, told(&room, &[cara_id], &[], 3));
    anna.call("room.kick", json!({"room": room, "user": bob_id})).await;
    anna.call("room.kick", json!({"room": room, "user": cara_id})).await;
    assert_eq!(presence(&mut anna, &room).await, told(&room, &[], &[cara_id], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_nobody_hears_of_nobody() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    assert_eq!(
        watch(&mut anna, &room, &[&bob_account.id]).await,
        told(&room, &[], &[&bob_account.id], 1)
    );
    anna.call("presence.watch", json!({"room": room, "users": []})).await;
    bob.subscribe(&room).await;
    bob.say(&room, "here", "here I am").await;
    let push = anna.push(&format!("room:{room}")).await;
    assert_eq!(push["pub"]["data"]["type"], "message", "{push}");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_many_are_there_is_told_soon_to_all_who_look_at_anybody() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    watch(&mut anna, &room, &[&bob_account.id]).await;
    let mut others = Vec::new();
    for n in 0..5 {
        let mut other = server.join(&format!("other{n}")).await;
        anna.invite(&room, &mut other).await;
        other.subscribe(&room).await;
        others.push(other);
    }
    // Nobody on her screen has come; the numbers of a crowd come together.
    let mut events = 0;
    loop {
        let counted = anna.event(&format!("room:{room}"), "presence").await;
        assert_eq!((&counted["online"], &counted["away"]), (&json!([]), &json!([])));
        events += 1;
        if counted["users"] == 6 {
            break;
        }
    }
    assert!(events <= 3, "{events} events for 5 who came");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_is_of_members_who_are_subscribed_and_has_an_end() {
    let server = Server::with(NO_LIMITS).await;
    let mut anna = server.join("anna").await;
    let mut eve = server.join("eve").await;
    let room = anna.create_room("Tea").await;
    let users: Vec<String> = (0..201_u64).map(|n| format!("{n:013}")).collect();
    let request = |room: &str, users: &[String]| json!({"room": room, "users": users});
    for client in [&mut anna, &mut eve] {
        let refused = client.fail("presence.watch", request(&room, &users[..1])).await;
        assert_eq!(refused.code, 103, "{refused:?}");
    }
    anna.subscribe(&room).await;
    let refused = anna.fail("presence.watch", request(&room, &users)).await;
    assert!(refused.message.contains("200 entries"), "{refused:?}");
    let mut rooms = vec![room];
    for n in 0..5 {
        rooms.push(anna.create_room(&format!("Room {n}")).await);
    }
    for room in &rooms[1..] {
        anna.subscribe(room).await;
    }
    for room in &rooms[..5] {
        anna.call("presence.watch", request(room, &users[..200])).await;
    }
    let refused = anna.fail("presence.watch", request(&rooms[5], &users[..1])).await;
    assert!(refused.message.contains("1000 users watched per connection"), "{refused:?}");
    // What is not on screen any more makes room.
    anna.call("presence.watch", request(&rooms[0], &users[..199])).await;
    anna.call("presence.watch", request(&rooms[5], &users[..1])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_of_people_with_whom_they_share_no_room() {
    let server = Server::with(NO_LIMITS).await;
    let (anna_account, bob_account) = (server.sign_up("anna").await, server.sign_up("bob").await);
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let mut eve = server.join("eve").await;
    let tea = anna.create_room("Tea").await;
    anna.invite(&tea, &mut bob).await;
    let den = eve.create_room("Den").await;
    for (client, room) in [(&mut anna, &tea), (&mut bob, &tea), (&mut eve, &den)] {
        client.subscribe(room).await;
    }
    // Eve is not in Anna's room, and Anna, who is online, not in Eve's.
    let refused =
        eve.fail("presence.watch", json!({"room": tea, "users": [anna_account.id]})).await;
    assert_eq!(refused.code, 103, "{refused:?}");
    let alone = told(&den, &[], &[&anna_account.id], 1);
    assert_eq!(watch(&mut eve, &den, &[&anna_account.id]).await, alone);
    // Bob may know, until he is removed: then he is told nothing more and may not ask again.
    let both = told(&tea, &[&anna_account.id], &[], 2);
    assert_eq!(watch(&mut bob, &tea, &[&anna_account.id]).await, both);
    anna.call("room.kick", json!({"room": tea, "user": bob_account.id})).await;
    assert_eq!(bob.event(&format!("room:{tea}"), "left").await["user"], bob_account.id);
    anna.command("unsubscribe", json!({"channel": format!("room:{tea}")})).await.unwrap();
    anna.subscribe(&tea).await;
    for (client, name) in [(&mut eve, "Eve"), (&mut bob, "Bob")] {
        // Whatever was told before is in front of what one says oneself.
        let room = client.create_room(&format!("{name} alone")).await;
        client.subscribe(&room).await;
        client.say(&room, "end", "nothing in between").await;
        loop {
            let push = client.any_push().await;
            let data = &push["pub"]["data"];
            assert_ne!(data["type"], "presence", "{push}");
            if data["type"] == "message" && data["body"] == "nothing in between" {
                break;
            }
        }
    }
    let refused =
        bob.fail("presence.watch", json!({"room": tea, "users": [anna_account.id]})).await;
    assert_eq!(refused.code, 103, "{refused:?}");
}
