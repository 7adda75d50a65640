//! The read half of one connection: frames in, commands to the session, replies to the outbox.
//!
//! Commands run concurrently, so that one slow answer does not hold up the next question; they
//! start in the order in which they came, and those about one channel are answered in it. Too many
//! at once, or answers that wait for room, stop the reading, never the memory.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::frame::{Command, ConnectRequest, Outcome, Reply, Request};
use folkmoot_protocol::{Commands, DecodeError, DisconnectCode, EncodeError, Format};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::accept::Visit;
use crate::direction::Direction;
use crate::liveness::{Due, Liveness};
use crate::order::Order;
use crate::outbox::Outbox;
use crate::upgrade::Settings;

/// Commands of one connection under way at once. Each may have an answer of half a mebibyte in
/// memory; one disk sync acknowledges all of them.
const IN_FLIGHT_MAX: usize = 64;
/// How long a server that stops waits for the answers to commands that it has read. Most need
/// milliseconds; the others may wait for a node that is lost, and their client is better off at
/// another one.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(2);

/// What a gateway serves: admits connections, and answers what they ask.
pub trait Application: Clone + Send + Sync + 'static {
    /// An open connection whose client has said who it is.
    type Caller: Send + Sync + 'static;
    /// Kept for as long as a socket is open.
    type Guard: Send + 'static;

    /// A socket was opened.
    fn opened(&self) -> Self::Guard;

    /// Admits a connection and makes the reply to its connect command, or says why to close it. It is
    /// asked to the end: if the client hangs up meanwhile the outbox is closed, and who waits for
    /// something may give up.
    fn connect(
        &self,
        opening: Opening,
    ) -> impl Future<Output = Result<(Arc<Self::Caller>, Reply), DisconnectCode>> + Send;

    /// The reply to the connect command is queued: what comes unasked may follow it.
    fn go_live(caller: &Self::Caller) -> impl Future<Output = ()> + Send;

    /// Answers a command. `None`: its reply is queued already.
    fn answer(
        caller: &Self::Caller,
        id: u32,
        request: Request,
    ) -> impl Future<Output = Option<Reply>> + Send;

    /// Whether publications into a channel are in their order once each was begun. If not, because
    /// somebody is asked about them first, each waits until the one before it is answered.
    fn begins_in_order(_caller: &Self::Caller, _channel: &str) -> bool {
        true
    }

    /// The connection has ended.
    fn end(caller: &Self::Caller) -> impl Future<Output = ()> + Send;

    /// Something happened that is counted.
    fn note(&self, note: Note);

    /// Turns true when the server begins to stop.
    fn stopping(&self) -> watch::Receiver<bool>;
}

/// A connect command with the connection it came from.
#[derive(Debug)]
pub struct Opening {
    /// The command's number.
    pub id: u32,
    /// Where what the connection is told waits.
    pub outbox: Arc<Outbox>,
    /// How the connection writes its frames.
    pub format: Format,
    /// What it said.
    pub request: ConnectRequest,
    /// By what its further commands find it, where each comes by a request of its own. The client
    /// is told it, and nobody else should know it.
    pub session: Option<String>,
}

/// By what a client's commands find its connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) node: String,
}

/// What a gateway counts.
#[derive(Debug, Clone, Copy)]
pub enum Note {
    /// A command came.
    Command,
    /// A socket was closed, with this code.
    Closed(u16),
}

/// The read half of one connection, whatever its frames come by.
pub(crate) struct Reader<A: Application> {
    application: A,
    outbox: Arc<Outbox>,
    format: Format,
    /// Its place in the server.
    visit: Arc<Visit>,
    liveness: Liveness,
    opened: Instant,
    /// Who is speaking, once known.
    caller: Option<Arc<A::Caller>>,
    in_flight: FuturesUnordered<BoxFuture<'static, ()>>,
    /// What is left of the last message.
    frame: Option<Commands>,
    order: Order,
    /// Why to close once the commands under way are answered.
    ending: Option<DisconnectCode>,
    /// Until when they may be, since the server stops.
    goodbye_at: Option<Instant>,
    /// How often the write half had taken something at the last look.
    takes: u64,
    /// By what the client's further commands are known, where each comes by a request of its own.
    session: Option<Box<Session>>,
    direction: Direction,
}

impl<A: Application> Reader<A> {
    pub(crate) fn new(
        application: A,
        outbox: Arc<Outbox>,
        format: Format,
        visit: Arc<Visit>,
        settings: &Settings,
    ) -> Self {
        Self {
            liveness: Liveness::new(settings),
            opened: Instant::now(),
            in_flight: FuturesUnordered::new(),
            frame: None,
            order: Order::default(),
            ending: None,
            goodbye_at: None,
            takes: 0,
            caller: None,
            session: None,
            direction: Direction::Both,
            outbox,
            application,
            format,
            visit,
        }
    }

    /// Tells the client by what its further commands are known.
    pub(crate) fn known_as(self, session: Option<Session>) -> Self {
        Self { session: session.map(Box::new), ..self }
    }

