//! The driver of the receiving side: who may connect, and each item in its turn.
//!
//! An item is handled when this node knows at least the record that its sender knew, and has its
//! lease. What a node that is no member any more has sent is not handled at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::dial::{PING_EVERY, SILENCE_MAX};
use super::{Arrival, Incoming};
use crate::member::Shared;
use crate::protocol::{
    Back, Broken, Forth, GREETING_LEN_MAX, Greeting, VERSION, Welcome, read, write,
};
use crate::transport::{self, GREETING_TIMEOUT, Stream};

/// Connections at one time; each other node has one.
const CONNECTIONS_MAX: usize = 1_024;

/// What has come from one life of another node.
#[derive(Default)]
pub(crate) struct Peer {
    incoming: Mutex<Incoming>,
    /// Items that wait for nobody any more.
    taken: AtomicU64,
    news: Notify,
}

/// One item that is being handled; counts as taken when it is dropped.
pub(crate) struct Ticket(Arc<Peer>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.taken.fetch_add(1, Ordering::Release);
        self.0.news.notify_one();
    }
}

pub(crate) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let stream = transport::accept(&listener).await;
        let shared = shared.clone();
        tokio::spawn(async move {
            if let Err(why) = converse(&shared, stream).await {
                tracing::debug!(%why, "a connection from another node ended");
            }
            drop(permit);
        });
    }
}

async fn converse(shared: &Arc<Shared>, mut stream: Stream) -> Result<(), Broken> {
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if let Some(why) = refusal(shared, &greeting) {
        write(&mut stream, &Welcome::Refused { why: why.to_owned() }).await?;
        return Err(Broken::Refused(why.to_owned()));
    }
    let peer = shared.peer(greeting.from);
    let (connection, received) = {
        let mut incoming = peer.incoming.lock();
        (incoming.connect(), incoming.received())
    };
    write(&mut stream, &Welcome::Since { received }).await?;
    let (from, to) = tokio::io::split(stream);
    let from = BufReader::new(from);
    tokio::select! {
        ended = hear(shared, &peer, greeting.from, connection, from) => ended,
        ended = acknowledge(&peer, to) => ended,
    }
}

fn refusal(shared: &Shared, greeting: &Greeting) -> Option<&'static str> {
    if greeting.version != VERSION {
        return Some("another version of the protocol");
    }
    if greeting.cluster != shared.config.cluster {
        return Some("another cluster");
    }
    if greeting.to != shared.me() {
        return Some("another node");
    }
    if !shared.is_member(greeting.from) {
        return Some("not known as a member");
    }
    None
}

async fn hear(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    who: u64,
    connection: u64,
    mut from: impl AsyncRead + Unpin,
) -> Result<(), Broken> {
    loop {
        let forth = read::<Forth>(&mut from, shared.config.frame_len_max);
        let Forth::Item { number, view, item } =
            timeout(SILENCE_MAX, forth).await.map_err(|_| Broken::Silent)??
        else {
            peer.news.notify_one();
            continue;
        };
        if !shared.may_handle(view) {
            shared.ready_to_handle(view).await;
        }
        // From here to the end nothing waits, so items of one node are handled one after the other.
        if !shared.is_member(who) {
            return Err(Broken::Refused("it is no member any more".to_owned()));
        }
        let arrival = peer.incoming.lock().arrive(connection, number);
        match arrival {
            Arrival::Next => shared.handle(who, item, Ticket(peer.clone())),
            Arrival::Again => {}
            Arrival::Wrong => return Err(Broken::Refused("items out of order".to_owned())),
        }
        peer.news.notify_one();
    }
}

async fn acknowledge(peer: &Peer, mut to: impl AsyncWrite + Unpin) -> Result<(), Broken> {
    loop {
        let received = peer.incoming.lock().received();
        let taken = peer.taken.load(Ordering::Acquire);
        write(&mut to, &Back { received, taken }).await?;
        _ = timeout(PING_EVERY, peer.news.notified()).await;
    }
}
