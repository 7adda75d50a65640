//! The conversation with somebody who is no node: what it wants is looked at here, and done where it
//! may be.
//!
//! All of it runs on the node's runtime, so that neither a long list nor a mailbox that is full
//! holds up leases and links. A client's messages go the way of this node's own: their order is that
//! of the connection, and what an actor answers leaves only while the node has its lease.

mod lines;
mod news;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use althing::remote::{Cluster, Location, Parcel, Reply, Undelivered};
use althing::{ActorId, AskError, Inspector, KindName, Node, Rejection};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::lines::Lines;
use super::pack::{Owed, unpack};
use super::ways::Way;
use super::{MoveError, Shared, moves};
use crate::bucket::bucket_of;
use crate::capability::Capability;
use crate::client::protocol::{
    Answer, Answered, Asked, Condition, No, Question, Seen, Whereabouts,
};
use crate::link::dial::{PING_EVERY, SILENCE_MAX};
use crate::protocol::{self, Broken, Greeting, Packed, Welcome, append_framed, read, write};
use crate::transport::Stream;

/// Clients of a node at one time: nodes have connections left.
const CLIENTS_MAX: usize = 512;

/// Questions of a client that are not answered; behind them nothing is read.
const UNANSWERED_MAX: usize = 1_024;

/// Actors in one list.
const ACTORS_MAX: u64 = 10_000;

/// Bytes of an answer beside what is in it, at most.
const ANSWER_OVERHEAD: usize = 64;

/// Answers that are written at once.
const WRITTEN_LEN: usize = 64 << 10;

/// How long a drain waits between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// An answer on its way, with the room that its question takes.
type Due = (Answered, OwnedSemaphorePermit);

/// What the parts of one conversation share.
#[derive(Clone)]
struct Conversation {
    shared: Arc<Shared>,
    capabilities: Arc<[Capability]>,
    /// What the node says.
    answers: UnboundedSender<Due>,
    /// What its actors say: it waits for the lease.
    replies: UnboundedSender<Due>,
    lines: Lines,
}

/// Greets a client, and answers it until one side ends.
pub(crate) async fn welcome(
    shared: &Arc<Shared>,
    greeting: &Greeting,
    mut stream: Stream,
) -> Result<(), Broken> {
    let no = match () {
        () if greeting.cluster != shared.config.cluster => Some(protocol::No::Cluster),
        () if stream.capabilities().is_empty() => Some(protocol::No::Certificate),
        () if shared.me() == 0 => Some(protocol::No::NotMeant),
        () => None,
    };
    if let Some(no) = no {
        write(&mut stream, &Welcome::Refused { why: no.words().to_owned() }).await?;
        return Err(no.of_the_other());
    }
    let Some(_counted) = Counted::new(shared) else {
        let why = format!("{CLIENTS_MAX} clients are connected");
        write(&mut stream, &Welcome::Refused { why: why.clone() }).await?;
        return Err(Broken::Refused(why));
    };
    let capabilities = stream.capabilities().to_vec();
    let welcome = Welcome::Client {
        node: shared.me(),
        name: shared.config.name.clone(),
        capabilities: capabilities.clone(),
        frame_len_max: shared.config.frame_len_max as u64,
    };
    write(&mut stream, &welcome).await?;
    let ended = shared.clone();
    let talk = shared.runtime().spawn(converse(shared.clone(), capabilities.into(), stream));
    let _ends_with_this = Aborted(talk.abort_handle());
    let mut state = ended.state.subscribe();
    tokio::select! {
        ended = talk => ended.unwrap_or(Ok(())),
        _ = state.wait_for(|state| state.has_ended()) => Ok(()),
    }
}

