//! Completes what became durable, in order: publish to the room, tell the users concerned,
//! acknowledge. Takes back everything after a failed append.

use super::RoomError;
use super::actor::{Pending, Reply, Room};
use super::idempotency::FirstSend;
use super::online::Online;
use super::presence::Looking;
use super::recent::Recent;
use super::shown::Shown;
use super::view::{Done, Mention};
use crate::storage::contract::{Directory, RoomLog};
use crate::storage::record::{RoomEvent, RoomRecord};
use crate::storage::{AppendError, ControlError};
use crate::storage::{Seq, UnixMillis, UserId};
use crate::stream::{Completed, Settled, of_room};
use crate::user::User;
use crate::user::user_messages::{Joined, Left, Mentioned, Sent, Stirred, Unmentioned};
use althing::{ActorRef, Context, Handler, ReplyTo};
use folkmoot_protocol::{chat, rpc};

/// A ban of an outsider went through the store, or not.
#[derive(Debug)]
pub(super) struct BanStored {
    user: UserId,
    on: bool,
    at: UnixMillis,
    outcome: Result<(), ControlError>,
    reply: ReplyTo<Result<Done, RoomError>>,
}

impl Handler<Settled> for Room {
    type Reply = ();

    async fn handle(&mut self, settled: Settled, ctx: &mut Context<Self>) {
        let Completed { durable, failed } = self.stream.settle(settled);
        for mut pending in durable {
            self.publish(&pending.record, pending.client.as_deref(), ctx);
            self.tell_users(&pending.record, ctx);
            let unmentioned = std::mem::take(&mut pending.unmentioned);
            self.tell_unmentioned(&pending.record, unmentioned, ctx);
            pending.acknowledge();
        }
        match failed {
            None => self.wait(ctx),
            Some(error) => self.take_back(&error, ctx).await,
        }
    }
}

impl Pending {
    /// Tells who waits that it is durable.
    fn acknowledge(self) {
        let Self { record, reply, answers, .. } = self;
        let seq = match &record.event {
            RoomEvent::Message(message) => Some(message.seq),
            _ => None,
        };
        let done = Done { at: record.at, offset: record.offset, seq, is_repeat: false };
        reply.send(Ok(done));
        for (answer, reply) in answers {
            reply.send(answer);
        }
    }

    /// Whether the store has it at its place, and not what another node put there.
    fn is_among(&self, stored: &[RoomRecord]) -> bool {
        let at = stored.binary_search_by_key(&self.record.offset, |record| record.offset);
        at.is_ok_and(|at| stored[at] == self.record)
    }
}

impl Room {
    /// A room that stops, or moves to another node, answers what has become durable meanwhile:
    /// nobody else could.
    pub(super) async fn answer_what_is_stored(&mut self) {
        if self.stream.is_settled() {
            return;
        }
        let since = self.stream.last();
        let limit = u32::try_from(self.stream.pending_len()).unwrap_or(u32::MAX);
        let stored = self.ports.streams().room_events(self.id, since, limit).await;
        let Ok(Some(stored)) = stored else { return };
        for pending in self.stream.take_back() {
            if pending.is_among(&stored) {
                pending.acknowledge();
            }
        }
    }

    /// Answers a retry. If the first try is still on its way to the disk, so is the answer.
    pub(super) fn repeat(&mut self, first: FirstSend, reply: ReplyTo<Result<Done, RoomError>>) {
        let done =
            Done { at: first.at, offset: first.offset, seq: Some(first.seq), is_repeat: true };
        match self.stream.pending_at(first.offset) {
            None => {
                reply.send(Ok(done));
            }
            Some(pending) => pending.answers.push((Ok(done), reply)),
        }
    }

    /// Answers what was judged by the state, once all of that is durable: who is told that things are
    /// as asked, or against a rule, must not find them otherwise after a crash.
    pub(super) fn answer(&mut self, answer: Result<Done, RoomError>, reply: Reply) {
        match self.stream.newest_pending() {
            None => {
                reply.send(answer);
            }
            Some(pending) => pending.answers.push((answer, reply)),
        }
    }

