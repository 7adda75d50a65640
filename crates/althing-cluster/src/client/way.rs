//! What a client's node asks of its cluster: every actor lives elsewhere, and the way there is the
//! client's connection.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use althing::remote::{Cargo, Cluster, Control, Location, Parcel, Reply};
use althing::{ActorId, AskError, Epoch, Node, StopReason, WeakNode};
use parking_lot::Mutex;

use super::connection::{Connection, Unsent, fail};
use crate::member::pack::{body_len_max, pack};
use crate::protocol::Packed;
use crate::waiters::Waiters;

/// Messages that wait for a connection from which on senders wait.
const BACKLOG_MAX: usize = 512;

/// The way to the cluster, over whatever connection there is.
#[derive(Default)]
pub(super) struct Way {
    node: OnceLock<WeakNode>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    connection: Option<Arc<Connection>>,
    /// Messages that wait for one.
    backlog: VecDeque<(Packed, Option<Reply>)>,
    wakers: Waiters,
    is_closed: bool,
}

impl Way {
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        self.line.lock().connection.clone().filter(|connection| !connection.has_ended())
    }

    /// There is a connection; what waits goes first.
    pub(super) fn connected(&self, connection: &Arc<Connection>) {
        let mut line = self.line.lock();
        line.connection = Some(connection.clone());
        let mut failed = Vec::new();
        while let Some((packed, reply)) = line.backlog.pop_front() {
            match connection.send(packed, reply) {
                Ok(()) => {}
                Err(Unsent::Ended(unsent)) => {
                    line.backlog.push_front(*unsent);
                    break;
                }
                Err(Unsent::TooLong(reply, why)) => failed.push((reply, why)),
            }
        }
        let wakers = line.wakers.take();
        drop(line);
        failed.into_iter().for_each(|(reply, why)| fail(reply, why));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// There will be none any more.
    pub(super) fn close(&self) {
        let (backlog, wakers, connection) = {
            let mut line = self.line.lock();
            line.is_closed = true;
            let (backlog, wakers) = (std::mem::take(&mut line.backlog), line.wakers.take());
            (backlog, wakers, line.connection.take())
        };
        drop(connection);
        backlog.into_iter().for_each(|(packed, reply)| fail(reply, AskError::NodeLost(packed.to)));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Has senders that wait look again.
    pub(super) fn wake_senders(&self) {
        let (waiting, connection) = {
            let mut line = self.line.lock();
            (line.wakers.take(), line.connection.clone())
        };
        waiting.into_iter().for_each(Waker::wake);
        if let Some(connection) = connection {
            connection.wake_senders();
        }
    }

    fn pass(&self, packed: Packed, reply: Option<Reply>) {
        let mut line = self.line.lock();
        if line.is_closed {
            drop(line);
            return fail(reply, AskError::NodeLost(packed.to));
        }
        // Behind what waits.
        let connection = line.connection.clone().filter(|_| line.backlog.is_empty());
        let unsent = match connection {
            Some(connection) => connection.send(packed, reply).err(),
            None => Some(Unsent::Ended(Box::new((packed, reply)))),
        };
        match unsent {
            None => {}
            Some(Unsent::Ended(unsent)) => line.backlog.push_back(*unsent),
            Some(Unsent::TooLong(reply, why)) => {
                drop(line);
                fail(reply, why);
            }
        }
    }

    /// Watches end at once: nobody would tell when the other life does.
    fn refuse_watch(&self, to: ActorId, number: u64) {
        let Some(node) = self.node.get().and_then(WeakNode::upgrade) else { return };
        let ended = Control::Ended { reason: StopReason::NodeLost, number };
        tokio::spawn(async move {
            // It concerns an actor that lives elsewhere: there is no error.
            _ = node.deliver(Parcel { to, node: None, cargo: Cargo::Control(ended) });
        });
    }
}

/// As a type of its own: the node has to have an `Arc`.
pub(super) struct Ways(pub(super) Arc<Way>);

impl Cluster for Ways {
    fn locate(&self, id: &ActorId) -> Location {
        let me = self.0.node.get().and_then(WeakNode::upgrade).map(|node| node.incarnation());
        let is_mine = id.origin().is_some_and(|(node, _)| Some(node) == me);
        if is_mine { Location::Here(Epoch(0)) } else { Location::Elsewhere }
    }

    fn poll_room(&self, to: &ActorId, cx: &mut Context<'_>) -> Poll<()> {
        let mut line = self.0.line.lock();
        let connection = line.connection.as_ref().filter(|connection| !connection.has_ended());
        let is_crowded = match connection {
            Some(connection) => connection.is_crowded(to, cx.waker()),
            None if line.is_closed || line.backlog.len() < BACKLOG_MAX => false,
            None => {
                line.wakers.add(cx.waker());
                true
            }
        };
        if is_crowded { Poll::Pending } else { Poll::Ready(()) }
    }

    fn longest(&self, to: &ActorId) -> usize {
        let connection = self.0.connection();
        let len_max = connection.map_or(usize::MAX, |connection| connection.frame_len_max());
        body_len_max(to, len_max)
    }

    fn send(&self, parcel: Parcel) {
        match parcel.cargo {
            Cargo::Message(_) => {
                let (mut packed, reply) = pack(parcel, 0);
                // The number is the question's; this says that an answer is wanted.
                packed.ask = reply.is_some().then_some(1);
                packed.chain.clear();
                self.0.pass(packed, reply);
            }
            Cargo::Control(Control::Watch { number, .. }) => {
                self.0.refuse_watch(parcel.to, number);
            }
            // It was refused.
            Cargo::Control(Control::Unwatch { .. }) => {}
            Cargo::Control(_) => {
                tracing::warn!(to = %parcel.to, "a client sends messages only, and stops no actor");
            }
        }
    }

    fn built(&self, node: &Node) {
        _ = self.0.node.set(node.downgrade());
    }
}
