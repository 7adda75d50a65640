//! What whoever runs the server sees and does.

use super::contract;
use crate::storage::{
    Account, AppendTimes, ControlError, ModerationEntry, NewAccount, NewDevice, ReadError, RoomId,
    RoomRow, Store, TokenHash, Totals, UnixMillis, Usage, UserChange, UserId, UserRow,
};

contract! {
    /// The server as a whole: its first administrator, settings, users, rooms, and what they take.
    pub trait Administration {
        /// Whether nobody administers the server.
        async fn needs_setup() -> Result<bool, ReadError>;

        /// Makes the first administrator.
        async fn set_up(new: NewAccount, device: NewDevice) -> Result<Account, ControlError>;

        /// What was chosen for a setting.
        async fn setting(name: &'static str) -> Result<Option<String>, ReadError>;

        /// Chooses it.
        async fn set_setting(name: &'static str, value: String) -> Result<(), ControlError>;

        /// Does something to a user; says whether it changed anything.
        async fn change_user(
            by: UserId,
            user: UserId,
            change: UserChange,
            at: UnixMillis,
        ) -> Result<bool, ControlError>;

        /// Makes a link by which a lost password can be replaced.
        async fn create_password_reset(
            by: UserId,
            user: UserId,
            token_hash: TokenHash,
            at: UnixMillis,
            expires_at: UnixMillis,
        ) -> Result<(), ControlError>;

        /// Whose password a link replaces.
        async fn password_reset(
            token_hash: TokenHash,
            now: UnixMillis,
        ) -> Result<Option<UserId>, ReadError>;

        /// Replaces it, and signs a device in.
        async fn reset_password(
            token_hash: TokenHash,
            password_hash: String,
            device: NewDevice,
        ) -> Result<Account, ControlError>;

        /// A page of users.
        async fn user_rows(
            search: String,
            after: String,
            limit: u32,
        ) -> Result<Vec<UserRow>, ReadError>;

        /// One of them.
        async fn user_row(user: UserId) -> Result<Option<UserRow>, ReadError>;

        /// A page of rooms.
        async fn room_rows(
            search: String,
            after: Option<RoomId>,
            limit: u32,
        ) -> Result<Vec<RoomRow>, ReadError>;

        /// One of them.
        async fn room_row(room: RoomId) -> Result<Option<RoomRow>, ReadError>;

        /// A page of what moderators and administrators have done.
        async fn moderation(
            before: Option<u64>,
            limit: u32,
        ) -> Result<Vec<ModerationEntry>, ReadError>;

        /// How much there is of everything.
        async fn totals() -> Result<Totals, ReadError>;

        /// What a database outside of the data directory takes.
        async fn database_bytes() -> Result<Option<u64>, ReadError>;

        at_once {
            /// What it takes on the disk. Blocks.
            fn usage() -> std::io::Result<Usage>;

            /// How long appends took.
            fn append_times() -> AppendTimes;
        }
    }
}
