//! The User actor: the user's own stream, memberships, read cursors and connected devices.
//!
//! Like a room it appends without waiting and publishes what is durable. It may ask rooms; rooms
//! only ever tell it, so the two cannot wait for each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use althing::{ActorError, Context, Published, ReplyTo, StopReason, Subscription, Wire, actor};
use folkmoot_protocol::chat::{self, UserEvent, UserView};
use folkmoot_protocol::rpc::ReadState;
use folkmoot_protocol::{Channel, DisconnectCode};

use super::cursors::Unsaved;
use super::idle::Idle;
use super::news::News;
use super::state::{Membership, UserChange, UserState};
use super::view::{read_state, room_view_of};
use super::{UserError, load};
use crate::connection::Line;
use crate::nodes::Moved;
use crate::ports::Ports;
use crate::room::view::{Mention, Summary};
use crate::room::{AskedRoom, Room, RoomCalls, RoomError};
use crate::storage::ReadError;
use crate::storage::contract::{Directory, UserLog};
use crate::storage::record::{LeaveReason, Notify, Record, UserRecord};
use crate::storage::{Account, Erased};
use crate::storage::{DeviceId, Offset, RoomId, Seq, UnixMillis, UserId};
use crate::stream::{Attached, Since, Stream, missed};
use crate::wire;

/// One user, while a device is connected or a room has something to tell.
#[derive(Debug)]
pub(crate) struct User {
    pub(super) ports: Ports,
    pub(super) id: UserId,
    /// `None`: there is no such user.
    pub(super) known: Option<(Account, UserState)>,
    pub(super) stream: Stream<Pending>,
    /// Of one or a few devices, of most users one.
    pub(super) connections: Vec<Attachment>,
    pub(super) idle: Idle,
    /// News that could not be stored when it came.
    pub(super) owed: Vec<News>,
    /// Cursors that have moved and are not on their way to the disk yet.
    pub(super) unsaved: BTreeMap<RoomId, Unsaved>,
    /// `None` on a server alone.
    moves: Option<Box<Subscription>>,
    /// A node was lost since the store was read.
    pub(super) is_in_doubt: bool,
}

/// A connection of one of the user's devices.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Attachment {
    pub(crate) client: Arc<str>,
    pub(crate) device: DeviceId,
    pub(crate) line: Line,
}

/// A record under way to the disk, and what to do once it is there.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) record: UserRecord,
    pub(super) acknowledge: Acknowledge,
}

#[derive(Debug)]
pub(super) enum Acknowledge {
    Nobody,
    /// Nobody waits, but it must not be lost: it is taken again if it could not be stored.
    News(News),
    Done(ReplyTo<Result<(), UserError>>),
}

impl User {
    /// What the node makes users with.
    pub(crate) async fn load(id: UserId, ports: Ports) -> Result<Self, ActorError> {
        let topic = ports.topic(Channel::User(id));
        let mut user = Self {
            ports,
            id,
            known: None,
            stream: Stream::new(Channel::User(id), topic),
            connections: Vec::new(),
            idle: Idle::default(),
            owed: Vec::new(),
            unsaved: BTreeMap::new(),
            moves: None,
            is_in_doubt: false,
        };
        user.reload().await?;
        Ok(user)
    }

    /// Takes the state from the store: what is durable, and nothing else.
    pub(super) async fn reload(&mut self) -> Result<(), ReadError> {
        let Some(loaded) = load::load(self.ports.streams(), self.id).await? else {
            self.known = None;
            return Ok(());
        };
        let (account, mut state) = (loaded.account, loaded.state);
        // These were acknowledged from memory.
        for (room, unsaved) in &self.unsaved {
            state.advance(*room, unsaved.seq);
        }
        self.known = Some((account, state));
        self.stream.begin(loaded.epoch, loaded.tail);
        Ok(())
    }

    pub(super) fn state(&self) -> Result<&UserState, UserError> {
        self.known.as_ref().map(|(_, state)| state).ok_or(UserError::NoSuchUser)
    }

    pub(super) fn membership_of(&self, room: RoomId) -> Result<&Membership, UserError> {
        self.state()?.rooms.get(room).ok_or(UserError::NotMember)
    }

