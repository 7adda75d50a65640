//! How buckets leave this node: their actors stop at a message boundary, what waits for them
//! follows, and only then the authority hears that they are released.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use althing::{ActorId, Node, ShutdownReport};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::keeper::Wants;
use super::{Shared, State};
use crate::bucket::bucket_of;
use crate::label;
use crate::placement::{self, Placement};
use crate::protocol::Item;
use crate::record::{Member, Record, Stage};

/// Actors that are in their `stopping` hooks at one time: these may all want the same store.
const STOPPING_MAX: usize = 64;

/// How often something is looked at that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often it is looked, in any case, what is left of buckets whose actors stop.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a node that leaves keeps of its deadline for saying goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Stops what runs of these buckets, and says of each to the authority that it has stopped: those
/// whose actors have ended do not wait for the others.
pub(super) async fn depart(shared: Arc<Shared>, buckets: Vec<(u32, u64)>) {
    let mut left: BTreeMap<u32, u64> = buckets.into_iter().collect();
    let mut stopping = Stopping::default();
    loop {
        let Some(node) = shared.node() else { return };
        let mut stopped = Vec::new();
        let waits_for_room = {
            let _turn = shared.turn.lock();
            let mut running: BTreeMap<u32, Vec<ActorId>> = BTreeMap::new();
            for id in node.relocate() {
                if let Some(bucket) = bucket_of(&id).filter(|bucket| left.contains_key(bucket)) {
                    running.entry(bucket).or_default().push(id);
                }
            }
            left.retain(|bucket, epoch| {
                let runs = running.contains_key(bucket) || stopping.has(*bucket);
                let has_stopped = !runs && !shared.is_parked(*bucket);
                if has_stopped {
                    stopped.push((*bucket, *epoch));
                }
                !has_stopped
            });
            shared.step(|core| core.router.departed(&stopped));
            running.retain(|bucket, _| !stopping.has(*bucket));
            let stops = |bucket: &u32| running.contains_key(bucket) || stopping.has(*bucket);
            let waits = left.keys().any(|bucket| !stops(bucket));
            running.into_iter().for_each(|(bucket, actors)| stopping.begin(&node, bucket, actors));
            waits
        };
        if !stopped.is_empty() {
            shared.released.lock().extend(stopped);
            shared.wants.send_modify(|_| {});
        }
        if left.is_empty() {
            return;
        }
        let pause = if waits_for_room { LOOK_EVERY } else { LOOK_AGAIN };
        _ = timeout(pause, stopping.some()).await;
    }
}

/// Actors that stop because their buckets leave.
struct Stopping {
    tasks: JoinSet<u32>,
    /// How many of each bucket have not stopped.
    counts: BTreeMap<u32, usize>,
    room: Arc<Semaphore>,
}

impl Default for Stopping {
    fn default() -> Self {
        let (tasks, counts) = (JoinSet::new(), BTreeMap::new());
        Self { tasks, counts, room: Arc::new(Semaphore::new(STOPPING_MAX)) }
    }
}

impl Stopping {
    fn has(&self, bucket: u32) -> bool {
        self.counts.contains_key(&bucket)
    }

    fn begin(&mut self, node: &Node, bucket: u32, actors: Vec<ActorId>) {
        self.counts.insert(bucket, actors.len());
        for actor in actors {
            let stop = stop(node.clone(), actor, self.room.clone());
            self.tasks.spawn(async move {
                stop.await;
                bucket
            });
        }
    }

    /// Resolves when all have stopped, or when those of a bucket have and no others do for a moment:
    /// to look what is left of a node with many actors takes a while. Never if none stops.
    ///
    /// # Cancel safety
    /// Nothing is forgotten.
    async fn some(&mut self) {
        let mut is_any_done = false;
        loop {
            let pause = if is_any_done { LOOK_EVERY } else { Duration::MAX };
            let ended = match timeout(pause, self.tasks.join_next()).await {
                Ok(Some(ended)) => ended,
                Ok(None) if !is_any_done => std::future::pending().await,
                Ok(None) | Err(_) => return,
            };
            // After a panic of ours nobody knows of which bucket: all are looked at again.
            let Ok(bucket) = ended else { return self.counts.clear() };
            let Some(count) = self.counts.get_mut(&bucket) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&bucket);
                is_any_done = true;
            }
        }
    }
}

async fn stop(node: Node, id: ActorId, room: Arc<Semaphore>) {
    if let Some(sealed) = node.seal(&id).await {
        let _place = room.acquire().await;
        sealed.depart().await;
    }
}

