//! What a candidate has decided, done: the store is asked, connections are answered.
//!
//! One task has the candidate. Operations of the store run beside it, so that a slow one holds up
//! neither the clock nor the lead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::candidate::{Asks, Candidate, Done, Effect};
use super::storage::{Claimant, Storage, StorageError};
use crate::clock;
use crate::lease::Timing;
use crate::protocol::{Answer, Request};
use crate::record::Record;

/// Requests on their way from connections.
const QUEUE_MAX: usize = 1_024;

/// Answers for one connection that it has not written.
pub(super) const ANSWERS_MAX: usize = 128;

/// What connections and the owner of an authority say to its task.
pub(super) enum Input {
    Asked { request: Request, from: Asker },
    Resign { resigned: oneshot::Sender<()> },
}

/// A connection.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) answers: mpsc::Sender<Answer>,
    /// The nodes that its certificate is for; `None` in plaintext.
    pub(super) nodes: Option<Arc<[String]>>,
}

impl Asks for Asker {
    fn may_be(&self, node: &str) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.iter().any(|known| known == node))
    }
}

/// What the others see of the task.
pub(super) struct Desk {
    pub(super) inputs: mpsc::Sender<Input>,
    /// The latest record that counts.
    pub(super) news: watch::Sender<Arc<Record>>,
    /// Rises when connections are to end.
    pub(super) dismissed: watch::Sender<u64>,
    pub(super) is_leading: watch::Sender<bool>,
    /// What the store has refused last.
    pub(super) trouble: watch::Sender<Option<String>>,
    lease_ms: AtomicU64,
}

impl Desk {
    /// The desk, and the inputs of its task.
    pub(super) fn new(wanted: Timing) -> (Arc<Self>, mpsc::Receiver<Input>) {
        let (inputs, read) = mpsc::channel(QUEUE_MAX);
        let desk = Self {
            inputs,
            news: watch::Sender::new(Arc::new(Record::empty())),
            dismissed: watch::Sender::new(0),
            is_leading: watch::Sender::new(false),
            trouble: watch::Sender::new(None),
            lease_ms: AtomicU64::new(millis(wanted.lease)),
        };
        (Arc::new(desk), read)
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.load(Ordering::Acquire))
    }

    fn is_told(&self, error: &StorageError) {
        tracing::warn!(%error, "the store of the cluster's record");
        self.trouble.send_replace(Some(error.to_string()));
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The task of one candidate.
pub(super) struct Task {
    desk: Arc<Desk>,
    store: Arc<dyn Storage>,
    me: Claimant,
    wanted: Timing,
    candidate: Candidate<Asker>,
    done: mpsc::UnboundedSender<Done>,
}

/// Runs until the runtime ends, or the candidate has resigned.
pub(super) async fn run(
    desk: Arc<Desk>,
    store: Arc<dyn Storage>,
    me: Claimant,
    wanted: Timing,
    mut inputs: mpsc::Receiver<Input>,
) {
    // As many as there are operations under way: two.
    let (done, mut ended) = mpsc::unbounded_channel();
    let candidate = Candidate::new(me.clone(), wanted, clock::now());
    let mut task = Task { desk, store, me, wanted, candidate, done };
    let mut ticks = interval(wanted.look_every() / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let effects = tokio::select! {
            // What the store has said decides how a request is answered.
            biased;
            Some(done) = ended.recv() => task.candidate.done(clock::now(), done),
            _ = ticks.tick() => task.candidate.tick(clock::now()),
            Some(input) = inputs.recv() => match input {
                Input::Asked { request, from } => {
                    task.candidate.asked(clock::now(), from, request)
                }
                Input::Resign { resigned } => return task.resign(&mut ended, resigned).await,
            },
        };
        task.obey(effects);
    }
}

impl Task {
    fn obey(&mut self, effects: Vec<Effect<Asker>>) {
        for effect in effects {
            match effect {
                Effect::Claim { me } => self.claim(me),
                Effect::Load => self.load(),
                Effect::Replace { expected, record } => self.replace(expected, record),
                Effect::Answer { to, answer } => {
                    // Who does not read its answers asks again by another connection.
                    _ = to.answers.try_send(answer);
                }
                Effect::News { record } => {
                    let lease = millis(self.candidate.timing().lease);
                    self.desk.lease_ms.store(lease, Ordering::Release);
                    self.desk.news.send_replace(Arc::new(record));
                }
                Effect::Behind { known, stored } => tracing::error!(
                    known,
                    stored,
                    "members know a later view of the cluster than its store: nobody is served"
                ),
                Effect::Dismiss => {
                    tracing::warn!(address = self.me.address, "leads the cluster no more");
                    self.desk.dismissed.send_modify(|count| *count += 1);
                }
            }
        }
        let is_leading = self.candidate.is_leading(clock::now());
        if is_leading != *self.desk.is_leading.borrow() {
            tracing::info!(address = self.me.address, is_leading, "the cluster's authority");
            self.desk.is_leading.send_replace(is_leading);
        }
    }

    fn claim(&self, me: Claimant) {
        let (store, desk, done) = (self.store.clone(), self.desk.clone(), self.done.clone());
        let lead_for = self.wanted.leads();
        tokio::spawn(async move {
            let lead = store.claim(&me, lead_for).await;
            _ = done.send(Done::Claimed(lead.inspect_err(|error| desk.is_told(error)).ok()));
        });
    }

    fn load(&self) {
        let (store, desk, done) = (self.store.clone(), self.desk.clone(), self.done.clone());
        tokio::spawn(async move {
            let record = store.load().await.inspect_err(|error| desk.is_told(error));
            _ = done.send(match record {
                Err(StorageError::Damaged(_)) => Done::Unreadable,
                record => Done::Loaded(record.ok()),
            });
        });
    }

    fn replace(&self, expected: u64, record: Record) {
        let (store, desk, done) = (self.store.clone(), self.desk.clone(), self.done.clone());
        tokio::spawn(async move {
            let replaced = store.replace(expected, &record).await;
            _ = done.send(Done::Replaced(replaced.inspect_err(|error| desk.is_told(error)).ok()));
        });
    }

    /// Has answered its last request before somebody else can lead.
    async fn resign(
        mut self,
        ended: &mut mpsc::UnboundedReceiver<Done>,
        resigned: oneshot::Sender<()>,
    ) {
        let effects = self.candidate.resign();
        self.obey(effects);
        // A claim that is under way would take the lead again.
        while self.candidate.is_claiming() {
            let Some(done) = ended.recv().await else { break };
            let effects = self.candidate.done(clock::now(), done);
            self.obey(effects);
        }
        if let Err(error) = self.store.resign(&self.me).await {
            self.desk.is_told(&error);
        }
        _ = resigned.send(());
    }
}