    async fn list_again(&mut self, room: RoomId, ctx: &mut Context<Self>) -> Result<(), UserError> {
        let Some(change) = self.state()?.listed(room, true) else { return Ok(()) };
        let membership = self.membership_of(room)?.clone();
        let summary = match AskedRoom::new(&self.ports, room).summary(self.id).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(RoomError::NoSuchRoom | RoomError::Refused(_))) => {
                return Err(UserError::NotMember);
            }
            Ok(Err(_)) | Err(_) => return Err(UserError::RoomAway),
        };
        let mut view = room_view_of(self.ports.streams(), &summary, &membership).await;
        // What people said is kept in one place, where it can be erased.
        view.last = None;
        let event = UserEvent::RoomAdded { room: Box::new(view) };
        self.append(change, &event, Acknowledge::Nobody, ctx);
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        change: UserChange,
        event: &UserEvent,
        acknowledge: Acknowledge,
        ctx: &mut Context<Self>,
    ) {
        if let Err(error) = self.stream.admits(self.ports.streams()) {
            let news = acknowledge.failed(|| UserError::Append(error.clone()));
            return self.owe(news, ctx);
        }
        let Some((_, state)) = &mut self.known else { return };
        let record = UserRecord {
            user: self.id,
            offset: state.commit(change),
            at: UnixMillis::from_u64(ctx.now().0),
            data: serde_json::to_string(event).expect("an event has no failing parts"),
            effect: change.effect(),
        };
        let logged = Record::User(record.clone());
        self.stream.append(self.ports.streams(), &logged, Pending { record, acknowledge });
        self.wait(ctx);
    }

    /// Those in memory may know the old profile; the others ask for it when it is needed.
    fn tell_rooms(&self, view: &UserView) {
        for room in self.state().into_iter().flat_map(|state| state.rooms.keys()) {
            let room = self.ports.node.get::<Room>(room);
            if !self.ports.may_be_active(&room) {
                continue;
            }
            let told = room.renamed(view.clone()).try_tell();
            if let Err(error) = told {
                tracing::debug!(room = %room.id(), %error, "a room goes on with an old profile");
            }
        }
    }

    pub(super) fn wait(&mut self, ctx: &mut Context<Self>) {
        if let Some(wait) = self.stream.wait() {
            ctx.pipe(wait, |settled| settled);
        }
    }
}

