//! Completes what became durable, in order: publish to the devices, acknowledge. Takes back
//! everything after a failed append. Saves cursors a moment after they moved.

use std::time::Duration;

use althing::{Context, Handler};

use super::UserError;
use super::actor::{Acknowledge, Unsaved, User};
use super::news::News;
use crate::storage::{ReadCursor, Record};
use crate::stream::{Completed, Settled, of_user};

/// What a crash may forget of read cursors: what was read in it then counts as unread. One record
/// for each of these, and not for each message, is what somebody costs who reads along in a busy
/// room.
pub(super) const SAVE_AFTER: Duration = Duration::from_secs(5);

/// Time to save the cursors that have moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaveCursors;

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

impl User {
    /// Nobody waits for these: they merge by maximum, whatever becomes of one of them.
    pub(super) fn save_cursors(&mut self, ctx: &mut Context<Self>) {
        for (room, Unsaved { seq, shown }) in std::mem::take(&mut self.unsaved) {
            match shown {
                Some(state) => self.take_read(room, state, ctx),
                None => {
                    let cursor = Record::Cursor(ReadCursor { user: self.id, room, seq });
                    self.stream.log(self.ports.streams(), &cursor);
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
