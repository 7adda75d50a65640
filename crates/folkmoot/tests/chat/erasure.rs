//! What was deleted is gone from everywhere: memory, quotes, mentions, the database's file.

use serde_json::{Value, json};

use crate::support::{Client, PATIENT, Server};

/// A word that stands nowhere else.
const SECRET: &str = "xylophagous";

/// Everything that a member can still get of a room and of their own stream.
async fn everything(client: &mut Client, room: &str, user: &str) -> String {
    let mut all = String::new();
    for request in [
        json!({"channel": format!("room:{room}"), "limit": 1000}),
        json!({"channel": format!("user:{user}"), "limit": 1000}),
    ] {
        all += &client.command("history", request).await.expect("a member may ask").to_string();
    }
    let recover = json!({"channel": format!("room:{room}"), "recover": true, "offset": 1});
    all += &client.command("subscribe", recover).await.expect("a member may ask").to_string();
    all += &client.call("history.get", json!({"room": room})).await.to_string();
    all += &client.call("rooms.list", json!({})).await.to_string();
    let channel = json!({"channel": format!("room:{room}")});
    client.command("unsubscribe", channel).await.expect("it was subscribed");
    all
}

async fn mentions(client: &mut Client, room: &str) -> Value {
    client.call("room.get", json!({"room": room})).await["mentions"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_text_is_nowhere_any_more() {
    let mut server = Server::start().await;
    let (anna_account, bob_account) = (server.sign_up("anna").await, server.sign_up("bob").await);
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let secret = anna.say(&room, "1", &format!("@bob {SECRET}")).await;
    let edited = format!("@bob again {SECRET}");
    anna.call("message.edit", json!({"room": room, "seq": secret, "body": edited})).await;
    let quote = json!({"room": room, "key": "q", "body": "what?", "reply_to": secret});
    bob.call("message.send", quote).await;
    bob.event(&format!("user:{}", bob_account.id), "mention").await;
    anna.call("message.delete", json!({"room": room, "seq": secret})).await;
    let found = everything(&mut bob, &room, &bob_account.id).await;
    assert!(!found.contains(SECRET), "{found}");
    server.restart().await;
    let mut bob = server.connect(&bob_account).await;
    let found = everything(&mut bob, &room, &bob_account.id).await;
    assert!(!found.contains(SECRET), "{found}");
    drop(bob);
    server.stop().await;
    let database = std::fs::read(server.data().join("folkmoot.sqlite")).unwrap();
    let has = |text: &str| database.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("what?") && !has(SECRET), "the file of the database still has the text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_that_is_edited_away_or_deleted_takes_its_badge_along() {
    let mut server = Server::start().await;
    let (anna_account, bob_account) = (server.sign_up("anna").await, server.sign_up("bob").await);
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let own = format!("user:{}", bob_account.id);
    for n in 1..=3 {
        anna.say(&room, &n.to_string(), "@bob").await;
        bob.event(&own, "mention").await;
    }
    anna.call("message.edit", json!({"room": room, "seq": 1, "body": "nobody"})).await;
    assert_eq!(bob.event(&own, "read").await["mentions"], 2);
    anna.call("message.delete", json!({"room": room, "seq": 2})).await;
    assert_eq!(bob.event(&own, "read").await["mentions"], 1);
    assert_eq!(mentions(&mut bob, &room).await, 1);
    server.restart().await;
    let mut bob = server.connect(&bob_account).await;
    assert_eq!(mentions(&mut bob, &room).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_brought_a_hidden_conversation_back_is_gone_with_its_message() {
    let mut server = Server::start().await;
    let (anna_account, bob_account) = (server.sign_up("anna").await, server.sign_up("bob").await);
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = bob.call("direct.open", json!({"user": anna_account.id})).await;
    let room = room["id"].as_str().expect("an id").to_owned();
    let own = format!("user:{}", anna_account.id);
    anna.event(&own, "room_added").await;
    bob.say(&room, "0", "hello").await;
    anna.call("direct.hide", json!({"room": room})).await;
    let secret = bob.say(&room, "1", SECRET).await;
    anna.event(&own, "room_added").await;
    bob.call("message.delete", json!({"room": room, "seq": secret})).await;
    let found = everything(&mut anna, &room, &anna_account.id).await;
    assert!(!found.contains(SECRET), "{found}");
    drop((anna, bob));
    server.stop().await;
    let database = std::fs::read(server.data().join("folkmoot.sqlite")).unwrap();
    let has = |text: &str| database.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("hello") && !has(SECRET), "the file of the database still has the text");
}

/// All that was said in a room behind a message.
async fn said_behind(client: &mut Client, room: &str, mut after: u64) -> Vec<Value> {
    let mut said = Vec::new();
    loop {
        let request = json!({"room": room, "after": after, "limit": 100});
        let page = client.call("history.get", request).await;
        let page = page["messages"].as_array().expect("a page").clone();
        let Some(last) = page.last() else { return said };
        after = last["seq"].as_u64().expect("a number");
        said.extend(page);
    }
}

/// What is answered is read from the disk where it is old, and may be deleted while it is read.
#[tokio::test(flavor = "multi_thread")]
async fn who_answers_a_message_while_it_is_deleted_brings_nothing_of_it_back() {
    let limits = "messages_per_second = 0\naccounts_per_minute = 0\nedits_per_minute = 0";
    let mut server = Server::with(&format!("[limits]\n{limits}\n{PATIENT}")).await;
    let anna_account = server.sign_up("anna").await;
    let mut accounts = Vec::new();
    for name in ["bob", "cleo", "dora"] {
        accounts.push(server.sign_up(name).await);
    }
    let mut anna = server.connect(&anna_account).await;
    let room = anna.create_room("Tea").await;
    for account in &accounts {
        anna.call("room.add", json!({"room": room, "user": account.id})).await;
    }
    for n in 1..=140 {
        anna.say(&room, &n.to_string(), SECRET).await;
    }
    // A room that has just come into memory has the newest messages there only.
    server.restart().await;
    let mut anna = server.connect(&anna_account).await;
    let mut others = Vec::new();
    for account in &accounts {
        let mut other = server.connect(account).await;
        other.say(&room, "known", "here").await;
        others.push(other);
    }
    for seq in 1..=100 {
        let mut answers = Vec::new();
        for other in &mut others {
            let key = seq.to_string();
            let answer = json!({"room": room, "key": key, "body": "what?", "reply_to": seq});
            let request = json!({"method": "message.send", "data": answer});
            answers.push(other.post("rpc", request).await);
        }
        anna.call("message.delete", json!({"room": room, "seq": seq})).await;
        for (other, answer) in others.iter_mut().zip(answers) {
            // Refused, if the message was gone.
            let _ = other.reply(answer, "rpc").await;
        }
    }
    let answers = said_behind(&mut anna, &room, 140).await;
    let quotes = answers.iter().filter(|answer| answer.to_string().contains(SECRET));
    assert_eq!(quotes.count(), 0, "of {} messages", answers.len());
}