#[actor(name = "folkmoot.user", key = UserId, wire)]
impl User {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.check_idle(ctx);
        self.moves = self.ports.moves().map(|moves| Box::new(moves.subscribe(&ctx.address())));
        Ok(())
    }

    /// Nodes may be gone, with the user's connections there.
    #[event]
    async fn on_moved(&mut self, event: &Published<Moved>, ctx: &mut Context<Self>) {
        self.forget_lost(&event.payload, ctx).await;
    }

    /// A room tells that the user is a member now.
    pub(crate) async fn joined(&mut self, room: RoomId, read_seq: Seq, ctx: &mut Context<Self>) {
        self.take(News::Joined { room, read_seq }, ctx).await;
    }

    /// A room tells that the user is no member any more.
    pub(crate) async fn left(
        &mut self,
        room: RoomId,
        reason: LeaveReason,
        ctx: &mut Context<Self>,
    ) {
        self.take(News::Left { room, reason }, ctx).await;
    }

    /// A room that the user is in is being deleted; answers once the user's stream says so.
    #[delayed]
    pub(crate) async fn room_deleted(
        &mut self,
        room: RoomId,
        reply: ReplyTo<Result<(), UserError>>,
        ctx: &mut Context<Self>,
    ) {
        // It would make the room's read state anew after that is erased.
        self.unsaved.remove(&room);
        match self.state().map(|state| state.room_removed(room)) {
            Ok(Some(change)) => {
                let reason = chat::LeaveReason::Deleted;
                let event = UserEvent::RoomRemoved { room, reason };
                self.append(change, &event, Acknowledge::Done(reply), ctx);
            }
            // Told before, or gone too.
            Ok(None) | Err(_) => {
                reply.send(Ok(()));
            }
        }
    }

    /// The account is deleted: all connections end, and nothing is written into the stream any
    /// more.
    pub(crate) async fn close(&mut self) {
        for connection in &self.connections {
            connection.line.close(DisconnectCode::InvalidToken);
        }
        self.known = None;
        self.owed.clear();
        self.unsaved.clear();
        self.stream.clear();
    }

    /// What is erased from the stream in the store leaves memory here.
    pub(crate) async fn forget(&mut self, what: Erased) {
        self.stream.redact(|event: &mut UserEvent| what.leave(event));
    }

    /// A room tells that a message mentions the user.
    pub(crate) async fn mentioned(&mut self, mention: Mention, ctx: &mut Context<Self>) {
        self.take(News::Mentioned(mention), ctx).await;
    }

    /// A room tells that a message mentions the user no more: it was edited or deleted.
    pub(crate) async fn unmentioned(&mut self, room: RoomId, seq: Seq, ctx: &mut Context<Self>) {
        self.take(News::Unmentioned { room, seq }, ctx).await;
    }

    /// A direct room tells that something was said there: it is back on the list.
    pub(crate) async fn stirred(&mut self, room: RoomId, seq: Seq, ctx: &mut Context<Self>) {
        if let Err(error) = self.list_again(room, ctx).await {
            tracing::warn!(user = %self.id, %room, %seq, %error, "a hidden room stays hidden");
        }
    }

    /// Puts a room back on the user's list and tells the devices. Stored here, as what hides it is:
    /// of two devices that do both at once, the list and the store have the same one last.
    pub(crate) async fn show(
        &mut self,
        room: RoomId,
        ctx: &mut Context<Self>,
    ) -> Result<(), UserError> {
        let shown = self.ports.streams().show_room(self.id, room).await;
        shown.map_err(UserError::Control)?;
        self.list_again(room, ctx).await
    }

    /// Takes a room off the user's list, unless something was said there after `seq`.
    pub(crate) async fn hide(
        &mut self,
        room: RoomId,
        seq: Seq,
        ctx: &mut Context<Self>,
    ) -> Result<(), UserError> {
        self.membership_of(room)?;
        let hidden = self.ports.streams().hide_room(self.id, room, seq).await;
        hidden.map_err(UserError::Control)?;
        let Some(change) = self.state()?.listed(room, false) else { return Ok(()) };
        let reason = chat::LeaveReason::Left;
        let event = UserEvent::RoomRemoved { room, reason };
        self.append(change, &event, Acknowledge::Nobody, ctx);
        // What was said meanwhile was told before, when there was nothing to put back.
        let summary = AskedRoom::new(&self.ports, room).summary(self.id).await;
        match summary {
            Ok(Ok(summary)) if summary.last_seq > seq => self.list_again(room, ctx).await,
            _ => Ok(()),
        }
    }

    /// The user has blocked somebody, or lifted it. Two devices that do both at once tell it in any
    /// order, so what is stored counts.
    pub(crate) async fn blocked(&mut self, other: UserId, on: bool) {
        let on = self.ports.streams().has_blocked(self.id, other).await.unwrap_or(on);
        if let Some((_, state)) = &mut self.known {
            match on {
                true => state.blocked.insert(other),
                false => state.blocked.remove(&other),
            };
        }
    }

    /// A room tells that the user has sent a message: whoever writes has read what stands above.
    /// Saved a moment later, because it happens with every message.
    pub(crate) async fn sent(&mut self, room: RoomId, seq: Seq, ctx: &mut Context<Self>) {
        self.advance(room, seq, None, ctx);
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        self.save_cursors(ctx);
        self.ports.hand_over(Channel::User(self.id)).await;
    }

    /// Moves the read cursor of a room forward; the user's other devices hear of it. Answered from
    /// memory: the disk follows a moment later.
    pub(crate) async fn read_up_to(
        &mut self,
        seq: Seq,
        summary: Summary,
        ctx: &mut Context<Self>,
    ) -> Result<ReadState, UserError> {
        let room = summary.id;
        let mut known = self.membership_of(room)?.clone();
        let moved = self.state()?.read(room, seq, summary.last_seq);
        let Some(UserChange::Read { seq, .. }) = moved else {
            return Ok(read_state(&known, &summary));
        };
        known.read_to(seq);
        let state = read_state(&known, &summary);
        self.advance(room, seq, Some(state.clone()), ctx);
        self.show_others(room, &state);
        Ok(state)
    }

    /// Sets what the user wants to hear of a room.
    #[delayed]
    pub(crate) async fn set_notify(
        &mut self,
        room: RoomId,
        notify: Notify,
        reply: ReplyTo<Result<(), UserError>>,
        ctx: &mut Context<Self>,
    ) {
        let change = match self.membership_of(room) {
            // The state is ahead of the disk: what it says already may still be taken back.
            Ok(_) if !self.stream.is_settled() => Ok(Some(UserChange::NotifySet { room, notify })),
            Ok(_) => self.state().map(|state| state.notify(room, notify)),
            Err(error) => Err(error),
        };
        match change {
            Ok(Some(change)) => {
                let event = UserEvent::Settings { room, notify: notify.into() };
                self.append(change, &event, Acknowledge::Done(reply), ctx);
            }
            unchanged => {
                reply.send(unchanged.map(drop));
            }
        }
    }

    /// Tells the user's devices of a message that was saved or taken off the list, which the store
    /// has already: of two devices that do both at once the later one may tell it first, so what is
    /// stored counts. Answers once the user's stream says so.
    #[delayed]
    pub(crate) async fn saved(
        &mut self,
        room: RoomId,
        seq: Seq,
        on: bool,
        reply: ReplyTo<Result<(), UserError>>,
        ctx: &mut Context<Self>,
    ) {
        match self.state().map(drop) {
            Ok(()) => {
                let stored = self.ports.streams().saved_numbers(self.id).await;
                let on = stored.map_or(on, |saved| saved.contains(&(room, seq)));
                let event = UserEvent::Saved { room, seq, on };
                self.append(UserChange::Saved, &event, Acknowledge::Done(reply), ctx);
            }
            Err(error) => {
                reply.send(Err(error));
            }
        }
    }

    /// Takes a new profile, which the store has already. Of two devices that choose at once the later
    /// one may tell it first, so what is stored counts.
    pub(crate) async fn renamed(&mut self, view: UserView, ctx: &mut Context<Self>) {
        let stored = self.ports.streams().account(self.id).await.ok().flatten();
        let view = stored.map_or(view, wire::user_view);
        if let Some((account, _)) = &mut self.known {
            account.display_name.clone_from(&view.display_name);
            account.picture = view.picture;
            account.status.clone_from(&view.status);
        }
        self.tell_rooms(&view);
        self.take(News::Renamed(view), ctx).await;
    }

    /// Accepts a connection, which has joined the topic already: what is published after the
    /// position given here reaches it from there.
    #[delayed]
    pub(crate) async fn attach(
        &mut self,
        connection: Attachment,
        since: Option<Since>,
        reply: ReplyTo<Result<Attached, UserError>>,
        ctx: &mut Context<Self>,
    ) {
        if !self.ports.may_have_connections(connection.line.home()) {
            return;
        }
        let limit = self.ports.limits().connections_per_user_max;
        // One that comes twice, because the answer to the first time was lost, is one.
        self.connections.retain(|known| known.client != connection.client);
        if self.connections.len() >= limit {
            reply.send(Err(UserError::TooManyConnections(limit)));
            return;
        }
        self.connections.reserve_exact(1);
        self.connections.push(connection);
        self.stay(ctx);
        let since = match self.stream.accept(since, self.ports.epoch()) {
            Ok(attached) => {
                reply.send(Ok(attached));
                return;
            }
            Err(since) => since,
        };
        let (store, channel, offset) =
            (self.ports.streams().clone(), Channel::User(self.id), self.stream.last());
        ctx.detach(async move {
            let missed = missed(&store, channel, since, offset).await;
            reply.send(missed.map(|missed| Attached { offset, missed }).map_err(UserError::Read));
        });
    }

    pub(crate) async fn detach(&mut self, client: Arc<str>, ctx: &mut Context<Self>) {
        self.connections.retain(|known| known.client != client);
        if self.connections.is_empty() {
            self.check_idle(ctx);
        }
    }

    /// Ends the connections of devices that the store has signed out.
    pub(crate) async fn end_signed_out(&mut self) -> Result<(), UserError> {
        if self.connections.is_empty() {
            return Ok(());
        }
        let devices = self.ports.streams().devices(self.id).await.map_err(UserError::Read)?;
        self.keep_only(&devices);
        Ok(())
    }

    /// Ends the connections of all devices.
    pub(crate) async fn disconnect(&mut self, code: DisconnectCode) {
        for connection in &self.connections {
            connection.line.close(code);
        }
    }

    /// The rooms on the user's list, at most `limit` of those after `after`.
    pub(crate) async fn memberships(
        &self,
        after: Option<RoomId>,
        limit: usize,
    ) -> Result<Vec<(RoomId, Membership)>, UserError> {
        let rooms = self.state()?.rooms.after(after);
        let rooms = rooms.filter(|(_, membership)| !membership.is_hidden).take(limit);
        Ok(rooms.map(|(room, membership)| (room, membership.clone())).collect())
    }

    /// The last event of the user's stream.
    pub(crate) async fn position(&self) -> Offset {
        self.stream.last()
    }

    pub(crate) async fn membership(&self, room: RoomId) -> Result<Membership, UserError> {
        self.membership_of(room).cloned()
    }
}
