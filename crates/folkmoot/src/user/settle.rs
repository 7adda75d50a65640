//! Completes what became durable, in order: publish to the devices, acknowledge. Takes back
//! everything after a failed append.

use althing::{Context, Handler};

use super::UserError;
use super::actor::{Acknowledge, User};
use super::news::News;
use crate::stream::{Completed, Settled, of_user};

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
