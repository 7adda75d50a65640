//! The Room actor: puts commands in order, appends what they lead to, and acknowledges and
//! publishes it once it is durable.
//!
//! It never waits for the disk: many appends are under way at once, `settle` completes them in
//! order. What the state says ahead of the disk nobody gets to see before; if an append fails,
//! all after it fail too and the state is loaded again.

use std::collections::HashSet;
use std::sync::Arc;

use althing::{
    ActorError, ActorRef, Context, Published, ReplyTo, StopReason, Subscription, Topic, actor,
};
use folkmoot_protocol::limits::PRESENCE_CLIENTS_MAX;
use folkmoot_protocol::{Channel, chat, rpc};

use super::command::Request;
use super::online::{Online, OnlineClient};
use super::people::Facts;
use super::presence::{Looking, Screen};
use super::recent::Recent;
use super::settle::now;
use super::shown::Shown;
use super::state::RoomState;
use super::view::{Done, Everyone, Preview, Summary};
use super::waiting::Waiting;
use super::{RoomError, load};
use crate::nodes::Moved;
use crate::ports::Ports;
use crate::storage::ReadError;
use crate::storage::record::{Record, RoomEvent, RoomRecord};
use crate::storage::{HistoryPage, Offset, PageAnchor, Rights, RoomId, Seq, Upload, UserId};
use crate::stream::{Attached, Coming, NO_OTHER_PUBLISHER, Since, Stream, missed};
use crate::user::User;
use crate::wire;

/// One room, while somebody needs it.
#[derive(Debug)]
pub(crate) struct Room {
    pub(super) ports: Ports,
    pub(super) id: RoomId,
    /// `None`: there is no such room.
    pub(super) state: Option<RoomState>,
    pub(super) stream: Stream<Pending>,
    /// The newest message that is durable.
    pub(super) last_seq: Seq,
    /// The newest messages, as far as they are durable.
    pub(super) recent: Recent,
    pub(super) shown: Shown,
    pub(super) online: Online,
    pub(super) comings: Topic<Arc<Coming>>,
    /// Whom the connections have on screen.
    pub(super) looking: Looking,
    pub(super) idle_ticks: u32,
    /// `None` on a server alone.
    moves: Option<Subscription>,
    /// Users whose ban, or its end, is on its way to the store: they cannot join meanwhile.
    pub(super) pending_bans: HashSet<UserId>,
    /// Commands that wait for what the room has to be told first.
    pub(super) waiting: Waiting,
}

/// To whoever gave a command.
pub(super) type Reply = ReplyTo<Result<Done, RoomError>>;

/// A record under way to the disk.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) record: RoomRecord,
    /// The connection that caused it.
    pub(super) client: Option<Arc<str>>,
    /// Whom the message it changes mentions no more.
    pub(super) unmentioned: Vec<UserId>,
    pub(super) reply: Reply,
    /// Answers that are true only if it becomes durable: retries, and whatever was judged by a state
    /// that it is the newest part of.
    pub(super) answers: Vec<(Result<Done, RoomError>, Reply)>,
}

impl Room {
    /// What the node makes rooms with.
    pub(crate) async fn load(id: RoomId, ports: Ports) -> Result<Self, ActorError> {
        let channel = Channel::Room(id);
        let (topic, comings) = (ports.topic(channel), ports.comings(channel));
        let mut room = Self {
            ports,
            id,
            state: None,
            stream: Stream::new(channel, topic),
            last_seq: Seq::from_u64(0),
            recent: Recent::default(),
            shown: Shown::default(),
            online: Online::default(),
            comings,
            looking: Looking::default(),
            idle_ticks: 0,
            moves: None,
            pending_bans: HashSet::new(),
            waiting: Waiting::default(),
        };
        room.reload().await?;
        Ok(room)
    }

