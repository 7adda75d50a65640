//! One connection of a client to one node: questions go out in their order, each answer finds who
//! asked.
//!
//! What is under way when the connection ends is told so: nobody knows whether it was done.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use althing::remote::Reply;
use althing::{ActorId, AskError, Wire};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::protocol::{Answer, Answered, Asked, No, Question, Sight};
use super::under_way::UnderWay;
use super::{ClientConfig, ClientError};
use crate::capability::Capability;
use crate::link::dial::{PING_EVERY, SILENCE_MAX};
use crate::protocol::{
    self, Broken, CLIENT, GREETING_LEN_MAX, Greeting, Packed, WIRE_FLOOR, Welcome, append_framed,
    read, write,
};
use crate::tls::Guard;
use crate::transport::{self, GREETING_TIMEOUT, Whom};

/// An answer begins with its number, which has a byte before it and ten at most.
const HEAD_LEN: usize = 11;

/// Questions that are written at once.
const WRITTEN_MAX: usize = 256;

/// A connection to one node.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) node: u64,
    pub(super) capabilities: Vec<Capability>,
    frame_len_max: usize,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    state: Mutex<State>,
    outgoing: UnboundedSender<Vec<u8>>,
    ended: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<u64, Waiting>,
    under_way: UnderWay,
    has_ended: bool,
}

/// As much of an answer as is read of one that is too long.
#[derive(Wire)]
struct Head {
    number: u64,
}

/// Who waits for an answer.
enum Waiting {
    Once(oneshot::Sender<Answer>),
    Views(watch::Sender<Option<Arc<Sight>>>),
    Message { to: ActorId, reply: Option<Reply> },
}

/// A message that was not sent.
pub(super) enum Unsent {
    /// The connection had ended.
    Ended(Box<(Packed, Option<Reply>)>),
    TooLong(Option<Reply>, AskError),
}

impl Connection {
    /// Connects to whoever is at that address; with a name, it has to be that node.
    pub(super) async fn dial(
        guard: &Arc<Guard>,
        config: &ClientConfig,
        whom: &Whom<'_>,
    ) -> Result<Self, ClientError> {
        let (address, node) = (whom.address, whom.node);
        let broken = |why: Broken| {
            transport::tell_untrusted(guard, address, &why);
            match why {
                Broken::Untrusted(why) => ClientError::Untrusted(format!("{address}: {why}")),
                why => ClientError::Unreachable(format!("{address}: {why}")),
            }
        };
        let greet = async {
            let mut stream = transport::dial(guard, whom, GREETING_TIMEOUT).await?;
            let cluster = config.cluster.clone();
            write(&mut stream, &Greeting { version: WIRE_FLOOR, cluster, from: CLIENT, to: 0 })
                .await?;
            let welcome = read::<Welcome>(&mut stream, GREETING_LEN_MAX);
            let welcome =
                timeout(GREETING_TIMEOUT, welcome).await.map_err(|_| Broken::Silent)??;
            Ok((stream, welcome))
        };
        let (stream, welcome) = greet.await.map_err(broken)?;
        let (name, incarnation, capabilities, len_max) = match welcome {
            Welcome::Client { node, name, capabilities, frame_len_max } => {
                (name, node, capabilities, frame_len_max)
            }
            Welcome::Refused { why } => return Err(broken(protocol::No::of_words(why))),
            Welcome::Since { .. } => return Err(broken(protocol::No::NotMeant.heard())),
        };
        if node.is_some_and(|node| node != name) {
            return Err(ClientError::Unreachable(format!("{address} is the node `{name}`")));
        }
        let frame_len_max =
            usize::try_from(len_max).unwrap_or(usize::MAX).min(config.frame_len_max);
        let (outgoing, questions) = unbounded_channel();
        let ended = watch::Sender::new(None);
        let shared = Arc::new(Shared { state: Mutex::default(), outgoing, ended });
        let (driven, len_max) = (shared.clone(), config.frame_len_max);
        let task = tokio::spawn(async move {
            let _ends = Ends(driven.clone());
            let (from, to) = tokio::io::split(stream);
            let why = tokio::select! {
                ended = tell(to, questions) => ended,
                ended = hear(&driven, from, len_max) => ended,
            };
            let why = why.err().map_or_else(|| "it ended".to_owned(), |why| why.to_string());
            driven.ended.send_replace(Some(why));
        });
        let task = task.abort_handle();
        Ok(Self { name, node: incarnation, capabilities, frame_len_max, shared, task })
    }

