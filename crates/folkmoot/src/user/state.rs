//! One user as a value: the numbers of the user's own stream, memberships, read cursors and
//! unread mentions. No clock, no store, no socket.
//!
//! Unread counts are derived (a room's last message minus the cursor), so a message costs nothing
//! per member; only those it mentions by name get an entry here.

use althing::Wire;
use folkmoot_protocol::wire_as;
use std::collections::BTreeSet;

use super::mentions::Mentions;
use crate::sorted_map::SortedMap;
use crate::storage::record::{Notify, UserEffect};
use crate::storage::{Offset, RoomId, Seq, UserId};

/// What a user keeps about one room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Membership {
    /// Read up to and including this message.
    pub(crate) read_seq: Seq,
    /// Messages after `read_seq` that mention the user by name.
    pub(crate) mentions: Mentions,
    pub(crate) notify: Notify,
    /// Off the user's list until something is said there.
    pub(crate) is_hidden: bool,
}

/// The same, between nodes.
#[derive(Wire)]
struct MembershipThere {
    read_seq: Seq,
    mentions: Vec<Seq>,
    notify: Notify,
    is_hidden: bool,
}

wire_as!(
    Membership as MembershipThere,
    |known| MembershipThere {
        read_seq: known.read_seq,
        mentions: known.mentions.iter().collect(),
        notify: known.notify,
        is_hidden: known.is_hidden,
    },
    |there| {
        let MembershipThere { read_seq, mentions, notify, is_hidden } = there;
        Ok(Self { read_seq, mentions: mentions.into_iter().collect(), notify, is_hidden })
    }
);

/// Something that belongs in the user's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserChange {
    RoomAdded {
        room: RoomId,
        read_seq: Seq,
    },
    RoomRemoved {
        room: RoomId,
    },
    Mentioned {
        room: RoomId,
        seq: Seq,
    },
    /// The message was edited or deleted; the store learns that from the room.
    Unmentioned {
        room: RoomId,
        seq: Seq,
    },
    Read {
        room: RoomId,
        seq: Seq,
    },
    NotifySet {
        room: RoomId,
        notify: Notify,
    },
    /// Taken off the user's list, or put back.
    Listed {
        room: RoomId,
        on: bool,
    },
    Profile,
    /// A message was saved for later or taken off the list, which the store knows already.
    Saved,
}