    /// Takes the state from the store: what is durable, and nothing else.
    pub(super) async fn reload(&mut self) -> Result<(), ReadError> {
        let Some(loaded) = load::load(self.ports.streams(), self.id, self.ports.now()).await?
        else {
            self.state = None;
            return Ok(());
        };
        self.last_seq = loaded.state.last_seq;
        self.shown = Shown::of(&loaded.state);
        self.state = Some(loaded.state);
        self.note_online();
        self.stream.begin(loaded.epoch, loaded.tail);
        self.recent = loaded.recent;
        Ok(())
    }

    /// Takes in what was asked for, and notes that `by` acts here.
    pub(super) fn meet(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
    ) -> Result<&RoomState, RoomError> {
        let state = self.state.as_mut().ok_or(RoomError::NoSuchRoom)?;
        if let Some(facts) = facts {
            state.people.take_in(facts);
        }
        state.people.touch(by);
        Ok(state)
    }

    /// The same of somebody who only reads, and so has to be a member.
    fn meet_reader(&mut self, by: UserId, facts: Option<Facts>) -> Result<Rights, RoomError> {
        let state = self.state.as_mut().ok_or(RoomError::NoSuchRoom)?;
        if let Some(facts) = facts {
            state.people.take_in_readers(facts);
        }
        state.people.touch(by);
        Ok(state.reader(by)?)
    }

    pub(super) fn state(&self) -> Result<&RoomState, RoomError> {
        self.state.as_ref().ok_or(RoomError::NoSuchRoom)
    }

    /// Appends a change; its reply waits for the disk.
    pub(super) fn append(
        &mut self,
        event: RoomEvent,
        unmentioned: Vec<UserId>,
        client: Option<Arc<str>>,
        reply: ReplyTo<Result<Done, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        if let Err(error) = self.stream.admits(self.ports.streams()) {
            reply.send(Err(RoomError::Append(error)));
            return;
        }
        let now = now(ctx);
        let Some(state) = &mut self.state else { return };
        let record = state.commit(event, now);
        match &record.event {
            RoomEvent::Edited { seq, .. } | RoomEvent::Deleted { seq, .. } => {
                self.waiting.overtake(*seq);
            }
            RoomEvent::Reaction { seq, emoji, on: true, .. } => self.waiting.react(*seq, emoji),
            _ => {}
        }
        let logged = Record::Room(record.clone());
        let pending = Pending { record, client, unmentioned, reply, answers: Vec::new() };
        self.stream.append(self.ports.streams(), &logged, pending);
        self.wait(ctx);
    }

    pub(super) fn user(&self, user: UserId) -> ActorRef<User> {
        self.ports.node.get::<User>(user)
    }

    pub(super) fn wait(&mut self, ctx: &mut Context<Self>) {
        if let Some(wait) = self.stream.wait() {
            ctx.pipe(wait, |settled| settled);
        }
    }
}

