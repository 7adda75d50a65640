//! The Room actor: puts commands in order, appends what they lead to, and acknowledges and
//! publishes it once it is durable.
//!
//! It never waits for the disk: many appends are under way at once, `settle` completes them in
//! order. What the state says ahead of the disk nobody gets to see before; if an append fails,
//! all after it fail too and the state is loaded again.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use althing::{ActorError, Context, ReplyTo, Topic, actor};
use folkmoot_protocol::limits::PRESENCE_CLIENTS_MAX;
use folkmoot_protocol::{Channel, chat, rpc};

use super::command::{Decision, Refusal, Request};
use super::online::{Online, OnlineClient};
use super::state::{Kind, RoomState};
use super::view::{Done, Preview, Summary};
use super::{RoomError, load};
use crate::lane::Lane;
use crate::publication::{Coming, Place, Publication};
use crate::recovery::{Attached, Missed, Since};
use crate::server::{NO_OTHER_PUBLISHER, Server};
use crate::storage::ReadError;
use crate::storage::record::{Message, Record, RoomEvent, RoomRecord};
use crate::storage::{Offset, RoomId, Seq, UnixMillis, Upload, UserId, WriteEpoch};
use crate::tail::Tail;
use crate::wire;

/// Commands appended but not durable: about a hundred group syncs of a busy room.
const PENDING_MAX: usize = 16_384;

/// One room, while somebody needs it.
#[derive(Debug)]
pub(crate) struct Room {
    pub(super) server: Arc<Server>,
    pub(super) id: RoomId,
    /// `None`: there is no such room.
    pub(super) state: Option<RoomState>,
    pub(super) epoch: WriteEpoch,
    pub(super) lane: Lane,
    pub(super) pending: VecDeque<Pending>,
    pub(super) tail: Tail,
    /// The newest message that is durable.
    pub(super) last_seq: Seq,
    pub(super) last: Option<(UnixMillis, Message)>,
    pub(super) topic: Topic<Arc<Publication>>,
    pub(super) online: Online,
    pub(super) comings: Topic<Arc<Coming>>,
    idle_ticks: u32,
    /// Users whose ban, or its end, is on its way to the store: they cannot join meanwhile.
    pub(super) pending_bans: HashSet<UserId>,
}

/// A record under way to the disk.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) record: RoomRecord,
    /// The connection that caused it.
    pub(super) client: Option<Arc<str>>,
    /// Whom the message it changes mentions no more.
    pub(super) unmentioned: Vec<UserId>,
    pub(super) reply: ReplyTo<Result<Done, RoomError>>,
    /// Retries of the same send that came before it was durable.
    pub(super) repeats: Vec<(Done, ReplyTo<Result<Done, RoomError>>)>,
}

impl Room {
    /// What the node makes rooms with.
    pub(crate) async fn load(id: RoomId, server: Arc<Server>) -> Result<Self, ActorError> {
        let channel = Channel::Room(id);
        let (topic, comings) = (server.topic(channel), server.comings(channel));
        let mut room = Self {
            server,
            id,
            state: None,
            epoch: WriteEpoch::default(),
            lane: Lane::default(),
            pending: VecDeque::new(),
            tail: Tail::new(Offset::from_u64(0), super::TAIL_LEN),
            last_seq: Seq::from_u64(0),
            last: None,
            topic,
            online: Online::default(),
            comings,
            idle_ticks: 0,
            pending_bans: HashSet::new(),
        };
        room.reload().await?;
        Ok(room)
    }

    /// Takes the state from the store: what is durable, and nothing else.
    pub(super) async fn reload(&mut self) -> Result<(), ReadError> {
        let Some(loaded) = load::load(&self.server.store, self.id, self.server.now()).await? else {
            return Ok(());
        };
        self.last_seq = loaded.state.last_seq;
        self.state = Some(loaded.state);
        self.tail = loaded.tail;
        self.last = loaded.last;
        self.epoch = loaded.epoch;
        Ok(())
    }

    pub(super) fn state(&self) -> Result<&RoomState, RoomError> {
        self.state.as_ref().ok_or(RoomError::NoSuchRoom)
    }

    /// Appends a change; its reply waits for the disk.
    fn append(
        &mut self,
        event: RoomEvent,
        unmentioned: Vec<UserId>,
        client: Option<Arc<str>>,
        reply: ReplyTo<Result<Done, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        // Before the state is changed: with nothing to take back, a store that has too much to do
        // is not asked to load the room again as well.
        if let Err(error) = self.server.store.admits(self.epoch, Channel::Room(self.id)) {
            reply.send(Err(RoomError::Append(error)));
            return;
        }
        let now = now(ctx);
        let Some(state) = &mut self.state else { return };
        let record = state.commit(event, now);
        self.lane.push(self.server.store.append(self.epoch, &Record::Room(record.clone())));
        self.pending.push_back(Pending { record, client, unmentioned, reply, repeats: Vec::new() });
        self.wait(ctx);
    }

