//! Read cursors: they move in memory at once, are shown to the user's other devices, and get to the
//! disk a moment later.

use std::time::Duration;

use althing::{Context, Handler};
use folkmoot_protocol::rpc::{ReadState, encode_payload};

use super::actor::User;
use super::view::{read_event, read_state};
use crate::room::AskedRoom;
use crate::storage::{AppendError, ReadCursor, Record, RoomId, Seq};

/// What a crash may forget of read cursors: what was read in it then counts as unread. One record
/// for each of these, and not for each message, is what somebody costs who reads along in a busy
/// room.
const SAVE_AFTER: Duration = Duration::from_secs(5);

/// Time to save the cursors that have moved.
#[derive(Debug, Clone, Copy)]
struct SaveCursors;

/// What became of a cursor on its way to the disk.
#[derive(Debug)]
struct CursorLogged {
    room: RoomId,
    seq: Seq,
    outcome: Result<(), AppendError>,
}

/// A cursor that has moved in memory only.
#[derive(Debug, Clone)]
pub(super) struct Unsaved {
    pub(super) seq: Seq,
    /// What the devices see of it; absent: it moved by sending, which they see by the message.
    pub(super) shown: Option<ReadState>,
}

impl Handler<SaveCursors> for User {
    type Reply = ();

    async fn handle(&mut self, _: SaveCursors, ctx: &mut Context<Self>) {
        self.count_anew().await;
        self.save_cursors(ctx);
    }
}

impl Handler<CursorLogged> for User {
    type Reply = ();

    async fn handle(&mut self, logged: CursorLogged, ctx: &mut Context<Self>) {
        let CursorLogged { room, seq, outcome } = logged;
        let Err(error) = outcome else { return };
        tracing::debug!(user = %self.id, %room, %error, "a cursor is saved again in a moment");
        if self.state().is_ok_and(|state| state.rooms.contains_key(room)) {
            self.save_later(room, Unsaved { seq, shown: None }, ctx);
        }
    }
}

impl User {
    /// Moves a cursor in memory, and sees to it that it gets to the disk.
    pub(super) fn advance(
        &mut self,
        room: RoomId,
        seq: Seq,
        shown: Option<ReadState>,
        ctx: &mut Context<Self>,
    ) {
        let Some((_, state)) = &mut self.known else { return };
        if !state.advance(room, seq) {
            return;
        }
        self.save_later(room, Unsaved { seq, shown }, ctx);
    }

    /// Tells the user's devices of a cursor at once; the event that lasts follows with the disk.
    pub(super) fn show_others(&self, room: RoomId, state: &ReadState) {
        if self.connections.len() < 2 {
            return;
        }
        self.stream.tell(encode_payload(&read_event(room, state)));
    }

    /// Has a cursor saved a moment later, with what has moved meanwhile. They merge by maximum.
    pub(super) fn save_later(&mut self, room: RoomId, unsaved: Unsaved, ctx: &mut Context<Self>) {
        if self.unsaved.is_empty() {
            ctx.after(SAVE_AFTER, SaveCursors);
        }
        let newest = self.unsaved.entry(room).or_insert_with(|| unsaved.clone());
        if newest.seq < unsaved.seq {
            *newest = unsaved;
        }
    }

    /// Counts what is unread by now. The devices were shown what came since a cursor has moved: an event without it
    /// would take it from them again.
    async fn count_anew(&mut self) {
        if self.connections.is_empty() {
            return;
        }
        let shown = self.unsaved.iter().filter(|(_, unsaved)| unsaved.shown.is_some());
        let shown: Vec<RoomId> = shown.map(|(room, _)| *room).collect();
        for room in shown {
            let summary = AskedRoom::new(&self.ports, room).summary(self.id).await;
            let Ok(membership) = self.membership_of(room) else { continue };
            match summary {
                Ok(Ok(summary)) => {
                    let state = read_state(membership, &summary);
                    self.unsaved.entry(room).and_modify(|unsaved| unsaved.shown = Some(state));
                }
                // Nobody waits for a room that does not answer: they have what they were shown.
                Ok(Err(_)) => {}
                Err(_) => return,
            }
        }
    }

    /// No client waits for these.
    pub(super) fn save_cursors(&mut self, ctx: &mut Context<Self>) {
        for (room, Unsaved { seq, shown }) in std::mem::take(&mut self.unsaved) {
            match shown {
                Some(state) => self.take_read(room, state, ctx),
                None => {
                    let cursor = Record::Cursor(ReadCursor { user: self.id, room, seq });
                    let logged = self.stream.log(self.ports.streams(), &cursor);
                    ctx.pipe(logged, move |outcome| CursorLogged {
                        room,
                        seq,
                        outcome: outcome.map(drop),
                    });
                }
            }
        }
    }
}
