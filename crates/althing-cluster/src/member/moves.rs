//! How buckets leave this node: their actors stop at a message boundary, what waits for them
//! follows, and only then the authority hears that they are released.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use althing::{ActorId, Node, ShutdownReport};
use tokio::time::{Instant, sleep, timeout_at};

use super::keeper::Wants;
use super::{Shared, State};
use crate::bucket::bucket_of;
use crate::client::protocol::No;
use crate::protocol::Item;
use crate::record::{Member, Record, Stage};

/// Actors of a move that stop at one time: their `stopping` hooks may all want the same store.
const STOPPING_MAX: usize = 64;

/// How often something is looked at that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a node that leaves keeps of its deadline for saying goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Stops what runs of these buckets, then says so to the authority.
pub(super) async fn depart(shared: Arc<Shared>, buckets: Vec<(u16, u64)>) {
    let set: BTreeSet<u16> = buckets.iter().map(|(bucket, _)| *bucket).collect();
    let is_meant = |id: &ActorId| bucket_of(id).is_some_and(|bucket| set.contains(&bucket));
    loop {
        let Some(node) = shared.node() else { return };
        let misplaced = {
            let _turn = shared.turn.lock();
            let mut misplaced = node.relocate();
            misplaced.retain(is_meant);
            let is_parked = |bucket: &u16| shared.is_parked(*bucket);
            if misplaced.is_empty() && !set.iter().any(is_parked) {
                shared.step(|core| core.router.departed(&buckets));
                break;
            }
            misplaced
        };
        if misplaced.is_empty() {
            sleep(LOOK_EVERY).await;
            continue;
        }
        for some in misplaced.chunks(STOPPING_MAX) {
            let stopping: Vec<_> =
                some.iter().map(|id| tokio::spawn(stop(node.clone(), id.clone()))).collect();
            for stopping in stopping {
                _ = stopping.await;
            }
        }
    }
    shared.released.lock().extend(buckets);
    shared.wants.send_modify(|_| {});
}

async fn stop(node: Node, id: ActorId) {
    if let Some(sealed) = node.seal(&id).await {
        sealed.depart().await;
    }
}

/// Gives all buckets away, stops what is left, says goodbye.
pub(super) async fn leave(shared: &Arc<Shared>, deadline: Duration) -> ShutdownReport {
    let until = Instant::now() + deadline;
    shared.wants.send_modify(|wants: &mut Wants| wants.leaves = true);
    let mut views = shared.view.subscribe();
    loop {
        views.mark_unchanged();
        let record = shared.core.lock().router.record().clone();
        if *shared.state.borrow() == State::Joining || has_given_all(&record, shared.me()) {
            break;
        }
        if !matches!(timeout_at(until, views.changed()).await, Ok(Ok(()))) {
            break;
        }
    }
    shared.say_farewell();
    // Asks that went through this node find their answers by it.
    let is_needed = || shared.owed.load(Ordering::Acquire) > 0 || !shared.may_go();
    while is_needed() && Instant::now() < until {
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
    let mut state = shared.state.subscribe();
    let ended = |state: &State| matches!(state, State::Left | State::Evicted | State::Joining);
    _ = timeout_at(until, state.wait_for(ended)).await;
    report
}

fn has_given_all(record: &Record, me: u64) -> bool {
    let is_other = |who: u64, stage| who != me && stage == Stage::Active;
    let mut members = record.members.iter();
    record.has_nothing_left_for(me)
        || !members.any(|member| is_other(member.incarnation, member.stage))
}

/// Why an actor was not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// No member of that name takes buckets; nothing moves.
    #[error("no node that takes actors is called `{0}`")]
    UnknownNode(String),
    /// Somebody else has moved it elsewhere meanwhile.
    #[error("it was moved elsewhere meanwhile")]
    Overridden,
    /// An actor without a name lives where it was started.
    #[error("{0} has no name, and stays where it is")]
    Anonymous(ActorId),
}

/// Asks for a bucket to live on the node of that name, and returns which life of it that is; `None`
/// if none takes buckets.
pub(super) fn ask_for(shared: &Shared, bucket: u16, name: &str) -> Option<u64> {
    let record = shared.core.lock().router.record().clone();
    let is_it = |member: &&Member| member.name == name && member.stage == Stage::Active;
    let to = record.members.iter().find(is_it)?.incarnation;
    shared.pinned.lock().insert(bucket, to);
    shared.wants.send_modify(|_| {});
    Some(to)
}

/// Has a bucket live on the node of that name; resolves when it does.
pub(super) async fn bring(shared: &Arc<Shared>, bucket: u16, name: &str) -> Result<(), No> {
    let unknown = || No::UnknownNode(name.to_owned());
    let mut views = shared.view.subscribe();
    let to = ask_for(shared, bucket, name).ok_or_else(unknown)?;
    let mut was_pinned = false;
    loop {
        views.mark_unchanged();
        let record = shared.core.lock().router.record().clone();
        // Another life of that node has none of what was brought to the former one.
        let takes = |member: &Member| member.stage == Stage::Active;
        if !record.member(to).is_some_and(takes) {
            return Err(unknown());
        }
        let holding = record.holding(bucket);
        let is_pinned = holding.pinned == Some(to);
        if is_pinned && holding.owner == Some(to) {
            return Ok(());
        }
        if was_pinned && !is_pinned {
            return Err(No::Overridden);
        }
        was_pinned = is_pinned;
        views.changed().await.map_err(|_| unknown())?;
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
