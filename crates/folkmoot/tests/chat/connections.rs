//! Connections themselves: batches, formats, liveness, slow readers, origins, shutdown.

use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{Command, ConnectRequest, Outcome, Request, RpcRequest};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{Client, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_commands_is_answered_command_by_command() {
    // As it is without settings: it says how often it pings.
    let server = Server::with("").await;
    let account = server.sign_up("anna").await;
    let mut anna = Client::open(server.address()).await;
    let lines = [
        json!({"id": 1, "connect": {"token": account.token}}),
        json!({"id": 2, "ping": {}}),
        json!({"id": 3, "rpc": {"method": "rooms.list"}}),
        json!({"id": 4, "rpc": {"method": "nothing"}}),
    ];
    anna.raw(lines.map(|line| line.to_string()).join("\n")).await;
    let hello = anna.reply(1, "connect").await.unwrap();
    assert_eq!((&hello["ping"], &hello["pong"]), (&json!(25), &json!(true)));
    assert_eq!(anna.reply(2, "ping").await.unwrap(), json!({}));
    assert_eq!(anna.reply(3, "rpc").await.unwrap()["data"], json!({"rooms": []}));
    assert_eq!(anna.reply(4, "rpc").await.unwrap_err().code, 104);
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_carries_the_same_conversation() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let address = format!("ws://{}/connection/websocket", server.address());
    let mut request = address.into_client_request().unwrap();
    let protocol = "centrifuge-protobuf".parse().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", protocol);
    let (mut socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "centrifuge-protobuf");
    let connect = ConnectRequest { token: account.token, ..ConnectRequest::default() };
    let create = RpcRequest { method: "room.create".into(), data: "{\"name\":\"Tea\"}".into() };
    let mut message = Vec::new();
    for (id, request) in [(1, Request::Connect(connect)), (2, Request::Rpc(create))] {
        let command = Command { id, request: Some(request) };
        Format::Protobuf.encode_command(&command, &mut message).unwrap();
    }
    socket.send(Message::binary(message)).await.unwrap();
    let mut outcomes = std::collections::BTreeMap::new();
    while outcomes.len() < 2 {
        let received = socket.next().await.unwrap().unwrap();
        for reply in Format::Protobuf.decode_replies(&received.into_data()).unwrap() {
            assert_eq!(reply.error, None);
            if reply.id > 0 {
                outcomes.insert(reply.id, reply.outcome.unwrap());
            }
        }
    }
    let Outcome::Rpc(created) = &outcomes[&2] else { panic!("{outcomes:?}") };
    let room: serde_json::Value = serde_json::from_slice(&created.data).unwrap();
    assert_eq!(room["name"], "Tea");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_says_who_they_are_is_closed_as_stale() {
    let server = Server::with("[gateway]\nconnect_timeout_s = 1\n").await;
    let mut client = Client::open(server.address()).await;
    assert_eq!(client.closed().await, 3502);
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_or_the_connection_ends() {
    let server = Server::with("[gateway]\nping_s = 1\npong_timeout_s = 1\n").await;
    let account = server.sign_up("anna").await;
    let mut silent = Client::open(server.address()).await;
    silent.connect(&account.token).await.unwrap();
    // Reads by hand, so that pings get no answer.
    let code = loop {
        match silent.socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => break u16::from(frame.unwrap().code),
            Message::Text(text) => assert_eq!(text.as_str(), "{}"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 3012);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_closed_with_3008_and_the_others_go_on() {
    let server = Server::with(
        "[limits]\nmessages_per_second = 0\n[gateway]\noutgoing_queue_bytes_max = 65536\n",
    )
    .await;
    let mut anna = server.join("anna").await;
    let mut slow = server.join("slow").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut slow).await;
    slow.subscribe(&room).await;
    let body = "x".repeat(8_000);
    // Far more than the queue and the socket's own buffers hold; slow reads nothing meanwhile.
    let mut ids = Vec::new();
    for n in 0..2_000 {
        let data = json!({"room": room, "key": n.to_string(), "body": body});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
        if ids.len() == 32 {
            for id in ids.drain(..) {
                anna.reply(id, "rpc").await.expect("the sender is not held up");
            }
        }
    }
    assert_eq!(slow.closed().await, 3008);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_may_not_connect() {
    let server = Server::start().await;
    let address = format!("ws://{}/connection/websocket", server.address());
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    match connect_async(request).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 403),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_says_goodbye_and_loses_nothing() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let mut ids = Vec::new();
    for n in 0..50 {
        let data = json!({"room": room, "key": n.to_string(), "body": "x"});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    let stopping = async {
        let mut acknowledged = 0;
        while anna.closed.is_none() {
            anna.receive().await;
        }
        for id in ids {
            acknowledged += u64::from(anna.answered(id));
        }
        acknowledged
    };
    let (acknowledged, ()) = tokio::join!(stopping, server.stop());
    assert_eq!(anna.closed.as_ref().map(|(code, _)| *code), Some(3001));
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let last = anna.call("room.get", json!({"room": room})).await["last_seq"].as_u64().unwrap();
    assert!(last >= acknowledged, "{last} kept of {acknowledged} acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsubscribing_ends_the_events() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.subscribe(&room).await;
    let channel = json!({"channel": format!("room:{room}")});
    assert_eq!(anna.command("unsubscribe", channel.clone()).await.unwrap(), json!({}));
    anna.say(&room, "1", "unheard").await;
    let again = anna.command("subscribe", channel).await.unwrap();
    assert_eq!(again["offset"], 2);
    anna.say(&room, "2", "heard").await;
    assert_eq!(anna.message(&room).await["body"], "heard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_signed_out_while_it_connects_is_out() {
    let server = Server::start().await;
    server.sign_up("anna").await;
    for turn in 0..20 {
        let device = server.sign_in("anna").await;
        let mut client = Client::open(server.address()).await;
        client.post("connect", json!({"token": device.token})).await;
        let out = server.http("DELETE /api/v1/sessions/current", Some(&device.token), "").await;
        assert_eq!(out.status, 204);
        assert_eq!(client.closed().await, 3500, "turn {turn}");
    }
}
