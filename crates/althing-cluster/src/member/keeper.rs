//! The conversation with the authority: joins, renews, says what is released, hears of new records;
//! and the watch over the lease.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::seeds::Seeds;
use super::{Shared, State};
use crate::clock;
use crate::label::Labels;
use crate::lease::{Lease, Timing};
use crate::placement::Placement;
use crate::protocol::{
    Answer, Broken, Greeting, No, RECORD_LEN_MAX, Refusal, Request, WIRE_FLOOR, read, write,
};
use crate::record::{Member, Record};
use crate::transport::{self, GREETING_TIMEOUT, Whom};

/// Pause before another try.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// How long joining waits for an answer before it tries by another connection.
const JOIN_SILENCE_MAX: Duration = Duration::from_secs(3);

/// How often the lease is looked at: a node that was stopped freezes this soon after it goes on.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the node wants of the authority.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) leaves: bool,
    pub(super) goodbye: bool,
    /// Why the authority that was dialled last is not trusted, or does not trust this node.
    pub(super) untrusted: Option<String>,
    /// Why it could not join so far.
    pub(super) is_name_taken: bool,
}

/// Keeps the node a member until it leaves or is evicted.
pub(super) async fn keep(shared: Arc<Shared>) {
    let lease = Mutex::new(None);
    let mut seeds = Seeds::new(shared.config.authorities.clone());
    let mut tries = 0_usize;
    while !matches!(*shared.state.borrow(), State::Evicted | State::Left) {
        let Some(address) = seeds.next() else { return };
        tries = tries.wrapping_add(1);
        // All that are known have the same turn.
        let turn = tries / shared.config.authorities.len().max(1);
        let mut has_answered = false;
        if let Err(why) = converse(&shared, &lease, (&address, turn), &mut has_answered).await {
            tracing::debug!(%why, address, "the conversation with the authority ended");
            transport::tell_untrusted(&shared.guard, &address, &why);
            if let Broken::Untrusted(why) = &why {
                let why = format!("{address}: {why}");
                shared.wants.send_modify(|wants| wants.untrusted = Some(why));
            } else if has_answered {
                shared.wants.send_modify(|wants| wants.untrusted = None);
            }
            match why {
                Broken::Elsewhere(leader) => seeds.elsewhere(clock::now(), leader),
                Broken::Silent => seeds.silent(&address, clock::now() + renew_every(&lease)),
                _ if has_answered => seeds.leads(&address),
                _ => seeds.silent(&address, clock::now() + renew_every(&lease)),
            }
        }
        sleep(RETRY_EVERY).await;
    }
}

/// Freezes the node when its lease runs out, and thaws it when it has one again.
pub(super) async fn watch_lease(shared: Arc<Shared>) {
    loop {
        sleep(LOOK_EVERY).await;
        let state = *shared.state.borrow();
        let Some(node) = shared.node() else { return };
        match (state, shared.is_serving()) {
            (State::Serving, false) => {
                tracing::warn!(node = node.name(), "the lease has run out: frozen");
                shared.state.send_if_modified(|state| change(state, State::Serving, State::Frozen));
                // It may be renewed while handlers still run; the flag is set at once.
                _ = timeout(LOOK_EVERY, node.freeze()).await;
            }
            (State::Frozen, true) => {
                tracing::info!(node = node.name(), "the lease is renewed");
                node.thaw();
                shared.state.send_if_modified(|state| change(state, State::Frozen, State::Serving));
                shared.renewed.notify_waiters();
            }
            (State::Evicted | State::Left, _) => return,
            _ => {}
        }
    }
}

fn change(state: &mut State, from: State, to: State) -> bool {
    let is_from = *state == from;
    if is_from {
        *state = to;
    }
    is_from
}

/// The pause between renewals, by the lease that there is.
fn renew_every(lease: &Mutex<Option<Lease>>) -> Duration {
    lease.lock().as_ref().map_or(JOIN_SILENCE_MAX, Lease::renew_every)
}

async fn converse(
    shared: &Arc<Shared>,
    lease: &Mutex<Option<Lease>>,
    (address, turn): (&str, usize),
    has_answered: &mut bool,
) -> Result<(), Broken> {
    // Whoever has a lease has no time for one who hangs.
    let patience = (renew_every(lease) / 2).min(GREETING_TIMEOUT);
    let whom = Whom { address, turn, node: None };
    let mut stream = transport::dial(&shared.guard, &whom, patience).await?;
    let cluster = shared.config.cluster.clone();
    write(&mut stream, &Greeting { version: WIRE_FLOOR, cluster, from: 0, to: 0 }).await?;
    let (mut from, mut to) = tokio::io::split(stream);
    if lease.lock().is_none() {
        join(shared, lease, &mut from, &mut to).await?;
        *has_answered = true;
    }
    tokio::select! {
        ended = hear(shared, lease, from, has_answered) => ended,
        ended = tell(shared, lease, to) => ended,
    }
}

