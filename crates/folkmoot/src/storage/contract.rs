//! What a store has to do, apart from how: five traits, of which [`Store`] is the first
//! implementation.
//!
//! An adapter is right when `tests/storage_contract` passes on it: that suite is written against
//! these traits only. Futures are `Send`; an append is under way when its function has returned,
//! whether or not its future is polled, so one caller's appends keep their order.

use std::future::Future;

use folkmoot_protocol::Channel;

use super::{
    Account, AccountDeletion, AccountDeletionBegun, AppendError, Attachment, AttachmentId,
    Authority, Begun, ControlError, DirectRoom, HistoryPage, Lsn, Member, MessageChanges,
    NewAccount, NewDevice, NewDirectRoom, NewRoom, NewUpload, Offset, PageAnchor, ReadCursor,
    ReadError, RecentKey, Record, RoomHead, RoomId, RoomRecord, RoomSnapshot, Seq, SignedIn,
    Standing, Store, StoredAttachment, TokenHash, UnixMillis, UserId, UserRecord, UserSnapshot,
    WriteEpoch,
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
}

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
}

/// Accounts, devices, rooms and bans: transactions that are durable when they are answered.
pub trait Directory: Clone + Send + Sync + 'static {
    /// Makes an account and signs its first device in.
    fn create_account(
        &self,
        new: NewAccount,
        device: NewDevice,
    ) -> impl Future<Output = Result<Account, ControlError>> + Send;

    /// An account by its id.
    fn account(
        &self,
        user: UserId,
    ) -> impl Future<Output = Result<Option<Account>, ReadError>> + Send;

    /// Whom a token belongs to.
    fn signed_in(
        &self,
        token_hash: TokenHash,
    ) -> impl Future<Output = Result<Option<SignedIn>, ReadError>> + Send;

    /// Whose names these are; those that are nobody's are left out.
    fn users_named(
        &self,
        names: Vec<String>,
    ) -> impl Future<Output = Result<Vec<(String, UserId)>, ReadError>> + Send;

    /// Makes a room, whose stream begins with its owner.
    fn create_room(&self, new: NewRoom) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// The one direct room of two people, made if needed.
    fn open_direct_room(
        &self,
        new: NewDirectRoom,
    ) -> impl Future<Output = Result<DirectRoom, ControlError>> + Send;

    /// Keeps somebody who is no member out of a room.
    fn ban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Lets them come back; says whether there was a ban.
    fn unban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> impl Future<Output = Result<bool, ControlError>> + Send;

    /// Decides that a room is deleted: nobody gets at it any more.
    fn begin_room_deletion(
        &self,
        room: RoomId,
        by: UserId,
        authority: Authority,
        at: UnixMillis,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// Decides that an account is deleted: nobody can sign in to it, and its names are erased.
    fn begin_account_deletion(
        &self,
        new: AccountDeletion,
    ) -> impl Future<Output = Result<AccountDeletionBegun, ControlError>> + Send;
}

/// What is known of the files in messages; their bytes are elsewhere.
pub trait Files: Clone + Send + Sync + 'static {
    /// Reserves what a file may come to, before its first byte.
    fn begin_upload(
        &self,
        new: NewUpload,
    ) -> impl Future<Output = Result<Begun, ControlError>> + Send;

    /// All of it has arrived.
    fn finish_upload(
        &self,
        file: Attachment,
    ) -> impl Future<Output = Result<(), ControlError>> + Send;

    /// A file that has arrived and has not expired.
    fn attachment(
        &self,
        id: AttachmentId,
        now: UnixMillis,
    ) -> impl Future<Output = Result<Option<StoredAttachment>, ReadError>> + Send;
}

/// Which messages changed, in order and exactly once: what a search index follows.
pub trait ChangeFeed: Clone + Send + Sync + 'static {
    /// A page of changes after a place.
    fn message_changes(
        &self,
        after: Lsn,
        limit: u32,
    ) -> impl Future<Output = Result<MessageChanges, ReadError>> + Send;
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
}

impl Directory for Store {
    async fn create_account(
        &self,
        new: NewAccount,
        device: NewDevice,
    ) -> Result<Account, ControlError> {
        Self::create_account(self, new, device).await
    }

    async fn account(&self, user: UserId) -> Result<Option<Account>, ReadError> {
        Self::account(self, user).await
    }

    async fn signed_in(&self, token_hash: TokenHash) -> Result<Option<SignedIn>, ReadError> {
        Self::signed_in(self, token_hash).await
    }

    async fn users_named(&self, names: Vec<String>) -> Result<Vec<(String, UserId)>, ReadError> {
        Self::users_named(self, names).await
    }

    async fn create_room(&self, new: NewRoom) -> Result<(), ControlError> {
        Self::create_room(self, new).await
    }

    async fn open_direct_room(&self, new: NewDirectRoom) -> Result<DirectRoom, ControlError> {
        Self::open_direct_room(self, new).await
    }

    async fn ban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        Self::ban(self, room, user, by, at).await
    }

    async fn unban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> Result<bool, ControlError> {
        Self::unban(self, room, user, by, at).await
    }

    async fn begin_room_deletion(
        &self,
        room: RoomId,
        by: UserId,
        authority: Authority,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        Self::begin_room_deletion(self, room, by, authority, at).await
    }

    async fn begin_account_deletion(
        &self,
        new: AccountDeletion,
    ) -> Result<AccountDeletionBegun, ControlError> {
        Self::begin_account_deletion(self, new).await
    }
}

impl Files for Store {
    async fn begin_upload(&self, new: NewUpload) -> Result<Begun, ControlError> {
        Self::begin_upload(self, new).await
    }

    async fn finish_upload(&self, file: Attachment) -> Result<(), ControlError> {
        Self::finish_upload(self, file).await
    }

    async fn attachment(
        &self,
        id: AttachmentId,
        now: UnixMillis,
    ) -> Result<Option<StoredAttachment>, ReadError> {
        Self::attachment(self, id, now).await
    }
}

impl ChangeFeed for Store {
    async fn message_changes(&self, after: Lsn, limit: u32) -> Result<MessageChanges, ReadError> {
        Self::message_changes(self, after, limit).await
    }
}