    fn publish(&mut self, record: &RoomRecord, client: Option<&str>, ctx: &mut Context<Self>) {
        match &record.event {
            RoomEvent::Message(message) => {
                self.ports.metrics().message();
                self.last_seq = message.seq;
            }
            RoomEvent::Deleted { seq, .. } => {
                self.redact(|message| message == *seq);
            }
            RoomEvent::Expired { up_to } => {
                // Then nobody is handed a stream with a hole: who was away for longer fetches anew.
                self.stream.forget(|event: &chat::RoomEvent| {
                    matches!(event, chat::RoomEvent::Message(message) if message.seq <= *up_to)
                });
                self.redact(|message| message <= *up_to);
            }
            RoomEvent::Left { user, .. } => {
                let gone = self.online.remove_user(*user);
                self.note_online();
                self.tell_leaving(*user, &gone, ctx);
            }
            _ => {}
        }
        self.recent.apply(record);
        self.shown.apply(&record.event);
        self.stream.publish(of_room(record, client));
    }

    /// Forgets a room that is being deleted, and ends the subscriptions to it.
    pub(super) fn take_down(&mut self) {
        self.state = None;
        self.recent = Recent::default();
        self.shown = Shown::default();
        self.online = Online::default();
        self.looking = Looking::default();
        self.stream.end(rpc::encode_payload(&chat::RoomEvent::RoomDeleted { room: self.id }));
    }

    /// Takes the names of a user out of what clients may still recover, and of what replies will
    /// quote.
    pub(super) fn forget_names(&mut self, gone: UserId) {
        if let Some(state) = &mut self.state {
            state.unname(gone);
        }
        self.recent.unname(gone);
        self.stream.redact(|event: &mut chat::RoomEvent| match event {
            chat::RoomEvent::Message(message) => {
                let quote = message.reply_to.as_mut().filter(|quote| quote.user == gone);
                let is_quoted = quote.map(|quote| quote.name.clear()).is_some();
                if message.user == gone {
                    message.name.clear();
                }
                is_quoted || message.user == gone
            }
            chat::RoomEvent::Joined { user, name, .. } if *user == gone => {
                name.clear();
                true
            }
            _ => false,
        });
    }

    /// Takes the text of deleted messages out of the events that clients may still recover: their
    /// own, those of their edits, and quotes of them.
    fn redact(&mut self, is_deleted: impl Fn(Seq) -> bool) {
        self.stream.redact(|event: &mut chat::RoomEvent| match event {
            chat::RoomEvent::Message(message) if is_deleted(message.seq) => {
                message.body.clear();
                message.attachments.clear();
                message.mentions.clear();
                message.reply_to = None;
                true
            }
            chat::RoomEvent::Message(message) => match &mut message.reply_to {
                Some(quote) if is_deleted(quote.seq) => {
                    quote.body.clear();
                    true
                }
                _ => false,
            },
            chat::RoomEvent::Edited { seq, body, mentions, .. } if is_deleted(*seq) => {
                body.clear();
                mentions.clear();
                true
            }
            _ => false,
        });
    }

    /// Before the acknowledgement, so that who asks next finds the user's actor informed.
    fn tell_users(&self, record: &RoomRecord, ctx: &mut Context<Self>) {
        match &record.event {
            RoomEvent::Message(message) => {
                let sent = Sent { room: self.id, seq: message.seq };
                tell(&self.user(message.user), sent, ctx);
                self.tell_direct(message.seq, ctx);
                for user in &message.mentions {
                    let mention = Mention::of(self.id, record.at, message);
                    tell(&self.user(*user), Mentioned { mention }, ctx);
                }
            }
            RoomEvent::Joined { user, .. } => {
                // Who joins has not to catch up with what was said before.
                let joined = Joined { room: self.id, read_seq: self.last_seq };
                tell(&self.user(*user), joined, ctx);
            }
            RoomEvent::Left { user, reason, .. } => {
                let left = Left { room: self.id, reason: *reason };
                tell(&self.user(*user), left, ctx);
            }
            _ => {}
        }
    }