    /// With a client that only listens, or one that asks.
    pub(crate) fn towards(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }

    /// With a client that cannot answer a ping.
    pub(crate) fn unanswered(self) -> Self {
        Self { liveness: self.liveness.unanswered(), ..self }
    }

    /// Reads until the frames end or the connection is closed. An error among the frames is why
    /// they end. When the server stops, what was read by then is answered before the connection is
    /// closed, if that takes no longer than [`ANSWERS_TIMEOUT`].
    ///
    /// Borrowed, because a future has what it is given twice: an idle connection's is most of what it
    /// costs.
    pub(crate) async fn run(
        &mut self,
        frames: &mut (impl Stream<Item = Result<Bytes, DisconnectCode>> + Unpin),
    ) {
        let mut stopping = self.application.stopping();
        if *stopping.borrow() {
            self.outbox.close(DisconnectCode::Shutdown);
        }
        while !self.outbox.is_closing() {
            if let Err(code) = self.start_commands(frames).await {
                // What came before it still counts.
                (self.frame, self.ending) = (None, Some(code));
            }
            if let Some(code) = self.ending.filter(|_| self.is_answered()) {
                self.outbox.close(code);
                continue;
            }
            let deadline = self.deadline();
            tokio::select! {
                frame = frames.next(), if self.may_read() => self.ending = self.receive(frame).err(),
                Some(()) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                    if self.in_flight.is_empty() {
                        self.order.forget();
                    }
                }
                () = sleep_until(deadline) => self.tick(),
                () = self.outbox.closed() => {}
                () = self.visit.asked_to_leave() => {
                    self.outbox.close(DisconnectCode::TooManyRequests);
                }
                _ = stopping.changed(), if self.goodbye_at.is_none() => self.begin_goodbye(),
            }
        }
        if let Some(caller) = &self.caller {
            Box::pin(A::end(caller)).await;
        }
    }

    /// Nothing more is read; who has hung up already is told nothing.
    fn begin_goodbye(&mut self) {
        self.goodbye_at = Some(Instant::now() + ANSWERS_TIMEOUT);
        self.ending.get_or_insert(DisconnectCode::Shutdown);
    }

    /// Whether there is no command that was read and is not answered.
    fn is_answered(&self) -> bool {
        self.in_flight.is_empty() && self.frame.is_none()
    }

    /// When something is to be done though nothing happens. Who is not read any more cannot show
    /// that it is alive.
    fn deadline(&self) -> Instant {
        self.goodbye_at.unwrap_or_else(|| self.opened + self.liveness.deadline())
    }

    fn may_read(&self) -> bool {
        self.frame.is_none() && self.ending.is_none() && self.has_room()
    }

    /// Whether one more command may be started.
    fn has_room(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX && !self.outbox.is_congested()
    }

    fn receive(
        &mut self,
        frame: Option<Result<Bytes, DisconnectCode>>,
    ) -> Result<(), DisconnectCode> {
        let frame = frame.unwrap_or(Err(DisconnectCode::ConnectionClosed))?;
        self.liveness.heard(self.elapsed());
        self.frame = Some(self.format.commands(frame).map_err(|error| unreadable(&error))?);
        Ok(())
    }

    /// Starts what there is room for of the last message.
    async fn start_commands(
        &mut self,
        frames: &mut (impl Stream<Item = Result<Bytes, DisconnectCode>> + Unpin),
    ) -> Result<(), DisconnectCode> {
        while let Some((id, request)) = self.start_until_connect()? {
            // Boxed, because it happens once, and its room would be kept as long as the connection.
            Box::pin(self.connect(id, request, frames)).await?;
        }
        Ok(())
    }

    /// The same up to a connect command: nothing else here has to wait. Started by a plain function,
    /// for the room that commands would take otherwise.
    fn start_until_connect(&mut self) -> Result<Option<(u32, ConnectRequest)>, DisconnectCode> {
        while self.has_room() {
            let Some(commands) = &mut self.frame else { return Ok(None) };
            let Some(command) = commands.next() else {
                self.frame = None;
                return Ok(None);
            };
            let command = command.map_err(|error| unreadable(&error))?;
            self.application.note(Note::Command);
            if let Some(connect) = self.start(command)? {
                return Ok(Some(connect));
            }
        }
        Ok(None)
    }

    /// Starts a command, or gives it back if it is the first, by which a client says who it is.
    fn start(&mut self, command: Command) -> Result<Option<(u32, ConnectRequest)>, DisconnectCode> {
        let Command { id, request } = command;
        match (request, &self.caller) {
            (None, Some(_)) if id == 0 => Ok(None),
            (Some(Request::Connect(request)), None) if id != 0 => Ok(Some((id, request))),
            // Data for the application, of which none asks for it.
            (Some(Request::Send(_)), Some(_)) => Ok(None),
            // A second connect, or a command about a channel without its name, is a broken client.
            (Some(Request::Connect(_)), Some(_)) => Err(DisconnectCode::BadRequest),
            (Some(request), Some(_)) if request.channel() == Some("") => {
                Err(DisconnectCode::BadRequest)
            }
            (Some(request), Some(caller)) if id != 0 => {
                let caller = caller.clone();
                let begins_in_order = |channel: &str| A::begins_in_order(&caller, channel);
                let turn = self.order.turn(&request, begins_in_order);
                let (outbox, format) = (self.outbox.clone(), self.format);
                self.in_flight.push(Box::pin(async move {
                    // By reference: a future that is handed on by value takes its room twice.
                    let answer = pin!(A::answer(&caller, id, request));
                    let queue = async |reply: Option<Reply>| {
                        if let Some(reply) = reply {
                            say(&outbox, format, &reply).await;
                        }
                    };
                    turn.take(answer, queue).await;
                }));
                Ok(None)
            }
            _ => Err(DisconnectCode::BadRequest),
        }
    }

    async fn connect(
        &mut self,
        id: u32,
        request: ConnectRequest,
        frames: &mut (impl Stream<Item = Result<Bytes, DisconnectCode>> + Unpin),
    ) -> Result<(), DisconnectCode> {
        let (outbox, format) = (self.outbox.clone(), self.format);
        let session = self.session.as_ref().map(|session| session.id.clone());
        let opening = Opening { id, outbox, format, request, session };
        let application = self.application.clone();
        let mut connecting = pin!(application.connect(opening));
        let (caller, mut reply) = loop {
            tokio::select! {
                biased;
                connected = &mut connecting => break connected?,
                frame = frames.next(), if self.may_read_ahead() => self.read_ahead(frame),
            }
        };
        if let (Some(session), Some(Outcome::Connect(result))) =
            (self.session.take(), &mut reply.outcome)
        {
            (result.session, result.node) = (session.id, session.node);
        }
        self.visit.has_spoken();
        self.liveness.connected(self.elapsed(), random_part());
        say(&self.outbox, self.format, &self.direction.opened(reply)).await;
        A::go_live(&caller).await;
        self.caller = Some(caller);
        Ok(())
    }

    /// Whether the next message can be read before the client is let in: by that it is noticed that
    /// the client has gone. One is kept, if it said no more with its connect command.
    fn may_read_ahead(&mut self) -> bool {
        if self.frame.as_ref().is_some_and(Commands::is_over) {
            self.frame = None;
        }
        self.may_read() && !self.outbox.is_closing()
    }

    fn read_ahead(&mut self, frame: Option<Result<Bytes, DisconnectCode>>) {
        match self.receive(frame) {
            Ok(()) => {}
            Err(DisconnectCode::ConnectionClosed) => {
                self.outbox.close(DisconnectCode::ConnectionClosed);
            }
            // It is told why behind the answer.
            Err(code) => self.ending = Some(code),
        }
    }

    fn tick(&mut self) {
        if self.goodbye_at.is_some() {
            self.outbox.close(DisconnectCode::Shutdown);
            return;
        }
        // A client that still takes its answers is alive, though its pong waits behind what is
        // not read meanwhile.
        let takes = self.outbox.takes();
        if self.outbox.is_congested() && takes != self.takes {
            self.liveness.heard(self.elapsed());
        }
        self.takes = takes;
        match self.liveness.due(self.elapsed()) {
            Due::Nothing => {}
            Due::Ping => self.outbox.push(encode(self.format, &Reply::ping())),
            Due::Close(code) => self.outbox.close(code),
        }
    }

    fn elapsed(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// Queues a reply. One with bytes that the client's format cannot carry ends the connection: what
/// was published to others is in replies too.
async fn say(outbox: &Outbox, format: Format, reply: &Reply) {
    match try_encode(format, reply) {
        Ok(reply) => outbox.reply(reply).await,
        Err(error) => {
            tracing::warn!(%error, "a reply has bytes that its client cannot read");
            outbox.close(DisconnectCode::InappropriateProtocol);
        }
    }
}

/// Encodes a reply for the outbox.
///
/// # Errors
/// A payload of the reply is not JSON, in a connection of JSON.
pub fn try_encode(format: Format, reply: &Reply) -> Result<Bytes, EncodeError> {
    let mut message = Vec::new();
    format.encode_reply(reply, &mut message)?;
    Ok(message.into())
}

/// Encodes a reply whose payloads the server wrote.
///
/// # Panics
/// A payload of the reply is not JSON, in a connection of JSON.
pub fn encode(format: Format, reply: &Reply) -> Bytes {
    try_encode(format, reply).expect("payloads of replies are JSON that we wrote")
}

/// A number from 0 up to 1 that differs between connections, to spread what would otherwise happen
/// at once.
fn random_part() -> f64 {
    let drawn = RandomState::new().build_hasher().finish() >> 32;
    drawn as f64 / (1_u64 << 32) as f64
}

fn unreadable(error: &DecodeError) -> DisconnectCode {
    tracing::debug!(%error, "a client sent a frame that cannot be read");
    error.disconnect_code()
}
