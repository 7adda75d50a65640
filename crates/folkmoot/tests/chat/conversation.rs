//! Two people talk, leave, come back, and find everything.

use serde_json::json;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn two_people_sign_up_meet_by_link_and_talk() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.subscribe(&room).await;
    anna.invite(&room, &mut bob).await;
    let joined = anna.event(&format!("room:{room}"), "joined").await;
    assert_eq!(joined["name"], "bob");
    bob.subscribe(&room).await;
    assert_eq!(anna.say(&room, "k1", "hello bob").await, 1);
    for client in [&mut anna, &mut bob] {
        let message = client.message(&room).await;
        assert_eq!(message["body"], "hello bob");
        assert_eq!((&message["seq"], &message["name"]), (&json!(1), &json!("anna")));
    }
    assert_eq!(bob.say(&room, "k1", "hello anna").await, 2);
    assert_eq!(anna.message(&room).await["body"], "hello anna");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_accounts_rooms_messages_and_numbers() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    for n in 1..=20 {
        assert_eq!(anna.say(&room, &format!("k{n}"), &format!("message {n}")).await, n);
    }
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let rooms = anna.call("rooms.list", json!({})).await;
    assert_eq!(rooms["rooms"][0]["name"], "Tea");
    assert_eq!(rooms["rooms"][0]["last_seq"], 20);
    assert_eq!(rooms["rooms"][0]["last"]["body"], "message 20");
    let page = anna.call("history.get", json!({"room": room, "limit": 100})).await;
    let bodies: Vec<_> = page["messages"].as_array().unwrap().iter().map(|m| &m["body"]).collect();
    assert_eq!(bodies.len(), 20);
    assert_eq!(bodies[0], "message 1");
    // A retry of what was acknowledged before the restart.
    let retry = json!({"room": room, "key": "k7", "body": "message 7"});
    let sent = anna.call("message.send", retry).await;
    assert_eq!((&sent["seq"], &sent["duplicate"]), (&json!(7), &json!(true)));
    assert_eq!(anna.say(&room, "k21", "message 21").await, 21);
}
