//! Events and messages of rooms.

use std::future::Future;

use folkmoot_protocol::Channel;

use crate::storage::{
    Account, AppendError, HistoryPage, Member, Offset, PageAnchor, ReadError, RecentKey, Record,
    RoomId, RoomRecord, RoomSnapshot, Seq, Standing, Store, StoredMessage, StoredPin, UnixMillis,
    UserId, WriteEpoch,
};

/// Events and messages of rooms.
///
/// An append is acknowledged when it is durable. A failed one ends the epoch of its stream:
/// everything appended behind it fails too, until the room is loaded again and brings a new epoch.
pub trait RoomLog: Clone + Send + Sync + 'static {
    /// Appends a room's next event.
    fn append_room(
        &self,
        epoch: WriteEpoch,
        record: RoomRecord,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static;

    /// Whether an append to a stream would be taken now.
    ///
    /// # Errors
    /// What the append would be refused with.
    fn admits(&self, epoch: WriteEpoch, stream: Channel) -> Result<(), AppendError>;

    /// What a room's actor begins with; covers appends in flight. `None`: there is no such room.
    fn load_room(
        &self,
        room: RoomId,
        tail_len: u32,
        now: UnixMillis,
    ) -> impl Future<Output = Result<Option<RoomSnapshot>, ReadError>> + Send;

    /// Events after an offset, oldest first; `None` if some of them are kept no more.
    fn room_events(
        &self,
        room: RoomId,
        since: Offset,
        limit: u32,
    ) -> impl Future<Output = Result<Option<Vec<RoomRecord>>, ReadError>> + Send;

    /// A page of messages as they are now.
    fn history(
        &self,
        room: RoomId,
        anchor: PageAnchor,
        limit: u32,
        viewer: UserId,
    ) -> impl Future<Output = Result<HistoryPage, ReadError>> + Send;

    /// What some users are to a room, in the order asked for, with all that was decided before the
    /// call.
    fn standings(
        &self,
        room: RoomId,
        users: Vec<UserId>,
    ) -> impl Future<Output = Result<Vec<Standing>, ReadError>> + Send;

    /// The keys that a user has sent under in a room, oldest first.
    fn keys_of(
        &self,
        room: RoomId,
        sender: UserId,
        now: UnixMillis,
    ) -> impl Future<Output = Result<Vec<RecentKey>, ReadError>> + Send;

    /// A page of members by name, of those that a folded prefix names.
    fn members(
        &self,
        room: RoomId,
        after: Option<UserId>,
        prefix: &str,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Member>, ReadError>> + Send;

    /// One message as it is now, however old.
    fn message(
        &self,
        room: RoomId,
        seq: Seq,
        viewer: UserId,
    ) -> impl Future<Output = Result<Option<StoredMessage>, ReadError>> + Send;

    /// A message and all that answers it, directly or by way of other answers, as they are now,
    /// oldest first: those behind a number.
    fn thread(
        &self,
        room: RoomId,
        seq: Seq,
        after: Option<Seq>,
        limit: u32,
        viewer: UserId,
    ) -> impl Future<Output = Result<Vec<StoredMessage>, ReadError>> + Send;

    /// A page of the pinned messages as they are now, the one pinned last first: those pinned before
    /// an event.
    fn pins(
        &self,
        room: RoomId,
        before: Option<Offset>,
        limit: u32,
        viewer: UserId,
    ) -> impl Future<Output = Result<Vec<StoredPin>, ReadError>> + Send;

    /// Who has given which reaction to a message; so many of each at most.
    fn reactions(
        &self,
        room: RoomId,
        seq: Seq,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<(String, Account)>, ReadError>> + Send;
}

impl RoomLog for Store {
    fn append_room(
        &self,
        epoch: WriteEpoch,
        record: RoomRecord,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static {
        let append = self.append(epoch, &Record::Room(record));
        async move { append.await.map(drop) }
    }

    fn admits(&self, epoch: WriteEpoch, stream: Channel) -> Result<(), AppendError> {
        Self::admits(self, epoch, stream)
    }

    async fn load_room(
        &self,
        room: RoomId,
        tail_len: u32,
        now: UnixMillis,
    ) -> Result<Option<RoomSnapshot>, ReadError> {
        Self::load_room(self, room, tail_len, now).await
    }

    async fn room_events(
        &self,
        room: RoomId,
        since: Offset,
        limit: u32,
    ) -> Result<Option<Vec<RoomRecord>>, ReadError> {
        Self::room_events(self, room, since, limit).await
    }

    async fn history(
        &self,
        room: RoomId,
        anchor: PageAnchor,
        limit: u32,
        viewer: UserId,
    ) -> Result<HistoryPage, ReadError> {
        Self::history(self, room, anchor, limit, viewer).await
    }

    async fn standings(
        &self,
        room: RoomId,
        users: Vec<UserId>,
    ) -> Result<Vec<Standing>, ReadError> {
        Self::standings(self, room, users).await
    }

    async fn keys_of(
        &self,
        room: RoomId,
        sender: UserId,
        now: UnixMillis,
    ) -> Result<Vec<RecentKey>, ReadError> {
        Self::keys_of(self, room, sender, now).await
    }

    async fn members(
        &self,
        room: RoomId,
        after: Option<UserId>,
        prefix: &str,
        limit: u32,
    ) -> Result<Vec<Member>, ReadError> {
        Self::members(self, room, after, prefix, limit).await
    }

    async fn message(
        &self,
        room: RoomId,
        seq: Seq,
        viewer: UserId,
    ) -> Result<Option<StoredMessage>, ReadError> {
        Self::message(self, room, seq, viewer).await
    }

    async fn thread(
        &self,
        room: RoomId,
        seq: Seq,
        after: Option<Seq>,
        limit: u32,
        viewer: UserId,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        Self::thread(self, room, seq, after, limit, viewer).await
    }

    async fn pins(
        &self,
        room: RoomId,
        before: Option<Offset>,
        limit: u32,
        viewer: UserId,
    ) -> Result<Vec<StoredPin>, ReadError> {
        Self::pins(self, room, before, limit, viewer).await
    }

    async fn reactions(
        &self,
        room: RoomId,
        seq: Seq,
        limit: u32,
    ) -> Result<Vec<(String, Account)>, ReadError> {
        Self::reactions(self, room, seq, limit).await
    }
}
