//! What one connection may do and does: speaks for its own players, one act at a time each.
//!
//! An act is handed to its player in place and answered through `Client` when it is durable. An
//! actor may die over it: the patrol finds acts without an answer and asks again. Acts are
//! numbered, so asking twice is answered twice and done once.

use std::sync::Arc;

use althing::{ActorRef, AskError};
use parking_lot::Mutex;

use super::Gateway;
use super::outbox::Outbox;
use super::socket::Conversation;
use super::start::{random, random_region, start_place};
use super::table::{Open, Playing, Table};
use crate::actors::{
    Acted, Client, Errand, Joining, PlayerActor, PlayerActorCalls, SessionActor, SessionActorCalls,
    Setback, is_worth_a_retry,
};
use crate::journal::Birth;
use crate::limits::{
    ABSENCE_MAX, ASK_AGAIN_AFTER, NAME_CHARS_MAX, RETRY_FOR, RETRY_PAUSE, SOCKET_PLAYERS_MAX,
    VIEW_LINGER,
};
use crate::place::{ActSeq, Place, PlayerId, RegionId, RegionsInView};
use crate::rules::{Act, Deed, Refusal};
use crate::wire::{Command, Joined, Malformed, Notice};
use crate::world::{Counters, SocketId, World};

pub(crate) struct Connection {
    shared: Arc<Shared>,
}

/// The part of a connection that its players and the patrol know.
pub(super) struct Shared {
    id: SocketId,
    world: Arc<World>,
    outbox: Arc<Outbox>,
    session: ActorRef<SessionActor>,
    players: Mutex<Table>,
}

impl Connection {
    pub(super) fn open(gateway: &Gateway) -> Self {
        let world = gateway.world.clone();
        let outbox = Arc::new(Outbox::default());
        let session = world.node().spawn(SessionActor::new(world.clone(), outbox.clone()));
        let id = world.attendance.next_socket();
        let shared = Arc::new(Shared { id, world, outbox, session, players: Mutex::default() });
        gateway.patrol.watch(&shared);
        Self { shared }
    }
}

impl Conversation for Connection {
    fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    fn counters(&self) -> &Counters {
        &self.shared.world.counters
    }

