//! Tells connections who of those on their screens comes to the room and goes, and how many there
//! are altogether.
//!
//! What is told of somebody is how it is now, never a change of what was told before: a connection
//! that could not be told is told everything again, and nothing has to be kept for it. Counts are
//! told together with what has gathered, so that a crowd that comes is no crowd of counts.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use althing::wire::{Depth, WireField};
use althing::{ActorRef, Context, Handler, Recipient, SendError, Wire, WireError};
use folkmoot_protocol::{Channel, chat, rpc};

use super::actor::Room;
use super::online::OnlineClient;
use super::watchers::{Watcher, Watchers};
use crate::connection::Ear;
use crate::storage::UserId;
use crate::stream::{Coming, NO_OTHER_PUBLISHER, Place, Presence, Publication};
use crate::wire;

/// How late a new count is told, and how soon a connection that is behind is told again.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How the session of a connection is told.
type Told = Recipient<Presence, ()>;

/// What a connection of a subscriber shows of the people in the room.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    pub(crate) client: Arc<str>,
    /// Higher than that of each earlier screen of the connection.
    pub(crate) number: u64,
    pub(crate) told: Told,
    pub(crate) users: Vec<UserId>,
}

/// Between nodes, the session is reached by its connection's ear, whose address it has then.
impl Wire for Screen {
    fn encode(&self, out: &mut Vec<u8>) {
        let Self { client, number, told, users } = self.clone();
        (client, number, told.id(), users).encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        type There = (Arc<str>, u64, ActorRef<Ear>, Vec<UserId>);
        let (client, number, ear, users) = There::decode_within(bytes, depth)?;
        Ok(Self { client, number, told: ear.recipient(), users })
    }
}

impl WireField for Screen {}

/// Who looks at whom, and what is left to tell them.
#[derive(Debug, Default)]
pub(super) struct Looking {
    watchers: Watchers<Told>,
    /// How many users there were when all who look were told so last.
    users_told: usize,
    /// Somebody may be behind.
    is_late: bool,
    /// [`TellAgain`] is on its way.
    tells_again: bool,
}

/// Tells counts that have changed, and connections that are behind.
#[derive(Debug)]
pub(super) struct TellAgain;

impl Room {
    /// Whoever is online is remembered beside the others.
    pub(super) fn note_online(&mut self) {
        let (_, users) = self.online.counts();
        if let Some(state) = &mut self.state {
            state.people.set_online(users);
        }
    }

    /// Tells that connections of `user` look at the room no more.
    pub(super) fn tell_leaving(
        &mut self,
        user: UserId,
        gone: &[Arc<OnlineClient>],
        ctx: &mut Context<Self>,
    ) {
        for client in gone {
            self.look_away(&client.client);
            let coming = Coming::leave(Channel::Room(self.id), client.info());
            self.comings.publish(Arc::new(coming)).expect(NO_OTHER_PUBLISHER);
        }
        if !gone.is_empty() && !self.online.has(user) {
            self.tell_presence(user, ctx);
        }
    }

    /// Takes whom a connection has on screen, and tells it how they are.
    pub(super) fn look(&mut self, screen: Screen, ctx: &mut Context<Self>) {
        let Screen { client, number, told, users } = screen;
        if self.looking.watchers.is_empty() {
            self.looking.users_told = self.online.counts().1;
        }
        self.looking.watchers.set(&client, number, told, users);
        self.tell_everything(&client);
        self.tell_again_soon(ctx);
    }

    /// Forgets a connection that is gone.
    fn look_away(&mut self, client: &str) {
        self.looking.watchers.remove(client);
    }

    /// Tells of a user who has come or gone those who look at them.
    pub(super) fn tell_presence(&mut self, user: UserId, ctx: &mut Context<Self>) {
        if self.looking.watchers.has(user) {
            let is_here = self.online.has(user);
            let (online, away) = if is_here { (vec![user], vec![]) } else { (vec![], vec![user]) };
            // Encoded once for all who look.
            let presence = self.presence_of(online, away);
            let is_late = &mut self.looking.is_late;
            self.looking.watchers.each_of(user, |watcher| {
                *is_late |= !tell(watcher, presence.clone());
            });
        }
        self.tell_again_soon(ctx);
    }

    /// Tells a connection of everybody on its screen.
    fn tell_everything(&mut self, client: &str) {
        let Some(watcher) = self.looking.watchers.get(client) else { return };
        if watcher.users.is_empty() {
            return;
        }
        let users = watcher.users.iter().copied();
        let (online, away) = users.partition(|user| self.online.has(*user));
        let presence = self.presence_of(online, away);
        if let Some(watcher) = self.looking.watchers.get_mut(client) {
            watcher.is_behind = false;
            self.looking.is_late |= !tell(watcher, presence);
        }
    }

    fn presence_of(&self, online: Vec<UserId>, away: Vec<UserId>) -> Presence {
        let (_, users) = self.online.counts();
        let (room, users) = (self.id, wire::count(users));
        let event = chat::RoomEvent::Presence { room, online, away, users };
        let (channel, data) = (Channel::Room(self.id), rpc::encode_payload(&event));
        Presence(Arc::new(Publication::new(channel, Place::Fleeting, data)))
    }

    fn tell_again_soon(&mut self, ctx: &mut Context<Self>) {
        let (_, users) = self.online.counts();
        let looking = &mut self.looking;
        let is_news = looking.users_told != users || looking.is_late;
        if is_news && !looking.tells_again && !looking.watchers.is_empty() {
            looking.tells_again = true;
            ctx.after(TOLD_AGAIN_AFTER, TellAgain);
        }
    }
}

impl Handler<TellAgain> for Room {
    type Reply = ();

    async fn handle(&mut self, _: TellAgain, ctx: &mut Context<Self>) {
        self.looking.tells_again = false;
        let (_, users) = self.online.counts();
        if self.looking.users_told != users {
            self.looking.users_told = users;
            let count = self.presence_of(Vec::new(), Vec::new());
            let is_late = &mut self.looking.is_late;
            self.looking.watchers.each(|watcher| *is_late |= !tell(watcher, count.clone()));
        }
        if std::mem::take(&mut self.looking.is_late) {
            for client in self.looking.watchers.behind() {
                self.tell_everything(&client);
            }
        }
        self.tell_again_soon(ctx);
    }
}

/// Never waits: a session that has no room for it is behind, one that has ended is about to say so.
/// Says whether nothing is left to tell it.
fn tell(watcher: &mut Watcher<Told>, presence: Presence) -> bool {
    let is_full =
        matches!(watcher.told.try_tell(presence), Err(SendError::Full(_) | SendError::Timeout(_)));
    watcher.is_behind |= is_full;
    !is_full
}
