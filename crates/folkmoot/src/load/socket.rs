//! One client connection, as light as it can be: ten thousand of them share a machine with the
//! server that they are to measure.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::SocketAddr;

use folkmoot_protocol::frame::{
    Command, ConnectRequest, Outcome, Publication, PushKind, Reply, Request, RpcRequest,
    SubscribeResult,
};
use folkmoot_protocol::rpc::{Method, encode_payload};
use folkmoot_protocol::{Channel, Format};
use serde::Deserialize;
use tokio::net::{TcpSocket, TcpStream};

use super::frames::Frames;
use super::glance::{Event, Missed, Subscribed};
use super::tally::Stamp;

/// What browsers speak.
const FORMAT: Format = Format::Json;
/// What the server sends to see whether somebody is there, and what answers it.
const PING: &str = "{}";
/// Of so many connections one reads its events as JSON, too, and compares.
const READERS: usize = 64;
/// One address has ports for some 28,000 connections to one server.
const ADDRESSES: usize = 200;

/// Why a connection is of no use, or what it asked for was not done.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nobody listens there, there are no descriptors, or it broke.
    #[error("no connection: {0}")]
    Broken(#[from] std::io::Error),
    /// With a code and a reason.
    #[error("the server closed the connection: {0}")]
    Closed(String),
    /// The server does not speak the protocol.
    #[error("not understood: {0}")]
    NotUnderstood(String),
    /// The connection goes on.
    #[error("{what} was refused with {code}: {message}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The code of the error.
        code: u32,
        /// Its text.
        message: String,
    },
}

/// What comes by a connection.
#[derive(Debug)]
pub(super) enum Heard {
    /// Of a room.
    Event(Event),
    Subscribed(Subscribed),
    /// Everything else.
    Reply(Box<Reply>),
}

#[derive(Debug)]
pub(super) struct Socket {
    frames: Frames,
    last_id: u32,
    /// What has come and nobody has taken yet.
    heard: VecDeque<Heard>,
    /// Pings that were not answered yet.
    pings: u32,
    /// Whether it reads events as JSON, too.
    compares: bool,
}

impl Socket {
    /// Connects and says who one is. `number` chooses the address to come from.
    pub(super) async fn open(
        server: SocketAddr,
        number: usize,
        token: &str,
    ) -> Result<Self, SocketError> {
        let stream = dial(server, number).await?;
        stream.set_nodelay(true)?;
        let frames = Frames::open(stream, &server.to_string()).await?;
        let (heard, compares) = (VecDeque::new(), number.is_multiple_of(READERS));
        let mut socket = Self { frames, last_id: 0, heard, pings: 0, compares };
        let token = token.to_owned();
        let connect = Request::Connect(ConnectRequest { token, ..ConnectRequest::default() });
        socket.ask("connect", connect).await?;
        Ok(socket)
    }

    /// Calls a method and waits for what it answers.
    pub(super) async fn call<M: Method>(&mut self, request: &M) -> Result<M::Reply, SocketError> {
        match self.ask(M::NAME, rpc(request)).await? {
            Outcome::Rpc(result) => serde_json::from_slice(&result.data)
                .map_err(|error| SocketError::NotUnderstood(error.to_string())),
            other => Err(SocketError::NotUnderstood(format!("{other:?}"))),
        }
    }

    async fn ask(&mut self, what: &'static str, request: Request) -> Result<Outcome, SocketError> {
        let id = self.send(vec![request]).await?;
        loop {
            if let Heard::Reply(reply) = self.next().await?
                && reply.id == id
            {
                return outcome(what, *reply);
            }
        }
    }

    /// Sends requests in one frame; gives the number of the first, the others follow it.
    pub(super) async fn send(&mut self, requests: Vec<Request>) -> Result<u32, SocketError> {
        let first = self.last_id + 1;
        let mut frame = Vec::new();
        for request in requests {
            self.last_id += 1;
            let command = Command { id: self.last_id, request: Some(request) };
            FORMAT.encode_command(&command, &mut frame).expect("our payloads are JSON");
        }
        self.write(frame).await?;
        Ok(first)
    }

