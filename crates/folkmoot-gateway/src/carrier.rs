//! Carriers: tasks that bring what was pushed to many connections to their sockets, many in one go.
//!
//! Who publishes an event to thousands only queues it and names the connection to its carrier. So
//! an event wakes one task for all who get it and not one for each, and what is pushed to a
//! connection before its carrier comes by leaves in one write.
//!
//! A carrier never waits for a socket: what a socket does not take is left to the connection's own
//! write half. Each connection has one carrier, and names itself once until that has come by.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::outbox::Outbox;

/// Connections that a carrier visits before other tasks may get its thread: some 400 µs.
const VISITS: usize = 64;
/// Connections in a row that get the same carrier: those that came together are told together, and
/// who tells them then names them all to one.
const NEIGHBOURS: usize = 64;
/// Names that an idle carrier keeps room for.
const KEPT_LEN: usize = 64;

/// The carriers of a server, as many as its runtime has threads.
#[derive(Debug)]
pub(crate) struct Carriers {
    all: Vec<Arc<Carrier>>,
    connections: AtomicUsize,
}

/// Brings what waits to its connections, in the order in which they were named.
#[derive(Debug)]
pub(crate) struct Carrier {
    runtime: Handle,
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    named: Vec<Arc<Outbox>>,
    is_under_way: bool,
}

impl Carriers {
    /// Of the runtime that this is called on.
    pub(crate) fn new() -> Self {
        let runtime = Handle::current();
        let carrier = || Arc::new(Carrier { runtime: runtime.clone(), round: Mutex::default() });
        let all = (0..runtime.metrics().num_workers().max(1)).map(|_| carrier()).collect();
        Self { all, connections: AtomicUsize::new(0) }
    }

    /// The one for a connection that has just come.
    pub(crate) fn for_newcomer(&self) -> Arc<Carrier> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        self.all[number / NEIGHBOURS % self.all.len()].clone()
    }
}

impl Carrier {
    /// Has a connection visited soon. Never waits.
    pub(crate) fn name(self: &Arc<Self>, outbox: Arc<Outbox>) {
        let sets_out = {
            let mut round = self.round.lock();
            round.named.push(outbox);
            !std::mem::replace(&mut round.is_under_way, true)
        };
        if sets_out {
            self.runtime.spawn(self.clone().carry());
        }
    }

    /// Visits connections until none is named any more.
    async fn carry(self: Arc<Self>) {
        let (mut named, mut room) = (Vec::new(), Vec::new());
        while self.next_round(&mut named) {
            for (visits, outbox) in named.drain(..).enumerate() {
                outbox.carry(&mut room);
                if visits % VISITS == VISITS - 1 {
                    step_back().await;
                }
            }
        }
    }

    /// Takes over who was named meanwhile; false: nobody, and the next name sets out anew.
    fn next_round(&self, named: &mut Vec<Arc<Outbox>>) -> bool {
        let mut round = self.round.lock();
        std::mem::swap(&mut round.named, named);
        round.is_under_way = !named.is_empty();
        if named.is_empty() && round.named.capacity() > KEPT_LEN {
            round.named = Vec::new();
        }
        round.is_under_way
    }
}

/// Lets other tasks of the thread run. Unlike `tokio::task::yield_now` it does not wait until the
/// runtime has looked at all sockets: on a busy server that is 61 tasks later, and a carrier would
/// fall behind.
async fn step_back() {
    let mut has_stepped = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
