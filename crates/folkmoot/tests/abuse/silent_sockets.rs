//! Crowds of sockets that say nothing, or half of something.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Client, Server};

/// Sockets of each kind: enough to be in the way of a limit of as many.
const CROWD: usize = 100;
/// A request without the rest of its body.
const HALF_A_BODY: &[u8] =
    b"POST /api/v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{";
/// A request without the end of its headers.
const HALF_A_HEAD: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const PATIENCE: Duration = Duration::from_secs(30);

async fn crowd(server: SocketAddr, words: &[u8]) -> Vec<TcpStream> {
    let mut sockets = Vec::new();
    for _ in 0..CROWD {
        let mut socket = TcpStream::connect(server).await.expect("the system accepts it");
        // One that was asked to leave at once cannot be written to.
        let _ = socket.write_all(words).await;
        sockets.push(socket);
    }
    sockets
}

/// Waits until the server has closed all of them.
async fn all_closed(sockets: Vec<TcpStream>) {
    for mut socket in sockets {
        let ended = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "a silent socket is still open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_that_never_say_who_they_are_are_closed() {
    let server = Server::with("[gateway]\nheader_timeout_s = 1\nconnect_timeout_s = 1\n").await;
    let mut anna = server.join("anna").await;
    let silent = crowd(server.address(), b"").await;
    let halting = crowd(server.address(), HALF_A_HEAD).await;
    let quiet = crowd(server.address(), b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let half = crowd(server.address(), HALF_A_BODY).await;
    let mut nameless = Vec::new();
    for _ in 0..CROWD {
        nameless.push(Client::open(server.address()).await);
    }
    anna.call("rooms.list", json!({})).await;
    for sockets in [silent, halting, quiet, half] {
        all_closed(sockets).await;
    }
    for mut client in nameless {
        assert_eq!(client.closed().await, 3502);
    }
    anna.call("rooms.list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let server = Server::with("[gateway]\nconnections_max = 50\n").await;
    let mut anna = server.join("anna").await;
    let _silent = crowd(server.address(), b"").await;
    let _halting = crowd(server.address(), b"GET /healthz HTTP/1.1\r\n").await;
    let _half = crowd(server.address(), HALF_A_BODY).await;
    anna.call("rooms.list", json!({})).await;
    // Newcomers take the places of those who say nothing.
    let mut bob = server.join("bob").await;
    bob.call("rooms.list", json!({})).await;
    assert_eq!(server.http("GET /healthz", None, "").await.status, 200);
    anna.call("rooms.list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_asks_for_pages_keeps_nobody_out() {
    let server = Server::with("[gateway]\nconnections_max = 50\n").await;
    let mut anna = server.join("anna").await;
    let _asking = crowd(server.address(), b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // Newcomers take the places of those who have not said who they are.
    let mut bob = server.join("bob").await;
    bob.call("rooms.list", json!({})).await;
    anna.call("rooms.list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_who_has_signed_in_is_waited_for_while_its_line_stands_still() {
    let server = Server::with("[gateway]\nheader_timeout_s = 1\n").await;
    let account = server.sign_up("anna").await;
    let room = server.connect(&account).await.create_room("Tea").await;
    let half = format!(
        "POST /api/v1/rooms/{room}/attachments?name=a.txt HTTP/1.1\r\nHost: a\r\n\
         Connection: close\r\nAuthorization: Bearer {}\r\nContent-Length: 10\r\n\r\nhalf",
        account.token
    );
    let mut socket = TcpStream::connect(server.address()).await.expect("the system accepts it");
    socket.write_all(half.as_bytes()).await.expect("it is open");
    // For twice as long as strangers are waited for.
    for _ in 0..2 {
        all_closed(crowd(server.address(), HALF_A_HEAD).await).await;
    }
    socket.write_all(b" of it").await.expect("it is still open");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}