impl UserChange {
    /// What the store changes beside the stream.
    pub(crate) fn effect(self) -> Option<UserEffect> {
        match self {
            Self::Mentioned { room, seq } => Some(UserEffect::Mention { room, seq }),
            Self::Read { room, seq } | Self::RoomAdded { room, read_seq: seq } => {
                Some(UserEffect::Read { room, seq })
            }
            Self::NotifySet { room, notify } => Some(UserEffect::Notify { room, notify }),
            Self::RoomRemoved { .. }
            | Self::Unmentioned { .. }
            | Self::Listed { .. }
            | Self::Profile
            | Self::Saved => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct UserState {
    pub(crate) offset: Offset,
    pub(crate) rooms: SortedMap<RoomId, Membership>,
    /// Whose mentions do not count.
    pub(crate) blocked: BTreeSet<UserId>,
}

impl UserState {
    pub(crate) fn new(offset: Offset) -> Self {
        Self { offset, rooms: SortedMap::default(), blocked: BTreeSet::new() }
    }

    /// The user is in `room` from now on and has not to catch up with what was said before.
    pub(crate) fn room_added(&self, room: RoomId, read_seq: Seq) -> Option<UserChange> {
        let is_new = !self.rooms.contains_key(room);
        is_new.then_some(UserChange::RoomAdded { room, read_seq })
    }

    pub(crate) fn room_removed(&self, room: RoomId) -> Option<UserChange> {
        self.rooms.contains_key(room).then_some(UserChange::RoomRemoved { room })
    }

    /// A message mentions the user; told twice, it counts once. One that was read already (on
    /// another device, faster than the mention arrived) does not count.
    pub(crate) fn mentioned(&self, room: RoomId, seq: Seq) -> Option<UserChange> {
        let membership = self.rooms.get(room)?;
        let is_new = seq > membership.read_seq && !membership.mentions.contains(seq);
        is_new.then_some(UserChange::Mentioned { room, seq })
    }

    /// A message mentions the user no more.
    pub(crate) fn unmentioned(&self, room: RoomId, seq: Seq) -> Option<UserChange> {
        let is_counted = self.rooms.get(room)?.mentions.contains(seq);
        is_counted.then_some(UserChange::Unmentioned { room, seq })
    }

    /// Moves the read cursor forward, never back and never beyond the room's last message.
    pub(crate) fn read(&self, room: RoomId, seq: Seq, last_seq: Seq) -> Option<UserChange> {
        let seq = seq.min(last_seq);
        let moves = seq > self.rooms.get(room)?.read_seq;
        moves.then_some(UserChange::Read { room, seq })
    }

    /// Moves the cursor in memory, ahead of the disk; says whether it moved.
    pub(crate) fn advance(&mut self, room: RoomId, seq: Seq) -> bool {
        let Some(membership) = self.rooms.get_mut(room) else { return false };
        let moves = seq > membership.read_seq;
        if moves {
            membership.read_to(seq);
        }
        moves
    }

    /// Takes a room off the user's list, or puts it back.
    pub(crate) fn listed(&self, room: RoomId, on: bool) -> Option<UserChange> {
        let differs = self.rooms.get(room)?.is_hidden == on;
        differs.then_some(UserChange::Listed { room, on })
    }

    pub(crate) fn notify(&self, room: RoomId, notify: Notify) -> Option<UserChange> {
        let differs = self.rooms.get(room)?.notify != notify;
        differs.then_some(UserChange::NotifySet { room, notify })
    }

    /// Takes the next place in the stream and folds the change in.
    pub(crate) fn commit(&mut self, change: UserChange) -> Offset {
        self.offset = self.offset.next();
        match change {
            UserChange::RoomAdded { room, read_seq } => {
                self.rooms.insert(room, Membership { read_seq, ..Membership::default() });
            }
            UserChange::RoomRemoved { room } => {
                self.rooms.remove(room);
            }
            UserChange::Mentioned { room, seq } => {
                if let Some(membership) = self.rooms.get_mut(room) {
                    membership.mentions.insert(seq);
                }
            }
            UserChange::Unmentioned { room, seq } => {
                if let Some(membership) = self.rooms.get_mut(room) {
                    membership.mentions.remove(seq);
                }
            }
            UserChange::Read { room, seq } => {
                if let Some(membership) = self.rooms.get_mut(room) {
                    membership.read_to(seq);
                }
            }
            UserChange::NotifySet { room, notify } => {
                if let Some(membership) = self.rooms.get_mut(room) {
                    membership.notify = notify;
                }
            }
            UserChange::Listed { room, on } => {
                if let Some(membership) = self.rooms.get_mut(room) {
                    membership.is_hidden = !on;
                }
            }
            UserChange::Profile | UserChange::Saved => {}
        }
        self.offset
    }
}

impl Membership {
    /// Messages after the cursor, in a room that keeps those from `first_seq` to `last_seq`.
    pub(crate) fn unread(&self, first_seq: Seq, last_seq: Seq) -> u64 {
        let gone = first_seq.as_u64().saturating_sub(1);
        last_seq.as_u64().saturating_sub(self.read_seq.as_u64().max(gone))
    }

    /// Moves the cursor, never back; mentions up to there are read.
    pub(crate) fn read_to(&mut self, seq: Seq) {
        self.read_seq = self.read_seq.max(seq);
        self.mentions.read_to(self.read_seq);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::user::mentions::MENTIONS_LEN;

    const HALL: RoomId = RoomId::from_u64(7);

    fn user() -> UserState {
        let mut user = UserState::new(Offset::from_u64(0));
        let change = user.room_added(HALL, Seq::from_u64(10)).unwrap();
        user.commit(change);
        user
    }

    fn run(user: &mut UserState, change: Option<UserChange>) -> bool {
        change.map(|change| user.commit(change)).is_some()
    }

    #[test]
    fn the_cursor_never_moves_back_nor_beyond_the_last_message() {
        let mut user = user();
        assert_eq!(user.read(HALL, Seq::from_u64(9), Seq::from_u64(20)), None);
        let change = user.read(HALL, Seq::from_u64(99), Seq::from_u64(20));
        assert_eq!(change, Some(UserChange::Read { room: HALL, seq: Seq::from_u64(20) }));
        assert!(run(&mut user, change));
        assert_eq!(user.read(HALL, Seq::from_u64(15), Seq::from_u64(20)), None);
        let (first, last) = (Seq::from_u64(1), Seq::from_u64(25));
        assert_eq!(user.rooms.get(HALL).unwrap().unread(first, last), 5);
        assert_eq!(
            user.rooms.get(HALL).unwrap().unread(Seq::from_u64(24), last),
            2,
            "the others are gone"
        );
        assert_eq!(user.rooms.get(HALL).unwrap().unread(Seq::from_u64(26), last), 0);
    }

    #[test]
    fn news_of_having_joined_that_comes_late_takes_nothing_back() {
        let mut user = user();
        assert!(user.advance(HALL, Seq::from_u64(15)));
        let mention = user.mentioned(HALL, Seq::from_u64(18));
        run(&mut user, mention);
        user.commit(UserChange::Read { room: HALL, seq: Seq::from_u64(10) });
        let known = user.rooms.get(HALL).unwrap();
        assert_eq!((known.read_seq, known.mentions.len()), (Seq::from_u64(15), 1));
    }

    #[test]
    fn mentions_count_once_and_reading_takes_only_those_read() {
        let mut user = user();
        for seq in [12, 15, 12] {
            let change = user.mentioned(HALL, Seq::from_u64(seq));
            run(&mut user, change);
        }
        assert_eq!(user.rooms.get(HALL).unwrap().mentions.len(), 2);
        assert_eq!(user.mentioned(HALL, Seq::from_u64(10)), None);
        let change = user.read(HALL, Seq::from_u64(12), Seq::from_u64(20));
        run(&mut user, change);
        assert_eq!(
            user.rooms.get(HALL).unwrap().mentions,
            Mentions::from_iter([Seq::from_u64(15)])
        );
    }

    #[test]
    fn rooms_one_is_not_in_change_nothing() {
        let user = user();
        let elsewhere = RoomId::from_u64(8);
        assert_eq!(user.mentioned(elsewhere, Seq::from_u64(1)), None);
        assert_eq!(user.read(elsewhere, Seq::from_u64(1), Seq::from_u64(1)), None);
        assert_eq!(user.notify(elsewhere, Notify::None), None);
        assert_eq!(user.room_removed(elsewhere), None);
        assert_eq!(user.room_added(HALL, Seq::from_u64(0)), None);
    }

    #[test]
    fn old_mentions_do_not_pile_up_without_end() {
        let mut user = user();
        for seq in 11..(MENTIONS_LEN as u64 + 50) {
            let change = user.mentioned(HALL, Seq::from_u64(seq));
            run(&mut user, change);
        }
        assert_eq!(user.rooms.get(HALL).unwrap().mentions.len(), MENTIONS_LEN);
    }

    proptest! {
        /// Whatever happens, offsets have no gaps, the cursor only rises, and no mention counted
        /// lies before it.
        #[test]
        fn any_history_keeps_the_users_promises(
            steps in proptest::collection::vec((0u8..5, 1u64..40), 0..200),
        ) {
            let mut user = user();
            let mut expected = user.offset;
            let mut cursor = Seq::from_u64(0);
            for (kind, number) in steps {
                let change = match kind {
                    0 => user.mentioned(HALL, Seq::from_u64(number)),
                    1 | 2 => user.read(HALL, Seq::from_u64(number), Seq::from_u64(30)),
                    3 => user.notify(HALL, Notify::Mentions),
                    _ => Some(UserChange::Profile),
                };
                if let Some(change) = change {
                    expected = expected.next();
                    prop_assert_eq!(user.commit(change), expected);
                }
                let membership = user.rooms.get(HALL).unwrap();
                prop_assert!(membership.read_seq >= cursor && membership.read_seq <= Seq::from_u64(30));
                prop_assert!(membership.mentions.iter().all(|seq| seq > membership.read_seq));
                cursor = membership.read_seq;
            }
        }
    }
}
