//! What one connection may do and does: speaks for its own players, one act at a time each, on
//! whichever node they live.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::ActorRef;
use parking_lot::Mutex;

use super::player::{Arrival, PlayerActorCalls, Told};
use super::realm::Realm;
use super::session::{SessionActor, SessionActorCalls};
use crate::gateway::{Conversation, Host, Outbox, random, random_region, start_place};
use crate::limits::{ABSENCE_MAX, NAME_CHARS_MAX, SOCKET_PLAYERS_MAX};
use crate::place::{PlayerId, RegionId, RegionsInView};
use crate::rules::{Act, Deed, Refusal};
use crate::wire::{Command, Joined, Malformed, Notice, Outcome};
use crate::world::Counters;

/// Between two times that a player is asked whether it has left: its region may be on its way to
/// another node.
const DISMISS_EVERY: Duration = Duration::from_millis(200);
/// Numbers tried for a new player before it is refused: one in thousands is taken.
const NUMBERS_MAX: usize = 8;

pub(super) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    realm: Arc<Realm>,
    outbox: Arc<Outbox>,
    watcher: ActorRef<SessionActor>,
    /// By which players know who plays them.
    session: u64,
    players: Mutex<HashMap<PlayerId, Playing>>,
    /// Players that have asked to come and are not among `players` yet.
    coming: AtomicUsize,
}

/// A player of this connection.
#[derive(Clone, Copy, Debug)]
struct Playing {
    token: u64,
    /// What the connection sees because of it.
    view: Option<RegionsInView>,
    is_acting: bool,
}

impl Host for Realm {
    type Conversation = Connection;

    fn open(self: &Arc<Self>) -> Connection {
        let (realm, outbox) = (self.clone(), Arc::new(Outbox::default()));
        let watcher = realm.node().spawn(SessionActor::new(realm.clone(), outbox.clone()));
        let (players, coming) = (Mutex::default(), AtomicUsize::new(0));
        let session = random();
        Connection { shared: Arc::new(Shared { realm, outbox, watcher, session, players, coming }) }
    }
}

impl Conversation for Connection {
    fn read(&self, mut message: &[u8]) -> Result<(), Malformed> {
        while let Some(command) = Command::take(&mut message)? {
            match command {
                Command::Act(act) => self.shared.act(act),
                Command::Join { tag, near, name } => self.shared.join(tag, near, name),
                Command::Resume { player, token } => self.shared.resume(player, token),
                Command::Watch => self.shared.look(None, Some(RegionsInView::all())),
            }
        }
        Ok(())
    }

    fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    fn counters(&self) -> &Counters {
        &self.shared.realm.counters
    }

    /// Ends the watching; players that nobody takes over leave the world after a while.
    fn close(&self) {
        let shared = &self.shared;
        shared.outbox.close();
        drop(shared.watcher.stop());
        shared.see_off();
    }
}

impl Shared {
    /// Has the players leave the world after a while, unless somebody takes them over.
    fn see_off(self: &Arc<Self>) {
        let players = std::mem::take(&mut *self.players.lock());
        let shared = self.clone();
        tokio::spawn(async move {
            shared.realm.node().sleep(ABSENCE_MAX).await;
            for player in players.into_keys() {
                shared.dismiss(player).await;
            }
        });
    }

    async fn dismiss(&self, player: PlayerId) {
        let address = self.realm.player(player);
        while let Ok(false) = self.realm.again(|| address.dismiss(self.session)).await {
            self.realm.node().sleep(DISMISS_EVERY).await;
        }
    }

    fn act(self: &Arc<Self>, act: Act) {
        let token = match self.begin(act.player) {
            Ok(token) => token,
            Err(refusal) => return self.refuse(act.player.0, act.seq.0, refusal),
        };
        let shared = self.clone();
        tokio::spawn(async move {
            let player = shared.realm.player(act.player);
            let told = shared.realm.again(|| player.act(token, act)).await.flatten();
            shared.acted(&act, told);
        });
    }

    /// One act at a time: gives the secret by which the player does it.
    fn begin(&self, player: PlayerId) -> Result<u64, Refusal> {
        let mut players = self.players.lock();
        let playing = players.get_mut(&player).ok_or(Refusal::NotYours)?;
        match std::mem::replace(&mut playing.is_acting, true) {
            true => Err(Refusal::Busy),
            false => Ok(playing.token),
        }
    }

