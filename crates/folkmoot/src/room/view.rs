//! What a room tells about itself, to members, to strangers with an invite, and to its users'
//! actors. Values only.

use althing::Wire;
use folkmoot_protocol::wire_as;
use std::collections::VecDeque;
use std::sync::Arc;

use folkmoot_protocol::chat::MessageView;

use crate::storage::record::{Message, Role};
use crate::storage::{Account, Offset, RoomHead, RoomId, Seq, UnixMillis, UserId};

use super::state::Kind;

/// A room as one member sees it, but for what only the member's own actor knows.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Summary {
    pub(crate) id: RoomId,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) topic: String,
    pub(crate) members: u64,
    /// Numbers of what is durable.
    pub(crate) last_seq: Seq,
    /// The first message that is kept; nobody has to read what is gone.
    pub(crate) first_seq: Seq,
    pub(crate) offset: Offset,
    pub(crate) role: Role,
    pub(crate) muted_until: Option<UnixMillis>,
    pub(crate) is_archived: bool,
    /// The other one, in a direct conversation.
    pub(crate) peer: Option<UserId>,
    /// Numbers of the `@everyone` messages kept, rising.
    pub(crate) everyone: Everyone,
    /// The newest message, if it is recent.
    pub(crate) last: Option<MessageView>,
}

impl Summary {
    /// A room that is not in memory as `by` sees it, and the other one of a direct conversation.
    pub(crate) fn of(head: RoomHead, by: UserId) -> (Self, Option<Account>) {
        let RoomHead { summary: room, is_archived, rights, peer, everyone, newest } = head;
        let newest = newest
            .map(|stored| crate::wire::newest_message(room.id, stored.at, &stored.message, by));
        let summary = Self {
            id: room.id,
            kind: room.kind.into(),
            name: room.name,
            topic: room.topic,
            members: room.member_count,
            last_seq: room.last_seq,
            first_seq: room.first_seq,
            offset: room.last_offset,
            role: rights.role,
            muted_until: rights.muted_until,
            is_archived,
            peer: peer.as_ref().map(|peer| peer.id),
            everyone: Everyone(Arc::new(everyone.into())),
            last: newest,
        };
        (summary, peer)
    }

    /// How many `@everyone` messages came after `seq`.
    pub(crate) fn everyone_after(&self, seq: Seq) -> usize {
        let Everyone(everyone) = &self.everyone;
        everyone.len() - everyone.partition_point(|mention| *mention <= seq)
    }
}

/// Numbers of the `@everyone` messages of a room, rising; shared with the room.
#[derive(Debug, Clone)]
pub(crate) struct Everyone(pub(crate) Arc<VecDeque<Seq>>);

/// The same, between nodes.
#[derive(Wire)]
pub(crate) struct EveryoneThere {
    seqs: Vec<Seq>,
}

wire_as!(
    Everyone as EveryoneThere,
    |everyone| EveryoneThere { seqs: everyone.0.iter().copied().collect() },
    |there| Ok(Self(Arc::new(there.seqs.into())))
);

/// A room as somebody with an invite sees it.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Preview {
    pub(crate) name: String,
    pub(crate) topic: String,
    pub(crate) members: u64,
}

/// What became of a command.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Done {
    /// When it took effect.
    pub(crate) at: UnixMillis,
    pub(crate) offset: Offset,
    /// The message it made, or the first one under the same key.
    pub(crate) seq: Option<Seq>,
    /// It had been done before.
    pub(crate) is_repeat: bool,
}

/// A message that mentions somebody, on its way to that user.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Mention {
    pub(crate) room: RoomId,
    pub(crate) seq: Seq,
    pub(crate) by: UserId,
    pub(crate) name: String,
    pub(crate) excerpt: String,
    pub(crate) at: UnixMillis,
}

impl Mention {
    pub(crate) fn of(room: RoomId, at: UnixMillis, message: &Message) -> Self {
        Self {
            room,
            seq: message.seq,
            by: message.user,
            name: message.name.clone(),
            excerpt: crate::wire::excerpt(&message.body).to_owned(),
            at,
        }
    }
}