    /// Whether the node lets the client do that.
    pub(super) fn may(&self, capability: Capability) -> bool {
        self.capabilities.iter().any(|may| may.includes(capability))
    }

    /// Bytes of the longest frame that is sent.
    pub(super) fn frame_len_max(&self) -> usize {
        self.frame_len_max
    }

    /// Asks something that is answered once.
    pub(super) async fn ask(&self, question: Question) -> Result<Answer, ClientError> {
        let (sender, answer) = oneshot::channel();
        self.put(question, Waiting::Once(sender));
        match answer.await {
            Ok(Answer::Refused(no)) => Err(refused(&self.name, no)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.lost()),
        }
    }

    /// Asks for the view now and at each change.
    pub(super) fn views(&self) -> watch::Receiver<Option<Arc<Sight>>> {
        let (sender, views) = watch::channel(None);
        self.put(Question::Changes, Waiting::Views(sender));
        views
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection has ended, or the message is too long.
    pub(super) fn send(&self, packed: Packed, reply: Option<Reply>) -> Result<(), Unsent> {
        let mut state = self.shared.state.lock();
        if state.has_ended {
            return Err(Unsent::Ended(Box::new((packed, reply))));
        }
        let to = packed.to.clone();
        let number = state.last + 1;
        let mut bytes = Vec::new();
        append_framed(&Asked { number, question: Question::Message(Box::new(packed)) }, &mut bytes);
        if bytes.len() > self.frame_len_max {
            let why = format!("a message of {} bytes is longer than a frame may be", bytes.len());
            return Err(Unsent::TooLong(reply, AskError::NotUnderstood(to, why)));
        }
        state.last = number;
        state.under_way.add(&to);
        state.waiting.insert(number, Waiting::Message { to, reply });
        // Under the lock: the order of numbers is that of the wire.
        _ = self.shared.outgoing.send(bytes);
        Ok(())
    }

    /// Whether senders should wait; if so, they are woken when there is room, or it ends.
    pub(super) fn is_crowded(&self, to: &ActorId, waker: &Waker) -> bool {
        let mut state = self.shared.state.lock();
        // Nobody is woken any more after its end.
        let is_crowded = !state.under_way.has_room(to) && !state.has_ended;
        if is_crowded {
            state.under_way.wait(to, waker);
        }
        is_crowded
    }

    /// Has senders that wait for room look again.
    pub(super) fn wake_senders(&self) {
        let waiting = self.shared.state.lock().under_way.take_waiters();
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.shared.state.lock().has_ended
    }

    /// Resolves when it has ended.
    pub(super) async fn ended(&self) {
        let mut ended = self.shared.ended.subscribe();
        _ = ended.wait_for(Option::is_some).await;
    }

    fn lost(&self) -> ClientError {
        let why = self.shared.ended.borrow().clone();
        let why = why.unwrap_or_else(|| "it ended".to_owned());
        ClientError::Lost(format!("{}: {why}", self.name))
    }

    fn put(&self, question: Question, waiting: Waiting) {
        let mut state = self.shared.state.lock();
        if state.has_ended {
            return;
        }
        state.last += 1;
        let number = state.last;
        state.waiting.insert(number, waiting);
        let mut bytes = Vec::new();
        append_framed(&Asked { number, question }, &mut bytes);
        _ = self.shared.outgoing.send(bytes);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn fail(reply: Option<Reply>, why: AskError) {
    match reply {
        Some(reply) => reply(Err(why)),
        None => tracing::warn!(%why, "a message to the cluster was lost"),
    }
}

fn refused(node: &str, no: No) -> ClientError {
    match no {
        No::Capability(missing) => ClientError::NotAllowed(missing),
        No::UnknownKind(kind) => ClientError::UnknownKind(kind),
        No::UnknownNode(node) => ClientError::UnknownNode(node),
        No::Overridden => ClientError::Overridden,
        No::NobodyElse => ClientError::NobodyElse,
        No::NotServing => ClientError::Lost(format!("{node}: it does not serve")),
    }
}

/// Tells all who wait that it is over, however it ends.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        let (waiting, wakers) = {
            let mut state = self.0.state.lock();
            state.has_ended = true;
            (std::mem::take(&mut state.waiting), state.under_way.take_waiters())
        };
        self.0.ended.send_if_modified(|why| {
            let is_news = why.is_none();
            why.get_or_insert_with(|| "the client has ended".to_owned());
            is_news
        });
        // After the lock: replies are foreign.
        for waiting in waiting.into_values() {
            if let Waiting::Message { to, reply } = waiting {
                fail(reply, AskError::NodeLost(to));
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

async fn tell(
    mut to: impl AsyncWrite + Unpin,
    mut questions: UnboundedReceiver<Vec<u8>>,
) -> Result<(), Broken> {
    let mut some = Vec::new();
    loop {
        some.clear();
        match timeout(PING_EVERY, questions.recv_many(&mut some, WRITTEN_MAX)).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(_) => some.push(protocol::framed(&Asked { number: 0, question: Question::Ping })),
        }
        to.write_all(&some.concat()).await?;
        to.flush().await?;
    }
}

async fn hear(
    shared: &Shared,
    mut from: impl AsyncRead + Unpin,
    len_max: usize,
) -> Result<(), Broken> {
    loop {
        let answered = timeout(SILENCE_MAX, read_answer(&mut from, len_max));
        let Answered { number, answer } = answered.await.map_err(|_| Broken::Silent)??;
        if number != 0 {
            take(shared, number, answer);
        }
    }
}

/// Reads an answer. One that is longer than allowed fails who has asked for it, and nobody else.
async fn read_answer(
    from: &mut (impl AsyncRead + Unpin),
    len_max: usize,
) -> Result<Answered, Broken> {
    let len = from.read_u32().await? as usize;
    let mut bytes = vec![0; if len <= len_max { len } else { HEAD_LEN.min(len) }];
    from.read_exact(&mut bytes).await?;
    if len <= len_max {
        return Ok(Answered::decode(&bytes)?);
    }
    let end = bytes.iter().skip(1).position(|byte| *byte < 0x80).map_or(0, |last| last + 2);
    let Head { number } = Head::decode(&bytes[..end])?;
    let rest = (len - bytes.len()) as u64;
    tokio::io::copy(&mut from.take(rest), &mut tokio::io::sink()).await?;
    let why = format!("a reply of {len} bytes is longer than a frame may be");
    Ok(Answered { number, answer: Answer::Failed(protocol::reply_too_long(why)) })
}

fn take(shared: &Shared, number: u64, answer: Answer) {
    let (waiting, wakers) = {
        let mut state = shared.state.lock();
        if let Some(Waiting::Views(views)) = state.waiting.get(&number) {
            if let Answer::View(sight) = answer {
                views.send_replace(Some(Arc::new(sight)));
            } else {
                // Refused: who waits hears that it is over.
                state.waiting.remove(&number);
            }
            return;
        }
        let waiting = state.waiting.remove(&number);
        let wakers = match &waiting {
            Some(Waiting::Message { to, .. }) => state.under_way.took(to),
            _ => Vec::new(),
        };
        (waiting, wakers)
    };
    wakers.into_iter().for_each(Waker::wake);
    match (waiting, answer) {
        (Some(Waiting::Once(waits)), answer) => _ = waits.send(answer),
        (Some(Waiting::Message { reply: Some(reply), .. }), Answer::Replied(bytes)) => {
            reply(Ok(bytes));
        }
        (Some(Waiting::Message { to, reply }), Answer::Failed(why)) => {
            fail(reply, protocol::heard(why, to));
        }
        (Some(Waiting::Message { to, reply: Some(reply) }), _) => {
            reply(Err(AskError::NoReply(to)));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_that_has_ended_keeps_no_sender_waiting() {
        let (outgoing, _questions) = unbounded_channel();
        let to = ActorId::named("test.echo", "a");
        let mut state = State::default();
        while state.under_way.has_room(&to) {
            state.under_way.add(&to);
        }
        let ended = watch::Sender::new(None);
        let shared = Arc::new(Shared { state: Mutex::new(state), outgoing, ended });
        let connection = Connection {
            name: "one".to_owned(),
            node: 1,
            capabilities: Vec::new(),
            frame_len_max: 0,
            shared: shared.clone(),
            task: tokio::spawn(async {}).abort_handle(),
        };
        assert!(connection.is_crowded(&to, Waker::noop()), "messages are under way");
        drop(Ends(shared));
        // One that had looked whether it has ended just before that.
        assert!(!connection.is_crowded(&to, Waker::noop()), "nobody would wake it");
    }
}
