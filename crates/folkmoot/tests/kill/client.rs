//! One client: writes messages one after the other, repeats each until it is acknowledged, and
//! follows its rooms by offset. It reconnects whenever the connection is lost and asks for what it
//! missed. It judges nothing but its own streams; the rest goes into its diary.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use folkmoot_protocol::chat::RoomEvent;
use folkmoot_protocol::frame::Request;
use folkmoot_protocol::frame::{
    Error, Outcome, Publication, Push, PushKind, Reply, SubscribeRequest, SubscribeResult,
};
use folkmoot_protocol::rpc::{MessageSend, MessageSent};
use folkmoot_protocol::{Channel, ErrorCode, Format, RoomId, Seq};
use tokio::time::MissedTickBehavior;

use crate::connection::{Connection, Lost};
use crate::random::Random;
use crate::{Phase, Stage};

/// A person who types very fast; 50 of them are some 1,000 messages a second.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(40);

/// What a client has seen.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) acks: Vec<Ack>,
    pub(crate) streams: BTreeMap<RoomId, Vec<Seen>>,
    /// Broken promises: a gap, a repetition, a position that could not be recovered.
    pub(crate) violations: Vec<String>,
    /// Retries that the server had already carried out before it died.
    pub(crate) duplicates: usize,
    pub(crate) connections: usize,
}

/// The server's word that a message is kept.
#[derive(Debug)]
pub(crate) struct Ack {
    pub(crate) room: RoomId,
    pub(crate) key: String,
    pub(crate) seq: Seq,
}

/// A message that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) seq: Seq,
    pub(crate) body: String,
}

/// Where a client stands in a room's stream.
#[derive(Debug)]
struct Cursor {
    epoch: String,
    offset: u64,
}

pub(crate) struct Client {
    index: usize,
    token: String,
    port: u16,
    format: Format,
    rooms: Vec<RoomId>,
    random: Random,
    written: usize,
    /// The message that is not acknowledged yet.
    pending: Option<MessageSend>,
    pending_id: Option<u32>,
    cursors: BTreeMap<RoomId, Cursor>,
    drained: bool,
    diary: Diary,
}

impl Client {
    pub(crate) fn new(
        index: usize,
        token: String,
        port: u16,
        rooms: Vec<RoomId>,
        random: Random,
    ) -> Self {
        let format = if index.is_multiple_of(2) { Format::Json } else { Format::Protobuf };
        Self {
            index,
            token,
            port,
            format,
            rooms,
            random,
            written: 0,
            pending: None,
            pending_id: None,
            cursors: BTreeMap::new(),
            drained: false,
            diary: Diary::default(),
        }
    }

    /// Runs until told to finish; returns what it saw.
    pub(crate) async fn run(mut self, mut stage: Stage) -> Diary {
        loop {
            stage.up.wait_for(|up| *up).await.expect("the test outlives its clients");
            if self.session(&mut stage).await.is_ok() {
                return self.diary;
            }
            // The connection can be lost a moment before the test says that the server is down.
            tokio::task::yield_now().await;
        }
    }

    /// One connection, until it is lost or the client has finished.
    async fn session(&mut self, stage: &mut Stage) -> Result<(), Lost> {
        let mut connection = Connection::dial(self.port, self.format).await?;
        self.diary.connections += 1;
        let mut requests = vec![Connection::connect(&self.token)];
        requests.extend(self.rooms.iter().map(|&room| self.subscribe(room)));
        connection.send(requests).await?;
        // Answers come in any order: each room is asked by itself.
        let mut unanswered: BTreeSet<u32> = (1..=self.rooms.len() as u32 + 1).collect();
        while !unanswered.is_empty() {
            let reply = connection.next().await?;
            unanswered.remove(&reply.id);
            self.handle(reply, stage);
        }

        let mut pace = tokio::time::interval(BETWEEN_MESSAGES);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.pending_id = None;
        loop {
            if let (Some(send), None) = (&self.pending, self.pending_id) {
                self.pending_id = Some(connection.send(vec![Connection::rpc(send)]).await?);
            }
            let phase = stage.phase.borrow_and_update().clone();
            if self.finished(&phase, stage) {
                return Ok(());
            }
            tokio::select! {
                reply = connection.next() => self.handle(reply?, stage),
                _ = pace.tick(), if self.pending.is_none() && matches!(phase, Phase::Load) => self.write(),
                changed = stage.phase.changed() => changed.expect("the test outlives its clients"),
            }
        }
    }

