//! What people are called: shown by the name they chose, addressed by the name of their account.

use serde_json::json;

use crate::support::{Account, Client, Server};

async fn called(server: &Server, name: &str, display_name: &str) -> (Account, Client) {
    let account = server.sign_up(name).await;
    let mut client = server.connect(&account).await;
    client.call("profile.update", json!({"display_name": display_name})).await;
    (account, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_name_to_show() {
    let server = Server::start().await;
    let (anna_account, mut anna) = called(&server, "anna", "Anna Kühn").await;
    let (_, mut bob) = called(&server, "bob", "Bob B.").await;
    let room = anna.create_room("Tea").await;
    let channel = format!("room:{room}");
    anna.subscribe(&room).await;
    anna.invite(&room, &mut bob).await;
    assert_eq!(anna.event(&channel, "joined").await["name"], "Bob B.");
    bob.call("typing.set", json!({"room": room, "on": true})).await;
    assert_eq!(anna.event(&channel, "typing").await["name"], "Bob B.");
    // Addressed by account, as nobody else has that name.
    bob.say(&room, "1", "@anna and @Anna Kühn: tea?").await;
    let message = anna.message(&room).await;
    assert_eq!(message["name"], "Bob B.");
    assert_eq!(message["mentions"], json!([anna_account.id]));
    let mention = anna.event(&format!("user:{}", anna_account.id), "mention").await;
    assert_eq!(mention["name"], "Bob B.");
    let reply = json!({"room": room, "key": "2", "body": "yes", "reply_to": 1});
    anna.call("message.send", reply).await;
    assert_eq!(anna.message(&room).await["reply_to"]["name"], "Bob B.");
    let found = anna.call("search", json!({"query": "yes"})).await;
    assert_eq!(found["hits"][0]["name"], "Anna Kühn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_shows_at_once_and_after_a_restart() {
    let mut server = Server::start().await;
    let (account, mut anna) = called(&server, "anna", "Anna K.").await;
    let room = anna.create_room("Tea").await;
    anna.subscribe(&room).await;
    anna.say(&room, "1", "one").await;
    assert_eq!(anna.message(&room).await["name"], "Anna K.");
    anna.call("profile.update", json!({"display_name": "Anna M."})).await;
    // The room hears of it beside the answer; every message after it has taken the same road.
    anna.event(&format!("user:{}", account.id), "profile").await;
    anna.say(&room, "2", "two").await;
    assert_eq!(anna.message(&room).await["name"], "Anna M.");
    server.restart().await;
    let mut anna = server.connect(&account).await;
    anna.say(&room, "3", "three").await;
    let page = anna.call("history.get", json!({"room": room})).await;
    let messages = page["messages"].as_array().unwrap().iter();
    let names: Vec<_> = messages.map(|message| message["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Anna K.", "Anna M.", "Anna M."]);
}
