//! How a connection begins and ends when its server takes its time or stops: over TCP, with an
//! application that answers when it is let.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::frame::{ConnectResult, Outcome, Reply, Request, RpcResult};
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Incoming, serve};
use crate::accept::{Doorman, Room};
use crate::connection::{Application, Note, Opening};
use crate::upgrade::Settings;

const SETTINGS: Settings = Settings {
    ping: Duration::from_secs(25),
    pong_timeout: Duration::from_secs(8),
    connect_timeout: Duration::from_secs(10),
    outgoing_queue_bytes_max: 1 << 20,
};
/// More than a client takes whose buffer is this small, and less than a server's socket keeps.
const ANSWER_BYTES: usize = 200_000;
const CLIENT_BUFFER_BYTES: u32 = 4 * 1024;
const SERVER_BUFFER_BYTES: u32 = 1 << 20;

/// Answers commands once the gate is open.
#[derive(Clone)]
struct Desk {
    stopping: watch::Sender<bool>,
    gate: watch::Sender<bool>,
    /// Lets connections in.
    door: watch::Sender<bool>,
    /// A connection was not let in, because its client had gone.
    given_up: Arc<Notify>,
    begun: mpsc::UnboundedSender<u32>,
    ended: Arc<Notify>,
}

impl Application for Desk {
    type Caller = Self;
    type Guard = ();

    fn opened(&self) {}

    async fn connect(&self, opening: Opening) -> Result<(Arc<Self>, Reply), DisconnectCode> {
        let mut door = self.door.subscribe();
        tokio::select! {
            is_open = door.wait_for(|is_open| *is_open) => drop(is_open.unwrap()),
            () = opening.outbox.closed() => {
                self.given_up.notify_one();
                return Err(DisconnectCode::ConnectionClosed);
            }
        }
        let reply = Reply::ok(opening.id, Outcome::Connect(ConnectResult::default()));
        Ok((Arc::new(self.clone()), reply))
    }

    async fn go_live(_: &Self) {}

    async fn answer(desk: &Self, id: u32, _: Request) -> Option<Reply> {
        desk.begun.send(id).unwrap();
        desk.gate.subscribe().wait_for(|is_open| *is_open).await.unwrap();
        let data = Bytes::from(format!("\"{}\"", "7".repeat(ANSWER_BYTES)));
        Some(Reply::ok(id, Outcome::Rpc(RpcResult { data })))
    }

    async fn end(desk: &Self) {
        desk.ended.notify_one();
    }

    fn note(&self, _: Note) {}

    fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// A connected client, and what its server is at.
struct Line {
    desk: Desk,
    begun: mpsc::UnboundedReceiver<u32>,
    client: WebSocketStream<TcpStream>,
    /// Commands that were answered and are not asked about yet.
    answers: VecDeque<u32>,
}

impl Line {
    async fn open() -> Self {
        let mut line = Self::at_the_door(true).await;
        line.say(CONNECT).await;
        assert_eq!(line.answered().await, Some(1));
        line
    }

    async fn at_the_door(is_open: bool) -> Self {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let listener = TcpSocket::new_v4().unwrap();
        listener.set_send_buffer_size(SERVER_BUFFER_BYTES).unwrap();
        listener.bind((loopback, 0).into()).unwrap();
        let listener = listener.listen(1).unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(CLIENT_BUFFER_BYTES).unwrap();
        let client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let (read, write) = server.into_split();
        let (begins, begun) = mpsc::unbounded_channel();
        let desk = Desk {
            stopping: watch::Sender::new(false),
            gate: watch::Sender::new(false),
            door: watch::Sender::new(is_open),
            given_up: Arc::default(),
            begun: begins,
            ended: Arc::default(),
        };
        let room = Room { connections_max: 1, per_address_max: 1, unlimited: Vec::new() };
        let visit = Arc::new(Doorman::new(room).enter(loopback).unwrap());
        let incoming = Incoming { read, begun: Vec::new(), format: Format::Json };
        tokio::spawn(serve(incoming, write, desk.clone(), visit, &SETTINGS));
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        Self { desk, begun, client, answers: VecDeque::new() }
    }