    fn subscribe(&self, room: RoomId) -> Request {
        let channel = Channel::Room(room).to_string();
        let mut request = SubscribeRequest { channel, ..SubscribeRequest::default() };
        if let Some(cursor) = self.cursors.get(&room) {
            request.recover = true;
            request.epoch.clone_from(&cursor.epoch);
            request.offset = cursor.offset;
        }
        Request::Subscribe(request)
    }

    /// Whether there is nothing left to do; says so once when the last message is acknowledged.
    fn finished(&mut self, phase: &Phase, stage: &Stage) -> bool {
        if matches!(phase, Phase::Load) || self.pending.is_some() {
            return false;
        }
        if !self.drained {
            self.drained = true;
            stage.drained.send_modify(|drained| *drained += 1);
        }
        let Phase::Finish(ends) = phase else { return false };
        self.cursors.iter().all(|(room, cursor)| cursor.offset >= ends[room].as_u64())
    }

    fn write(&mut self) {
        let room = self.rooms[self.random.between(0..self.rooms.len() as u64) as usize];
        self.written += 1;
        // The body repeats the key, which others are not shown.
        let key = format!("{}-{}", self.index, self.written);
        self.pending = Some(MessageSend {
            room,
            body: key.clone(),
            key,
            reply_to: None,
            attachments: Vec::new(),
        });
        self.pending_id = None;
    }

    fn handle(&mut self, reply: Reply, stage: &Stage) {
        if let Some(error) = reply.error {
            self.refused(reply.id, &error);
            return;
        }
        match reply.outcome {
            Some(Outcome::Push(Push { channel, kind: Some(PushKind::Pub(publication)) })) => {
                if let Ok(Channel::Room(room)) = channel.parse() {
                    self.read(room, &publication);
                }
            }
            // The first request was the session's; those of the rooms followed.
            Some(Outcome::Subscribe(result)) => {
                self.subscribed(self.rooms[reply.id as usize - 2], &result)
            }
            Some(Outcome::Rpc(result)) if Some(reply.id) == self.pending_id => {
                let sent =
                    serde_json::from_slice(&result.data).expect("the answer is as documented");
                self.acknowledged(&sent, stage);
            }
            _ => {}
        }
    }

    fn refused(&mut self, id: u32, error: &Error) {
        let temporary = ErrorCode::from_code(error.code).is_some_and(ErrorCode::is_temporary);
        if Some(id) == self.pending_id && temporary {
            self.pending_id = None;
            return;
        }
        self.violation(&format!("command {id} was refused: {error:?}"));
    }

    fn acknowledged(&mut self, sent: &MessageSent, stage: &Stage) {
        let send = self.pending.take().expect("an acknowledgement answers the message under way");
        self.pending_id = None;
        self.diary.duplicates += usize::from(sent.duplicate);
        self.diary.acks.push(Ack { room: send.room, key: send.key, seq: sent.seq });
        stage.acks.send_modify(|acks| *acks += 1);
    }

    fn subscribed(&mut self, room: RoomId, result: &SubscribeResult) {
        if self.cursors.contains_key(&room) && !result.recovered {
            self.violation(&format!(
                "{room}: not recovered, though less than 1,000 events were missed"
            ));
        }
        self.cursors
            .entry(room)
            .or_insert_with(|| Cursor { epoch: result.epoch.clone(), offset: result.offset });
        for publication in &result.publications {
            self.read(room, publication);
        }
        let cursor = &self.cursors[&room];
        if (cursor.offset, &cursor.epoch) != (result.offset, &result.epoch) {
            self.violation(&format!(
                "{room}: recovered up to {cursor:?}, not to {}",
                result.offset
            ));
        }
    }

    fn read(&mut self, room: RoomId, publication: &Publication) {
        let cursor = self.cursors.get_mut(&room).expect("events follow the subscription");
        if publication.offset != cursor.offset + 1 {
            let gap = format!("{room}: offset {} came after {}", publication.offset, cursor.offset);
            self.violation(&gap);
            return;
        }
        cursor.offset = publication.offset;
        let event = serde_json::from_slice(&publication.data).expect("the event is as documented");
        if let RoomEvent::Message(message) = event {
            let seen = Seen { seq: message.seq, body: message.body };
            self.diary.streams.entry(room).or_default().push(seen);
        }
    }

    fn violation(&mut self, what: &str) {
        println!("client {}: {what}", self.index);
        self.diary.violations.push(format!("client {}: {what}", self.index));
    }
}
