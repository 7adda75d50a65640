//! What one connection may do and does: speaks for its own players, one act at a time each.
//!
//! An act runs in a task of its own, so that a region that is being rebuilt holds up nobody else. A question whose actor was
//! killed is asked again: acts are numbered, so asking twice is answered twice and done once.

use std::collections::HashMap;
use std::sync::Arc;

use althing::{ActorRef, AskError};
use parking_lot::Mutex;

use super::outbox::Outbox;
use crate::actors::{
    Acted, PlayerActor, PlayerActorCalls, SessionActor, SessionActorCalls, Setback,
    is_worth_a_retry,
};
use crate::journal::Birth;
use crate::limits::{ABSENCE_MAX, RETRY_FOR, RETRY_PAUSE, SOCKET_PLAYERS_MAX};
use crate::map::{CLEARING, has_camp_on_land};
use crate::place::{Place, PlayerId, REGIONS, RegionId, RegionsInView};
use crate::rules::{Act, Deed, Refusal};
use crate::wire::{Command, Joined, Malformed, Notice};
use crate::world::{Seat, SocketId, World};

/// Characters of a name.
const NAME_CHARS_MAX: usize = 16;

pub(super) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    id: SocketId,
    world: Arc<World>,
    outbox: Arc<Outbox>,
    session: ActorRef<SessionActor>,
    players: Mutex<HashMap<PlayerId, Playing>>,
}

#[derive(Clone)]
struct Playing {
    seat: Arc<Seat>,
    player: ActorRef<PlayerActor>,
    /// What this connection sees because of it.
    view: Option<RegionsInView>,
}

impl Connection {
    pub(super) fn open(world: Arc<World>, outbox: Arc<Outbox>) -> Self {
        let session = world.node().spawn(SessionActor::new(world.clone(), outbox.clone()));
        let id = world.attendance.next_socket();
        Self { shared: Arc::new(Shared { id, world, outbox, session, players: Mutex::default() }) }
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    /// Does what a message says.
    pub(super) fn read(&self, mut message: &[u8]) -> Result<(), Malformed> {
        while let Some(command) = Command::take(&mut message)? {
            match command {
                Command::Act(act) => self.shared.act(act),
                Command::Join { tag, near, name } => self.shared.join(tag, near, name),
                Command::Resume { player, token } => self.shared.resume(player, token),
                Command::Watch => self.shared.watch(),
            }
        }
        Ok(())
    }

    /// Ends the session; players that nobody takes over leave the world after a while.
    pub(super) fn close(self) {
        let shared = self.shared;
        shared.outbox.close();
        drop(shared.session.stop());
        let players = std::mem::take(&mut *shared.players.lock());
        for playing in players.values() {
            playing.seat.leave(shared.id);
        }
        tokio::spawn(async move {
            shared.world.node().sleep(ABSENCE_MAX).await;
            for playing in players.into_values().filter(|playing| playing.seat.is_empty()) {
                dismiss(&shared.world, &playing.player).await;
            }
        });
    }
}

/// Lets a player leave whose connection is gone.
pub(crate) async fn dismiss(world: &World, player: &ActorRef<PlayerActor>) {
    let left = again(world, || player.leave()).await;
    if !matches!(left, Ok(Ok(()) | Err(Setback::Refused(_)))) {
        tracing::warn!(player = %player.id(), "a player cannot leave");
    }
}

impl Shared {
    fn act(self: &Arc<Self>, act: Act) {
        let playing = self.players.lock().get(&act.player).cloned();
        let Some(playing) = playing.filter(|playing| playing.seat.is_of(self.id)) else {
            return self.refuse(act.player.0, act.seq.0, Refusal::NotYours);
        };
        if !playing.seat.begin() {
            return self.refuse(act.player.0, act.seq.0, Refusal::Busy);
        }
        let shared = self.clone();
        tokio::spawn(async move {
            let acted = again(&shared.world, || playing.player.act(act)).await;
            // Before the answer, because the next act may follow it at once.
            playing.seat.end();
            match flat(acted) {
                Ok(acted) => shared.acted(&act, &acted),
                Err(refusal) => shared.refuse(act.player.0, act.seq.0, refusal),
            }
        });
    }

    fn acted(&self, act: &Act, acted: &Acted) {
        self.world.counters.done.count();
        self.outbox.answer(&Notice::Done(acted.outcome));
        if act.deed == Deed::Leave {
            let playing = self.players.lock().remove(&act.player);
            self.look(playing.and_then(|playing| playing.view), None);
            return;
        }
        let Some(here) = Place::new(acted.outcome.x, acted.outcome.y) else { return };
        let now = here.regions_in_view();
        if acted.from.regions_in_view() != now {
            let mut players = self.players.lock();
            let view = players.get_mut(&act.player).and_then(|playing| playing.view.replace(now));
            drop(players);
            self.look(view, Some(now));
        }
    }

    fn join(self: &Arc<Self>, tag: u32, near: Option<RegionId>, name: Box<str>) {
        if let Err(refusal) = self.may_join(&name) {
            return self.refuse(tag, 0, refusal);
        }
        let (player, seat) = match self.world.attendance.admit(self.id) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(tag, 0, refusal),
        };
        let token = random();
        let near = near.unwrap_or_else(random_region);
        let place = start_place(nearest_on_land(self.world.seed, near), token);
        let birth = Birth { token, name };
        // Reserved at once, so that a flood of joins is counted before it is answered.
        let playing = Playing { seat, player: self.world.player(player), view: None };
        self.players.lock().insert(player, playing.clone());
        let shared = self.clone();
        tokio::spawn(async move {
            let join = || playing.player.join(tag, place, birth.clone());
            match flat(again(&shared.world, join).await) {
                Ok(joined) => shared.joined(joined, playing),
                Err(refusal) => {
                    shared.players.lock().remove(&player);
                    shared.world.attendance.dismiss(player);
                    shared.refuse(tag, 0, refusal);
                }
            }
        });
    }