/// A client that is counted until this is dropped.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        let counted = Self(shared.clone());
        (shared.clients.fetch_add(1, Ordering::AcqRel) < CLIENTS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Aborted(tokio::task::AbortHandle);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn converse(
    shared: Arc<Shared>,
    capabilities: Arc<[Capability]>,
    stream: Stream,
) -> Result<(), Broken> {
    let (from, to) = tokio::io::split(stream);
    let (answers, answered) = unbounded_channel();
    let (replies, replied) = unbounded_channel();
    let (ours, lines) = (shared.clone(), Lines::default());
    let conversation = Conversation { shared: ours, capabilities, answers, replies, lines };
    tokio::select! {
        ended = hear(&conversation, from) => ended,
        ended = tell(&shared, to, answered, replied) => ended,
    }
}

async fn hear(on: &Conversation, mut from: impl AsyncRead + Unpin) -> Result<(), Broken> {
    let room = Arc::new(Semaphore::new(UNANSWERED_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
        let asked = read::<Asked>(&mut from, on.shared.config.frame_len_max);
        let Asked { number, question } =
            timeout(SILENCE_MAX, asked).await.map_err(|_| Broken::Silent)??;
        if matches!(question, Question::Ping) {
            continue;
        }
        let missing = question.needs().filter(|needed| !on.may(*needed));
        match (question, missing) {
            (Question::Message(packed), missing) => on.pass(number, *packed, permit, missing).await,
            (Question::Changes, _) if on.may(Capability::Look) || on.may(Capability::Talk) => {
                on.tell_changes(number, permit);
            }
            (_, Some(missing)) => {
                on.say(number, Answer::Refused(No::Capability(missing)), permit);
            }
            (question, None) => {
                let on = on.clone();
                tokio::spawn(async move {
                    let gone = on.answers.clone();
                    let answer = tokio::select! {
                        answer = on.answer(question) => answer,
                        () = gone.closed() => return,
                    };
                    on.say(number, answer.unwrap_or_else(Answer::Refused), permit);
                });
            }
        }
    }
}

/// Writes what is due, and something now and then in any case.
async fn tell(
    shared: &Shared,
    mut to: impl AsyncWrite + Unpin,
    mut answers: UnboundedReceiver<Due>,
    mut replies: UnboundedReceiver<Due>,
) -> Result<(), Broken> {
    let mut bytes = Vec::new();
    let mut held: Option<Due> = None;
    loop {
        let reply = async {
            if held.is_none() {
                held = replies.recv().await;
            }
            // Looked at last: the lease may run out while nobody has anything to say.
            shared.ready_to_handle(0).await;
        };
        bytes.clear();
        tokio::select! {
            biased;
            Some((answered, _room)) = answers.recv() => append_framed(&answered, &mut bytes),
            () = reply => match held.take() {
                Some((answered, _room)) => append_framed(&answered, &mut bytes),
                None => return Ok(()),
            },
            () = tokio::time::sleep(PING_EVERY) => {
                append_framed(&Answered { number: 0, answer: Answer::Done }, &mut bytes);
            }
        }
        while bytes.len() < WRITTEN_LEN && shared.is_serving() {
            let Ok((answered, _room)) = replies.try_recv() else { break };
            append_framed(&answered, &mut bytes);
        }
        to.write_all(&bytes).await?;
        to.flush().await?;
    }
}

impl Conversation {
    fn may(&self, capability: Capability) -> bool {
        self.capabilities.iter().any(|may| may.includes(capability))
    }

    fn say(&self, number: u64, answer: Answer, room: OwnedSemaphorePermit) {
        // Nobody listens when this fails.
        _ = self.answers.send((Answered { number, answer }, room));
    }

    /// Passes a message on; resolves once no later one to the same actor can overtake it.
    async fn pass(
        &self,
        number: u64,
        packed: Packed,
        room: OwnedSemaphorePermit,
        missing: Option<Capability>,
    ) {
        let (is_tell, to) = (packed.ask.is_none(), packed.to.clone());
        let (room, replies) = (Some(room), self.replies.clone());
        let len_max = self.shared.config.frame_len_max;
        let reply = Answerer { number, to: to.clone(), room, replies, len_max };
        if let Some(missing) = missing {
            let why = format!("the certificate does not say `{missing}`");
            return reply.fail(AskError::Rejected(to, Rejection::Restricted(why)));
        }
        if to.key().is_none() || packed.control.is_some() {
            let why = "a client reaches actors by kind and key".to_owned();
            return reply.fail(AskError::NotUnderstood(to, why));
        }
        let owed = Owed::new(&self.shared.owed);
        let mut reply = Some(reply);
        let mut parcel = unpack(Packed { node: None, epoch: 0, ..packed }, |_| -> Reply {
            let reply = reply.take();
            Box::new(move |outcome| {
                if let Some(reply) = reply {
                    reply.settle(outcome);
                }
                drop(owed);
            })
        });
        // Who waits for a client is nobody's business here.
        if let althing::remote::Cargo::Message(message) = &mut parcel.cargo {
            message.chain.clear();
        }
        self.shared.ready_to_handle(0).await;
        let (to, shared) = (parcel.to.clone(), self.shared.clone());
        let handing_over = async move {
            hand_over(&shared, parcel).await;
            if let Some(reply) = reply.filter(|_| is_tell) {
                reply.done();
            }
        };
        self.in_line(to, Box::pin(handing_over)).await;
    }

    async fn answer(&self, question: Question) -> Result<Answer, No> {
        let shared = &self.shared;
        match question {
            Question::View => Ok(Answer::View(shared.sight().into())),
            Question::Status => self.condition().map(Answer::Status),
            Question::Actors { text, limit } => {
                let limit = usize::try_from(limit.min(ACTORS_MAX)).unwrap_or(0);
                let look = move |inspector: Inspector| inspector.actors(&text, limit);
                let listing = self.look(look).await?;
                let all = listing.actors.len();
                let actors = fitting(listing.actors.iter().map(seen), shared.config.frame_len_max);
                let left = listing.left + (all - actors.len());
                Ok(Answer::Actors { actors, left: left as u64 })
            }
            Question::Find { kind, key } => self.find(&kind, &key).map(Answer::Found),
            Question::Move { kind, key, to } => {
                self.known(&kind)?;
                let moved = moves::bring(shared, &ActorId::named(&kind, key), &to).await;
                moved.map(|()| Answer::Done).map_err(|why| match why {
                    MoveError::Overridden => No::Overridden,
                    MoveError::Left => No::NotServing,
                    // A client sees labels in the view.
                    _ => No::UnknownNode(to),
                })
            }
            Question::Drain => self.drain().await.map(|()| Answer::Done),
            Question::Ping | Question::Message(_) | Question::Changes => Ok(Answer::Done),
        }
    }

    fn node(&self) -> Result<Node, No> {
        self.shared.node().ok_or(No::NotServing)
    }

    /// Looks at actors on a thread that nobody needs.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(Inspector) -> T + Send + 'static,
    ) -> Result<T, No> {
        let inspector = self.node()?.inspector();
        tokio::task::spawn_blocking(move || look(inspector)).await.map_err(|_| No::NotServing)
    }

    fn condition(&self) -> Result<Condition, No> {
        let kinds = self.node()?.metrics().kinds;
        Ok(Condition {
            state: (*self.shared.state.borrow()).into(),
            view: *self.shared.view.borrow(),
            live: kinds.iter().map(althing::KindSnapshot::live).sum(),
            waiting: kinds.iter().map(|kind| kind.depth).sum(),
            clients: self.shared.clients.load(Ordering::Acquire) as u64,
        })
    }

    fn known(&self, kind: &str) -> Result<Inspector, No> {
        let inspector = self.node()?.inspector();
        match inspector.knows(&KindName::new(kind)) {
            true => Ok(inspector),
            false => Err(No::UnknownKind(kind.to_owned())),
        }
    }

    fn find(&self, kind: &str, key: &str) -> Result<Whereabouts, No> {
        let inspector = self.known(kind)?;
        let id = ActorId::named(kind, key);
        let bucket = bucket_of(&id).ok_or_else(|| No::UnknownKind(kind.to_owned()))?;
        let record = self.shared.core.lock().router.record().clone();
        let holding = record.holding(bucket);
        let name = |who: u64| record.member(who).map(|member| member.name.clone());
        let is_here = holding.owner == Some(self.shared.me());
        let actor = if is_here { inspector.actor(&id) } else { None };
        Ok(Whereabouts {
            bucket,
            epoch: holding.epoch,
            owner: holding.owner.and_then(name),
            going_to: holding.going_to.and_then(name),
            actor: actor.as_ref().map(seen),
            is_here,
        })
    }

    /// Resolves once the node owns nothing any more; it stays a member.
    async fn drain(&self) -> Result<(), No> {
        let shared = &self.shared;
        let me = shared.me();
        let has_others = || {
            let record = shared.core.lock().router.record().clone();
            let mut others = record.members.iter().filter(|member| member.incarnation != me);
            others.any(|member| member.stage == crate::record::Stage::Active)
        };
        if !has_others() {
            return Err(No::NobodyElse);
        }
        shared.wants.send_modify(|wants| wants.leaves = true);
        loop {
            let record = shared.core.lock().router.record().clone();
            if crate::placement::has_given_all(&record, me) {
                // What asks for labels that no other node has stays.
                return if record.owned_by(me) == 0 { Ok(()) } else { Err(No::NobodyElse) };
            }
            // The last other one may go meanwhile: it comes back, or the operator gives up.
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Where the answer to one message goes.
struct Answerer {
    number: u64,
    to: ActorId,
    room: Option<OwnedSemaphorePermit>,
    replies: UnboundedSender<Due>,
    /// Of a frame.
    len_max: usize,
}

impl Answerer {
    fn settle(mut self, outcome: Result<Vec<u8>, AskError>) {
        self.send(match outcome {
            Ok(reply) if reply.len() > self.len_max.saturating_sub(ANSWER_OVERHEAD) => {
                let len = reply.len();
                let why = format!("a reply of {len} bytes is longer than a frame may be");
                Answer::Failed(protocol::reply_too_long(why))
            }
            Err(AskError::ReplyTooLong(_, why)) => Answer::Failed(protocol::reply_too_long(why)),
            Ok(reply) => Answer::Replied(reply),
            Err(why) => Answer::Failed(why),
        });
    }

    fn fail(mut self, why: AskError) {
        self.send(Answer::Failed(why));
    }

    fn done(mut self) {
        self.send(Answer::Done);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(room) = self.room.take() {
            let number = self.number;
            // Nobody listens when this fails.
            _ = self.replies.send((Answered { number, answer }, room));
        }
    }
}

/// An actor that drops its reply has not replied.
impl Drop for Answerer {
    fn drop(&mut self) {
        let why = AskError::NoReply(self.to.clone());
        self.send(Answer::Failed(why));
    }
}

/// Gives a parcel to its actor here, or to the way there, once there is room.
async fn hand_over(shared: &Arc<Shared>, mut parcel: Parcel) {
    let way = Way(shared.clone());
    let to = parcel.to.clone();
    while matches!(way.locate(&to), Location::Here(_)) {
        // Dropped with its reply: the node ends.
        let Some(node) = shared.node() else { return };
        parcel = match node.deliver(parcel) {
            Ok(()) => return,
            Err(Undelivered::Full(back)) => {
                node.room_for(&to).await;
                *back
            }
            Err(Undelivered::Elsewhere(back)) => {
                way.send(*back);
                return;
            }
            Err(_) => return,
        };
    }
    poll_fn(|cx| way.poll_room(&to, cx)).await;
    way.send(parcel);
}

/// As many of them as go into a frame.
fn fitting(actors: impl Iterator<Item = Seen>, len_max: usize) -> Vec<Seen> {
    let mut room = len_max.saturating_sub(ANSWER_OVERHEAD);
    let has_room = |actor: &Seen| {
        let len = actor.name.len() + ANSWER_OVERHEAD;
        let fits = len <= room;
        room = room.saturating_sub(len);
        fits
    };
    actors.take_while(has_room).collect()
}

fn seen(actor: &althing::ActorView) -> Seen {
    Seen {
        name: actor.id.to_string(),
        depth: actor.depth as u64,
        oldest_s: actor.oldest.as_secs(),
        is_active: actor.is_active,
        handled: actor.handled.into(),
    }
}
