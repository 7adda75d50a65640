//! A room that is asked something. Rooms keep no list of their members: one that is asked by
//! somebody it does not know says so, and this brings what it lacks from the store and asks again.
//! What a command needs the room fetches itself, because commands must keep their order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorRef, AskError};

use super::actor::{Room, RoomCalls};
use super::command::{Command, Refusal, Request};
use super::people::Facts;
use super::view::{Done, Summary};
use super::{OnlineClient, RoomError, Screen, load};
use crate::ports::Ports;
use crate::storage::{HistoryPage, Offset, PageAnchor, RoomId, UnixMillis, UserId};
use crate::stream::{Attached, Since};

/// How often a room may say that what it was brought is out of date already: more than once means
/// that people come and go by the hundred while one looks.
const ATTEMPTS_MAX: usize = 8;

/// What a room answers, unless it did not come to answer at all.
pub(crate) type Answer<T> = Result<Result<T, RoomError>, AskError>;

/// A room, and the store that knows its members.
#[derive(Debug)]
pub(crate) struct AskedRoom<'a> {
    id: RoomId,
    room: ActorRef<Room>,
    ports: &'a Ports,
    now: UnixMillis,
}

impl<'a> AskedRoom<'a> {
    /// The room of an id, whether or not there is one.
    pub(crate) fn new(ports: &'a Ports, id: RoomId) -> Self {
        let room = ports.node.get::<Room>(id);
        Self { id, room, ports, now: ports.now() }
    }

    pub(crate) fn id(&self) -> RoomId {
        self.id
    }

    /// Has the room carry out a command whose answer may take so long.
    pub(crate) async fn take(&self, request: Request, within: Duration) -> Answer<Done> {
        // In the room's mailbox with its first poll, like every command.
        self.room.apply(request).timeout(within).await
    }

    /// Has the room carry out a command of `by`, given by the connection `client`.
    pub(crate) async fn apply(
        &self,
        by: UserId,
        client: Option<Arc<str>>,
        command: Command,
    ) -> Answer<Done> {
        // In the room's mailbox with its first poll: that keeps a connection's commands in order.
        self.room.apply(Request::new(by, client, command)).await
    }

    /// The room as the member `by` sees it.
    pub(crate) async fn summary(&self, by: UserId) -> Answer<Summary> {
        self.ask(|room, facts| async move { room.summary(by, facts).await }).await
    }

    /// Accepts a subscriber.
    pub(crate) async fn attach(
        &self,
        client: Arc<OnlineClient>,
        since: Option<Since>,
    ) -> Answer<Attached> {
        let ask = |room: ActorRef<Room>, facts| {
            let (client, since) = (client.clone(), since.clone());
            async move { room.attach(client, since, facts).await }
        };
        self.ask(ask).await
    }

    /// Whether `by` may write here now.
    pub(crate) async fn may_write(&self, by: UserId) -> Answer<()> {
        self.ask(|room, facts| async move { room.may_write(by, facts).await }).await
    }

    /// Whether `user` may become a member; false if it is one already.
    pub(crate) async fn may_join(&self, user: UserId) -> Answer<bool> {
        self.ask(|room, facts| async move { room.may_join(user, facts).await }).await
    }

    /// Tells that `by` is writing, or no more.
    pub(crate) async fn typing(&self, by: UserId, on: bool) -> Answer<()> {
        self.ask(|room, facts| async move { room.typing(by, on, facts).await }).await
    }

    /// Refuses who may not read the room; the last event of its stream for who may.
    pub(crate) async fn readable(&self, by: UserId) -> Answer<Offset> {
        self.ask(|room, facts| async move { room.readable(by, facts).await }).await
    }

    /// A page of the room's messages, if all of it is in memory.
    pub(crate) async fn page(
        &self,
        by: UserId,
        anchor: PageAnchor,
        limit: u32,
    ) -> Answer<Option<HistoryPage>> {
        self.ask(|room, facts| async move { room.page(by, anchor, limit, facts).await }).await
    }

    /// Those of `users` that look at the room now.
    pub(crate) async fn online_among(&self, by: UserId, users: Vec<UserId>) -> Answer<Vec<UserId>> {
        let ask = |room: ActorRef<Room>, facts| {
            let users = users.clone();
            async move { room.online_among(by, users, facts).await }
        };
        self.ask(ask).await
    }

    /// Has the connection of a subscriber told of those on its screen.
    pub(crate) async fn watch(&self, by: UserId, screen: Screen) -> Answer<()> {
        let ask = |room: ActorRef<Room>, facts| {
            let screen = screen.clone();
            async move { room.watch(by, screen, facts).await }
        };
        self.ask(ask).await
    }

    /// The connections that look at the room.
    pub(crate) async fn presence(&self, by: UserId) -> Answer<Vec<OnlineClient>> {
        self.ask(|room, facts| async move { room.presence(by, facts).await }).await
    }

    /// How many connections and users look at the room.
    pub(crate) async fn presence_stats(&self, by: UserId) -> Answer<(usize, usize)> {
        self.ask(|room, facts| async move { room.presence_stats(by, facts).await }).await
    }

    /// Asks, and brings what the room lacks, until it has an answer.
    async fn ask<T, F>(&self, ask: impl Fn(ActorRef<Room>, Option<Facts>) -> F) -> Answer<T>
    where
        F: Future<Output = Answer<T>>,
    {
        let mut facts = None;
        for _ in 0..ATTEMPTS_MAX {
            let missing = match ask(self.room.clone(), facts.take()).await? {
                Err(RoomError::Refused(Refusal::Unloaded(missing))) => missing,
                answer => return Ok(answer),
            };
            let by = missing.people.first().copied().unwrap_or(UserId::from_u64(0));
            match load::bring(self.ports.streams(), self.id, by, *missing, self.now).await {
                Ok(brought) => facts = Some(brought.facts),
                Err(error) => return Ok(Err(RoomError::Read(error))),
            }
        }
        Ok(Err(RoomError::Busy))
    }
}
