//! One simulated client: comes in, subscribes to rooms of its user, follows each by its offsets,
//! and says something if it is one of those that send.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use folkmoot_protocol::RoomId;
use folkmoot_protocol::frame::{Reply, Request, SubscribeRequest};
use folkmoot_protocol::rpc::{MessageSend, RoomsList};
use tokio::sync::{oneshot, watch};
use tokio::time::Interval;

use super::LoadError;
use super::glance::{Event, Subscribed};
use super::plan::LoadPlan;
use super::socket::{Heard, Socket, SocketError, outcome, rpc};
use super::tally::{Stamp, Tally};

/// After that, a client that does not get back in is lost.
const RETURN_MAX: Duration = Duration::from_secs(60);
/// Before a connection that broke is tried again; the first pause of the official SDKs is about that.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Those of a node that stops do not come to the next one in the same moment: each waits for a part
/// of this, another one each time.
const RETURN_WITHIN: Duration = Duration::from_millis(200);
/// A node that takes a connection and says nothing is left for the next one.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// What all clients do at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Some have not come in yet.
    Waiting,
    Sending,
    Listening,
}

/// Where a client stands in a room's stream.
#[derive(Debug)]
struct Cursor {
    room: RoomId,
    channel: String,
    offset: u64,
    epoch: String,
}

/// A client without a connection.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) number: usize,
    cursors: Vec<Cursor>,
}

#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<LoadPlan>,
    tally: Arc<Tally>,
    number: usize,
    socket: Socket,
    cursors: Vec<Cursor>,
    /// Messages on their way, by the numbers of their commands.
    unanswered: HashMap<u32, Sent>,
    /// What did not get on its way any more.
    unsent: Vec<Sent>,
    said: usize,
    /// How often it has connected.
    turns: usize,
    pace: Option<Interval>,
}

/// A message and where it is said.
#[derive(Debug, Clone, Copy)]
struct Sent {
    stamp: Stamp,
    room: RoomId,
}

impl Cursor {
    fn move_to(&mut self, result: Subscribed) {
        (self.offset, self.epoch) = (result.offset, result.epoch);
    }
}

impl Absent {
    /// One that never came in.
    pub(super) fn stranger(number: usize) -> Self {
        Self { number, cursors: Vec::new() }
    }

    pub(super) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.cursors.iter().map(|cursor| cursor.room)
    }
}

impl Client {
    /// Comes in and subscribes to rooms of its user.
    pub(super) async fn enter(
        plan: Arc<LoadPlan>,
        tally: Arc<Tally>,
        number: usize,
    ) -> Result<Self, LoadError> {
        let socket = Socket::open(plan.server(number, 0), number, plan.token(number)).await;
        let socket = socket.map_err(|error| LoadError::Entrance { number, error })?;
        let mut client = Self::on(plan, tally, socket, Absent::stranger(number));
        client.choose().await?;
        let subscribed = client.subscribe(false).await;
        subscribed.map_err(|error| LoadError::Entrance { number, error })?;
        Ok(client)
    }

