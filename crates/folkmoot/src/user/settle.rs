//! Completes what became durable, in order: publish to the devices, acknowledge. Takes back
//! everything after a failed append. Saves cursors a moment after they moved.

use std::time::Duration;

use althing::{Context, Handler};

use super::UserError;
use super::actor::{Acknowledge, Unsaved, User};
use super::news::News;
use crate::storage::{AppendError, ReadCursor, Record, RoomId, Seq};
use crate::stream::{Completed, Settled, of_user};

/// What a crash may forget of read cursors: what was read in it then counts as unread. One record
/// for each of these, and not for each message, is what somebody costs who reads along in a busy
/// room.
pub(super) const SAVE_AFTER: Duration = Duration::from_secs(5);

/// Time to save the cursors that have moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaveCursors;

/// What became of a cursor on its way to the disk.
#[derive(Debug)]
pub(super) struct CursorLogged {
    room: RoomId,
    seq: Seq,
    outcome: Result<(), AppendError>,
}

impl Handler<Settled> for User {
    type Reply = ();

    async fn handle(&mut self, settled: Settled, ctx: &mut Context<Self>) {
        let Completed { durable, failed } = self.stream.settle(settled);
        for pending in durable {
            self.stream.publish(of_user(&pending.record));
            pending.acknowledge.done();
        }
        let Some(error) = failed else {
            self.wait(ctx);
            return self.look_again(ctx).await;
        };
        tracing::warn!(user = %self.id, %error, "appends failed");
        let failed = self.stream.take_back();
        // The state is ahead of the disk.
        let reloaded = self.reload().await;
        for pending in failed {
            let news = pending.acknowledge.failed(|| UserError::Append(error.clone()));
            self.owe(news, ctx);
        }
        match reloaded {
            Ok(()) => self.look_again(ctx).await,
            Err(_) => self.give_up(ctx),
        }
    }
}

impl Handler<SaveCursors> for User {
    type Reply = ();

    async fn handle(&mut self, _: SaveCursors, ctx: &mut Context<Self>) {
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

impl Acknowledge {
    pub(super) fn done(self) {
        match self {
            Self::Nobody | Self::News(_) => {}
            Self::Done(reply) => {
                reply.send(Ok(()));
            }
        }
    }

    /// Tells who waits; gives back what must not be lost.
    pub(super) fn failed(self, error: impl Fn() -> UserError) -> Option<News> {
        match self {
            Self::Nobody => {}
            Self::News(news) => return Some(news),
            Self::Done(reply) => {
                reply.send(Err(error()));
            }
        }
        None
    }
}
