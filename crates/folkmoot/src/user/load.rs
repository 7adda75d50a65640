//! Brings a user into memory, and reads what memory does not hold.

use super::TAIL_LEN;
use super::state::{Membership, UserState};
use crate::storage::contract::UserLog;
use crate::storage::{Account, ReadError, UserId, UserRoom, UserSnapshot, WriteEpoch};
use crate::stream::{Tail, of_user};

/// A user as the store has it.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) account: Account,
    pub(super) state: UserState,
    pub(super) tail: Tail,
    pub(super) epoch: WriteEpoch,
}

/// Loads a user; `None` if there is no such user.
pub(super) async fn load(store: &impl UserLog, id: UserId) -> Result<Option<Loaded>, ReadError> {
    let tail_len = u32::try_from(TAIL_LEN).expect("a small constant");
    Ok(store.load_user(id, tail_len).await?.map(Loaded::from))
}

impl From<UserSnapshot> for Loaded {
    fn from(snapshot: UserSnapshot) -> Self {
        let UserSnapshot { account, last_offset, tail, rooms, blocked, epoch } = snapshot;
        let mut state = UserState::new(last_offset);
        state.blocked = blocked.into_iter().collect();
        let rooms = rooms.into_iter().map(|room| {
            let mentions = room.mentions.into_iter().collect();
            let UserRoom { summary, read_seq, notify, is_hidden, .. } = room;
            (summary.id, Membership { read_seq, mentions, notify, is_hidden })
        });
        state.rooms = rooms.collect();
        let tail = Tail::ending(last_offset, TAIL_LEN, tail.iter().map(of_user));
        Self { account, state, tail, epoch }
    }
}
