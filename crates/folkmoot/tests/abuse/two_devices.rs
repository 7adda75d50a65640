//! One user on two devices that ask for opposite things at one moment, and people who press one
//! thing at once: whatever the order, what the server goes by is what it has stored.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PATIENT, Server};

/// So often both ask at once: one round in some ten meets.
const ROUNDS: usize = 150;

async fn server() -> Server {
    let zero = ["accounts", "profile_changes", "changes", "questions", "reactions", "rooms"];
    let zero: String = zero.iter().map(|what| format!("{what}_per_minute = 0\n")).collect();
    Server::with(&format!("[limits]\nmessages_per_second = 0\n{zero}{PATIENT}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_two_devices_set_and_lift_at_once_is_what_is_stored() {
    let server = server().await;
    let account = server.sign_up("anna").await;
    let mut anna = [server.connect(&account).await, server.connect(&account).await];
    let other = server.sign_up("eve").await;
    let mut eve = server.connect(&other).await;
    let direct = eve.call("direct.open", json!({"user": account.id})).await;
    let room = direct["id"].as_str().expect("an id").to_owned();
    for round in 0..ROUNDS {
        let block = |on: bool| json!({"user": other.id, "on": on});
        let [one, two] = &mut anna;
        tokio::join!(one.call("user.block", block(true)), two.call("user.block", block(false)));
        let blocked = anna[0].call("users.blocked", json!({})).await;
        let is_blocked = !blocked["users"].as_array().expect("a list").is_empty();
        let said = json!({"room": room, "key": format!("{round}"), "body": "hello"});
        let refused = eve.rpc("message.send", said).await.is_err();
        assert_eq!(refused, is_blocked, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_two_devices_choose_at_once_is_the_one_that_is_stored() {
    let server = server().await;
    let account = server.sign_up("anna").await;
    let mut anna = [server.connect(&account).await, server.connect(&account).await];
    let room = anna[0].create_room("Tea").await;
    for round in 0..ROUNDS {
        let name = |device: &str| json!({"display_name": format!("{device} {round}")});
        let [one, two] = &mut anna;
        tokio::join!(one.call("profile.update", name("a")), two.call("profile.update", name("b")));
        let stored = anna[0].call("user.get", json!({"user": account.id})).await;
        let seq = anna[0].say(&room, &round.to_string(), "hello").await;
        let page = anna[0].call("history.get", json!({"room": room, "around": seq})).await;
        let said = page["messages"].as_array().and_then(|all| all.last()).expect("it is there");
        assert_eq!(said["name"], stored["display_name"], "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_reacts_to_an_old_message_at_once_gives_no_more_than_the_limit() {
    let server = server().await;
    let mut owner = server.join("owner").await;
    let room = owner.create_room("Tea").await;
    // The first is no longer in memory.
    for n in 0..600 {
        owner.say(&room, &n.to_string(), "hello").await;
    }
    let mut crowd = Vec::new();
    for n in 0..30 {
        let mut one = server.join(&format!("guest{n}")).await;
        owner.invite(&room, &mut one).await;
        crowd.push(one);
    }
    let reacting = crowd.into_iter().enumerate().map(|(n, mut one)| {
        let reaction = json!({"room": room, "seq": 1, "emoji": format!("e{n}"), "on": true});
        tokio::spawn(async move { one.rpc("message.react", reaction).await })
    });
    let reacting: Vec<_> = reacting.collect();
    let mut taken = 0;
    for reacted in reacting {
        match reacted.await.expect("it ends") {
            Ok(_) => taken += 1,
            Err(refused) => assert_eq!(refused.code, 106, "{refused:?}"),
        }
    }
    let page = owner.call("history.get", json!({"room": room, "around": 1, "limit": 1})).await;
    let given = page["messages"][0]["reactions"].as_array().map_or(0, Vec::len);
    assert_eq!((taken, given), (20, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_devices_save_and_take_off_at_once_ends_as_it_is_stored() {
    let server = server().await;
    let account = server.sign_up("anna").await;
    let mut anna = [server.connect(&account).await, server.connect(&account).await];
    let room = anna[0].create_room("Tea").await;
    anna[0].say(&room, "1", "hello").await;
    let mut third = server.connect(&account).await;
    for round in 0..ROUNDS {
        let save = |on: bool| json!({"room": room, "seq": 1, "on": on});
        let [one, two] = &mut anna;
        tokio::join!(one.call("message.save", save(true)), two.call("message.save", save(false)));
        let marks = third.call("saved.marks", json!({})).await;
        let is_stored = marks["rooms"].get(&room).is_some();
        let own = format!("user:{}", account.id);
        third.event(&own, "saved").await;
        let last = third.event(&own, "saved").await;
        assert_eq!(last["on"], is_stored, "round {round}: {marks}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_two_devices_hide_and_open_at_once_is_where_it_is_stored() {
    let mut server = server().await;
    let account = server.sign_up("anna").await;
    let mut anna = [server.connect(&account).await, server.connect(&account).await];
    let mut rooms = Vec::new();
    for n in 0..60 {
        let other = server.sign_up(&format!("guest{n}")).await;
        let direct = anna[0].call("direct.open", json!({"user": other.id})).await;
        rooms.push((other.id, direct["id"].as_str().expect("an id").to_owned()));
    }
    for (n, (user, room)) in (0..).zip(&rooms) {
        let [one, two] = &mut anna;
        let (hide, open) = (json!({"room": room}), json!({"user": user}));
        // One of them is somewhat later, to meet at different steps.
        let later = Duration::from_micros(n * 50);
        let hiding = async {
            tokio::time::sleep(later).await;
            one.call("direct.hide", hide).await
        };
        tokio::join!(hiding, two.call("direct.open", open));
    }
    let listed = anna[0].call("rooms.list", json!({})).await;
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let ids = |list: &Value| -> Vec<String> {
        let rooms = list["rooms"].as_array().expect("a list").iter();
        rooms.map(|room| room["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&listed), ids(&anna.call("rooms.list", json!({})).await));
}
