//! The driver of the receiving side: who may connect, and each item in its turn.
//!
//! An item is handled when this node knows at least the record that its sender knew, and has its
//! lease. What a node that is no member any more has sent is not handled at all.
//!
//! Greetings and acknowledgements are a matter of the cluster's thread, which no handler blocks.
//! The items are read by the runtime of the node: an actor that was idle runs next on the thread
//! that read its message, and nobody else is woken for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use althing::Wire;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::dial::{PING_EVERY, SILENCE_MAX};
use super::inbox::Inbox;
use super::{Arrival, Incoming};
use crate::member::{Shared, clients};
use crate::protocol::{
    Back, Broken, CLIENT, Forth, GREETING_LEN_MAX, Greeting, Item, No, VERSION, Welcome, framed,
    read, write,
};
use crate::transport::{self, GREETING_TIMEOUT, Place, Porch, Reader, Socket, Stream};

/// Connections at one time; each other node has one.
const CONNECTIONS_MAX: usize = 1_024;

const TOO_MANY: &str = "there are too many connections";

/// Items after which an acknowledgement is due at once; senders wait for it once 4,096 are under
/// way.
const ACKNOWLEDGE_AT: u64 = 512;

/// Items that are handled in one turn: enough that the turn costs little, few enough that others have
/// theirs within some tens of microseconds.
const BATCH_LEN: usize = 64;

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
    greeting.from == CLIENT && greeting.version == VERSION
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
    let hearing = Hearing {
        shared: shared.clone(),
        peer: peer.clone(),
        who: greeting.from,
        connection,
        inbox: Inbox::new(shared.config.frame_len_max),
        ready: VecDeque::with_capacity(BATCH_LEN),
    };
    reading.spawn_on(hear(hearing, from), shared.runtime());
    tokio::select! {
        ended = reading.join_next() => match ended {
            Some(Ok(ended)) => ended,
            _ => Err(Broken::Refused("the node's runtime reads nothing any more".to_owned())),
        },
        ended = acknowledge(&peer, &to) => ended,
    }
}

fn refusal(shared: &Shared, greeting: &Greeting, stream: &Stream) -> Option<No> {
    if greeting.version != VERSION {
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

/// What the handling of one connection's items needs.
struct Hearing {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    who: u64,
    connection: u64,
    inbox: Inbox,
    /// Items that were read and are not handled.
    ready: VecDeque<Numbered>,
}

/// An item, and the record that its sender knew.
struct Numbered {
    number: u64,
    view: u64,
    item: Item,
}

impl Hearing {
    /// Reads items that have come; false if there is none.
    fn decode_some(&mut self) -> Result<bool, Broken> {
        while self.ready.len() < BATCH_LEN {
            let Some(frame) = self.inbox.frame()? else { break };
            if let Forth::Item { number, view, item } = Forth::decode(frame)? {
                self.ready.push_back(Numbered { number, view, item });
            }
        }
        Ok(!self.ready.is_empty())
    }

    /// Handles items up to one that has to wait; returns the view that it waits for.
    fn handle_ready(&mut self) -> Result<Option<u64>, Broken> {
        // Nothing in here waits, so items are handled one after the other. Records are followed in
        // a turn of their own.
        let _turn = self.shared.turn.lock();
        let known = *self.shared.view.borrow();
        if !self.shared.is_member(self.who) {
            return Err(Broken::Refused("it is no member any more".to_owned()));
        }
        while let Some(next) = self.ready.front() {
            if next.view > known || !self.shared.is_serving() {
                return Ok(Some(next.view));
            }
            let Some(Numbered { number, item, .. }) = self.ready.pop_front() else { break };
            let arrival = self.peer.incoming.lock().arrive(self.connection, number);
            match arrival {
                Arrival::Next => self.shared.handle(self.who, item, Ticket(self.peer.clone())),
                Arrival::Again => {}
                Arrival::Wrong => return Err(Broken::Refused("items out of order".to_owned())),
            }
        }
        Ok(None)
    }
}

async fn hear(mut hearing: Hearing, mut from: Reader) -> Result<(), Broken> {
    let mut heard = Instant::now();
    let mut silence = std::pin::pin!(sleep(SILENCE_MAX));
    loop {
        while hearing.decode_some()? {
            while let Some(view) = hearing.handle_ready()? {
                hearing.shared.ready_to_handle(view).await;
            }
        }
        hearing.peer.owe();
        tokio::select! {
            biased;
            read = from.read_into(hearing.inbox.room()) => match read? {
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
