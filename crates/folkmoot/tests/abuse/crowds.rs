//! Crowds: 20,000 sockets that never say who they are, people whose line is dead, people who read
//! nothing. Everybody else goes on.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::process::listening_with;
use crate::support::{Account, Client, Scratch, Server, request};

const SILENT: usize = 20_000;
/// Descriptors for everything else that is open in this process.
const SPARE: u64 = 512;
const PATIENCE: Duration = Duration::from_secs(120);

/// Gives this process, and the server that it starts, descriptors for the crowd; says how many
/// sockets that is enough for.
fn descriptors() -> usize {
    let wanted = SILENT as u64 + SPARE;
    let now = getrlimit(Resource::Nofile);
    let maximum = now.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(wanted), maximum: Some(maximum.max(wanted)) };
    if setrlimit(Resource::Nofile, raised).is_err() {
        // Only a privileged user raises the hard limit: as many as it allows, then.
        let most = Rlimit { current: now.maximum, maximum: now.maximum };
        setrlimit(Resource::Nofile, most).expect("the hard limit may be used");
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(wanted);
    usize::try_from(current.min(wanted) - SPARE).expect("a small number")
}

/// Connects from one of the machine's own addresses: one has ports for no more than 28,000.
async fn connect(server: SocketAddr, number: usize) -> std::io::Result<TcpStream> {
    let last = u8::try_from(2 + number % 50).expect("a small number");
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    socket.connect(server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_silent_sockets_are_closed_and_hurt_nobody() {
    let count = descriptors();
    assert!(count >= 1_000, "this system gives a process descriptors for {count} sockets only");
    let scratch = Scratch::new();
    let settings = scratch.file(
        "folkmoot.toml",
        "[gateway]\nheader_timeout_s = 5\nping_s = 300\npong_timeout_s = 300\n",
    );
    let (mut child, server) = listening_with(&scratch.path().join("data"), &settings);
    let body = json!({"name": "anna", "password": "correct horse"}).to_string();
    let anna = Account::of(&request(server, "POST /api/v1/accounts", None, &body).await);
    let mut client = Client::open(server).await;
    client.connect(&anna.token).await.expect("the token is valid");
    let room = client.create_room("Tea").await;
    let mut crowd = Vec::with_capacity(count);
    for number in 0..count {
        // One that is asked to leave at once may be reset while it comes.
        if let Ok(socket) = connect(server, number).await {
            crowd.push(socket);
        }
        if number % 2_000 == 0 {
            client.say(&room, &number.to_string(), "still here").await;
            let newcomer = request(server, "GET /healthz", None, "").await;
            assert_eq!(newcomer.status, 200, "after {number} sockets");
        }
    }
    assert!(crowd.len() > count / 2, "only {} of {count} came in", crowd.len());
    for mut socket in crowd {
        let ended = tokio::time::timeout(PATIENCE, socket.read(&mut [0; 64])).await;
        assert!(ended.is_ok(), "a silent socket is still open");
    }
    client.say(&room, "last", "still here").await;
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_whose_line_is_dead_are_missed_after_a_ping() {
    let server = Server::with("[gateway]\nping_s = 4\npong_timeout_s = 4\n").await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let channel = format!("room:{room}");
    let watch = json!({"channel": channel, "join_leave": true});
    anna.command("subscribe", watch).await.expect("a member may");
    // Nothing of theirs is read or answered any more, as when a phone has left the house: no FIN,
    // no pong.
    let mut dead = Vec::new();
    for n in 0..20 {
        let mut client = server.join(&format!("phone{n}")).await;
        anna.invite(&room, &mut client).await;
        client.subscribe(&room).await;
        dead.push(client);
    }
    let mut left = 0;
    while left < dead.len() {
        let push = anna.push(&channel).await;
        left += usize::from(!push["leave"].is_null());
    }
    let online = anna.command("presence_stats", json!({"channel": channel})).await.unwrap();
    assert_eq!(online["num_clients"], 1, "{online}");
    for mut client in dead {
        assert_eq!(client.closed().await, 3012);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_slow_readers_holds_nobody_up() {
    let server = Server::with(
        "[limits]\nmessages_per_second = 0\naccounts_per_minute = 0\n\
         [gateway]\nping_s = 300\npong_timeout_s = 300\noutgoing_queue_bytes_max = 65536\n",
    )
    .await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;
    let mut slow = Vec::new();
    for n in 0..10 {
        let mut client = server.join(&format!("slow{n}")).await;
        anna.invite(&room, &mut client).await;
        client.subscribe(&room).await;
        slow.push(client);
    }
    // Far more than a queue and the socket's own buffers hold.
    let body = "x".repeat(8_000);
    for n in 1..=2_000_u64 {
        assert_eq!(anna.say(&room, &n.to_string(), &body).await, n);
        assert_eq!(bob.message(&room).await["seq"], n);
    }
    for mut client in slow {
        // The reason waits for five seconds behind what fills the socket; then the connection
        // breaks.
        let code = client.closed().await;
        assert!([3008, 1006].contains(&code), "{code}");
    }
}
