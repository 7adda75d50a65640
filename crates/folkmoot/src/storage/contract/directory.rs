//! Accounts, devices, rooms, invites, bans and blocks.

use folkmoot_protocol::chat::{RoomAccess, Status};

use super::contract;
use crate::storage::{
    Account, AccountDeletion, AccountDeletionBegun, Authority, ControlError, Device, DeviceId,
    DirectRoom, Invite, ListedPage, ListedPlace, NamedRoom, NewAccount, NewDevice, NewDirectRoom,
    NewInvite, NewRoom, NewSaved, PictureId, ReadError, Redeemed, RoomId, Saving, Seq, SignedIn,
    Store, TokenHash, UnixMillis, UserId,
};

contract! {
    /// Who there is, and what they own: transactions that are durable when they are answered.
    pub trait Directory {
        /// Makes an account and signs its first device in.
        async fn create_account(new: NewAccount, device: NewDevice) -> Result<Account, ControlError>;

        /// The same with an invite, of which it takes one use. Gives the account and the room.
        async fn create_invited_account(
            new: NewAccount,
            device: NewDevice,
            code: String,
        ) -> Result<(Account, RoomId), ControlError>;

        /// An account by its id.
        async fn account(user: UserId) -> Result<Option<Account>, ReadError>;

        /// An account by its name.
        async fn account_by_name(name: String) -> Result<Option<Account>, ReadError>;

        /// Accounts whose names begin so.
        async fn find_accounts(prefix: String, limit: u32) -> Result<Vec<Account>, ReadError>;

        /// Accounts that have a word in their names that begins so.
        async fn accounts_called(prefix: String, limit: u32) -> Result<Vec<Account>, ReadError>;

        /// Whose names these are; those that are nobody's are left out.
        async fn users_named(names: Vec<String>) -> Result<Vec<(String, UserId)>, ReadError>;

        /// Changes the name to show.
        async fn set_display_name(user: UserId, name: String) -> Result<Account, ControlError>;

        /// Says what a user is up to; `None`: nothing any more.
        async fn set_status(user: UserId, status: Option<Status>) -> Result<Account, ControlError>;

        /// Shows another picture, or none; says which one it replaces.
        async fn set_picture(
            user: UserId,
            picture: Option<PictureId>,
        ) -> Result<(Account, Option<PictureId>), ControlError>;

        /// An account with the hash of its password.
        async fn credentials(name: String) -> Result<Option<(Account, String)>, ReadError>;

        /// Signs a device in, if the password is still the one that was verified.
        async fn sign_in(device: NewDevice, verified_hash: String) -> Result<(), ControlError>;

        /// Changes the password of the user of a device, if it is still the one that was verified.
        async fn change_password(
            user: UserId,
            device: DeviceId,
            verified_hash: String,
            new_hash: String,
            sign_out_others: bool,
        ) -> Result<(), ControlError>;

        /// Whom a token belongs to.
        async fn signed_in(token_hash: TokenHash) -> Result<Option<SignedIn>, ReadError>;

        /// The devices of an account.
        async fn devices(user: UserId) -> Result<Vec<Device>, ReadError>;

        /// Signs a device out; says whether it was there.
        async fn remove_device(user: UserId, device: DeviceId) -> Result<bool, ControlError>;

        /// Signs those out that were unseen for longest, so that `max` stay with `keep` among them.
        async fn trim_devices(
            user: UserId,
            keep: DeviceId,
            max: u32,
        ) -> Result<Vec<DeviceId>, ControlError>;

        /// Makes a room, whose stream begins with its owner.
        async fn create_room(new: NewRoom) -> Result<(), ControlError>;

        /// Says who may find a room and come in.
        async fn set_room_access(
            room: RoomId,
            access: RoomAccess,
            by: UserId,
            at: UnixMillis,
        ) -> Result<(), ControlError>;

        /// Who may find a room and come in. `None`: there is no such room.
        async fn room_access(room: RoomId) -> Result<Option<RoomAccess>, ReadError>;

        /// A page of the listed rooms by name, as a user may see them.
        async fn listed_rooms(
            viewer: UserId,
            search: String,
            after: Option<ListedPlace>,
            limit: usize,
        ) -> Result<ListedPage, ReadError>;

        /// The one direct room of two people, made if needed.
        async fn open_direct_room(new: NewDirectRoom) -> Result<DirectRoom, ControlError>;

        /// The rooms of a user, with their names.
        async fn rooms_of(user: UserId) -> Result<Vec<NamedRoom>, ReadError>;

        /// Takes a direct room off its user's list until something is said after a message.
        async fn hide_room(user: UserId, room: RoomId, seq: Seq) -> Result<(), ControlError>;

        /// Puts it back.
        async fn show_room(user: UserId, room: RoomId) -> Result<(), ControlError>;

        /// Saves a message for a user, of whom `max` are taken.
        async fn save_message(new: NewSaved, max: u32) -> Result<Saving, ControlError>;

        /// Takes a message off a user's list.
        async fn unsave_message(user: UserId, room: RoomId, seq: Seq) -> Result<(), ControlError>;

        /// Keeps somebody who is no member out of a room.
        async fn ban(room: RoomId, user: UserId, by: UserId, at: UnixMillis) -> Result<(), ControlError>;

        /// Lets them come back; says whether there was a ban.
        async fn unban(
            room: RoomId,
            user: UserId,
            by: UserId,
            at: UnixMillis,
        ) -> Result<bool, ControlError>;

        /// Blocks another user or lifts it; gives the direct room of the two, if there is one.
        async fn set_blocked(
            user: UserId,
            blocked: UserId,
            on: bool,
            at: UnixMillis,
            max: u32,
        ) -> Result<Option<RoomId>, ControlError>;

        /// Whether a user has blocked another one.
        async fn has_blocked(user: UserId, other: UserId) -> Result<bool, ReadError>;

        /// Whom a user has blocked.
        async fn blocked(user: UserId) -> Result<Vec<Account>, ReadError>;

        /// Makes an invite.
        async fn create_invite(new: NewInvite) -> Result<Invite, ControlError>;

        /// An invite by its code.
        async fn invite(code: String) -> Result<Option<Invite>, ReadError>;

        /// A page of a room's invites.
        async fn invites(
            room: RoomId,
            after: Option<(UnixMillis, String)>,
            limit: u32,
        ) -> Result<Vec<Invite>, ReadError>;

        /// Ends an invite; says whether it was there.
        async fn revoke_invite(
            code: String,
            by: UserId,
            at: UnixMillis,
        ) -> Result<bool, ControlError>;

        /// Takes one use of an invite for a user; until they are in its room, that same one again.
        async fn redeem_invite(
            code: String,
            user: UserId,
            now: UnixMillis,
        ) -> Result<Redeemed, ControlError>;

        /// Decides that a room is deleted: nobody gets at it any more.
        async fn begin_room_deletion(
            room: RoomId,
            by: UserId,
            authority: Authority,
            at: UnixMillis,
        ) -> Result<(), ControlError>;

        /// Decides that an account is deleted: nobody can sign in to it, and its names are erased.
        async fn begin_account_deletion(
            new: AccountDeletion,
        ) -> Result<AccountDeletionBegun, ControlError>;
    }
}
