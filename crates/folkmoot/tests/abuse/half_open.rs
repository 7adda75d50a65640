//! Sockets that are neither here nor there: silent in the middle of a frame, or subscribed to
//! nothing. The first are closed, the second get nothing, and nobody else notices either.

use std::future::Future;
use std::pin::pin;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::MaybeTlsStream;

use crate::support::{Client, PATIENT, Server};

const CROWD: usize = 100;
/// A masked text frame of 32 KiB, of which nothing but the head and two bytes of the mask come.
const HALF_A_FRAME: [u8; 6] = [0x81, 0xfe, 0x80, 0x00, 0x01, 0x02];

/// Begins a frame and says nothing more.
async fn halt(client: &mut Client) {
    let MaybeTlsStream::Plain(socket) = client.socket.get_mut() else {
        panic!("the server does not encrypt");
    };
    socket.write_all(&HALF_A_FRAME).await.expect("the server reads");
}

/// Waits for something while the client goes on to answer pings.
async fn beside<T>(client: &mut Client, other: impl Future<Output = T>) -> T {
    let mut other = pin!(other);
    loop {
        tokio::select! {
            done = &mut other => return done,
            () = client.receive() => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_that_halt_in_the_middle_of_a_frame_are_closed_and_hurt_nobody() {
    let server = Server::with(
        "[limits]\naccounts_per_minute = 0\n\
         [gateway]\nconnect_timeout_s = 2\nping_s = 2\npong_timeout_s = 2\n",
    )
    .await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let account = server.sign_up("eve").await;
    let (mut strangers, mut members) = (Vec::new(), Vec::new());
    let come = async {
        for _ in 0..CROWD / 2 {
            let mut stranger = Client::open(server.address()).await;
            halt(&mut stranger).await;
            strangers.push(stranger);
            let mut member = server.connect(&account).await;
            halt(&mut member).await;
            members.push(member);
        }
    };
    beside(&mut anna, come).await;
    anna.say(&room, "1", "while they are there").await;
    let go = async {
        for mut stranger in strangers {
            assert_eq!(stranger.closed().await, 3502, "who has not said who they are is stale");
        }
        for mut member in members {
            assert_eq!(member.closed().await, 3012, "half a frame is no answer to a ping");
        }
    };
    beside(&mut anna, go).await;
    anna.say(&room, "2", "when they are gone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_has_unsubscribed_gets_nothing_and_costs_nobody_anything() {
    let limits = "[limits]\nmessages_per_second = 0\naccounts_per_minute = 0\n";
    let server = Server::with(&format!("{limits}{PATIENT}")).await;
    let (mut anna, mut bob) = (server.join("anna").await, server.join("bob").await);
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;
    let channel = format!("room:{room}");
    let account = server.sign_up("eve").await;
    let mut eve = server.connect(&account).await;
    anna.invite(&room, &mut eve).await;
    let mut crowd = Vec::new();
    for n in 0..CROWD - 1 {
        let mut client = server.connect(&account).await;
        client.subscribe(&room).await;
        if n % 2 == 0 {
            client.command("unsubscribe", json!({"channel": channel})).await.expect("it may go");
        }
        crowd.push(client);
    }
    for n in 1..=200_u64 {
        assert_eq!(anna.say(&room, &n.to_string(), "hello").await, n);
        assert_eq!(bob.message(&room).await["seq"], n);
    }
    for (n, client) in crowd.iter_mut().enumerate() {
        if n % 2 == 1 {
            assert_eq!(client.message(&room).await["seq"], 1, "who stayed hears everything");
            continue;
        }
        // The reply comes behind whatever was on its way.
        client.call("room.get", json!({"room": room})).await;
        assert_eq!(client.waiting_pushes(&channel), 0);
    }
    let online = anna.command("presence_stats", json!({"channel": channel})).await.unwrap();
    assert_eq!(online["num_users"], 2, "bob, and those of eve's that stayed: {online}");
}