async fn join(
    shared: &Arc<Shared>,
    lease: &Mutex<Option<Lease>>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Broken> {
    let member = Member {
        incarnation: shared.me(),
        name: shared.config.name.clone(),
        address: shared.address.clone(),
        stage: shared.config.role.stage(),
        since: 0,
        frame_len_max: shared.config.frame_len_max as u64,
        labels: shared.labels(),
    };
    let mut known = 0;
    loop {
        write(to, &Request::Join { member: member.clone(), known }).await?;
        match hear_one(from, JOIN_SILENCE_MAX).await? {
            Answer::Joined { lease_ms, record } => {
                let Some(member) = record.member(shared.me()) else { continue };
                shared.since.store(member.since, Ordering::Release);
                let timing = Timing { lease: Duration::from_millis(lease_ms) };
                *lease.lock() = Some(Lease::new(timing));
                shared.wants.send_modify(|wants| wants.is_name_taken = false);
                let _turn = shared.turn.lock();
                shared.follow(record);
                return Ok(());
            }
            Answer::Outdated { view } => known = view,
            Answer::Refused { why: Refusal::NameTaken } => {
                shared.wants.send_modify(|wants| wants.is_name_taken = true);
                sleep(RETRY_EVERY).await;
            }
            Answer::Elsewhere { leader } => return Err(Broken::Elsewhere(leader)),
            Answer::Refused { why: Refusal::Certificate } => return Err(No::Certificate.heard()),
            // Of a record that changed meanwhile.
            _ => {}
        }
    }
}

/// Reads an answer; one that does not come means that the connection is broken, though nobody has
/// said so.
async fn hear_one(
    from: &mut (impl AsyncRead + Unpin),
    silence_max: Duration,
) -> Result<Answer, Broken> {
    let answer = timeout(silence_max, read::<Answer>(from, RECORD_LEN_MAX));
    answer.await.map_err(|_| Broken::Silent)?
}

async fn hear(
    shared: &Arc<Shared>,
    lease: &Mutex<Option<Lease>>,
    mut from: impl AsyncRead + Unpin,
    has_answered: &mut bool,
) -> Result<(), Broken> {
    // Every renewal is answered, so another connection can still save the lease.
    let renew_every = renew_every(lease);
    loop {
        // The first one was sent at once.
        let pause = if *has_answered { renew_every } else { Duration::ZERO };
        let answer = hear_one(&mut from, pause + renew_every / 2).await?;
        *has_answered = true;
        match answer {
            Answer::Renewed { counter, record } => {
                let until = lease.lock().as_mut().map_or(Duration::ZERO, |lease| {
                    lease.renewed(counter);
                    lease.until()
                });
                // Before the lease: with it comes the right to serve what the record says.
                if let Some(record) = record {
                    follow(shared, record);
                }
                if matches!(*shared.state.borrow(), State::Evicted | State::Left) {
                    return Ok(());
                }
                let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
                shared.lease_until.store(until, Ordering::Release);
                shared.state.send_if_modified(|at| change(at, State::Joining, State::Serving));
                // Also where nobody has noticed that there was no lease for a moment.
                shared.renewed.notify_waiters();
            }
            Answer::News { record } => follow(shared, record),
            Answer::Refused { why: Refusal::Evicted } => end(shared),
            Answer::Elsewhere { leader } => return Err(Broken::Elsewhere(leader)),
            Answer::Refused { why: Refusal::Certificate } => return Err(No::Certificate.heard()),
            Answer::Refused { .. }
            | Answer::Joined { .. }
            | Answer::Outdated { .. }
            | Answer::Done => {}
        }
        if matches!(*shared.state.borrow(), State::Evicted | State::Left) {
            return Ok(());
        }
    }
}

fn follow(shared: &Arc<Shared>, record: Record) {
    let _turn = shared.turn.lock();
    let since = shared.since.load(Ordering::Acquire);
    if record.member(shared.me()).is_some_and(|member| member.since == since) {
        shared.follow(record);
    } else {
        end(shared);
    }
}

/// The node is no member any more.
fn end(shared: &Arc<Shared>) {
    let _turn = shared.turn.lock();
    shared.lease_until.store(0, Ordering::Release);
    let has_left = shared.wants.borrow().goodbye;
    let state = if has_left { State::Left } else { State::Evicted };
    if let Some(node) = shared.node().filter(|_| !has_left) {
        tracing::error!(node = node.name(), "evicted: others have its buckets");
        // Its actors live elsewhere now: no hook may run.
        node.kill();
    }
    shared.forget_others(state);
}

/// The member is dropped. Its actors live elsewhere as soon as the lease has run out, and nobody
/// would freeze them.
pub(super) fn abandon(shared: &Arc<Shared>) {
    let state = *shared.state.borrow();
    if state.has_ended() || state == State::Joining {
        return;
    }
    shared.lease_until.store(0, Ordering::Release);
    if let Some(node) = shared.node() {
        tracing::warn!(node = node.name(), "its member is dropped: killed");
        node.kill();
    }
    let _turn = shared.turn.lock();
    shared.forget_others(State::Evicted);
}

async fn tell(
    shared: &Arc<Shared>,
    lease: &Mutex<Option<Lease>>,
    mut to_authority: impl AsyncWrite + Unpin,
) -> Result<(), Broken> {
    let incarnation = shared.me();
    let mut wants = shared.wants.subscribe();
    let (mut pause, mut has_said_it_leaves) = (RETRY_EVERY, false);
    loop {
        let view = *shared.view.borrow();
        // The clock is read before the renewal leaves: the lease counts from here.
        let counter = lease.lock().as_mut().map(|lease| {
            pause = lease.renew_every();
            lease.renew(clock::now())
        });
        let Some(counter) = counter else { return Ok(()) };
        let labels = shared.labels_to_tell();
        let renew = Request::Renew { incarnation, counter, view, labels };
        write(&mut to_authority, &renew).await?;
        let next = tokio::time::Instant::now() + pause;
        loop {
            let (leaves, goodbye) = {
                let now = wants.borrow_and_update();
                (now.leaves, now.goodbye)
            };
            if leaves && !has_said_it_leaves {
                has_said_it_leaves = true;
                write(&mut to_authority, &Request::Leave { incarnation }).await?;
            }
            let (buckets, epochs): (Vec<_>, Vec<_>) = shared.to_release().into_iter().unzip();
            if !buckets.is_empty() {
                write(&mut to_authority, &Request::Released { incarnation, buckets, epochs })
                    .await?;
            }
            let (buckets, to): (Vec<_>, Vec<_>) = shared.to_pin().into_iter().unzip();
            if !buckets.is_empty() {
                write(&mut to_authority, &Request::Pin { incarnation, buckets, to }).await?;
            }
            if goodbye {
                write(&mut to_authority, &Request::Goodbye { incarnation }).await?;
            }
            match tokio::time::timeout_at(next, wants.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(()),
                Err(_) => break,
            }
        }
    }
}

impl Shared {
    /// Who waits for other nodes hears that they are lost, because this one is.
    fn forget_others(self: &Arc<Self>, state: State) {
        let later = self.core.lock().lose_all();
        self.finish(later);
        self.state.send_replace(state);
    }

    /// What the record does not say of this node's labels.
    fn labels_to_tell(&self) -> Option<Labels> {
        let labels = self.labels();
        let record = self.core.lock().router.record().clone();
        let is_told = |member: &Member| labels.are_in(&member.labels);
        (!record.member(self.me()).is_some_and(is_told)).then_some(labels)
    }

    /// Buckets that are to live on a certain member, and do not yet as the record says.
    fn to_pin(&self) -> Vec<(u32, u64)> {
        let record = self.core.lock().router.record().clone();
        let placement = Placement::new(&record.members);
        let mut pinned = self.pinned.lock();
        pinned.retain(|bucket, to| {
            let may_take = placement.candidates(*bucket).has(*to);
            may_take && record.holding(*bucket).pinned != Some(*to)
        });
        pinned.iter().map(|(bucket, to)| (*bucket, *to)).collect()
    }

    /// Buckets that are released and still stand in the record as this node's.
    fn to_release(&self) -> Vec<(u32, u64)> {
        let record = self.core.lock().router.record().clone();
        let mut released = self.released.lock();
        released.retain(|bucket, epoch| {
            let holding = record.holding(*bucket);
            holding.owner == Some(self.me()) && holding.epoch == *epoch
        });
        released.iter().map(|(bucket, epoch)| (*bucket, *epoch)).collect()
    }
}