    /// What comes next; answers pings by itself.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub(super) async fn next(&mut self) -> Result<Heard, SocketError> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            while self.pings > 0 {
                // Cut off in the middle it would be half a frame, but the kernel has room for it.
                self.pings -= 1;
                self.write(PING.into()).await?;
            }
            let Self { frames, heard, pings, compares, .. } = self;
            frames.read(|text| hear(text, heard, pings, *compares)).await?;
        }
    }

    /// What has come already.
    pub(super) fn heard(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    async fn write(&mut self, frame: Vec<u8>) -> Result<(), SocketError> {
        self.frames.send(&frame).await
    }
}

/// Takes the lines of a frame apart.
fn hear(
    text: &str,
    heard: &mut VecDeque<Heard>,
    pings: &mut u32,
    compares: bool,
) -> Result<(), SocketError> {
    for line in text.split('\n') {
        if line == PING {
            *pings += 1;
        } else if let Some(event) = Event::at_a_glance(line) {
            if compares && read(line)?.as_ref().and_then(event_of) != Some(event) {
                return Err(SocketError::NotUnderstood(format!("at a glance: {line}")));
            }
            heard.push_back(Heard::Event(event));
        } else if let Some(subscribed) = Subscribed::at_a_glance(line) {
            if compares && read(line)?.and_then(subscribed_of).as_ref() != Some(&subscribed) {
                return Err(SocketError::NotUnderstood(format!("at a glance: {line}")));
            }
            heard.push_back(Heard::Subscribed(subscribed));
        } else if let Some(reply) = read(line)? {
            heard.push_back(match event_of(&reply) {
                Some(event) => Heard::Event(event),
                None => Heard::Reply(Box::new(reply)),
            });
        }
    }
    Ok(())
}

fn read(line: &str) -> Result<Option<Reply>, SocketError> {
    let replies = FORMAT.decode_replies(line.as_bytes());
    let replies = replies.map_err(|error| SocketError::NotUnderstood(error.to_string()))?;
    Ok(replies.into_iter().next())
}

/// The event that a push carries, if it has a place in the stream of a room.
fn event_of(reply: &Reply) -> Option<Event> {
    let Some(Outcome::Push(push)) = &reply.outcome else { return None };
    let Some(PushKind::Pub(publication)) = &push.kind else { return None };
    let Ok(Channel::Room(room)) = push.channel.parse() else { return None };
    let (offset, stamp) = (publication.offset, said(publication));
    (offset > 0).then_some(Event { room, offset, stamp })
}

fn subscribed_of(reply: Reply) -> Option<Subscribed> {
    let Some(Outcome::Subscribe(result)) = reply.outcome else { return None };
    let missed = result.publications.iter();
    let missed = missed.map(|one| Missed { offset: one.offset, stamp: said(one) }).collect();
    let SubscribeResult { epoch, offset, recovered, .. } = result;
    Some(Subscribed { id: reply.id, epoch, offset, recovered, missed })
}

/// What a publication says of itself, if it is a message of a run.
fn said(publication: &Publication) -> Option<Stamp> {
    #[derive(Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        body: Option<Cow<'a, str>>,
    }
    let said: Said<'_> = serde_json::from_slice(&publication.data).ok()?;
    Stamp::of(&said.body?)
}

pub(super) fn rpc<M: Method>(request: &M) -> Request {
    Request::Rpc(RpcRequest { method: M::NAME.to_owned(), data: encode_payload(request) })
}

/// What came of a request, unless it was refused.
pub(super) fn outcome(what: &'static str, reply: Reply) -> Result<Outcome, SocketError> {
    if let Some(error) = reply.error {
        return Err(SocketError::Refused { what, code: error.code, message: error.message });
    }
    reply.outcome.ok_or_else(|| SocketError::NotUnderstood(format!("{what}: no outcome")))
}

/// To a server on this machine one comes from many of its addresses.
async fn dial(server: SocketAddr, number: usize) -> Result<TcpStream, SocketError> {
    if !matches!(server, SocketAddr::V4(server) if server.ip().is_loopback()) {
        return Ok(TcpStream::connect(server).await?);
    }
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(2 + number % ADDRESSES).expect("fewer than 250");
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    Ok(socket.connect(server).await?)
}
