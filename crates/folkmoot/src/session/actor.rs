//! The Session actor: one connection's subscriptions. Publications reach it from topics by
//! reference and leave as shared bytes; nothing is encoded or copied per subscriber.

use std::sync::Arc;
use std::time::Duration;

use althing::{
    Actor, ActorRef, Context, Handler, Published, Receives, SendError, StopReason, actor,
};
use folkmoot_protocol::frame::{Push, PushKind, Unsubscribe};
use folkmoot_protocol::limits::{CHANNELS_PER_CONNECTION_MAX, WATCHED_USERS_PER_CONNECTION_MAX};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{Channel, DisconnectCode, ErrorCode, Format};

use super::abroad::Abroad;
use super::channels::Channels;
use super::cursor::Gap;
use crate::nodes::Moved;
use crate::room::RoomCalls;
use crate::server::Server;
use crate::storage::{Offset, UserId};
use crate::stream::{Coming, Presence, Publication, Removed};
use crate::user::UserCalls;
use folkmoot_gateway::Outbox;

/// The SDKs do not subscribe again by themselves after a code below 2500.
const UNSUBSCRIBED_BY_SERVER: u32 = 2000;

/// How long it is tried to take a connection back from a node that has no room for it: one that is lost
/// is given up long before, and with it what was sent there.
const DETACH_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Session {
    pub(super) server: Arc<Server>,
    pub(super) client: Arc<str>,
    pub(super) user: UserId,
    pub(super) format: Format,
    pub(super) outbox: Arc<Outbox>,
    pub(super) channels: Channels,
    /// How many screens the connection has named.
    pub(super) screens: u64,
    /// What other nodes know of the connection; a server alone needs none of it.
    pub(super) abroad: Option<Box<Abroad>>,
}

/// Whether a subscriber wants to hear of the connections that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comings {
    Wanted,
    Unwanted,
}

impl Session {
    pub(crate) fn new(
        server: Arc<Server>,
        client: Arc<str>,
        user: UserId,
        format: Format,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self {
            server,
            client,
            user,
            format,
            outbox,
            channels: Channels::default(),
            screens: 0,
            abroad: None,
        }
    }

    fn deliver(&mut self, publication: &Arc<Publication>) {
        match self.channels.take(publication) {
            Ok(false) => {}
            Ok(true) => self.send(publication),
            Err(Gap) => self.outbox.close(DisconnectCode::InsufficientState),
        }
    }

    pub(super) fn send(&mut self, publication: &Publication) {
        self.outbox.push(publication.encoded(self.format).clone());
        match publication.removes {
            Some(Removed::User(user)) if user == self.user => {
                self.remove(publication.channel, "not a member any more");
            }
            Some(Removed::Everybody) => self.remove(publication.channel, "the room was deleted"),
            Some(Removed::User(_)) | None => {}
        }
    }

    /// What came behind one's own removal, or the end of the room, is nobody's here any more.
    fn send_held(&mut self, channel: Channel, held: &[Arc<Publication>]) {
        for publication in held {
            if !self.channels.has(channel) {
                return;
            }
            self.send(publication);
        }
    }

    /// Ends a subscription that the user may not keep.
    pub(super) fn remove(&mut self, channel: Channel, reason: &str) {
        if !self.channels.remove(channel) {
            return;
        }
        let reason = reason.to_owned();
        let kind = PushKind::Unsubscribe(Unsubscribe { code: UNSUBSCRIBED_BY_SERVER, reason });
        let push = Push { channel: channel.to_string(), kind: Some(kind) };
        self.outbox.push(self.format.encode_push(push).expect("the push has no payload"));
    }

    /// Takes the connection back that a channel's owner knows. Nobody waits for that: a node that does
    /// not answer may be where it lives.
    pub(super) fn detach(&self, channel: Channel) {
        detach(&self.server, channel, self.user, &self.client);
    }
}

/// Takes a connection back that a channel's owner knows.
pub(super) fn detach(server: &Server, channel: Channel, user: UserId, client: &Arc<str>) {
    match channel {
        Channel::Room(room) => {
            let room = server.room(room);
            tell_in_time(&room, room.detach(user, client.clone()).try_tell());
        }
        Channel::User(user) => {
            let user = server.user(user);
            tell_in_time(&user, user.detach(client.clone()).try_tell());
        }
    }
}

/// What found no room is told once there is some, behind what was sent before: otherwise the connection
/// would stay among those that are there.
fn tell_in_time<A, M>(to: &ActorRef<A>, told: Result<(), SendError<M>>)
where
    A: Actor + Receives<M>,
    M: Send + 'static,
{
    let Err(refused) = told else { return };
    let (to, message) = (to.clone(), refused.into_message());
    tokio::spawn(async move {
        if to.send(message).timeout(DETACH_TIMEOUT).tell().await.is_err() {
            let id = to.id();
            tracing::warn!(actor = %id, "a connection that has ended could not be taken back");
        }
    });
}