    /// Comes back and recovers what it has missed. A connection that breaks before it is in is tried
    /// again, as every client does.
    pub(super) async fn come_back(
        plan: Arc<LoadPlan>,
        tally: Arc<Tally>,
        absent: Absent,
        began: Instant,
    ) -> Result<Self, SocketError> {
        let number = absent.number;
        let socket = loop {
            match Socket::open(plan.server(number, 0), number, plan.token(number)).await {
                Ok(socket) => break socket,
                Err(error) if began.elapsed() > RETURN_MAX => return Err(error),
                Err(_) => {
                    tally.retried.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        };
        let mut client = Self::on(plan, tally, socket, absent);
        client.subscribe(true).await?;
        client.tally.to_return.note(began.elapsed());
        Ok(client)
    }

    fn on(plan: Arc<LoadPlan>, tally: Arc<Tally>, socket: Socket, absent: Absent) -> Self {
        let Absent { number, cursors } = absent;
        let unanswered = HashMap::new();
        let (unsent, pace) = (Vec::new(), None);
        let (said, turns) = (0, 1);
        Self { plan, tally, number, socket, cursors, unanswered, unsent, said, turns, pace }
    }

    /// Goes on at the next node: recovers what was said meanwhile, and says again what was not
    /// acknowledged, under the same keys.
    async fn resume(&mut self) -> Result<(), SocketError> {
        let left = Instant::now();
        loop {
            tokio::time::sleep(self.part_of(RETURN_WITHIN)).await;
            match self.return_to_next().await {
                Ok(()) => break,
                Err(error) if left.elapsed() > RETURN_MAX => return Err(error),
                Err(_) => _ = self.tally.retried.fetch_add(1, Ordering::Relaxed),
            }
        }
        self.tally.to_resume.note(left.elapsed());
        self.tally.resumed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn return_to_next(&mut self) -> Result<(), SocketError> {
        let server = self.plan.server(self.number, self.turns);
        self.turns += 1;
        let open = Socket::open(server, self.number, self.plan.token(self.number));
        let silent = |_| SocketError::Closed("it says nothing".to_owned());
        self.socket = tokio::time::timeout(OPEN_MAX, open).await.map_err(silent)??;
        // Numbers of commands begin anew with each connection.
        self.unsent.extend(self.unanswered.drain().map(|(_, sent)| sent));
        self.subscribe(true).await?;
        let mut again = std::mem::take(&mut self.unsent);
        again.sort_by_key(|sent| std::cmp::Reverse(sent.stamp.number));
        while let Some(sent) = again.pop() {
            if let Err(error) = self.put(sent).await {
                // `put` has kept the one that failed.
                self.unsent.append(&mut again);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A part of a time that differs between clients and from one turn to the next.
    fn part_of(&self, time: Duration) -> Duration {
        // Weyl's sequence of the golden ratio: evenly spread, whatever the numbers are.
        let spread = (self.number + 1).wrapping_mul(self.turns).wrapping_mul(0x9E37_79B9);
        time.mul_f64(f64::from(spread as u32) / f64::from(u32::MAX))
    }

    pub(super) fn rooms(&self) -> impl Iterator<Item = RoomId> {
        self.cursors.iter().map(|cursor| cursor.room)
    }

    /// Takes the first of the user's rooms that are as wanted.
    async fn choose(&mut self) -> Result<(), LoadError> {
        let number = self.number;
        let (wanted, room_of) = (self.plan.flags.rooms, self.plan.flags.room_of);
        let mut after = None;
        while self.cursors.len() < wanted {
            let page = RoomsList { after, ..RoomsList::default() };
            let page = self.socket.call(&page).await;
            let page = page.map_err(|error| LoadError::Entrance { number, error })?;
            let fitting = page
                .rooms
                .into_iter()
                .filter(|room| room_of.is_none_or(|members| room.members == members));
            self.cursors.extend(fitting.take(wanted - self.cursors.len()).map(|room| Cursor {
                room: room.id,
                channel: format!("room:{}", room.id),
                offset: 0,
                epoch: String::new(),
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        match self.cursors.len() == wanted {
            true => Ok(()),
            false => Err(LoadError::TooFewRooms { number, found: self.cursors.len(), wanted }),
        }
    }

    /// Subscribes to all rooms in one frame, and waits for all answers.
    async fn subscribe(&mut self, recover: bool) -> Result<(), SocketError> {
        let requests = self.cursors.iter().map(|cursor| {
            Request::Subscribe(SubscribeRequest {
                channel: cursor.channel.clone(),
                recover,
                epoch: cursor.epoch.clone(),
                offset: cursor.offset,
                ..SubscribeRequest::default()
            })
        });
        let first = self.socket.send(requests.collect()).await?;
        let mut left = self.cursors.len();
        while left > 0 {
            match self.socket.next().await? {
                Heard::Subscribed(result) => {
                    let cursor = result.id.checked_sub(first).map(|index| index as usize);
                    let cursor = cursor.filter(|index| *index < self.cursors.len());
                    let cursor = cursor.ok_or_else(|| {
                        SocketError::NotUnderstood(format!("an answer to {}", result.id))
                    })?;
                    match recover {
                        true => self.recover(cursor, result),
                        false => self.cursors[cursor].move_to(result),
                    }
                    left -= 1;
                }
                Heard::Reply(reply) if reply.id >= first => {
                    outcome("subscribe", *reply)?;
                }
                heard => self.take(heard),
            }
        }
        Ok(())
    }

    fn recover(&mut self, cursor: usize, result: Subscribed) {
        if !result.recovered {
            self.tally.unrecovered.fetch_add(1, Ordering::Relaxed);
        }
        self.tally.recovered.fetch_add(result.missed.len() as u64, Ordering::Relaxed);
        for missed in &result.missed {
            self.hear_at(cursor, missed.offset, missed.stamp);
        }
        // What the position says beyond the events that came is missing.
        if result.recovered && result.offset > self.cursors[cursor].offset {
            let skipped = result.offset - self.cursors[cursor].offset;
            self.tally.skipped.fetch_add(skipped, Ordering::Relaxed);
        }
        self.cursors[cursor].move_to(result);
    }

    /// Listens, and sends if it is one of those, until it is to leave or the connection ends.
    pub(super) async fn run(
        mut self,
        mut stage: watch::Receiver<Stage>,
        mut leaving: oneshot::Receiver<()>,
    ) -> Absent {
        let sends = self.plan.sends(self.number);
        loop {
            let may_send = sends && *stage.borrow_and_update() == Stage::Sending;
            let has_turn = may_send && (self.is_paced() || self.unanswered.is_empty());
            let went_on = tokio::select! {
                biased;
                // Nobody sends anything: it is dropped.
                _ = &mut leaving => break,
                heard = self.socket.next() => heard.map(|heard| self.take_all(heard)),
                _ = stage.changed(), if sends => Ok(()),
                () = turn(&mut self.pace, &self.tally), if has_turn => self.say().await,
            };
            let went_on = match went_on {
                Err(_) if self.plan.flags.resume => tokio::select! {
                    biased;
                    _ = &mut leaving => break,
                    resumed = self.resume() => resumed,
                },
                went_on => went_on,
            };
            if let Err(error) = went_on {
                self.tally.lose(&error);
                break;
            }
        }
        Absent { number: self.number, cursors: self.cursors }
    }

    /// Whether messages go out at their times; sets the first of them.
    fn is_paced(&mut self) -> bool {
        let Some(pause) = self.plan.pause() else { return false };
        if self.pace.is_none() {
            // Not all in the same moment.
            let part = self.number as f64 / self.plan.flags.sockets as f64;
            let first = tokio::time::Instant::now() + pause.mul_f64(part);
            let pause = pause.max(Duration::from_nanos(1));
            self.pace = Some(tokio::time::interval_at(first, pause));
        }
        true
    }

    async fn say(&mut self) -> Result<(), SocketError> {
        let room = self.cursors[self.said % self.cursors.len()].room;
        self.said += 1;
        let Some(stamp) = self.tally.send(room) else {
            // The run has had enough of them.
            tokio::task::yield_now().await;
            return Ok(());
        };
        self.put(Sent { stamp, room }).await
    }

    async fn put(&mut self, sent: Sent) -> Result<(), SocketError> {
        let Sent { stamp, room } = sent;
        let request = message(room, &format!("load{}", stamp.number), stamp, &self.plan);
        let id = self.socket.send(vec![rpc(&request)]).await;
        match id {
            Ok(id) => _ = self.unanswered.insert(id, sent),
            Err(_) => self.unsent.push(sent),
        }
        id.map(drop)
    }

    /// Says so many messages in a room of its own, one after the other.
    pub(super) async fn fill(
        plan: Arc<LoadPlan>,
        number: usize,
        room: RoomId,
        messages: u32,
    ) -> Result<(), SocketError> {
        let mut socket = Socket::open(plan.server(number, 0), number, plan.token(number)).await?;
        for n in 0..messages {
            let stamp = Stamp { number: u64::MAX, at: Duration::ZERO };
            socket.call(&message(room, &format!("missed{n}"), stamp, &plan)).await?;
        }
        Ok(())
    }

    /// Takes what came and what came with it.
    fn take_all(&mut self, first: Heard) {
        let mut next = Some(first);
        while let Some(heard) = next {
            self.take(heard);
            next = self.socket.heard();
        }
    }

    fn take(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => self.hear(event),
            Heard::Reply(reply) => self.answered(*reply),
            // Waited for by who subscribes.
            Heard::Subscribed(_) => {}
        }
    }

    fn answered(&mut self, reply: Reply) {
        let Some(Sent { stamp, .. }) = self.unanswered.remove(&reply.id) else { return };
        match outcome("message.send", reply) {
            Ok(_) => self.tally.acknowledge(stamp),
            Err(error) => self.tally.refuse(stamp, &error),
        }
    }

    fn hear(&mut self, event: Event) {
        let cursor = self.cursors.iter().position(|cursor| cursor.room == event.room);
        if let Some(cursor) = cursor {
            self.hear_at(cursor, event.offset, event.stamp);
        }
    }

    fn hear_at(&mut self, cursor: usize, offset: u64, stamp: Option<Stamp>) {
        if self.advance(cursor, offset)
            && let Some(stamp) = stamp
        {
            self.tally.deliver(stamp);
        }
    }

    /// Moves on in a room's stream; false for an event that was there before.
    fn advance(&mut self, cursor: usize, offset: u64) -> bool {
        let last = &mut self.cursors[cursor].offset;
        let Some(skipped) = offset.checked_sub(*last + 1) else {
            self.tally.doubled.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        *last = offset;
        if skipped > 0 {
            self.tally.skipped.fetch_add(skipped, Ordering::Relaxed);
        }
        true
    }
}

fn message(room: RoomId, key: &str, stamp: Stamp, plan: &LoadPlan) -> MessageSend {
    // A key of the run before would find its message.
    let key = format!("{key}.{}", plan.run);
    let body = stamp.text(plan.flags.bytes);
    MessageSend { room, key, body, reply_to: None, attachments: Vec::new() }
}

/// When the next message is due, at once without a pace, and may be on its way with the others.
async fn turn(pace: &mut Option<Interval>, tally: &Tally) {
    // Taken first and given back when this is dropped, so that no tick is lost by waiting.
    let permit = tally.permit().await;
    if let Some(pace) = pace {
        pace.tick().await;
    }
    permit.forget();
}