    fn read(&self, mut message: &[u8]) -> Result<(), Malformed> {
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
    fn close(&self) {
        let shared = &self.shared;
        shared.outbox.close();
        drop(shared.session.stop());
        shared.see_off();
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
    /// Has the players leave the world after a while, unless somebody takes them over.
    fn see_off(self: &Arc<Self>) {
        let players = std::mem::take(&mut *self.players.lock());
        for playing in players.iter() {
            playing.seat.leave(self.id);
        }
        let shared = self.clone();
        tokio::spawn(async move {
            shared.world.node().sleep(ABSENCE_MAX).await;
            for playing in players.into_iter() {
                if playing.seat.is_left_by(Some(shared.id)) {
                    dismiss(&shared.world, &playing.player).await;
                }
            }
        });
    }

    fn act(self: &Arc<Self>, act: Act) {
        let mut players = self.players.lock();
        let playing = players.get_mut(act.player).filter(|playing| playing.seat.is_of(self.id));
        let Some(playing) = playing else {
            drop(players);
            return self.refuse(act.player.0, act.seq.0, Refusal::NotYours);
        };
        if playing.open.is_some() {
            drop(players);
            return self.refuse(act.player.0, act.seq.0, Refusal::Busy);
        }
        let now = self.world.node().elapsed();
        playing.open = Some(Open { act, since: now, asked_at: now });
        let player = playing.player.clone();
        drop(players);
        self.ask(player, act);
    }

    /// Hands an act to its player, in place if it is idle. Whatever goes wrong, the patrol asks
    /// again.
    fn ask(self: &Arc<Self>, player: ActorRef<PlayerActor>, act: Act) {
        let errand = Errand { act, client: self.clone() };
        let mut asked = Box::pin(async move { drop(player.act(errand).await) });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        if asked.as_mut().poll(&mut cx).is_pending() {
            tokio::spawn(asked);
        }
    }

    /// Sends views that have waited long enough, and asks again for acts that have waited too long.
    pub(super) fn patrol(self: &Arc<Self>) {
        self.outbox.send_older_than(VIEW_LINGER.start);
        let now = self.world.node().elapsed();
        let (mut again, mut over) = (Vec::new(), Vec::new());
        for playing in self.players.lock().iter_mut() {
            let Some(open) = &mut playing.open else { continue };
            if now.saturating_sub(open.since) > RETRY_FOR {
                over.push(open.act);
                playing.open = None;
            } else if now.saturating_sub(open.asked_at) > ASK_AGAIN_AFTER {
                open.asked_at = now;
                again.push((playing.player.clone(), open.act));
            }
        }
        for (player, act) in again {
            self.world.counters.retries.count();
            self.ask(player, act);
        }
        for act in over {
            tracing::warn!(player = act.player.0, "a player does not answer");
            self.refuse(act.player.0, act.seq.0, Refusal::Unavailable);
        }
    }

    /// Which of so many turns of the patrol is this connection's.
    pub(super) fn turn(&self, turns: usize) -> usize {
        self.id.spread(turns)
    }

    pub(super) fn ping(&self) {
        self.outbox.ping();
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
        let place = start_place(self.world.seed, near, token);
        let joining = Joining { tag, birth: Birth { token, name } };
        // Reserved at once, so that a flood of joins is counted before it is answered.
        let playing = Playing { seat, player: self.world.player(player), view: None, open: None };
        self.players.lock().insert(player, playing.clone());
        let shared = self.clone();
        tokio::spawn(async move {
            let join = || playing.player.join(place, joining.clone());
            match flat(again(&shared.world, join).await) {
                Ok(joined) => shared.joined(joined, playing),
                Err(refusal) => {
                    shared.players.lock().remove(player);
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
                    shared
                        .joined(joined, Playing { seat, player: address, view: None, open: None });
                }
                Err(refusal) => shared.refuse(player.0, 0, refusal),
            }
        });
    }

    fn joined(self: &Arc<Self>, joined: Joined, mut playing: Playing) {
        let place = Place::new(joined.state.x, joined.state.y);
        let view = place.map(Place::regions_in_view);
        playing.view = view;
        let before = self.players.lock().insert(joined.state.player, playing);
        self.outbox.answer(&Notice::Joined(joined));
        self.look(before.and_then(|before| before.view), view);
        // Looked at after the player is in the table: either this sees it off, or `close` does.
        if self.outbox.is_closed() {
            self.see_off();
        }
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

impl Client for Shared {
    fn acted(&self, act: &Act, acted: &Acted) {
        let mut players = self.players.lock();
        let Some(playing) =
            players.get_mut(act.player).filter(|playing| playing.waits_for(act.seq))
        else {
            return;
        };
        playing.open = None;
        let here = Place::new(acted.outcome.x, acted.outcome.y).map(Place::regions_in_view);
        let now = if act.deed == Deed::Leave { None } else { here };
        let before = std::mem::replace(&mut playing.view, now);
        if act.deed == Deed::Leave {
            players.remove(act.player);
        }
        drop(players);
        self.world.counters.done.count();
        self.outbox.answer(&Notice::Done(acted.outcome));
        if before != now {
            self.look(before, now);
        }
    }

    fn refused(&self, player: PlayerId, seq: ActSeq, refusal: Refusal) {
        let mut players = self.players.lock();
        let Some(playing) = players.get_mut(player).filter(|playing| playing.waits_for(seq)) else {
            return;
        };
        playing.open = None;
        drop(players);
        self.refuse(player.0, seq.0, refusal);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::actors;
    use crate::journal::Journal;
    use crate::world::Attendance;

    #[tokio::test]
    async fn who_goes_amid_their_return_leaves_an_empty_seat() {
        let data = std::env::temp_dir().join(format!("hunt-return-{}", std::process::id()));
        std::fs::remove_dir_all(&data).ok();
        let (journal, _) = Journal::open(&data, 7).unwrap();
        let world = Arc::new(World::new(7, journal, Attendance::new([], 0)));
        actors::start(&world);
        let gateway = Gateway::new(world.clone());
        let (player, seat) = world.attendance.admit(world.attendance.next_socket()).unwrap();
        let place = start_place(world.seed, random_region(), 1);
        let joining = Joining { tag: 1, birth: Birth { token: 5, name: "ida".into() } };
        world.player(player).join(place, joining).await.unwrap().unwrap();

        // On one thread the answer to the return comes after the end of its connection.
        let connection = Connection::open(&gateway);
        connection.shared.resume(player, 5);
        connection.close();
        let is_left = async {
            while !seat.is_left_by(Some(connection.shared.id)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_left).await.expect("the seat is left");
        assert_eq!(connection.shared.players.lock().len(), 0);
    }
}