#[actor(name = "folkmoot.session")]
impl Session {
    /// Joins a channel's topic; its publications are held until `go_live`.
    pub(crate) async fn join(
        &mut self,
        channel: Channel,
        comings: Comings,
        ctx: &mut Context<Self>,
    ) -> Result<(), RpcError> {
        if self.channels.has(channel) {
            return Err(ErrorCode::AlreadySubscribed.into());
        }
        // One of them is the user's own, which nobody asks for.
        if self.channels.len() > CHANNELS_PER_CONNECTION_MAX {
            let text = format!("at most {CHANNELS_PER_CONNECTION_MAX} channels per connection");
            return Err(RpcError::new(ErrorCode::LimitExceeded, text));
        }
        let subscription = self.server.topic(channel).subscribe(&ctx.address());
        let comings = (comings == Comings::Wanted)
            .then(|| self.server.comings(channel).subscribe(&ctx.address()));
        let home = self.server.home_of(channel);
        self.channels.join(channel, home, subscription, comings);
        Ok(())
    }

    /// The reply with everything up to `position` is out: sends what came after it.
    pub(crate) async fn go_live(
        &mut self,
        channel: Channel,
        position: Offset,
        ctx: &mut Context<Self>,
    ) {
        match self.channels.go_live(channel, position) {
            Ok(held) => self.send_held(channel, &held),
            Err(Gap) => self.outbox.close(DisconnectCode::InsufficientState),
        }
        self.catch_up(channel, ctx);
    }

    /// Other nodes reach the connection by this ear, and know it by this name and device.
    pub(crate) async fn go_abroad(&mut self, abroad: Abroad, ctx: &mut Context<Self>) {
        let moves = self.server.moves().subscribe(&ctx.address());
        self.abroad = Some(Box::new(abroad.told_of(moves)));
    }

    /// Leaves a channel; says whether it was joined.
    pub(crate) async fn leave(&mut self, channel: Channel) -> bool {
        let was_joined = self.channels.remove(channel);
        self.note_screen(channel, Vec::new());
        if was_joined {
            self.detach(channel);
        }
        was_joined
    }

    pub(crate) async fn has_joined(&self, channel: Channel) -> bool {
        self.channels.has(channel)
    }

    /// Counts the users of a channel that are to be on screen from now on, and numbers the screen:
    /// two of one connection may overtake each other on their way to the room.
    pub(crate) async fn watches(
        &mut self,
        channel: Channel,
        users: usize,
        kept: Vec<UserId>,
    ) -> Result<u64, RpcError> {
        let all = self.channels.watched_elsewhere(channel) + users;
        if all > WATCHED_USERS_PER_CONNECTION_MAX {
            let max = WATCHED_USERS_PER_CONNECTION_MAX;
            let text = format!("at most {max} users watched per connection; this would be {all}");
            return Err(RpcError::new(ErrorCode::LimitExceeded, text));
        }
        // The room refuses who is not subscribed.
        if self.channels.has(channel) {
            self.channels.watch(channel, users);
            self.note_screen(channel, kept);
        }
        self.screens += 1;
        Ok(self.screens)
    }

    #[event]
    async fn on_publication(&mut self, event: &Published<Arc<Publication>>) {
        self.deliver(&event.payload);
    }

    /// Not before the subscription's reply is out, and never recovered: presence tells the rest.
    #[event]
    async fn on_coming(&mut self, event: &Published<Arc<Coming>>) {
        let coming = &event.payload;
        if self.channels.is_live(coming.channel) {
            self.outbox.push(coming.encoded(self.format).clone());
        }
    }

    /// Rooms and users may live elsewhere now.
    #[event]
    async fn on_moved(&mut self, _: &Published<Moved>, ctx: &mut Context<Self>) {
        self.channels.names().into_iter().for_each(|channel| self.catch_up(channel, ctx));
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        if let Some(abroad) = &self.abroad {
            abroad.ear.kill();
        }
        for channel in std::mem::take(&mut self.channels).names() {
            self.detach(channel);
        }
    }
}

impl Handler<Presence> for Session {
    type Reply = ();

    /// Not held for a subscription's reply: it was asked for, so the reply is out or close.
    async fn handle(&mut self, Presence(publication): Presence, _: &mut Context<Self>) {
        if self.channels.has(publication.channel) {
            self.outbox.push(publication.encoded(self.format).clone());
        }
    }
}

#[cfg(test)]
mod tests;
