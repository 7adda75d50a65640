//! Somebody who talks: a connection to one node, what was heard over it, and where in the room's
//! stream that ends, for going on at another node.

use std::collections::{HashSet, VecDeque};

use folkmoot_protocol::chat::RoomEvent;
use folkmoot_protocol::frame::{
    Error, Outcome, Publication, PushKind, Reply, Request, SubscribeRequest,
};
use folkmoot_protocol::rpc::{DevicesList, MessageSend, Method};
use folkmoot_protocol::{Channel, Format, RoomId};
use tokio::time::timeout;

use crate::cluster::PATIENCE;
use crate::connection::{Connection, Lost};

pub(crate) struct Person {
    pub(crate) token: String,
    connection: Connection,
    /// Publications that came while something else was waited for.
    heard: VecDeque<Publication>,
    epoch: String,
    offset: u64,
    /// The command of [`Self::begin_to_say`].
    begun: u32,
}

impl Person {
    /// Connects to the node at that port, as who has the token.
    pub(crate) async fn connect(port: u16, token: &str) -> Self {
        let connection = Connection::open(port, token, Format::Json).await.expect("it is up");
        let (heard, epoch) = (VecDeque::new(), String::new());
        Self { token: token.to_owned(), connection, heard, epoch, offset: 0, begun: 0 }
    }

    /// Goes on at another node, where this one has come to.
    pub(crate) async fn move_to(self, port: u16, room: RoomId) -> Self {
        let mut moved = Self::connect(port, &self.token).await;
        // What came and was not looked at comes again.
        (moved.epoch, moved.offset) = (self.epoch, self.offset);
        moved.subscribe(room).await;
        moved
    }

    /// Listens to the room, from where this person has come to.
    pub(crate) async fn subscribe(&mut self, room: RoomId) {
        let request = SubscribeRequest {
            channel: Channel::Room(room).to_string(),
            recover: !self.epoch.is_empty(),
            epoch: self.epoch.clone(),
            offset: self.offset,
            ..SubscribeRequest::default()
        };
        let id = self.connection.send(vec![Request::Subscribe(request)]).await.expect("it is up");
        let reply = self.answer(id).await.expect("it is up");
        let Some(Outcome::Subscribe(result)) = reply.outcome else { panic!("{reply:?}") };
        assert!(!result.was_recovering || result.recovered, "{result:?}");
        if !result.was_recovering {
            self.offset = result.offset;
        }
        self.epoch = result.epoch;
        self.heard.extend(result.publications);
    }

    /// Calls a method before anything is listened to: what is pushed meanwhile is not kept.
    pub(crate) async fn prepare<M: Method>(&mut self, request: &M) -> M::Reply {
        self.connection.call(request).await
    }

    /// Calls a method; `Err(Lost)`: the connection ended first.
    pub(crate) async fn ask<M: Method>(
        &mut self,
        request: &M,
    ) -> Result<Result<M::Reply, Error>, Lost> {
        let id = self.connection.send(vec![Connection::rpc(request)]).await?;
        let reply = self.answer(id).await?;
        Ok(match (reply.outcome, reply.error) {
            (Some(Outcome::Rpc(result)), None) => {
                Ok(serde_json::from_slice(&result.data).expect("the answer is as documented"))
            }
            (_, Some(error)) => Err(error),
            (outcome, None) => panic!("{outcome:?}"),
        })
    }

    /// Calls a method that must succeed.
    pub(crate) async fn call<M: Method>(&mut self, request: &M) -> M::Reply {
        let answer = self.ask(request).await.expect("the connection lasts");
        answer.unwrap_or_else(|error| panic!("{}: {error:?}", M::NAME))
    }

    /// Sends a text and does not wait for what comes of it.
    pub(crate) async fn begin_to_say(&mut self, room: RoomId, text: &str) {
        let request = Connection::rpc(&message(room, text));
        self.begun = self.connection.send(vec![request]).await.expect("the socket takes it");
    }

