//! What clients written for Centrifugo rely on, beyond what the SDKs' own tests ask.

use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{Command, ConnectRequest, Outcome, Request};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::{Client, Server};

fn offsets(result: &Value) -> Vec<u64> {
    let publications = result["publications"].as_array().cloned().unwrap_or_default();
    publications.iter().map(|event| event["offset"].as_u64().expect("an offset")).collect()
}

/// Anna, her room with four messages, and its channel.
async fn anna_in_her_room(server: &Server) -> (Client, String, String) {
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    for n in 1..=4 {
        anna.say(&room, &n.to_string(), "tea").await;
    }
    let channel = format!("room:{room}");
    (anna, room, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_without_an_epoch_is_taken_as_it_is() {
    let server = Server::start().await;
    let (mut anna, _, channel) = anna_in_her_room(&server).await;
    let subscribe = json!({"channel": channel, "recover": true, "offset": 2});
    let result = anna.command("subscribe", subscribe).await.unwrap();
    assert_eq!((&result["recovered"], offsets(&result)), (&json!(true), vec![3, 4, 5]));
    let history = json!({"channel": channel, "limit": 10, "since": {"offset": 3}});
    assert_eq!(offsets(&anna.command("history", history).await.unwrap()), [4, 5]);
    let elsewhere = json!({"channel": channel, "limit": 1, "since": {"offset": 3, "epoch": "x"}});
    assert_eq!(anna.command("history", elsewhere).await.unwrap_err().code, 112);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_without_a_position_begins_with_the_oldest_event() {
    let server = Server::start().await;
    let (mut anna, _, channel) = anna_in_her_room(&server).await;
    let mut since = None;
    let mut seen = Vec::new();
    loop {
        let request = match since {
            None => json!({"channel": channel, "limit": 2}),
            Some(offset) => json!({"channel": channel, "limit": 2, "since": {"offset": offset}}),
        };
        let page = offsets(&anna.command("history", request).await.unwrap());
        let Some(last) = page.last() else { break };
        since = Some(*last);
        seen.extend(page);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let newest = json!({"channel": channel, "limit": 2, "reverse": true});
    assert_eq!(offsets(&anna.command("history", newest).await.unwrap()), [5, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_a_thousand_commands_is_answered() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let lines: Vec<String> =
        (1_001..=2_000).map(|id| json!({"id": id, "ping": {}}).to_string()).collect();
    anna.raw(lines.join("\n")).await;
    for id in 1_001..=2_000 {
        anna.reply(id, "ping").await.expect("each is answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_before_a_malformed_one_are_carried_out() {
    let server = Server::start().await;
    let (mut anna, room, channel) = anna_in_her_room(&server).await;
    let mut bob = server.join("bob").await;
    anna.invite(&room, &mut bob).await;
    let publish = json!({"id": 900, "publish": {"channel": channel, "data": {"body": "said"}}});
    bob.subscribe(&room).await;
    anna.raw(format!("{publish}\n{{\"id\":\"x\"}}")).await;
    assert_eq!(anna.closed().await, 3501);
    assert_eq!(bob.message(&room).await["body"], "said");
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_is_chosen_by_either_parameter() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    for query in ["format=protobuf", "cf_protocol=protobuf", "format=cf_protobuf"] {
        let address = format!("ws://{}/connection/websocket?{query}", server.address());
        let (mut socket, _) = connect_async(address).await.unwrap();
        let token = account.token.clone();
        let request = Some(Request::Connect(ConnectRequest { token, ..Default::default() }));
        let mut message = Vec::new();
        Format::Protobuf.encode_command(&Command { id: 1, request }, &mut message).unwrap();
        socket.send(Message::binary(message)).await.unwrap();
        let reply = socket.next().await.unwrap().unwrap().into_data();
        let reply = Format::Protobuf.decode_replies(&reply).unwrap().remove(0);
        assert!(matches!(reply.outcome, Some(Outcome::Connect(_))), "{query}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_by_whom_and_which_connection_it_was_published() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.subscribe(&room).await;
    anna.say(&room, "k", "tea").await;
    let push = anna.push(&format!("room:{room}")).await;
    let info = json!({"user": account.id, "client": anna.hello["client"]});
    assert_eq!(push["pub"]["info"], info);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_channel_sees_what_was_published_before_it() {
    let server = Server::start().await;
    let (mut anna, _, channel) = anna_in_her_room(&server).await;
    for turn in 0..20 {
        let publish = json!({"channel": channel, "data": {"body": "tea"}});
        let first = anna.post("publish", publish.clone()).await;
        let second = anna.post("publish", publish).await;
        let asked = anna.post("history", json!({"channel": channel, "limit": 0})).await;
        let position = anna.reply(asked, "history").await.unwrap();
        assert_eq!(position["offset"], 5 + 2 * (turn + 1));
        assert!(anna.answered(first) && anna.answered(second), "answered in their order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_and_joining_in_one_frame_leaves_no_ghost_behind() {
    let server = Server::start().await;
    let (mut anna, room, channel) = anna_in_her_room(&server).await;
    anna.subscribe(&room).await;
    let about = |id: u64, kind: &str| json!({"id": id, kind: {"channel": channel}}).to_string();
    for turn in 0..20 {
        let first = 1_000 + 10 * turn;
        let lines = [
            about(first, "unsubscribe"),
            about(first + 1, "subscribe"),
            about(first + 2, "unsubscribe"),
            about(first + 3, "presence"),
            about(first + 4, "subscribe"),
        ];
        anna.raw(lines.join("\n")).await;
        let presence = anna.reply(first + 3, "presence").await.unwrap();
        assert_eq!(presence["presence"], json!({}), "turn {turn}");
        anna.reply(first + 4, "subscribe").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_frame_is_answered_by_a_close_frame() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let frame = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    anna.socket.close(Some(frame)).await.unwrap();
    loop {
        match anna.socket.next().await.expect("an answer before the end").expect("no break") {
            Message::Close(Some(frame)) => break assert_eq!(frame.code, CloseCode::Normal),
            Message::Close(None) => panic!("a close frame without its code"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_unknown_deltas_are_refused_and_known_deltas_declined() {
    let server = Server::start().await;
    let (mut anna, _, channel) = anna_in_her_room(&server).await;
    let filter = json!({"channel": channel, "tf": {"op": "", "key": "a", "cmp": "eq", "val": "b"}});
    assert_eq!(anna.command("subscribe", filter).await.unwrap_err().code, 107);
    let delta = json!({"channel": channel, "delta": "vcdiff"});
    assert_eq!(anna.command("subscribe", delta).await.unwrap_err().code, 107);
    let known = json!({"channel": channel, "delta": "fossil"});
    assert_eq!(anna.command("subscribe", known).await.unwrap()["delta"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_can_be_renewed_and_foreign_ones_end_the_connection() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let other = server.sign_up("bob").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let renewed = anna.command("refresh", json!({"token": account.token})).await.unwrap();
    assert_eq!(renewed["client"], anna.hello["client"]);
    let channel = format!("room:{room}");
    let renewal = json!({"channel": channel, "token": "x"});
    assert_eq!(anna.command("sub_refresh", renewal.clone()).await.unwrap_err().code, 103);
    anna.subscribe(&room).await;
    assert_eq!(anna.command("sub_refresh", renewal).await.unwrap(), json!({}));
    anna.post("refresh", json!({"token": other.token})).await;
    assert_eq!(anna.closed().await, 3500);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_clients_are_closed_with_3501() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut nameless = server.connect(&account).await;
    nameless.post("subscribe", json!({})).await;
    assert_eq!(nameless.closed().await, 3501, "a command about no channel");
    let mut twice = server.connect(&account).await;
    twice.post("connect", json!({"token": account.token})).await;
    assert_eq!(twice.closed().await, 3501, "a second connect");
    let mut anonymous = Client::open(server.address()).await;
    anonymous.post("connect", json!({})).await;
    assert_eq!(anonymous.closed().await, 3501, "a connect without a token");
}
