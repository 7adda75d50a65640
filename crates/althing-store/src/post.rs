//! What a durable turn leaves to be delivered, and the replies that it keeps: all of it is written
//! with the turn, or none.
//!
//! Nothing here is sent. The [`Courier`](crate::Courier) sends what has been written.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use althing::remote::Letter;
use althing::{Actor, ActorId, Call, Dispatch, Node, Timestamp, WeakNode, Wire};

use crate::courier::next_after;
use crate::delivery::{Delivery, Posting, Reply};
use crate::request::{Reminder, Reminding, RequestId};
use crate::store::Turn;

/// Before the names of letters; what follows is the turn that left them.
const OUTBOX: char = '>';
/// Before the names of reminders.
const REMINDER: char = '@';

/// How long replies are kept for requests that come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// For so long.
    pub within: Duration,
    /// So many of one actor, at most: they are loaded with it. The oldest go first.
    pub replies_max: usize,
}

impl Default for Retention {
    /// Ten minutes, and a thousand replies.
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Retention {
    /// Ten minutes, and a thousand replies.
    pub const DEFAULT: Self = Self { within: Duration::from_secs(600), replies_max: 1_000 };
}

/// When a reminder comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Once, at that time.
    At(Timestamp),
    /// Once, after so long; a millisecond at least.
    After(Duration),
    /// Again and again, by a cron expression in UTC: `0 8 * * MON`; seconds may stand before it.
    /// What was missed while nobody could deliver it comes once.
    Cron(String),
}

