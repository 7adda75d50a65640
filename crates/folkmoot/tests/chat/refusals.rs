//! Bad input: each gets its own answer, to the one who sent it, and the others go on.

use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::support::{Client, Server};

/// The code a connected client is closed with after sending `message`; a bystander must not notice.
async fn closed_after(message: Message) -> u16 {
    let server = Server::start().await;
    let mut bystander = server.join("bob").await;
    let mut anna = server.join("anna").await;
    let _ = anna.socket.send(message).await;
    let code = anna.closed().await;
    bystander.call("rooms.list", json!({})).await;
    code
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_close_with_3501() {
    for text in ["{", "[]", "", "{\"id\":1,\"rpc\":{}} x", "{\"id\":0,\"rpc\":{\"method\":\"x\"}}"]
    {
        assert_eq!(closed_after(Message::text(text)).await, 3501, "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_frame_closes_with_1009() {
    let message = Message::text(format!("{{\"id\":1,\"rpc\":\"{}\"}}", "x".repeat(70_000)));
    assert_eq!(closed_after(message).await, 1009);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_in_a_json_connection_closes_with_3506() {
    assert_eq!(closed_after(Message::binary(vec![1, 2, 3])).await, 3506);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_closes_with_3501() {
    let frame = Frame::message(vec![b'"', 0xff, b'"'], OpCode::Data(Data::Text), true);
    assert_eq!(closed_after(Message::Frame(frame)).await, 3501);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_before_connect_close_with_3501() {
    let server = Server::start().await;
    let mut client = Client::open(server.address()).await;
    client.post("rpc", json!({"method": "rooms.list"})).await;
    assert_eq!(client.closed().await, 3501);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_or_revoked_token_closes_with_3500() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let unknown = format!("fm_{}", "A".repeat(43));
    for token in ["hello", &unknown] {
        let mut client = Client::open(server.address()).await;
        client.post("connect", json!({"token": token})).await;
        assert_eq!(client.closed().await, 3500, "{token:?}");
    }
    let mut open = server.connect(&account).await;
    let signed_out = server.http("DELETE /api/v1/sessions/current", Some(&account.token), "").await;
    assert_eq!(signed_out.status, 204);
    assert_eq!(open.closed().await, 3500, "its open connection ends too");
    let mut client = Client::open(server.address()).await;
    client.post("connect", json!({"token": account.token})).await;
    assert_eq!(client.closed().await, 3500);
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_listed_and_signed_out() {
    let server = Server::start().await;
    let phone = server.sign_up("anna").await;
    let laptop = server.sign_in("anna").await;
    let mut on_phone = server.connect(&phone).await;
    let mut on_laptop = server.connect(&laptop).await;
    let page = on_phone.call("devices.list", json!({})).await;
    let devices = page["devices"].as_array().unwrap();
    let current: Vec<_> = devices.iter().filter(|device| device["current"] == true).collect();
    assert_eq!((devices.len(), &current[0]["id"]), (2, &json!(phone.device)));
    on_phone.call("devices.revoke", json!({"id": laptop.device})).await;
    assert_eq!(on_laptop.closed().await, 3500);
    let gone = on_phone.fail("devices.revoke", json!({"id": laptop.device})).await;
    assert_eq!(gone.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_methods_and_invalid_fields_are_named() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let long = "x".repeat(8_001);
    for (method, data, code, text) in [
        ("room.fly", json!({}), 104, "room.fly"),
        ("room.create", json!({}), 400, "name"),
        ("room.create", json!({"name": 7}), 400, "name"),
        ("room.create", json!({"name": ""}), 400, "name"),
        ("message.send", json!({"room": room, "key": "k", "body": long}), 413, "8000"),
        ("message.send", json!({"room": room, "key": "", "body": "x"}), 400, "key"),
        ("message.send", json!({"room": "what", "key": "k", "body": "x"}), 400, "room"),
        ("history.get", json!({"room": room, "limit": 1_000}), 400, "limit"),
        ("search", json!({"query": ""}), 400, "query"),
    ] {
        let failure = anna.fail(method, data).await;
        assert_eq!(failure.code, code, "{method}: {failure:?}");
        assert!(failure.message.contains(text), "{method}: {failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_to_a_room_get_nothing_from_it() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "private").await;
    let mut eve = server.join("eve").await;
    let channel = format!("room:{room}");
    for (method, data) in [
        ("message.send", json!({"room": room, "key": "k", "body": "x"})),
        ("history.get", json!({"room": room})),
        ("room.get", json!({"room": room})),
        ("room.members", json!({"room": room})),
        ("invite.create", json!({"room": room})),
        ("typing.set", json!({"room": room, "on": true})),
        ("read.set", json!({"room": room, "seq": 1})),
    ] {
        assert_eq!(eve.fail(method, data).await.code, 103, "{method}");
    }
    for (command, request) in [
        ("subscribe", json!({"channel": channel})),
        ("publish", json!({"channel": channel, "data": {"body": "x"}})),
        ("presence", json!({"channel": channel})),
        ("history", json!({"channel": channel, "limit": 10})),
    ] {
        assert_eq!(eve.command(command, request).await.unwrap_err().code, 103, "{command}");
    }
    assert_eq!(eve.fail("room.get", json!({"room": "0000000000007"})).await.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_are_not_ones_own_are_refused() {
    let server = Server::start().await;
    let bob = server.sign_up("bob").await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.subscribe(&room).await;
    let codes = [
        ("news", 102),
        ("room:xyz", 102),
        (&format!("user:{}", bob.id), 103),
        (&format!("room:{room}"), 105),
    ];
    for (channel, code) in codes {
        let refused = anna.command("subscribe", json!({"channel": channel})).await;
        assert_eq!(refused.unwrap_err().code, code, "{channel}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_limited_per_user_and_the_wait_is_named() {
    let server = Server::with("[limits]\nmessages_per_second = 1\nmessage_burst = 5\n").await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let mut refused = 0;
    for n in 0..10 {
        let data = json!({"room": room, "key": n.to_string(), "body": "x"});
        if let Err(failure) = anna.rpc("message.send", data).await {
            assert!(failure.code == 429 && failure.message.contains("ms"), "{failure:?}");
            refused += 1;
        }
    }
    assert!(refused >= 3, "{refused}");
    bob.say(&room, "k", "not limited by anna").await;
}
