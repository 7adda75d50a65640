//! A broker that takes connections and no subscriptions, played here byte by byte: the map says so
//! and comes back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{ALL, Events, settings};
use realtime_map::{Broker, Map, MqttUrl, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CONNACK: &[u8] = &[0x20, 3, 0, 0, 0];
const TAKEN: u8 = 0;
const NOT_AUTHORIZED: u8 = 0x87;

/// Answers each subscription, twice when it takes it; `takes` says whether it does.
async fn broker(listener: TcpListener, takes: Arc<AtomicBool>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let takes = takes.clone();
        // Ends when the client goes.
        tokio::spawn(async move { serve(socket, &takes).await.ok() });
    }
}

async fn serve(mut socket: TcpStream, takes: &AtomicBool) -> std::io::Result<()> {
    packet(&mut socket).await?;
    socket.write_all(CONNACK).await?;
    loop {
        let subscribe = packet(&mut socket).await?;
        let (code, times) =
            if takes.load(Ordering::Acquire) { (TAKEN, 2) } else { (NOT_AUTHORIZED, 1) };
        let answer = [0x90, 4, subscribe[0], subscribe[1], 0, code];
        socket.write_all(&answer.repeat(times)).await?;
    }
}

/// The body of the next packet; none here is longer than a length of one byte tells.
async fn packet(socket: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 2];
    socket.read_exact(&mut head).await?;
    assert!(head[1] < 0x80, "a short packet");
    let mut body = vec![0; usize::from(head[1])];
    socket.read_exact(&mut body).await?;
    Ok(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_the_broker_refuses_is_told_and_asked_for_again() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = MqttUrl { host: "127.0.0.1".to_owned(), port, credentials: None };
    let takes = Arc::new(AtomicBool::new(false));
    let broker = tokio::spawn(broker(listener, takes.clone()));
    let chosen = Settings { broker: Broker::External(url), ..settings(0) };
    let map = Map::start(chosen).await.unwrap();

    let mut events = Events::open(map.http(), ALL).await;
    events
        .until("the refusal to be told", |name, data| {
            let trouble = data["feed"]["trouble"].as_str();
            name == "overview"
                && data["feed"]["connected"] == false
                && trouble.is_some_and(|why| why.contains("NotAuthorized"))
        })
        .await;
    takes.store(true, Ordering::Release);
    events
        .until("the feed to stand, also though the broker says so twice", |name, data| {
            name == "overview" && data["feed"]["connected"] == true
        })
        .await;
    map.shutdown().await;
    broker.abort();
}