    /// Sends texts one behind the other, and waits until each is acknowledged.
    pub(crate) async fn say_at_once(&mut self, room: RoomId, texts: &[String]) {
        let mut under_way = HashSet::new();
        for text in texts {
            let request = Connection::rpc(&message(room, text));
            let sent = self.connection.send(vec![request]).await;
            under_way.insert(sent.expect("the socket takes it"));
        }
        while !under_way.is_empty() {
            let reply = timeout(PATIENCE, self.connection.next()).await.expect("it answers");
            let reply = reply.expect("the connection lasts");
            self.heard.extend(room_publication(&reply));
            let is_ours = under_way.remove(&reply.id);
            assert!(!is_ours || reply.error.is_none(), "{reply:?}");
        }
    }

    /// Whether that was acknowledged before the connection ended.
    pub(crate) async fn is_acknowledged(&mut self) -> bool {
        self.answer(self.begun).await.is_ok_and(|reply| reply.error.is_none())
    }

    /// Waits until the node ends the connection.
    pub(crate) async fn is_hung_up(&mut self) {
        let ended = async { while self.connection.next().await.is_ok() {} };
        timeout(PATIENCE, ended).await.expect("it is ended in time");
    }

    /// Sends a text, again under the same key until it is acknowledged.
    pub(crate) async fn say(&mut self, room: RoomId, text: &str) {
        let message = message(room, text);
        let acknowledged = async {
            while let Err(error) = self.ask(&message).await.expect("the connection lasts") {
                assert!(error.temporary, "{error:?}");
            }
        };
        timeout(PATIENCE, acknowledged).await.expect("it is acknowledged in time");
    }

    /// The texts of the next messages in the room; each event follows the one before.
    pub(crate) async fn hear(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let next = match self.heard.pop_front() {
                Some(publication) => publication,
                None => timeout(PATIENCE, self.publication()).await.expect("it comes in time"),
            };
            if next.offset == 0 {
                continue;
            }
            assert_eq!(next.offset, self.offset + 1, "after {texts:?}: {next:?}");
            self.offset = next.offset;
            let event: RoomEvent = serde_json::from_slice(&next.data).expect("as documented");
            if let RoomEvent::Message(message) = event {
                texts.push(message.body);
            }
        }
        texts
    }

    /// The texts of messages that have come and were not looked at.
    pub(crate) async fn has_heard(&mut self) -> Vec<String> {
        // Its answer comes behind them.
        self.call(&DevicesList {}).await;
        let events = self.heard.drain(..).map(|publication| {
            serde_json::from_slice::<RoomEvent>(&publication.data).expect("as documented")
        });
        let text = |event| match event {
            RoomEvent::Message(message) => Some(message.body),
            _ => None,
        };
        events.filter_map(text).collect()
    }

    async fn publication(&mut self) -> Publication {
        loop {
            let reply = self.connection.next().await.expect("the connection lasts");
            if let Some(publication) = room_publication(&reply) {
                return publication;
            }
        }
    }

    async fn answer(&mut self, id: u32) -> Result<Reply, Lost> {
        loop {
            let reply = timeout(PATIENCE, self.connection.next()).await.expect("it answers")?;
            if reply.id == id {
                return Ok(reply);
            }
            self.heard.extend(room_publication(&reply));
        }
    }
}

fn message(room: RoomId, text: &str) -> MessageSend {
    let (key, body) = (text.to_owned(), text.to_owned());
    MessageSend { room, key, body, reply_to: None, attachments: Vec::new() }
}

fn room_publication(reply: &Reply) -> Option<Publication> {
    let Some(Outcome::Push(push)) = &reply.outcome else { return None };
    match &push.kind {
        Some(PushKind::Pub(publication)) if push.channel.starts_with("room:") => {
            Some(publication.clone())
        }
        _ => None,
    }
}