    /// Tells that connections look at the room no more.
    pub(super) fn tell_leaving(&self, gone: impl IntoIterator<Item = OnlineClient>) {
        for client in gone {
            let coming = Coming::leave(Channel::Room(self.id), client.info());
            self.comings.publish(Arc::new(coming)).expect(NO_OTHER_PUBLISHER);
        }
    }

    pub(super) fn wait(&mut self, ctx: &mut Context<Self>) {
        if let Some(wait) = self.lane.wait() {
            ctx.pipe(wait, |settled| settled);
        }
    }
}

#[actor(name = "folkmoot.room", key = RoomId)]
impl Room {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(self.server.config.room_idle / 2, super::CheckIdle);
        Ok(())
    }

    /// Judges a command; the answer comes once what it led to is durable.
    #[delayed]
    pub(crate) async fn apply(
        &mut self,
        request: Request,
        reply: ReplyTo<Result<Done, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        self.idle_ticks = 0;
        if let Some(error) = self.lane.broken() {
            reply.send(Err(RoomError::Append(error.clone())));
            return;
        }
        if self.pending.len() >= PENDING_MAX {
            reply.send(Err(RoomError::Busy));
            return;
        }
        let decision = match self.state() {
            Ok(state) => state.decide(&request, now(ctx)).map_err(RoomError::Refused),
            Err(error) => Err(error),
        };
        match decision {
            // Whoever comes in while a ban is stored would be a banned member.
            Ok(Decision::Append(RoomEvent::Joined { user, .. }))
                if self.pending_bans.contains(&user) =>
            {
                reply.send(Err(RoomError::Refused(Refusal::Banned)));
            }
            Ok(Decision::Append(event)) => {
                self.append(event, Vec::new(), request.client, reply, ctx);
            }
            Ok(Decision::Change { event, unmentioned }) => {
                self.append(event, unmentioned, request.client, reply, ctx);
            }
            Ok(Decision::Repeat(first)) => self.repeat(first, reply),
            // One after the other, or the store might take them in another order.
            Ok(Decision::Ban { user, .. }) if self.pending_bans.contains(&user) => {
                reply.send(Err(RoomError::Busy));
            }
            Ok(Decision::Ban { user, on }) => self.store_ban(request.by, user, on, reply, ctx),
            Ok(Decision::Nothing) => {
                let (at, offset) = (now(ctx), self.tail.last());
                reply.send(Ok(Done { at, offset, seq: None, is_repeat: true }));
            }
            Err(error) => {
                reply.send(Err(error));
            }
        }
    }

    /// Whether `by` may write here now, as somebody has to who uploads a file.
    pub(crate) async fn may_write(
        &mut self,
        by: UserId,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        Ok(self.state()?.speaker(by, now(ctx)).map(drop)?)
    }

    /// Takes in a file that has arrived; a message of its uploader may name it from now on.
    pub(crate) async fn uploaded(
        &mut self,
        upload: Upload,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        self.idle_ticks = 0;
        let state = self.state.as_mut().ok_or(RoomError::NoSuchRoom)?;
        state.uploads.add(upload, now(ctx));
        Ok(())
    }

    /// Tells those who look at the room that somebody is writing. Never stored.
    pub(crate) async fn typing(
        &mut self,
        by: UserId,
        on: bool,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        let member = self.state()?.speaker(by, now(ctx))?;
        let (room, user, name) = (self.id, by, member.display_name.clone());
        let data = rpc::encode_payload(&chat::RoomEvent::Typing { room, user, name, on });
        let channel = Channel::Room(self.id);
        let typing = Publication::new(channel, Place::Fleeting, data);
        self.topic.publish(Arc::new(typing)).expect(NO_OTHER_PUBLISHER);
        Ok(())
    }

    /// A user's actor tells that a member shows another profile now. Who looks at the room is told;
    /// it is not stored, because lists of members have it as well.
    pub(crate) async fn renamed(&mut self, view: chat::UserView) {
        let chat::UserView { id: user, name: _, display_name, picture, status } = view;
        let Some(state) = &mut self.state else { return };
        if !state.rename(user, display_name.clone()) {
            return;
        }
        let room = self.id;
        let event = chat::RoomEvent::Profile { room, user, display_name, picture, status };
        let data = rpc::encode_payload(&event);
        let told = Publication::new(Channel::Room(self.id), Place::Fleeting, data);
        self.topic.publish(Arc::new(told)).expect(NO_OTHER_PUBLISHER);
    }

    /// Accepts a subscriber, which has joined the topic already: what is published after the
    /// position given here reaches it from there.
    #[delayed]
    pub(crate) async fn attach(
        &mut self,
        client: OnlineClient,
        since: Option<Since>,
        reply: ReplyTo<Result<Attached, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        self.idle_ticks = 0;
        if let Err(refused) = self.state().and_then(|state| Ok(state.member(client.user)?)) {
            reply.send(Err(refused));
            return;
        }
        let info = client.info();
        if self.online.add(client) {
            let coming = Coming::join(Channel::Room(self.id), info);
            self.comings.publish(Arc::new(coming)).expect(NO_OTHER_PUBLISHER);
        }
        let offset = self.tail.last();
        let missed = match since {
            None => Missed::NotAsked,
            Some(since) if since.is_elsewhere(self.server.epoch()) => Missed::TooMuch,
            Some(since) => match self.tail.after(since.offset) {
                Some(publications) => Missed::from_memory(&publications),
                None => {
                    let (server, room) = (self.server.clone(), self.id);
                    ctx.detach(async move {
                        let missed = load::missed(&server.store, room, since.offset, offset);
                        let attached = missed.await.map(|missed| Attached { offset, missed });
                        reply.send(attached);
                    });
                    return;
                }
            },
        };
        reply.send(Ok(Attached { offset, missed }));
    }

    /// One of the two in a direct conversation blocks the other, or lifts the block.
    pub(crate) async fn set_blocked(&mut self, by: UserId, on: bool) {
        if let Some(state) = &mut self.state {
            match on {
                true => state.blockers.insert(by),
                false => state.blockers.remove(&by),
            };
        }
    }

    pub(crate) async fn detach(&mut self, client: Arc<str>) {
        let gone = self.online.remove(&client);
        self.tell_leaving(gone);
    }

    /// The room as the member `by` sees it.
    pub(crate) async fn summary(&self, by: UserId) -> Result<Summary, RoomError> {
        let state = self.state()?;
        let member = state.member(by)?;
        let peer = match state.kind {
            Kind::Direct => state.members.keys().find(|user| **user != by).copied(),
            Kind::Room => None,
        };
        Ok(Summary {
            id: self.id,
            kind: state.kind,
            name: state.name.clone(),
            topic: state.topic.clone(),
            members: state.members.len(),
            last_seq: self.last_seq,
            offset: self.tail.last(),
            role: member.role,
            muted_until: member.muted_until,
            peer,
            everyone: state.everyone.clone(),
            last: self
                .last
                .as_ref()
                .map(|(at, message)| wire::newest_message(self.id, *at, message, by)),
        })
    }

    /// The room as somebody with an invite sees it.
    pub(crate) async fn preview(&self) -> Result<Preview, RoomError> {
        let state = self.state()?;
        let (name, topic) = (state.name.clone(), state.topic.clone());
        Ok(Preview { name, topic, members: state.members.len() })
    }

    /// Whether `user` may become a member; false if it is one already.
    pub(crate) async fn may_join(&self, user: UserId) -> Result<bool, RoomError> {
        let state = self.state()?;
        if state.banned.contains(&user) {
            return Err(RoomError::Refused(Refusal::Banned));
        }
        Ok(!state.members.contains_key(&user))
    }

    /// Whether `user` is a member; nobody is one of a room that does not exist.
    pub(crate) async fn is_member(&self, user: UserId) -> bool {
        self.state.as_ref().is_some_and(|state| state.members.contains_key(&user))
    }

    /// Refuses who may not read the room; the last event of its stream for who may.
    pub(crate) async fn readable(&self, by: UserId) -> Result<Offset, RoomError> {
        self.state()?.member(by)?;
        Ok(self.tail.last())
    }

    /// Those of `users` that look at the room now.
    pub(crate) async fn online_among(
        &self,
        by: UserId,
        users: Vec<UserId>,
    ) -> Result<Vec<UserId>, RoomError> {
        self.state()?.member(by)?;
        Ok(users.into_iter().filter(|user| self.online.has(*user)).collect())
    }

    /// The connections that look at the room.
    pub(crate) async fn presence(&self, by: UserId) -> Result<Vec<OnlineClient>, RoomError> {
        self.state()?.member(by)?;
        if self.online.counts().0 > PRESENCE_CLIENTS_MAX {
            return Err(RoomError::Crowded);
        }
        Ok(self.online.clients().cloned().collect())
    }

    /// How many connections and users look at the room.
    pub(crate) async fn presence_stats(&self, by: UserId) -> Result<(usize, usize), RoomError> {
        self.state()?.member(by)?;
        Ok(self.online.counts())
    }
}

impl althing::Handler<super::CheckIdle> for Room {
    type Reply = ();

    /// Leaves memory after two quiet checks; presence is kept here only, so not while anyone looks.
    async fn handle(&mut self, _: super::CheckIdle, ctx: &mut Context<Self>) {
        self.idle_ticks += 1;
        let is_idle =
            self.online.is_empty() && self.pending.is_empty() && self.pending_bans.is_empty();
        if is_idle && self.idle_ticks > 2 || self.state.is_none() {
            ctx.passivate();
        }
    }
}

pub(super) fn now(ctx: &Context<Room>) -> UnixMillis {
    UnixMillis::from_u64(ctx.now().0)
}

impl From<Refusal> for RoomError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
