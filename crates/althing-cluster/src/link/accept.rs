//! The driver of the receiving side: who may connect, and each item in its turn.
//!
//! An item is handled when this node knows at least the record that its sender knew, and has its
//! lease. What a node that is no member any more has sent is not handled at all.
//!
//! Greetings and acknowledgements are a matter of the cluster's thread, which no handler blocks.
//! The items are read by the runtime of the node: an actor that was idle runs next on the thread
//! that read its message, and nobody else is woken for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use althing::Wire;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::dial::{PING_EVERY, SILENCE_MAX};
use super::inbox::Inbox;
use super::{Arrival, Incoming};
use crate::member::Shared;
use crate::protocol::{
    Back, Broken, Forth, GREETING_LEN_MAX, Greeting, VERSION, Welcome, read, write,
};
use crate::transport::{self, GREETING_TIMEOUT};

/// Connections at one time; each other node has one.
const CONNECTIONS_MAX: usize = 1_024;

/// Items after which an acknowledgement is due at once; senders wait for it once 4,096 are under
/// way.
const ACKNOWLEDGE_AT: u64 = 512;

/// How long one that is not due waits for more. Until then the other side keeps the items.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(5);

/// What has come from one life of another node.
#[derive(Default)]
pub(crate) struct Peer {
    incoming: Mutex<Incoming>,
    /// Items that wait for nobody any more.
    taken: AtomicU64,
    /// Something has come since the last acknowledgement.
    owes: AtomicBool,
    news: Notify,
    due: Notify,
}

/// One item that is being handled; counts as taken when it is dropped.
pub(crate) struct Ticket(Arc<Peer>);

impl Drop for Ticket {
    fn drop(&mut self) {
        let taken = self.0.taken.fetch_add(1, Ordering::Release) + 1;
        if taken.is_multiple_of(ACKNOWLEDGE_AT) {
            self.0.owe();
            self.0.due.notify_one();
        }
    }
}

impl Peer {
    fn owe(&self) {
        if !self.owes.swap(true, Ordering::AcqRel) {
            self.news.notify_one();
        }
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

async fn converse(shared: &Arc<Shared>, mut stream: TcpStream) -> Result<(), Broken> {
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if let Some(why) = refusal(shared, &greeting) {
        write(&mut stream, &Welcome::Refused { why: why.to_owned() }).await?;
        return Err(Broken::Refused(why.to_owned()));
    }
    let peer = shared.peer(greeting.from);
    let (connection, received) = {
        let _turn = shared.turn.lock();
        let mut incoming = peer.incoming.lock();
        (incoming.connect(), incoming.received())
    };
    write(&mut stream, &Welcome::Since { received }).await?;
    let stream = stream.into_std()?;
    let (from, to) = {
        let _entered = shared.runtime().enter();
        TcpStream::from_std(stream)?.into_split()
    };
    let mut reading = JoinSet::new();
    let hearing = hear(shared.clone(), peer.clone(), greeting.from, connection, from);
    reading.spawn_on(hearing, shared.runtime());
    tokio::select! {
        ended = reading.join_next() => match ended {
            Some(Ok(ended)) => ended,
            _ => Err(Broken::Refused("the node's runtime reads nothing any more".to_owned())),
        },
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
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    who: u64,
    connection: u64,
    mut from: OwnedReadHalf,
) -> Result<(), Broken> {
    let mut inbox = Inbox::new(shared.config.frame_len_max);
    let mut heard = Instant::now();
    let mut silence = std::pin::pin!(sleep(SILENCE_MAX));
    loop {
        while let Some(frame) = inbox.frame()? {
            let Forth::Item { number, view, item } = Forth::decode(frame)? else { continue };
            if !shared.may_handle(view) {
                shared.ready_to_handle(view).await;
            }
            // From here to the end nothing waits, so items are handled one after the other.
            let _turn = shared.turn.lock();
            if !shared.is_member(who) {
                return Err(Broken::Refused("it is no member any more".to_owned()));
            }
            let arrival = peer.incoming.lock().arrive(connection, number);
            match arrival {
                Arrival::Next => shared.handle(who, item, Ticket(peer.clone())),
                Arrival::Again => {}
                Arrival::Wrong => return Err(Broken::Refused("items out of order".to_owned())),
            }
        }
        peer.owe();
        tokio::select! {
            biased;
            read = from.read_buf(inbox.room()) => match read? {
                0 => return Err(Broken::Io(std::io::ErrorKind::UnexpectedEof.into())),
                _ => heard = Instant::now(),
            },
            () = &mut silence => {
                if heard.elapsed() >= SILENCE_MAX {
                    return Err(Broken::Silent);
                }
                silence.as_mut().reset(heard + SILENCE_MAX);
            }
        }
    }
}

async fn acknowledge(peer: &Peer, mut to: impl AsyncWrite + Unpin) -> Result<(), Broken> {
    loop {
        peer.owes.store(false, Ordering::Release);
        let received = peer.incoming.lock().received();
        let taken = peer.taken.load(Ordering::Acquire);
        write(&mut to, &Back { received, taken }).await?;
        if timeout(PING_EVERY, peer.news.notified()).await.is_ok() {
            _ = timeout(ACKNOWLEDGE_AFTER, peer.due.notified()).await;
        }
    }
}