    fn may_join(&self, name: &str) -> Result<(), Refusal> {
        let len = name.chars().count();
        if len == 0 || len > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(Refusal::BadName);
        }
        if self.players.lock().len() >= SOCKET_PLAYERS_MAX {
            return Err(Refusal::TooManyPlayers);
        }
        Ok(())
    }

    fn resume(self: &Arc<Self>, player: PlayerId, token: u64) {
        let Some(seat) = self.world.attendance.seat(player) else {
            return self.refuse(player.0, 0, Refusal::NoSuchPlayer);
        };
        if self.players.lock().len() >= SOCKET_PLAYERS_MAX {
            return self.refuse(player.0, 0, Refusal::TooManyPlayers);
        }
        let shared = self.clone();
        tokio::spawn(async move {
            let address = shared.world.player(player);
            let resumed = again(&shared.world, || address.resume(token)).await;
            match resumed.and_then(|resumed| resumed) {
                Ok(joined) => {
                    seat.take(shared.id);
                    shared.joined(joined, Playing { seat, player: address, view: None });
                }
                Err(refusal) => shared.refuse(player.0, 0, refusal),
            }
        });
    }

    fn joined(&self, joined: Joined, mut playing: Playing) {
        let place = Place::new(joined.state.x, joined.state.y);
        let view = place.map(Place::regions_in_view);
        playing.view = view;
        let before = self.players.lock().insert(joined.state.player, playing);
        self.outbox.answer(&Notice::Joined(joined));
        self.look(before.and_then(|before| before.view), view);
    }

    fn watch(&self) {
        self.look(None, Some(RegionsInView::all()));
    }

    fn look(&self, before: Option<RegionsInView>, now: Option<RegionsInView>) {
        let session = self.session.clone();
        // Only a session that has ended refuses; nobody looks any more then.
        if session.look(before, now).try_tell().is_err() {
            tokio::spawn(async move { session.look(before, now).tell().await.ok() });
        }
    }

    fn refuse(&self, player: u32, seq: u32, refusal: Refusal) {
        self.world.counters.refusal(refusal);
        self.outbox.answer(&Notice::refused(player, seq, refusal));
    }
}

fn flat<T>(settled: Result<Result<T, Setback>, Refusal>) -> Result<T, Refusal> {
    match settled? {
        Ok(value) => Ok(value),
        Err(Setback::Refused(refusal)) => Err(refusal),
        Err(Setback::Stale) => Err(Refusal::Unavailable),
    }
}

/// An answer that asks to be asked again.
trait Answer {
    fn is_stale(&self) -> bool;
}

impl<T> Answer for Result<T, Setback> {
    fn is_stale(&self) -> bool {
        matches!(self, Err(Setback::Stale))
    }
}

impl<T> Answer for Result<T, Refusal> {
    fn is_stale(&self) -> bool {
        false
    }
}

/// Asks until there is an answer: whoever was killed comes back with the next question.
async fn again<T: Answer, C>(world: &World, mut ask: impl FnMut() -> C) -> Result<T, Refusal>
where
    C: Future<Output = Result<T, AskError>>,
{
    let node = world.node();
    let until = node.elapsed() + RETRY_FOR;
    let mut is_first = true;
    loop {
        match ask().await {
            Ok(answer) if !answer.is_stale() => return Ok(answer),
            Err(error) if !is_worth_a_retry(&error) || node.elapsed() > until => {
                tracing::warn!(%error, "a player does not answer");
                return Err(Refusal::Unavailable);
            }
            _ => world.counters.retries.count(),
        }
        if !is_first {
            node.sleep(RETRY_PAUSE).await;
        }
        is_first = false;
    }
}

/// That region, or the next one whose camp is no island of its own.
fn nearest_on_land(seed: u64, region: RegionId) -> RegionId {
    let after = (1..REGIONS).map(|step| (region.number() + step) % REGIONS);
    let mut regions = std::iter::once(region).chain(after.filter_map(RegionId::new));
    regions.find(|region| has_camp_on_land(seed, *region)).unwrap_or(region)
}

/// Somewhere in the inner half of the clearing around a region's camp.
fn start_place(region: RegionId, random: u64) -> Place {
    const REACH: u16 = CLEARING / 2;
    let offset =
        |bits: u64| u16::try_from(bits % u64::from(2 * REACH + 1)).expect("a clearing is small");
    let camp = region.camp();
    let (dx, dy) = (offset(random >> 8), offset(random >> 24));
    Place::new(camp.x() + dx - REACH, camp.y() + dy - REACH).expect("camps lie inside the world")
}

fn random_region() -> RegionId {
    let number = u16::try_from(random() % u64::from(REGIONS)).expect("below REGIONS");
    RegionId::new(number).expect("below REGIONS")
}

/// A random number nobody can guess: tokens are secrets.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // Keyed by the operating system's randomness, anew for each call but one key per thread: hashing hides it.
    RandomState::new().hash_one(std::time::Instant::now())
}
