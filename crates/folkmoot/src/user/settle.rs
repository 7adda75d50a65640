//! Completes what became durable, in order: publish to the devices, acknowledge. Takes back
//! everything after a failed append. Saves cursors that moved by sending, a moment later.

use std::sync::Arc;
use std::time::Duration;

use althing::{Context, Handler};

use super::actor::{Acknowledge, User};
use super::news::News;
use super::{UserError, load};
use crate::lane::Settled;
use crate::storage::{ReadCursor, Record};

/// What a crash may forget of cursors that moved by sending: own messages then count as unread.
pub(super) const SAVE_AFTER: Duration = Duration::from_secs(1);

/// Time to save the cursors that moved by sending.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaveCursors;

impl Handler<Settled> for User {
    type Reply = ();

    async fn handle(&mut self, mut settled: Settled, ctx: &mut Context<Self>) {
        self.lane.resume(&mut settled);
        for pending in self.pending.drain(..settled.durable) {
            let publication = Arc::new(load::publication(&pending.record));
            self.tail.push(publication.clone());
            self.topic.publish(publication);
            pending.acknowledge.done();
        }
        let Some(error) = settled.failed else { return self.wait(ctx) };
        tracing::warn!(user = %self.id, %error, "appends failed");
        let failed = std::mem::take(&mut self.pending);
        // The state is ahead of the disk.
        let reloaded = self.reload().await;
        for pending in failed {
            let news = pending.acknowledge.failed(|| UserError::Append(error.clone()));
            self.owe(news, ctx);
        }
        if reloaded.is_err() {
            ctx.passivate();
        }
    }
}

impl Handler<super::CheckIdle> for User {
    type Reply = ();

    /// Leaves memory after two quiet checks without a connection.
    async fn handle(&mut self, _: super::CheckIdle, ctx: &mut Context<Self>) {
        self.idle_ticks += 1;
        let is_idle =
            self.connections.is_empty() && self.pending.is_empty() && self.owed.is_empty();
        if is_idle && self.idle_ticks > 2 || self.known.is_none() {
            ctx.passivate();
        }
    }
}

impl Handler<SaveCursors> for User {
    type Reply = ();

    async fn handle(&mut self, _: SaveCursors, _: &mut Context<Self>) {
        self.save_cursors();
    }
}

impl User {
    /// Nobody waits for these: they merge by maximum, whatever becomes of one of them.
    pub(super) fn save_cursors(&mut self) {
        for (room, seq) in std::mem::take(&mut self.unsaved) {
            let cursor = Record::Cursor(ReadCursor { user: self.id, room, seq });
            drop(self.server.store.append(self.epoch, &cursor));
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
            Self::Read(state, reply) => {
                reply.send(Ok(state));
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
            Self::Read(_, reply) => {
                reply.send(Err(error()));
            }
        }
        None
    }
}
