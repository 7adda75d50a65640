//! What is done, step by step, when a room or an account is deleted.

use super::contract;
use crate::storage::{
    ControlError, Deletion, Erased, NamePlaces, Offset, ReadError, RoomId, ScanPlace, Seq, Store,
    Tie, UserId,
};

contract! {
    /// Steps that can each be done twice.
    pub(crate) trait Erasure {
        /// What is to be erased, in the order in which it was decided.
        async fn deletions() -> Result<Vec<Deletion>, ReadError>;

        /// Members of a room who are to be told, and whether their accounts are there.
        async fn members_to_tell(room: RoomId, limit: u32) -> Result<Vec<(UserId, bool)>, ReadError>;

        /// They are members no more.
        async fn end_memberships(room: RoomId, users: Vec<UserId>) -> Result<(), ControlError>;

        /// Erases messages of a room; says whether there are more.
        async fn erase_messages(room: RoomId, limit: u32) -> Result<bool, ControlError>;

        /// Who has a read state or a mention of a room.
        async fn users_with_traces_of(room: RoomId) -> Result<Vec<UserId>, ReadError>;

        /// Forgets those.
        async fn forget_traces(room: RoomId, users: Vec<UserId>) -> Result<(), ControlError>;

        /// Events of users that hold what is erased, and where the next page begins.
        async fn user_events_with(
            erased: Erased,
            after: Option<(UserId, Offset)>,
        ) -> Result<(Vec<(UserId, Offset)>, Option<(UserId, Offset)>), ReadError>;

        /// Takes it out of them.
        async fn erase_in_user_events(
            places: Vec<(UserId, Offset)>,
            erased: Erased,
        ) -> Result<(), ControlError>;

        /// Forgets the room itself.
        async fn finish_room_deletion(room: RoomId) -> Result<(), ControlError>;

        /// A room that a user is in.
        async fn first_tie(user: UserId) -> Result<Option<Tie>, ReadError>;

        /// Where a user's names stand, in a page of everything.
        async fn name_places(user: UserId, from: ScanPlace) -> Result<NamePlaces, ReadError>;

        /// Takes them out there.
        async fn erase_names(user: UserId, found: NamePlaces) -> Result<(), ControlError>;

        /// Messages of a user in a page of all, and where the next page begins.
        async fn messages_of(
            user: UserId,
            after: Option<(RoomId, Seq)>,
        ) -> Result<(Vec<(RoomId, Seq)>, Option<(RoomId, Seq)>), ReadError>;

        /// Rooms with reactions of a user.
        async fn rooms_with_reactions_of(user: UserId) -> Result<Vec<RoomId>, ReadError>;

        /// Erases a user's reactions.
        async fn erase_reactions(user: UserId) -> Result<(), ControlError>;

        /// Forgets the account but for its id; false if it is a member somewhere again.
        async fn finish_account_deletion(user: UserId) -> Result<bool, ControlError>;
    }
}
