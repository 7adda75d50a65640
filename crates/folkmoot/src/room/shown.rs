//! What is shown of a room itself: as far as it is durable. The state is ahead of the disk, and what
//! of it is taken back must not have been seen.

use super::state::RoomState;
use crate::storage::record::RoomEvent;

#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) topic: String,
    pub(super) members: u64,
    pub(super) is_archived: bool,
}

impl Shown {
    /// Of a state that was just loaded: all of it is durable.
    pub(super) fn of(state: &RoomState) -> Self {
        let (name, topic) = (state.name.clone(), state.topic.clone());
        Self { name, topic, members: state.members, is_archived: state.is_archived }
    }

    /// Takes in an event that is durable; they come in order.
    pub(super) fn apply(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Joined { .. } => self.members += 1,
            RoomEvent::Left { .. } => self.members = self.members.saturating_sub(1),
            RoomEvent::Archived { on, .. } => self.is_archived = *on,
            RoomEvent::Described { name, topic, .. } => {
                self.name.clone_from(name);
                self.topic.clone_from(topic);
            }
            RoomEvent::Message(_)
            | RoomEvent::Edited { .. }
            | RoomEvent::Deleted { .. }
            | RoomEvent::Reaction { .. }
            | RoomEvent::Pinned { .. }
            | RoomEvent::RoleSet { .. }
            | RoomEvent::Expired { .. } => {}
        }
    }
}