    async fn say(&mut self, command: &str) {
        self.client.send(Message::text(command)).await.unwrap();
    }

    /// Asks, and waits until the server is at it.
    async fn ask(&mut self, ids: &[u32]) {
        let commands: Vec<_> = ids.iter().map(|id| rpc(*id)).collect();
        self.say(&commands.join("\n")).await;
        for id in ids {
            assert_eq!(self.begun.recv().await, Some(*id));
        }
    }

    /// The number of the next command that is answered; `None`: the server has said goodbye.
    async fn answered(&mut self) -> Option<u32> {
        while self.answers.is_empty() {
            match self.client.next().await.unwrap().unwrap() {
                Message::Text(text) => {
                    let replies = Format::Json.decode_replies(text.as_bytes()).unwrap();
                    self.answers.extend(replies.iter().map(|reply| reply.id));
                }
                Message::Close(Some(frame)) => {
                    assert_eq!(u16::from(frame.code), 3001);
                    return None;
                }
                other => panic!("{other:?}"),
            }
        }
        self.answers.pop_front()
    }
}

const CONNECT: &str = r#"{"id":1,"connect":{}}"#;

fn rpc(id: u32) -> String {
    format!(r#"{{"id":{id},"rpc":{{"method":"m","data":{{}}}}}}"#)
}

#[tokio::test]
async fn what_was_read_when_the_server_stops_is_answered_before_the_goodbye() {
    let mut line = Line::open().await;
    line.ask(&[2, 3]).await;
    line.desk.stopping.send_replace(true);
    // That the server stops is told more than once, and this comes too late.
    line.desk.stopping.send_replace(true);
    tokio::task::yield_now().await;
    line.say(&rpc(4)).await;
    line.desk.gate.send_replace(true);
    // Calls of methods are answered as they are done.
    let mut answers = [line.answered().await, line.answered().await];
    answers.sort();
    assert_eq!(answers, [Some(2), Some(3)]);
    assert_eq!(line.answered().await, None);
    assert!(line.begun.try_recv().is_err(), "it has begun what came after the goodbye");
}

#[tokio::test]
async fn what_is_not_answered_holds_the_goodbye_up_for_two_seconds_only() {
    let mut line = Line::open().await;
    line.ask(&[2]).await;
    tokio::time::pause();
    let stopped = tokio::time::Instant::now();
    line.desk.stopping.send_replace(true);
    assert_eq!(line.answered().await, None);
    let took = stopped.elapsed();
    assert!((2..4).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn an_answer_that_is_on_its_way_arrives_though_the_client_has_said_more_meanwhile() {
    let mut line = Line::open().await;
    line.ask(&[2]).await;
    line.desk.stopping.send_replace(true);
    tokio::task::yield_now().await;
    line.say(&rpc(3)).await;
    line.desk.gate.send_replace(true);
    // From here on the server has nothing more to write.
    line.desk.ended.notified().await;
    assert_eq!(line.answered().await, Some(2));
    assert_eq!(line.answered().await, None);
}

#[tokio::test]
async fn a_client_that_hangs_up_before_it_is_let_in_is_given_up_at_once() {
    for says_goodbye in [true, false] {
        let mut line = Line::at_the_door(false).await;
        line.say(CONNECT).await;
        let desk = line.desk.clone();
        if says_goodbye {
            line.client.close(None).await.unwrap();
        }
        drop(line);
        desk.given_up.notified().await;
    }
}

#[tokio::test]
async fn what_a_client_says_before_it_is_let_in_is_answered_behind_that() {
    for connect in [CONNECT.to_owned(), [CONNECT, &rpc(2)].join("\n")] {
        let mut line = Line::at_the_door(false).await;
        line.desk.gate.send_replace(true);
        line.say(&connect).await;
        for id in 3..=5 {
            line.say(&rpc(id)).await;
        }
        line.desk.door.send_replace(true);
        let first = if connect == CONNECT { 3 } else { 2 };
        for id in std::iter::once(1).chain(first..=5) {
            assert_eq!(line.answered().await, Some(id));
        }
    }
}
