//! Somebody comes in while a node does not answer, and nobody knows yet whether it is lost.

use std::time::{Duration, Instant};

use folkmoot_protocol::Format;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::account::Account;
use crate::cluster::{Cluster, PATIENCE};
use crate::connection::Connection;
use crate::person::Person;

/// Longer than somebody waits to be let in: a node that is stopped for less is missed by nobody.
const LEASE_MS: u64 = 180_000;
/// What a client does not wait for that has gone.
const OPENING: Duration = Duration::from_secs(30);

/// Says who it is.
async fn knock(port: u16, token: &str) -> WebSocketStream<TcpStream> {
    let url = format!("ws://127.0.0.1:{port}/connection/websocket");
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it is up");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("it is up");
    let (id, request) = (1, Some(Connection::connect(token)));
    let command = folkmoot_protocol::frame::Command { id, request };
    let mut frame = Vec::new();
    Format::Json.encode_command(&command, &mut frame).expect("it has no payload");
    let text = String::from_utf8(frame).expect("JSON is UTF-8");
    socket.send(Message::text(text)).await.expect("it reads");
    socket
}

async fn has_sessions(cluster: &Cluster, count: u64) {
    let has = async {
        while cluster.nodes[0].live("folkmoot.session").await != count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, has).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_while_a_node_hangs_is_told_to_try_again_and_who_has_gone_leaves_nothing() {
    let cluster = Cluster::start_patient("opening", LEASE_MS).await;
    let account = Account::sign_up(cluster.port(0), "anna").await;
    cluster.signal(1, "STOP").await;

    let gone = knock(cluster.port(0), &account.token).await;
    has_sessions(&cluster, 1).await;
    let hangs_up = Instant::now();
    drop(gone);
    has_sessions(&cluster, 0).await;
    assert!(hangs_up.elapsed() < OPENING / 3, "it was waited for: {:?}", hangs_up.elapsed());

    let comes = Instant::now();
    let mut waits = knock(cluster.port(0), &account.token).await;
    let told = timeout(2 * PATIENCE, waits.next()).await.expect("it does not wait for ever");
    let Some(Ok(Message::Close(Some(why)))) = told else { panic!("{told:?}") };
    assert_eq!(u16::from(why.code), 3004, "{why:?}");
    assert!(comes.elapsed() < OPENING + Duration::from_secs(5), "{:?}", comes.elapsed());
    has_sessions(&cluster, 0).await;

    cluster.signal(1, "CONT").await;
    Person::connect(cluster.port(0), &account.token).await;
    cluster.end().await;
}