/// Why something cannot be left to be delivered. Nothing is left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// Nobody delivers what is left with this store.
    #[error("{0} leaves something to be delivered in a store without a courier")]
    NoCourier(ActorId),
    /// The message does not travel, or its target has no key.
    #[error("{0} leaves a message that cannot be written down: its target needs a key, and `wire`")]
    LocalOnly(ActorId),
    /// A node of the cluster reads no message that is so long: should the actor come to live there,
    /// it could not be delivered.
    #[error("{from} leaves a message of {len} bytes for {to}: to every node {len_max} can be sent")]
    TooLong {
        /// Who leaves it.
        from: ActorId,
        /// Whom it is for.
        to: ActorId,
        /// Its length.
        len: usize,
        /// What the node that reads least takes.
        len_max: usize,
    },
    /// A reminder goes to the actor that sets it, by a message with the reminder and nothing else.
    #[error("{0} sets a reminder whose message is not one of its own with just the reminder")]
    NotAReminder(ActorId),
    /// The expression cannot be read, or never comes true.
    #[error("`{expression}` is no time that comes: {why}")]
    Cron {
        /// What it says.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What the turn at hand leaves, and the replies of earlier ones.
pub struct Post {
    id: ActorId,
    clock: Option<WeakNode>,
    has_courier: bool,
    /// The version that this turn will have.
    version: u64,
    /// Letters of this turn so far.
    letters: u32,
    /// Whether an earlier turn of this life has left one.
    has_left: bool,
    postings: Vec<Posting>,
    retention: Retention,
    replies: VecDeque<Given>,
    by_request: HashMap<String, u64>,
    last_reply: u64,
    /// Replies up to this one are in the store.
    written_reply: u64,
    /// Replies up to this one are kept no longer.
    forgotten: u64,
}

/// A reply that is kept.
struct Given {
    reply: Reply,
    /// When it was given, in the time that its node runs: nobody puts that forward.
    since_ms: i64,
}

impl Post {
    pub(crate) fn new(
        id: ActorId,
        clock: Option<WeakNode>,
        has_courier: bool,
        version: u64,
        kept: Vec<Reply>,
    ) -> Self {
        let by_request = kept.iter().map(|reply| (reply.request.clone(), reply.number)).collect();
        let last_reply = kept.last().map_or(0, |reply| reply.number);
        let mut post = Self {
            id,
            clock,
            has_courier,
            version,
            letters: 0,
            has_left: false,
            postings: Vec::new(),
            retention: Retention::DEFAULT,
            replies: VecDeque::new(),
            by_request,
            last_reply,
            written_reply: last_reply,
            forgotten: 0,
        };
        let (now, running_ms) = (post.now(), post.running_ms());
        post.replies.extend(kept.into_iter().map(|reply| {
            // One of a time to come was given when the clock was ahead: it counts from now on.
            let age_ms = i64::try_from(now.0.saturating_sub(reply.at.0)).unwrap_or(i64::MAX);
            Given { since_ms: running_ms.saturating_sub(age_ms), reply }
        }));
        post
    }

    /// Sets for how long replies are kept.
    pub(crate) fn retain(&mut self, retention: Retention) {
        self.retention = retention;
    }

    /// Leaves a message that is written with this turn, and sent until it was taken, also after a
    /// crash: at least once. Its handler makes that once, by the id of the request.
    ///
    /// Letters of one actor to another arrive in their order, also when the actor moves in between
    /// or its node dies: what its former node has not delivered comes before the next one that it
    /// leaves, and within five seconds if it leaves none. One that its former node has sent may
    /// come twice. The reply is dropped.
    ///
    /// # Errors
    /// The message does not travel, is longer than some node of the cluster reads, or nobody
    /// delivers.
    pub fn tell<'a, A, M, D>(
        &mut self,
        call: impl FnOnce(RequestId) -> Call<'a, A, M, D>,
    ) -> Result<(), PostError>
    where
        A: Actor,
        M: Send + 'static,
        D: Dispatch<A, M>,
    {
        self.check_courier()?;
        // Names are in the order of the turns.
        let name = format!("{}.{:06}", letters_of(self.version), self.letters);
        let request = RequestId::new(format!("{}{name}", self.id));
        let letter = self.letter(call(request))?;
        self.letters += 1;
        let due = self.now();
        self.put(Delivery { owner: self.id.clone(), name, due, cron: None, letter });
        Ok(())
    }

    /// Sets a reminder, written with this turn: a message to this actor with just the reminder, as
    /// `|reminder| address.ring(reminder)`. It wakes the actor, also after a crash; one that was
    /// missed comes once. Another one of the same name takes its place.
    ///
    /// It may come more than once, with the same id of the request.
    ///
    /// # Errors
    /// The expression cannot be read, the message is another one or too long, or nobody delivers.
    pub fn remind<'a, A, M, D>(
        &mut self,
        name: &str,
        when: When,
        call: impl FnOnce(Reminder) -> Call<'a, A, M, D>,
    ) -> Result<(), PostError>
    where
        A: Actor,
        M: Send + 'static,
        D: Dispatch<A, M>,
    {
        self.check_courier()?;
        let (due, cron) = self.first_due(when)?;
        let reminding = Reminding::of(&self.id, name, due);
        let bytes = reminding.bytes();
        let letter = self.letter(call(reminding.reminder))?;
        if letter.to != self.id || letter.body != bytes {
            return Err(PostError::NotAReminder(self.id.clone()));
        }
        let (owner, name) = (self.id.clone(), format!("{REMINDER}{name}"));
        self.put(Delivery { owner, name, due, cron, letter });
        Ok(())
    }

    /// Cancels a reminder with this turn. One that is on its way already may still come.
    pub fn cancel(&mut self, name: &str) {
        self.postings.push(Posting::Cancel(format!("{REMINDER}{name}")));
    }

    /// The reply that an earlier turn has given to this request, if it is kept.
    ///
    /// # Panics
    /// It was of another type, and cannot be read as this one: without it the work would be done
    /// once more. So the turn fails.
    pub fn replied<R: Wire>(&self, request: &RequestId) -> Option<R> {
        let number = self.by_request.get(request.as_str())?;
        let place = self.replies.binary_search_by_key(number, |given| given.reply.number).ok()?;
        let reply = R::decode(&self.replies[place].reply.bytes);
        Some(reply.unwrap_or_else(|error| {
            let (id, wanted) = (&self.id, std::any::type_name::<R>());
            panic!(
                "the reply that {id} has given to {request:?} cannot be read as {wanted}: {error}"
            )
        }))
    }

    /// Keeps the reply to a request, written with this turn.
    pub fn reply<R: Wire>(&mut self, request: &RequestId, reply: &R) {
        let mut bytes = Vec::new();
        reply.encode(&mut bytes);
        self.last_reply += 1;
        let (number, at) = (self.last_reply, self.now());
        let request = request.as_str().to_owned();
        self.by_request.insert(request.clone(), number);
        let reply = Reply { number, request, at, bytes };
        self.replies.push_back(Given { reply, since_ms: self.running_ms() });
    }

    /// Whether the turn at hand has something to be written.
    pub(crate) fn is_changed(&self) -> bool {
        !self.postings.is_empty() || self.written_reply < self.last_reply
    }

    /// Moves what the turn at hand has left into what is committed.
    pub(crate) fn hand_over(&mut self, turn: &mut Turn) {
        self.forget();
        let replies = self.replies.iter().map(|given| &given.reply);
        turn.replies = replies.filter(|it| it.number > self.written_reply).cloned().collect();
        turn.forget_replies = self.forgotten;
        turn.postings = std::mem::take(&mut self.postings);
        let leaves = self.letters > 0;
        turn.is_first_to_leave = leaves && !self.has_left;
        self.has_left |= leaves;
        self.written_reply = self.last_reply;
        self.forgotten = 0;
        self.version = turn.version + 1;
        self.letters = 0;
    }

    /// Drops what is older than it need be kept.
    fn forget(&mut self) {
        let Retention { within, replies_max } = self.retention;
        let within_ms = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let oldest_ms = self.running_ms().saturating_sub(within_ms);
        while let Some(first) = self.replies.front() {
            let is_fresh = first.reply.number > self.written_reply;
            if is_fresh || (first.since_ms >= oldest_ms && self.replies.len() <= replies_max) {
                break;
            }
            let Some(Given { reply: gone, .. }) = self.replies.pop_front() else { break };
            self.forgotten = gone.number;
            // It may have been replied to once more since.
            if self.by_request.get(&gone.request) == Some(&gone.number) {
                self.by_request.remove(&gone.request);
            }
        }
    }

    fn first_due(&self, when: When) -> Result<(Timestamp, Option<String>), PostError> {
        let now = self.now();
        match when {
            When::At(due) => Ok((due, None)),
            When::After(delay) => {
                // Its time is what tells it from the one of its name that is just being taken:
                // that would be taken down for both.
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).max(1);
                Ok((Timestamp(now.0.saturating_add(delay_ms)), None))
            }
            When::Cron(expression) => {
                let due = next_after(&expression, now)
                    .map_err(|why| PostError::Cron { expression: expression.clone(), why })?;
                Ok((due, Some(expression)))
            }
        }
    }

    fn check_courier(&self) -> Result<(), PostError> {
        if self.has_courier { Ok(()) } else { Err(PostError::NoCourier(self.id.clone())) }
    }

    fn letter<A, M, D>(&self, call: Call<'_, A, M, D>) -> Result<Letter, PostError>
    where
        A: Actor,
        M: Send + 'static,
        D: Dispatch<A, M>,
    {
        let letter = call.into_letter().map_err(|_| PostError::LocalOnly(self.id.clone()))?;
        let len = letter.body.len();
        let len_max = self.node().map_or(usize::MAX, |node| node.longest_letter(&letter.to));
        if len > len_max {
            let (from, to) = (self.id.clone(), letter.to);
            return Err(PostError::TooLong { from, to, len, len_max });
        }
        Ok(letter)
    }

    fn put(&mut self, delivery: Delivery) {
        self.postings.push(Posting::Put(delivery));
    }

    /// The node on which the actor lives.
    pub(crate) fn node(&self) -> Option<Node> {
        self.clock.as_ref().and_then(WeakNode::upgrade)
    }

    /// How long the node has run; without one, the time of day.
    fn running_ms(&self) -> i64 {
        let ms = self.node().map_or_else(|| self.now().0.into(), |node| node.elapsed().as_millis());
        i64::try_from(ms).unwrap_or(i64::MAX)
    }

    fn now(&self) -> Timestamp {
        if let Some(node) = self.node() {
            return node.now();
        }
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// What the names of a turn's letters begin with: names are in the order of the turns.
pub(crate) fn letters_of(turn: u64) -> String {
    format!("{OUTBOX}{turn:020}")
}

/// The turn that has left a letter; `None` if it is no letter.
#[cfg(feature = "cassandra")]
pub(crate) fn turn_of(letter: &str) -> Option<u64> {
    let turn = letter.strip_prefix(OUTBOX)?;
    turn.split('.').next()?.parse().ok()
}

/// The name under which a reminder was set; `None` if the delivery is a letter.
pub(crate) fn reminder_name(name: &str) -> Option<&str> {
    name.strip_prefix(REMINDER)
}
