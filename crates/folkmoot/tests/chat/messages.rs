//! Messages: keys, edits, deletions, reactions, replies, history, typing.

use serde_json::{Value, json};

use crate::support::{Client, Server};

/// Anna and Bob, subscribed to Anna's room.
async fn pair(server: &Server) -> (Client, Client, String) {
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    bob.subscribe(&room).await;
    (anna, bob, room)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_gets_the_first_number_and_nobody_sees_it_twice() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    let request = json!({"room": room, "key": "k", "body": "once"});
    let first = anna.call("message.send", request.clone()).await;
    let again = anna.call("message.send", request).await;
    assert_eq!((&again["seq"], &again["offset"]), (&first["seq"], &first["offset"]));
    assert_eq!((&first["duplicate"], &again["duplicate"]), (&Value::Null, &json!(true)));
    anna.say(&room, "l", "after").await;
    assert_eq!(bob.message(&room).await["body"], "once");
    assert_eq!(bob.message(&room).await["body"], "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_reused_with_other_content_is_refused() {
    let server = Server::start().await;
    let (mut anna, _bob, room) = pair(&server).await;
    anna.say(&room, "k", "one thing").await;
    let failure =
        anna.fail("message.send", json!({"room": room, "key": "k", "body": "another"})).await;
    assert_eq!(failure.code, 409);
    assert!(failure.message.contains("message 1"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_sent_at_once_become_one_message() {
    let server = Server::start().await;
    let (mut anna, _bob, room) = pair(&server).await;
    let request = json!({"room": room, "key": "k", "body": "once"});
    let rpc = json!({"method": "message.send", "data": request});
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(anna.post("rpc", rpc.clone()).await);
    }
    for id in ids {
        assert_eq!(anna.reply(id, "rpc").await.unwrap()["data"]["seq"], 1);
    }
    let page = anna.call("history.get", json!({"room": room})).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_one_sender_keep_their_order() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    let mut ids = Vec::new();
    for n in 0..200 {
        let data = json!({"room": room, "key": format!("k{n}"), "body": n.to_string()});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for n in 0..200 {
        let message = bob.message(&room).await;
        assert_eq!(message["body"], n.to_string());
        assert_eq!(message["seq"], n + 1);
    }
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(anna.reply(id, "rpc").await.unwrap()["data"]["seq"], n + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_deletions_and_reactions_reach_everybody_and_history() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    let channel = format!("room:{room}");
    for n in 1..=3 {
        anna.say(&room, &format!("k{n}"), &format!("message {n}")).await;
    }
    let edit = json!({"room": room, "seq": 1, "body": "better"});
    let edited = anna.call("message.edit", edit).await;
    assert_eq!(bob.event(&channel, "edited").await["edited_at"], edited["edited_at"]);
    anna.call("message.delete", json!({"room": room, "seq": 2})).await;
    assert_eq!(bob.event(&channel, "deleted").await["seq"], 2);
    let react = json!({"room": room, "seq": 3, "emoji": "👍", "on": true});
    bob.call("message.react", react).await;
    assert_eq!(anna.event(&channel, "reaction").await["emoji"], "👍");
    let page = bob.call("history.get", json!({"room": room})).await;
    let messages = page["messages"].as_array().unwrap();
    assert_eq!(messages[0]["body"], "better");
    assert_eq!((&messages[1]["deleted"], &messages[1]["body"]), (&json!(true), &json!("")));
    assert_eq!(messages[2]["reactions"], json!([{"emoji": "👍", "count": 1, "mine": true}]));
    let refused = bob.fail("message.edit", json!({"room": room, "seq": 1, "body": "x"})).await;
    assert_eq!(refused.code, 103);
    let refused = bob.fail("message.delete", json!({"room": room, "seq": 1})).await;
    assert_eq!(refused.code, 103);
    let gone = anna.fail("message.edit", json!({"room": room, "seq": 2, "body": "x"})).await;
    assert_eq!(gone.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_quotes_and_an_old_message_can_still_be_edited() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    anna.say(&room, "first", "the beginning").await;
    // Pushes the first message out of the room's memory.
    let mut ids = Vec::new();
    for n in 0..600 {
        let data = json!({"room": room, "key": n.to_string(), "body": "filler"});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for id in ids {
        anna.reply(id, "rpc").await.unwrap();
    }
    let reply = json!({"room": room, "key": "r", "body": "yes", "reply_to": 1});
    bob.call("message.send", reply).await;
    anna.call("message.edit", json!({"room": room, "seq": 1, "body": "the start"})).await;
    let refused = bob.fail("message.edit", json!({"room": room, "seq": 1, "body": "x"})).await;
    assert_eq!(refused.code, 103);
    let page = anna.call("history.get", json!({"room": room, "around": 1, "limit": 1})).await;
    assert_eq!(page["messages"][0]["body"], "the start");
    let page = anna.call("history.get", json!({"room": room, "limit": 1})).await;
    let quote = &page["messages"][0]["reply_to"];
    assert_eq!((&quote["name"], &quote["body"]), (&json!("anna"), &json!("the beginning")));
}

#[tokio::test(flavor = "multi_thread")]
async fn history_pages_in_both_directions() {
    let server = Server::start().await;
    let (mut anna, _bob, room) = pair(&server).await;
    for n in 1..=30 {
        anna.say(&room, &n.to_string(), "x").await;
    }
    let mut seqs = async |data: Value| -> Vec<u64> {
        let page = anna.call("history.get", data).await;
        assert_eq!((&page["first_seq"], &page["last_seq"]), (&json!(1), &json!(30)));
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(seqs(json!({"room": room, "limit": 3})).await, [28, 29, 30]);
    assert_eq!(seqs(json!({"room": room, "before": 28, "limit": 2})).await, [26, 27]);
    assert_eq!(seqs(json!({"room": room, "after": 5, "limit": 2})).await, [6, 7]);
    let around = seqs(json!({"room": room, "around": 15, "limit": 5})).await;
    assert!(around.contains(&15) && around.len() == 5, "{around:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_is_told_but_never_stored() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    let channel = format!("room:{room}");
    anna.call("typing.set", json!({"room": room, "on": true})).await;
    let mut push = bob.push(&channel).await;
    while push["pub"]["data"]["type"] != "typing" {
        push = bob.push(&channel).await;
    }
    assert_eq!(push["pub"]["offset"], Value::Null);
    assert_eq!(push["pub"]["data"]["name"], "anna");
    let history = json!({"channel": channel, "limit": 100});
    let history = bob.command("history", history).await.unwrap();
    let events = history["publications"].as_array().unwrap();
    assert!(events.iter().all(|event| event["data"]["type"] != "typing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn publish_is_a_send() {
    let server = Server::start().await;
    let (mut anna, mut bob, room) = pair(&server).await;
    let request = json!({"channel": format!("room:{room}"), "data": {"body": "published"}});
    anna.command("publish", request).await.unwrap();
    assert_eq!(bob.message(&room).await["body"], "published");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_publish_without_a_key_becomes_a_message_of_its_own() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let channel = format!("room:{room}");
    for body in ["ok", "ok", "other"] {
        let publish = json!({"channel": channel, "data": {"body": body}});
        anna.command("publish", publish).await.expect("each is accepted");
    }
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let publish = json!({"channel": channel, "data": {"body": "ok"}});
    anna.command("publish", publish).await.expect("after a restart too");
    let page = anna.call("history.get", json!({"room": room})).await;
    let bodies: Vec<_> = page["messages"].as_array().unwrap().iter().map(|m| &m["body"]).collect();
    assert_eq!(bodies, ["ok", "ok", "other", "ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_takes_twenty_different_reactions() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let seq = anna.say(&room, "k", "tea").await;
    let react = |emoji: u32, on: bool| json!({"room": room, "seq": seq, "emoji": emoji.to_string(), "on": on});
    for emoji in 0..20 {
        anna.call("message.react", react(emoji, true)).await;
    }
    assert_eq!(anna.fail("message.react", react(20, true)).await.code, 106);
    anna.call("message.react", react(3, true)).await;
    // What the room has to read anew counts the same.
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(anna.fail("message.react", react(20, true)).await.code, 106);
    anna.call("message.react", react(3, false)).await;
    let page = anna.call("history.get", json!({"room": room})).await;
    assert_eq!(page["messages"][0]["reactions"].as_array().unwrap().len(), 19);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_learns_who_reacted_in_the_order_of_the_reactions() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let mut cara = server.join("cara").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let seq = anna.say(&room, "k1", "Tea?").await;
    let message = json!({"room": room, "seq": seq});
    let give = |emoji: &str| json!({"room": room, "seq": seq, "emoji": emoji, "on": true});
    bob.call("message.react", give("🎉")).await;
    anna.call("message.react", give("🎉")).await;
    anna.call("message.react", give("👍")).await;
    let page = anna.call("message.reactions", message.clone()).await;
    let names = |at: usize| -> Vec<String> {
        let users = page["reactions"][at]["users"].as_array().unwrap();
        users.iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&page["reactions"][0]["emoji"], names(0)),
        (&json!("🎉"), vec!["bob".into(), "anna".into()])
    );
    assert_eq!((&page["reactions"][1]["emoji"], names(1)), (&json!("👍"), vec!["anna".into()]));
    assert_eq!(cara.fail("message.reactions", message).await.code, 103);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_read_by_members_in_pages() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut cara = server.join("cara").await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "k1", "Tea?").await;
    anna.say(&room, "k2", "Something else").await;
    for (key, seq) in [("k3", 1), ("k4", 3), ("k5", 1)] {
        let answer = json!({"room": room, "key": key, "body": key, "reply_to": seq});
        anna.call("message.send", answer).await;
    }
    let seqs = |page: &Value| -> Vec<u64> {
        let messages = page["messages"].as_array().expect("messages");
        messages.iter().map(|message| message["seq"].as_u64().expect("a number")).collect()
    };
    let thread = |after: Option<u64>| json!({"room": room, "seq": 1, "after": after, "limit": 2});
    let first = anna.call("message.thread", thread(None)).await;
    assert_eq!((seqs(&first), &first["next"]), (vec![1, 3], &json!(3)));
    let second = anna.call("message.thread", thread(Some(3))).await;
    assert_eq!((seqs(&second), &second["next"]), (vec![4, 5], &Value::Null));
    assert_eq!(second["messages"][0]["reply_to"]["seq"], 3);
    assert_eq!(cara.fail("message.thread", thread(None)).await.code, 103);
    let much = json!({"room": room, "seq": 1, "limit": 101});
    let refused = anna.fail("message.thread", much).await;
    assert!(refused.message.contains("limit"), "{refused:?}");
}