    /// Before the acknowledgement too: the badge is gone when the deletion is.
    fn tell_unmentioned(&self, record: &RoomRecord, users: Vec<UserId>, ctx: &mut Context<Self>) {
        let Some(seq) = record.event.seq() else { return };
        for user in users {
            let user = self.user(user);
            // Who is not in memory finds it gone in the store.
            if self.ports.may_be_active(&user) {
                tell(&user, Unmentioned { room: self.id, seq }, ctx);
            }
        }
    }

    /// A direct conversation that somebody took off their list comes back with its next message.
    fn tell_direct(&self, seq: Seq, ctx: &mut Context<Self>) {
        let Some((low, high)) = self.state.as_ref().and_then(|state| state.pair) else { return };
        for user in [low, high] {
            let user = self.user(user);
            // Who is not in memory learns it from the store when they are.
            if self.ports.may_be_active(&user) {
                tell(&user, Stirred { room: self.id, seq }, ctx);
            }
        }
    }

    /// Stores a ban of an outsider, or that it is lifted, beside the actor.
    pub(super) fn store_ban(
        &mut self,
        by: UserId,
        user: UserId,
        on: bool,
        reply: ReplyTo<Result<Done, RoomError>>,
        ctx: &mut Context<Self>,
    ) {
        self.pending_bans.insert(user);
        let (store, room, at) = (self.ports.streams().clone(), self.id, now(ctx));
        let stored = async move {
            match on {
                true => store.ban(room, user, by, at).await,
                false => store.unban(room, user, by, at).await.map(drop),
            }
        };
        ctx.pipe(stored, move |outcome| BanStored { user, on, at, outcome, reply });
    }

    /// Nothing after a failed append became durable: those who wait learn it, and the state, which
    /// is ahead of the disk, is loaded again.
    async fn take_back(&mut self, error: &AppendError, ctx: &mut Context<Self>) {
        let failed = self.stream.take_back();
        tracing::warn!(room = %self.id, %error, pending = failed.len(), "appends failed");
        for pending in failed {
            let answers = pending.answers.into_iter().map(|(_, reply)| reply);
            for reply in std::iter::once(pending.reply).chain(answers) {
                reply.send(Err(RoomError::Append(error.clone())));
            }
        }
        if self.reload().await.is_err() {
            // Its next message tries again, and is refused while the store cannot be read.
            ctx.passivate();
        }
    }
}

impl Handler<BanStored> for Room {
    type Reply = ();

    async fn handle(&mut self, stored: BanStored, _: &mut Context<Self>) {
        let BanStored { user, on, at, outcome, reply } = stored;
        self.pending_bans.remove(&user);
        let done = outcome.map_err(RoomError::Control).map(|()| {
            if let Some(state) = &mut self.state {
                // The question may have been asked before, and answered from before.
                state.set_banned(user, on);
            }
            Done { at, offset: self.stream.last(), seq: None, is_repeat: false }
        });
        reply.send(done);
    }
}

/// Tells a user's actor without holding up the room: a full mailbox is waited for beside it.
fn tell<M>(user: &ActorRef<User>, message: M, ctx: &mut Context<Room>)
where
    User: Handler<M>,
    M: Send + 'static,
{
    let Err(refused) = user.send(message).try_tell() else { return };
    let (user, message) = (user.clone(), refused.into_message());
    ctx.detach(async move {
        if user.send(message).tell().await.is_err() {
            tracing::warn!(user = %user.id(), "a user could not be told of an event of a room");
        }
    });
}

pub(super) fn now(ctx: &Context<Room>) -> UnixMillis {
    UnixMillis::from_u64(ctx.now().0)
}
