//! The actor that takes what crosses the bridge to one node.

use std::sync::Arc;

use althing::remote::{Parcel, Undelivered};
use althing::{
    Actor, ActorId, ActorOptions, Context, Delayed, DelayedHandler, Handler, Incarnation,
    MailboxKind, Receives, ReplyTo, Wire,
};

use super::Shared;
use super::frame::{Frame, Outcome};

/// Delivers to one node.
pub(super) struct Courier {
    shared: Arc<Shared>,
    me: Incarnation,
    /// Actors that have left, and who wants to know when nothing for them is on its way here any
    /// more.
    settling: Vec<(ActorId, ReplyTo<()>)>,
}

/// A frame, encoded.
pub(super) struct Crossing(pub(super) Vec<u8>);

/// Replies once nothing for its former node is on the way any more.
pub(super) struct Settled(pub(super) ActorId);

impl Courier {
    pub(super) fn new(shared: Arc<Shared>, me: Incarnation) -> Self {
        Self { shared, me, settling: Vec::new() }
    }

    async fn deliver(&self, mut parcel: Parcel, ctx: &Context<Self>) {
        loop {
            match ctx.node().deliver(parcel) {
                Err(Undelivered::Full(back)) => {
                    ctx.node().room_for(&back.to).await;
                    parcel = *back;
                }
                Err(Undelivered::Elsewhere(onward)) => return self.shared.send(self.me, *onward),
                _ => return,
            }
        }
    }

    /// Has parcels for actors that have left go straight to where they live, once none is on its
    /// way here any more.
    fn settle(&mut self) {
        {
            let mut routes = self.shared.routes.lock();
            if routes.nodes.get(&self.me).is_some_and(|at| at.crossing > 0) {
                return;
            }
            for (id, _) in &self.settling {
                if let Some(home) = routes.homes.get_mut(id) {
                    home.former = None;
                }
            }
        }
        for (_, reply) in self.settling.drain(..) {
            reply.send(());
        }
    }

    /// Counts a frame as arrived, and lets senders that wait look again.
    fn arrived(&mut self) {
        let waiting = {
            let mut routes = self.shared.routes.lock();
            let Some(at) = routes.nodes.get_mut(&self.me) else { return };
            at.crossing -= 1;
            std::mem::take(&mut at.waiting)
        };
        waiting.into_iter().for_each(std::task::Waker::wake);
        self.settle();
    }
}

impl Actor for Courier {
    const NAME: &'static str = "althing.testkit.courier";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Unbounded)
    }
}

impl Handler<Crossing> for Courier {
    type Reply = ();

    async fn handle(&mut self, Crossing(bytes): Crossing, ctx: &mut Context<Self>) {
        let frame = Frame::decode(&bytes).expect("what the bridge encoded");
        let shared = self.shared.clone();
        let parcel = frame.unpack(|ask| {
            Box::new(move |outcome| {
                let mut bytes = Vec::new();
                match outcome {
                    Ok(reply) => Outcome::Replied(reply),
                    Err(why) => Outcome::Failed(why),
                }
                .encode(&mut bytes);
                shared.answer(ask, &bytes);
            })
        });
        self.deliver(parcel, ctx).await;
        self.arrived();
    }
}

impl DelayedHandler<Settled> for Courier {
    type Reply = ();

    async fn handle(&mut self, Settled(id): Settled, reply: ReplyTo<()>, _: &mut Context<Self>) {
        self.settling.push((id, reply));
        self.settle();
    }
}

impl Receives<Settled> for Courier {
    type Reply = ();
    type Way = Delayed;
}