    fn acted(&self, act: &Act, told: Told) {
        let landed = match told {
            Ok(landed) => landed,
            Err(refusal) => {
                if let Some(playing) = self.players.lock().get_mut(&act.player) {
                    playing.is_acting = false;
                }
                return self.refuse(act.player.0, act.seq.0, refusal);
            }
        };
        let has_left = act.deed == Deed::Leave;
        let now = (!has_left).then(|| landed.event.to.regions_in_view());
        let before = {
            let mut players = self.players.lock();
            match players.get_mut(&act.player) {
                _ if has_left => players.remove(&act.player).and_then(|playing| playing.view),
                Some(playing) => {
                    playing.is_acting = false;
                    std::mem::replace(&mut playing.view, now)
                }
                // The connection has ended.
                None => return,
            }
        };
        self.realm.counters.done.count();
        self.outbox.answer(&Notice::Done(Outcome::of(&landed.event, landed.hints())));
        if before != now {
            self.look(before, now);
        }
    }

    fn join(self: &Arc<Self>, tag: u32, near: Option<RegionId>, name: Box<str>) {
        let len = name.chars().count();
        if len == 0 || len > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return self.refuse(tag, 0, Refusal::BadName);
        }
        if !self.keeps_room() {
            return self.refuse(tag, 0, Refusal::TooManyPlayers);
        }
        let token = random();
        let near = near.unwrap_or_else(random_region);
        let place = start_place(self.realm.seed, near, token);
        let arrival = Arrival { token, session: self.session };
        let shared = self.clone();
        tokio::spawn(async move {
            let mut told = Err(Refusal::WorldFull);
            for _ in 0..NUMBERS_MAX {
                // Nobody gives out numbers for all nodes: a player refuses who finds it taken.
                let player = shared.realm.player(PlayerId(random() as u32 | 1));
                let join = || player.join(arrival.clone(), name.to_string(), place);
                told = shared.realm.again(join).await.flatten();
                if told != Err(Refusal::NotYours) {
                    break;
                }
            }
            shared.joined(tag, token, told);
        });
    }

    fn resume(self: &Arc<Self>, player: PlayerId, token: u64) {
        if !self.keeps_room() {
            return self.refuse(player.0, 0, Refusal::TooManyPlayers);
        }
        let arrival = Arrival { token, session: self.session };
        let shared = self.clone();
        tokio::spawn(async move {
            let address = shared.realm.player(player);
            let told = shared.realm.again(|| address.resume(arrival.clone())).await.flatten();
            shared.joined(player.0, token, told);
        });
    }

    /// Keeps room for a player that comes, so that a flood of them is counted before it is
    /// answered; `joined` gives it back.
    fn keeps_room(&self) -> bool {
        let players = self.players.lock();
        let has_room = players.len() + self.coming.load(Ordering::Relaxed) < SOCKET_PLAYERS_MAX;
        if has_room {
            self.coming.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    fn joined(self: &Arc<Self>, tag: u32, token: u64, told: Told) {
        let landed = match told {
            Ok(landed) => landed,
            Err(refusal) => {
                self.coming.fetch_sub(1, Ordering::Relaxed);
                return self.refuse(tag, 0, refusal);
            }
        };
        let view = Some(landed.event.to.regions_in_view());
        let playing = Playing { token, view, is_acting: false };
        let before = {
            let mut players = self.players.lock();
            self.coming.fetch_sub(1, Ordering::Relaxed);
            players.insert(landed.event.player, playing)
        };
        let state = Outcome::of(&landed.event, landed.hints());
        self.outbox.answer(&Notice::Joined(Joined { tag, token, state }));
        self.look(before.and_then(|before| before.view), view);
        // Looked at after the player is in the table: either this sees it off, or `close` does.
        if self.outbox.is_closed() {
            self.see_off();
        }
    }

    fn look(&self, before: Option<RegionsInView>, now: Option<RegionsInView>) {
        let watcher = self.watcher.clone();
        // Only one that has ended refuses; nobody looks any more then.
        if watcher.look(before, now).try_tell().is_err() {
            tokio::spawn(async move { watcher.look(before, now).tell().await.ok() });
        }
    }

    fn refuse(&self, player: u32, seq: u32, refusal: Refusal) {
        self.realm.counters.refusal(refusal);
        self.outbox.answer(&Notice::refused(player, seq, refusal));
    }
}
