//! The driver of the receiving side: who may connect, and what the other side is told has come.
//! What comes is a matter of `hearing`.
//!
//! Greetings and acknowledgements are a matter of the cluster's thread, which no handler blocks.
//! The items are read by the runtime of the node: an actor that was idle runs next on the thread
//! that read its message, and nobody else is woken for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Incoming;
use super::dial::PING_EVERY;
use super::hearing::Hearing;
use crate::member::inward::Routes;
use crate::member::{Shared, clients};
use crate::protocol::{
    Back, Broken, CLIENT, GREETING_LEN_MAX, Greeting, No, Welcome, framed, is_spoken, read, write,
};
use crate::transport::{self, GREETING_TIMEOUT, Place, Porch, Socket, Stream};

/// Connections at one time; each other node has one.
const CONNECTIONS_MAX: usize = 1_024;

const TOO_MANY: &str = "there are too many connections";

/// Items after which an acknowledgement is due at once; senders wait for it once 4,096 are under
/// way.
const ACKNOWLEDGE_AT: u64 = 512;

/// How long one that is not due waits for more. Until then the other side keeps the items.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(5);

/// What has come from one life of another node.
#[derive(Default)]
pub(crate) struct Peer {
    pub(super) incoming: Mutex<Incoming>,
    /// What the numbers in bundles mean.
    pub(super) routes: Mutex<Routes>,
    /// Items that wait for nobody any more.
    taken: AtomicU64,
    /// Something has come since the last acknowledgement.
    owes: AtomicBool,
    news: Notify,
    due: Notify,
}

/// One item that is being handled; counts as taken when it is dropped.
pub(crate) struct Ticket(pub(crate) Arc<Peer>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.took(1);
    }
}

impl Peer {
    /// So many more items wait for nobody any more.
    pub(crate) fn took(&self, count: u64) {
        let before = self.taken.fetch_add(count, Ordering::Release);
        if before / ACKNOWLEDGE_AT != (before + count) / ACKNOWLEDGE_AT {
            self.owe();
            self.due.notify_one();
        }
    }

    pub(super) fn owe(&self) {
        if !self.owes.swap(true, Ordering::AcqRel) {
            self.news.notify_one();
        }
    }
}

pub(crate) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let (porch, room) = (Porch::default(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let (socket, from) = transport::accept(&listener).await;
        let (shared, place, room) = (shared.clone(), porch.enter(), room.clone());
        tokio::spawn(async move {
            if let Err(why) = converse(&shared, socket, place, &room).await {
                tracing::debug!(%why, "a connection from another node ended");
                transport::tell_untrusted(&shared.guard, &from.to_string(), &why);
            }
        });
    }
}

fn is_of_client(greeting: &Greeting) -> bool {
    greeting.from == CLIENT && is_spoken(greeting.version)
}

/// Has whoever connected show that it is a member; what a client may is looked at by `clients`.
async fn greet(shared: &Shared, socket: TcpStream) -> Result<(Stream, Greeting), Broken> {
    let mut stream = transport::admit(&shared.guard, socket).await?;
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if is_of_client(&greeting) {
        return Ok((stream, greeting));
    }
    if let Some(no) = refusal(shared, &greeting, &stream) {
        write(&mut stream, &Welcome::Refused { why: no.words().to_owned() }).await?;
        return Err(no.of_the_other());
    }
    Ok((stream, greeting))
}

async fn converse(
    shared: &Arc<Shared>,
    socket: TcpStream,
    place: Place,
    room: &Semaphore,
) -> Result<(), Broken> {
    let (mut stream, greeting) = place.hold(greet(shared, socket)).await?;
    if is_of_client(&greeting) {
        return clients::welcome(shared, &greeting, stream).await;
    }
    let _permit = room.try_acquire().map_err(|_| Broken::Refused(TOO_MANY.to_owned()))?;
    let peer = shared.peer(greeting.from);
    let (connection, received) = {
        let _turn = shared.turn.lock();
        let mut incoming = peer.incoming.lock();
        (incoming.connect(), incoming.received())
    };
    write(&mut stream, &Welcome::Since { received }).await?;
    let (to, from) = stream.into_socket(Some(shared.runtime()))?;
    let mut reading = JoinSet::new();
    let hearing = Hearing::new(shared, &peer, greeting.from, connection);
    reading.spawn_on(hearing.hear(from), shared.runtime());
    tokio::select! {
        ended = reading.join_next() => match ended {
            Some(Ok(ended)) => ended,
            _ => Err(Broken::Refused("the node's runtime reads nothing any more".to_owned())),
        },
        ended = acknowledge(&peer, &to) => ended,
    }
}

fn refusal(shared: &Shared, greeting: &Greeting, stream: &Stream) -> Option<No> {
    if !is_spoken(greeting.version) {
        return Some(No::Version);
    }
    if greeting.cluster != shared.config.cluster {
        return Some(No::Cluster);
    }
    if greeting.to != shared.me() {
        return Some(No::NotMeant);
    }
    let Some(name) = shared.name_of(greeting.from) else { return Some(No::Stranger) };
    (!stream.may_be(&name)).then_some(No::Certificate)
}

async fn acknowledge(peer: &Peer, to: &Socket) -> Result<(), Broken> {
    loop {
        peer.owes.store(false, Ordering::Release);
        let received = peer.incoming.lock().received();
        let taken = peer.taken.load(Ordering::Acquire);
        to.write_all(&framed(&Back { received, taken })).await?;
        if timeout(PING_EVERY, peer.news.notified()).await.is_ok() {
            _ = timeout(ACKNOWLEDGE_AFTER, peer.due.notified()).await;
        }
    }
}