#[actor(name = "folkmoot.room", key = RoomId, wire)]
impl Room {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(self.ports.limits().room_idle / 2, super::CheckIdle);
        self.moves = self.ports.moves().map(|moves| moves.subscribe(&ctx.address()));
        Ok(())
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        self.judge_what_waits(ctx).await;
        self.ports.hand_over(Channel::Room(self.id)).await;
        self.answer_what_is_stored().await;
    }

    /// Nodes may be gone, with the connections that looked at the room from there.
    #[event]
    async fn on_moved(&mut self, event: &Published<Moved>, ctx: &mut Context<Self>) {
        self.forget_lost(&event.payload, ctx);
        if event.payload.has_lost {
            self.look_for_blocks().await;
        }
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
        self.take(request, reply, ctx);
    }

    /// Deletes all messages up to one for good, because the room keeps them no longer; the answer
    /// comes once that is durable.
    #[delayed]
    pub(crate) async fn expire(
        &mut self,
        up_to: Seq,
        reply: ReplyTo<Result<Done, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        let event = match self.state() {
            Ok(state) => state.expire(up_to),
            Err(error) => {
                reply.send(Err(error));
                return;
            }
        };
        match event {
            Some(event) => self.append(event, Vec::new(), None, reply, ctx),
            None => {
                let (at, offset) = (now(ctx), self.stream.last());
                self.answer(Ok(Done { at, offset, seq: None, is_repeat: true }), reply);
            }
        }
    }

    /// Whether `by` may write here now, as somebody has to who uploads a file.
    pub(crate) async fn may_write(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        Ok(self.meet(by, facts)?.speaker(by, now(ctx)).map(drop)?)
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
        facts: Option<Facts>,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        let name = self.meet(by, facts)?.speaker(by, now(ctx))?.display_name.clone();
        let (room, user) = (self.id, by);
        let data = rpc::encode_payload(&chat::RoomEvent::Typing { room, user, name, on });
        self.stream.tell(data);
        Ok(())
    }

    /// A user's actor tells that a member shows another profile now. Who looks at the room is told;
    /// it is not stored, because lists of members have it as well.
    pub(crate) async fn renamed(&mut self, view: chat::UserView) {
        let chat::UserView { id: user, display_name, picture, status, .. } = view;
        let Some(state) = &mut self.state else { return };
        state.rename(user, display_name.clone());
        let room = self.id;
        let event = chat::RoomEvent::Profile { room, user, display_name, picture, status };
        self.stream.tell(rpc::encode_payload(&event));
    }

    /// Accepts a subscriber, which has joined the topic already: what is published after the
    /// position given here reaches it from there.
    #[delayed]
    pub(crate) async fn attach(
        &mut self,
        client: Arc<OnlineClient>,
        since: Option<Since>,
        facts: Option<Facts>,
        reply: ReplyTo<Result<Attached, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        self.idle_ticks = 0;
        if !self.ports.may_have_connections(client.node) {
            return;
        }
        if let Err(refused) = self.meet_reader(client.user, facts) {
            reply.send(Err(refused));
            return;
        }
        let (info, user) = (client.info(), client.user);
        let was_here = self.online.has(user);
        if self.online.add(client) {
            self.note_online();
            let coming = Coming::join(Channel::Room(self.id), info);
            self.comings.publish(Arc::new(coming)).expect(NO_OTHER_PUBLISHER);
            if !was_here {
                self.tell_presence(user, ctx);
            }
        }
        let since = match self.stream.accept(since, self.ports.epoch()) {
            Ok(attached) => {
                reply.send(Ok(attached));
                return;
            }
            Err(since) => since,
        };
        let (store, channel, offset) =
            (self.ports.streams().clone(), Channel::Room(self.id), self.stream.last());
        ctx.detach(async move {
            let missed = missed(&store, channel, since, offset).await;
            reply.send(missed.map(|missed| Attached { offset, missed }).map_err(RoomError::Read));
        });
    }

    /// One of the two in a direct conversation blocks the other, or lifts the block.
    pub(crate) async fn set_blocked(&mut self, by: UserId, on: bool) {
        self.take_block(by, on).await;
    }

    /// The room is being deleted: nobody gets at it any more, and who looks at it is told.
    pub(crate) async fn close(&mut self) {
        self.take_down();
    }

    /// The names of a user are erased from the store; here is where they leave memory.
    pub(crate) async fn unname(&mut self, user: UserId) {
        self.forget_names(user);
    }

    /// As `unname`, for the user's reactions.
    pub(crate) async fn unreact(&mut self, user: UserId) {
        self.recent.unreact(user);
    }

    pub(crate) async fn detach(&mut self, user: UserId, client: Arc<str>, ctx: &mut Context<Self>) {
        let Some(gone) = self.online.remove(user, client) else { return };
        self.note_online();
        self.tell_leaving(gone.user, &[gone], ctx);
    }

    /// Tells the connection of a subscriber of those on its screen: at once, and whenever one of
    /// them comes or goes.
    pub(crate) async fn watch(
        &mut self,
        by: UserId,
        screen: Screen,
        facts: Option<Facts>,
        ctx: &mut Context<Self>,
    ) -> Result<(), RoomError> {
        self.meet_reader(by, facts)?;
        if !self.online.has_client(by, &screen.client) {
            return Err(RoomError::NotSubscribed);
        }
        self.look(screen, ctx);
        Ok(())
    }

    /// The room as the member `by` sees it.
    pub(crate) async fn summary(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
    ) -> Result<Summary, RoomError> {
        let rights = self.meet_reader(by, facts)?;
        let state = self.state()?;
        let peer = state.pair.map(|(one, other)| if one == by { other } else { one });
        Ok(Summary {
            id: self.id,
            kind: state.kind,
            name: self.shown.name.clone(),
            topic: self.shown.topic.clone(),
            members: self.shown.members,
            last_seq: self.last_seq,
            first_seq: self.recent.first_kept(),
            offset: self.stream.last(),
            role: rights.role,
            muted_until: rights.muted_until,
            is_archived: self.shown.is_archived,
            peer,
            everyone: Everyone(state.everyone.clone()),
            last: self
                .recent
                .newest()
                .map(|(at, message)| wire::newest_message(self.id, at, message, by)),
        })
    }

    /// The room as somebody with an invite sees it.
    pub(crate) async fn preview(&self) -> Result<Preview, RoomError> {
        self.state()?;
        let Shown { name, topic, members, .. } = self.shown.clone();
        Ok(Preview { name, topic, members })
    }

    /// Whether `user` may become a member; false if it is one already.
    pub(crate) async fn may_join(
        &mut self,
        user: UserId,
        facts: Option<Facts>,
    ) -> Result<bool, RoomError> {
        let state = self.meet(user, facts)?;
        if state.standing(user)?.rights.is_some() {
            return Ok(false);
        }
        state.may_come(user)?;
        Ok(true)
    }

    /// Whether `user` is a member; nobody is one of a room that does not exist.
    pub(crate) async fn is_member(
        &mut self,
        user: UserId,
        facts: Option<Facts>,
    ) -> Result<bool, RoomError> {
        Ok(self.meet(user, facts)?.standing(user)?.rights.is_some())
    }

    /// Refuses who may not read the room; the last event of its stream for who may.
    pub(crate) async fn readable(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
    ) -> Result<Offset, RoomError> {
        self.meet_reader(by, facts)?;
        Ok(self.stream.last())
    }

    /// A page of the room's messages, if all of it is in memory; refuses who may not read them.
    pub(crate) async fn page(
        &mut self,
        by: UserId,
        anchor: PageAnchor,
        limit: u32,
        facts: Option<Facts>,
    ) -> Result<Option<HistoryPage>, RoomError> {
        self.meet_reader(by, facts)?;
        Ok(self.recent.page(anchor, limit, by))
    }

    /// Those of `users` that look at the room now.
    pub(crate) async fn online_among(
        &mut self,
        by: UserId,
        users: Vec<UserId>,
        facts: Option<Facts>,
    ) -> Result<Vec<UserId>, RoomError> {
        self.meet_reader(by, facts)?;
        Ok(users.into_iter().filter(|user| self.online.has(*user)).collect())
    }

    /// The connections that look at the room.
    pub(crate) async fn presence(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
    ) -> Result<Vec<OnlineClient>, RoomError> {
        self.meet_reader(by, facts)?;
        if self.online.counts().0 > PRESENCE_CLIENTS_MAX {
            return Err(RoomError::Crowded);
        }
        Ok(self.online.clients().collect())
    }

    /// How many connections and users look at the room.
    pub(crate) async fn presence_stats(
        &mut self,
        by: UserId,
        facts: Option<Facts>,
    ) -> Result<(usize, usize), RoomError> {
        self.meet_reader(by, facts)?;
        Ok(self.online.counts())
    }
}
