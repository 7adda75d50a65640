//! Numbers and names at the edge of what a request can carry.

use serde_json::{Value, json};

use crate::support::Server;

/// The end of time in JavaScript, in milliseconds since 1970.
const END_OF_TIME: u64 = 8_640_000_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_mute_until_the_end_of_time_outlasts_a_departure_and_a_restart() {
    let mut server = Server::start().await;
    let (anna, bob) = (server.sign_up("anna").await, server.sign_up("bob").await);
    let (mut at_anna, mut at_bob) = (server.connect(&anna).await, server.connect(&bob).await);
    let room = at_anna.create_room("Tea").await;
    at_anna.invite(&room, &mut at_bob).await;
    let until = |until: u64| json!({"room": room, "user": bob.id, "until": until});
    for late in [END_OF_TIME + 1, 1 << 63, u64::MAX] {
        let refused = at_anna.fail("room.mute", until(late)).await;
        assert_eq!(refused.code, 400);
        assert!(refused.message.contains(&END_OF_TIME.to_string()), "{refused:?}");
        let status = json!({"emoji": "", "text": "out", "until": late});
        assert_eq!(at_bob.fail("status.set", status).await.code, 400);
    }
    at_anna.call("room.mute", until(END_OF_TIME)).await;
    at_bob.call("room.leave", json!({"room": room})).await;
    server.restart().await;
    let (mut at_anna, mut at_bob) = (server.connect(&anna).await, server.connect(&bob).await);
    at_anna.invite(&room, &mut at_bob).await;
    let said = json!({"room": room, "key": "1", "body": "back"});
    assert_eq!(at_bob.fail("message.send", said).await.code, 103);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_beyond_every_stream_are_unknown_and_nobody_is_made_up() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "one").await;
    let channel = format!("room:{room}");
    for offset in [1 << 40, i64::MAX.cast_unsigned(), 1 << 63, u64::MAX] {
        let since = json!({"offset": offset, "epoch": ""});
        let request = json!({"channel": channel, "limit": 10, "since": since});
        let refused = anna.command("history", request).await.expect_err("there is no such place");
        assert_eq!(refused.code, 112, "{offset}: {refused:?}");
        let answer = anna.recover(&room, offset, "").await;
        assert_ne!(answer["recovered"], true, "{offset}");
        anna.command("unsubscribe", json!({"channel": channel})).await.expect("it was subscribed");
    }
    // What is stored of somebody banned stays, so it must be somebody.
    let nobody = json!({"room": room, "user": "0000000000007", "on": true});
    assert_eq!(anna.fail("room.ban", nobody).await.code, 404);
    for unseen in ["Ann\u{200b}a", "\u{3164}", "\u{200d}"] {
        let shown = json!({"display_name": unseen});
        assert_eq!(anna.fail("profile.update", shown).await.code, 400, "{unseen:?}");
    }
    let turned = json!({"room": room, "seq": 1, "emoji": "\u{202e}+1", "on": true});
    assert_eq!(anna.fail("message.react", turned).await.code, 400);
    for name in ["everyone", "me"] {
        let body = json!({"name": name, "password": "correct horse"}).to_string();
        let refused = server.http("POST /api/v1/accounts", None, &body).await;
        assert_eq!((refused.status, refused.json()["field"].clone()), (400, Value::from("name")));
    }
}