/// Gives all buckets away, stops what is left, says goodbye.
pub(super) async fn leave(shared: &Arc<Shared>, deadline: Duration) -> ShutdownReport {
    let until = Instant::now() + deadline;
    shared.wants.send_modify(|wants: &mut Wants| wants.leaves = true);
    let (mut views, mut state) = (shared.view.subscribe(), shared.state.subscribe());
    loop {
        views.mark_unchanged();
        let record = shared.core.lock().router.record().clone();
        let is_member = matches!(*state.borrow_and_update(), State::Serving | State::Frozen);
        if !is_member || has_given_all(&record, shared.me()) {
            break;
        }
        tokio::select! {
            changed = views.changed() => if changed.is_err() { break },
            changed = state.changed() => if changed.is_err() { break },
            () = sleep_until(until) => break,
        }
    }
    shared.say_farewell();
    // Asks that went through this node find their answers by it, unless others have its buckets.
    let is_needed = || shared.owed.load(Ordering::Acquire) > 0 || !shared.may_go();
    let has_ended = || shared.state.borrow().has_ended();
    while is_needed() && !has_ended() && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
    let rest = until.saturating_duration_since(Instant::now());
    let report = match shared.node() {
        Some(node) => node.shutdown(rest).await,
        None => return Node::builder("left").build().shutdown(Duration::ZERO).await,
    };
    shared.say_that_all_is_published();
    let until = until.max(Instant::now() + GOODBYE_TIMEOUT);
    while !shared.has_sent_all() && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
    shared.wants.send_modify(|wants| wants.goodbye = true);
    let ended = |state: &State| matches!(state, State::Left | State::Evicted | State::Joining);
    _ = timeout_at(until, state.wait_for(ended)).await;
    report
}

fn has_given_all(record: &Record, me: u64) -> bool {
    let is_other = |who: u64, stage| who != me && stage == Stage::Active;
    let mut members = record.members.iter();
    placement::has_given_all(record, me)
        || !members.any(|member| is_other(member.incarnation, member.stage))
}

/// Why an actor was not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// No member of that name takes buckets; nothing moves.
    #[error("no node that may take the actor is called `{0}`")]
    UnknownNode(String),
    /// The node has not all labels that the actor's kind asks for; nothing moves.
    #[error("the node `{node}` lacks labels that {id} asks for: {labels}")]
    LacksLabels {
        /// The actor.
        id: ActorId,
        /// The node's name.
        node: String,
        /// Those that it lacks, separated by commas.
        labels: String,
    },
    /// Somebody else has moved it elsewhere meanwhile.
    #[error("it was moved elsewhere meanwhile")]
    Overridden,
    /// This node is no member any more; what it has asked for may still happen.
    #[error("this node is no member any more")]
    Left,
    /// An actor without a name lives where it was started.
    #[error("{0} has no name, and stays where it is")]
    Anonymous(ActorId),
}

/// Asks for an actor's bucket to live on the node of that name; returns which life of it that is.
pub(super) fn ask_for(shared: &Shared, id: &ActorId, name: &str) -> Result<u64, MoveError> {
    let bucket = bucket_of(id).ok_or_else(|| MoveError::Anonymous(id.clone()))?;
    let record = shared.core.lock().router.record().clone();
    let node = record.members.iter().find(|member| member.name == name);
    let node = node.ok_or_else(|| MoveError::UnknownNode(name.to_owned()))?;
    let to = node.incarnation;
    if !may_have(&record, bucket, to) {
        return Err(refusal(id, node));
    }
    shared.pinned.lock().insert(bucket, to);
    shared.wants.send_modify(|_| {});
    Ok(to)
}

/// Why an actor may not live on a node.
fn refusal(id: &ActorId, node: &Member) -> MoveError {
    let name = node.name.clone();
    match label::lacking(id.kind().as_str(), &node.labels.own) {
        Some(labels) if node.stage == Stage::Active => {
            MoveError::LacksLabels { id: id.clone(), node: name, labels }
        }
        _ => MoveError::UnknownNode(name),
    }
}

fn may_have(record: &Record, bucket: u32, who: u64) -> bool {
    Placement::new(&record.members).candidates(bucket).has(who)
}

/// Has an actor's bucket live on the node of that name; resolves when it does.
pub(super) async fn bring(shared: &Arc<Shared>, id: &ActorId, name: &str) -> Result<(), MoveError> {
    let bucket = bucket_of(id).ok_or_else(|| MoveError::Anonymous(id.clone()))?;
    let (mut views, mut state) = (shared.view.subscribe(), shared.state.subscribe());
    let to = ask_for(shared, id, name)?;
    let mut was_pinned = false;
    loop {
        views.mark_unchanged();
        if state.borrow_and_update().has_ended() {
            return Err(MoveError::Left);
        }
        let record = shared.core.lock().router.record().clone();
        // Another life of that node has none of what was brought to the former one.
        if !may_have(&record, bucket, to) {
            return Err(MoveError::UnknownNode(name.to_owned()));
        }
        let holding = record.holding(bucket);
        let is_pinned = holding.pinned == Some(to);
        if is_pinned && holding.owner == Some(to) {
            return Ok(());
        }
        if was_pinned && !is_pinned {
            return Err(MoveError::Overridden);
        }
        was_pinned = is_pinned;
        tokio::select! {
            changed = views.changed() => changed.map_err(|_| MoveError::Left)?,
            changed = state.changed() => changed.map_err(|_| MoveError::Left)?,
        }
    }
}

impl Shared {
    fn say_farewell(&self) {
        let core = self.core.lock();
        let others = self.farewell.lock().begin(self.me(), core.router.record());
        for other in others {
            core.push(other, Item::Closing, self.config.frame_len_max);
        }
    }

    /// Whether nobody has anything on the way that this node would have to pass on.
    fn may_go(&self) -> bool {
        let core = self.core.lock();
        let is_over = self.farewell.lock().is_over(core.router.record());
        is_over && core.router.is_idle()
    }

    fn has_sent_all(&self) -> bool {
        self.core.lock().links.values().all(|link| link.is_empty())
    }
}
