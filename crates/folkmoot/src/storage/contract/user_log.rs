//! Users' own streams, read cursors, and rooms as their members see them.

use std::future::Future;

use crate::storage::{
    AppendError, Offset, ReadCursor, ReadError, Record, RoomHead, RoomId, Seq, Store, StoredSaved,
    UserId, UserRecord, UserSnapshot, WriteEpoch,
};

/// Users' own streams, read cursors, and rooms as their members see them.
pub trait UserLog: Clone + Send + Sync + 'static {
    /// Appends a user's next event.
    fn append_user(
        &self,
        epoch: WriteEpoch,
        record: UserRecord,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static;

    /// Moves a read cursor; the furthest one wins, in whatever order they come.
    fn append_cursor(
        &self,
        cursor: ReadCursor,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static;

    /// What a user's actor begins with; covers appends in flight. `None`: there is no such user.
    fn load_user(
        &self,
        user: UserId,
        tail_len: u32,
    ) -> impl Future<Output = Result<Option<UserSnapshot>, ReadError>> + Send;

    /// Events after an offset, oldest first; `None` if some of them are kept no more.
    fn user_events(
        &self,
        user: UserId,
        since: Offset,
        limit: u32,
    ) -> impl Future<Output = Result<Option<Vec<UserRecord>>, ReadError>> + Send;

    /// Rooms as a list of rooms shows them, each with what mentions everyone after a message.
    fn room_heads(
        &self,
        user: UserId,
        rooms: Vec<(RoomId, Seq)>,
    ) -> impl Future<Output = Result<Vec<RoomHead>, ReadError>> + Send;

    /// A page of what a user has saved and may still read, the last one first: those below a place
    /// in the list.
    fn saved(
        &self,
        user: UserId,
        before: Option<u32>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<StoredSaved>, ReadError>> + Send;

    /// Which messages a user has saved and may still read, by room and number.
    fn saved_numbers(
        &self,
        user: UserId,
    ) -> impl Future<Output = Result<Vec<(RoomId, Seq)>, ReadError>> + Send;
}

impl UserLog for Store {
    fn append_user(
        &self,
        epoch: WriteEpoch,
        record: UserRecord,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static {
        let append = self.append(epoch, &Record::User(record));
        async move { append.await.map(drop) }
    }

    fn append_cursor(
        &self,
        cursor: ReadCursor,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'static {
        let append = self.append(self.write_epoch(), &Record::Cursor(cursor));
        async move { append.await.map(drop) }
    }

    async fn load_user(
        &self,
        user: UserId,
        tail_len: u32,
    ) -> Result<Option<UserSnapshot>, ReadError> {
        Self::load_user(self, user, tail_len).await
    }

    async fn user_events(
        &self,
        user: UserId,
        since: Offset,
        limit: u32,
    ) -> Result<Option<Vec<UserRecord>>, ReadError> {
        Self::user_events(self, user, since, limit).await
    }

    async fn room_heads(
        &self,
        user: UserId,
        rooms: Vec<(RoomId, Seq)>,
    ) -> Result<Vec<RoomHead>, ReadError> {
        Self::room_heads(self, user, rooms).await
    }

    async fn saved(
        &self,
        user: UserId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<StoredSaved>, ReadError> {
        Self::saved(self, user, before, limit).await
    }

    async fn saved_numbers(&self, user: UserId) -> Result<Vec<(RoomId, Seq)>, ReadError> {
        Self::saved_numbers(self, user).await
    }
}
