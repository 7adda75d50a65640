//! The driver of the sending side: dials, writes what is queued, dials again.
//!
//! Whoever queues an item writes it from its own thread, without waiting, if the link has been
//! quiet. Otherwise the link's task writes, on the cluster's thread, all that has come meanwhile. At
//! any moment one of them writes at most; who comes in between leaves its item to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use althing::Wire;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::inbox::Inbox;
use super::{Outgoing, Part, bundle};
use crate::member::Shared;
use crate::protocol::{
    Back, Broken, Forth, GREETING_LEN_MAX, Greeting, Item, No, VERSION, WIRE_FLOOR, Welcome,
    append_framed, framed, read, write,
};
use crate::record::Member;
use crate::transport::{self, GREETING_TIMEOUT, Reader, Socket, Stream, Whom};

/// How often a link without work says that it is there.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(500);

/// Silence after which a connection counts as broken. A half-open one is noticed by this.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Pauses between dials.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// How often a link looks whether its node has its lease again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long ago the last write was if a sender is to write itself. An answer takes longer than this
/// on any network, and of a burst only the first item costs a write of its own.
const QUIET: Duration = Duration::from_micros(20);

/// The first version in which tells go in bundles.
const BUNDLES_SINCE: u32 = 5;

/// What goes to one other node.
pub(crate) struct Link {
    pub(crate) to: u64,
    name: String,
    address: String,
    /// Longest frame that the other node reads.
    len_max: usize,
    state: Mutex<State>,
    wake: Notify,
    /// As `out` says, for senders, who look before each item.
    is_crowded: AtomicBool,
    is_closed: AtomicBool,
    /// Whether the other node has shown that it knows bundles.
    has_bundles: AtomicBool,
}

/// Who writes an item that was queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Somebody who writes or was woken to do so.
    Anyway,
    /// Whoever queued it, by `flush` or `wake`.
    BySender,
}

#[derive(Default)]
struct State {
    out: Outgoing,
    /// The present connection, once both sides have greeted.
    socket: Option<Socket>,
    is_writing: bool,
    /// The task was woken and has not looked yet.
    is_woken: bool,
    wrote_at: Option<Instant>,
}

impl Link {
    pub(crate) fn new(to: &Member) -> Self {
        Self {
            to: to.incarnation,
            name: to.name.clone(),
            address: to.address.clone(),
            len_max: usize::try_from(to.frame_len_max).unwrap_or(usize::MAX),
            state: Mutex::default(),
            wake: Notify::new(),
            is_crowded: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            has_bundles: AtomicBool::new(false),
        }
    }

    /// Queues an item; `flush` or `wake` has it written. The caller holds the lock under which the
    /// order of items is decided.
    ///
    /// # Errors
    /// Its length, if that is more than `len_max` or than the other node reads.
    pub(crate) fn push(&self, view: u64, item: Item, len_max: usize) -> Result<Written, usize> {
        let mut state = self.state.lock();
        state.out.push(len_max.min(self.len_max), |number, bytes| {
            append_framed(&Forth::Item { number, view, item }, bytes);
        })?;
        if state.out.is_crowded() {
            self.is_crowded.store(true, Ordering::Release);
        }
        let is_under_way = state.is_writing || state.is_woken;
        Ok(if is_under_way { Written::Anyway } else { Written::BySender })
    }

    /// Queues a tell by a route that the other node knows from an item before; like `push`, but for the
    /// length of the body, which has to be looked at by `takes`.
    #[inline]
    pub(crate) fn push_tell(&self, view: u64, route: u32, body: &[u8]) -> Written {
        let mut state = self.state.lock();
        state.out.push_tell(view, route, body);
        if state.out.is_crowded() {
            self.is_crowded.store(true, Ordering::Release);
        }
        let is_under_way = state.is_writing || state.is_woken;
        if is_under_way { Written::Anyway } else { Written::BySender }
    }

    /// Whether a tell with a body of that length may go in a bundle.
    #[inline]
    pub(crate) fn takes(&self, body_len: usize, len_max: usize) -> bool {
        self.has_bundles() && bundle::fits(body_len, len_max.min(self.len_max))
    }

    fn has_bundles(&self) -> bool {
        self.has_bundles.load(Ordering::Acquire)
    }

    /// Bytes of the longest frame that the other node reads.
    pub(crate) fn len_max(&self) -> usize {
        self.len_max
    }

    /// Whether senders should wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Acquire)
    }

    /// Items that nobody has to wait with.
    pub(crate) fn room(&self) -> u64 {
        self.state.lock().out.room()
    }

    /// Whether the other side has everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().out.is_empty()
    }

    /// Has the task write what is queued.
    pub(crate) fn wake(&self) {
        let was_woken = std::mem::replace(&mut self.state.lock().is_woken, true);
        if !was_woken {
            self.wake.notify_one();
        }
    }

    /// Writes what is queued if the link has been quiet, or has the task do it. It never waits.
    pub(crate) fn flush(&self, is_serving: impl FnOnce() -> bool) {
        let mut state = self.state.lock();
        if state.is_writing || state.is_woken {
            return;
        }
        let now = Instant::now();
        let is_quiet = state.wrote_at.is_none_or(|at| now.duration_since(at) > QUIET);
        let socket = state.socket.clone().filter(|_| is_quiet);
        let Some((socket, part)) = socket.zip(state.out.part()) else {
            drop(state);
            return self.wake();
        };
        state.is_writing = true;
        drop(state);
        // A write that fails is tried again by the task, which hears why.
        let wrote = if is_serving() { socket.try_write(part.bytes()).unwrap_or(0) } else { 0 };
        let mut state = self.state.lock();
        state.is_writing = false;
        state.wrote_at = Some(now);
        state.out.wrote(&part, wrote);
        let has_more = state.out.has_more();
        drop(state);
        if has_more || !socket.is_flushed() {
            self.wake();
        }
    }

    /// What the task is to write next. While there is something, nobody else writes.
    fn next_part(&self, is_writing: &mut IsWriting<'_>) -> Option<Part> {
        let mut state = self.state.lock();
        state.is_woken = false;
        if state.is_writing && !is_writing.by_task {
            // Whoever writes wakes the task if there is more.
            return None;
        }
        let part = state.out.part();
        state.is_writing = part.is_some();
        is_writing.by_task = part.is_some();
        part
    }

    fn wrote(&self, part: &Part, count: usize) {
        let mut state = self.state.lock();
        state.out.wrote(part, count);
        state.wrote_at = Some(Instant::now());
    }

    /// Keeps senders from writing while the task writes something of its own, if it may.
    fn begin(&self, is_writing: &mut IsWriting<'_>) -> bool {
        let mut state = self.state.lock();
        let may = !state.is_writing && !state.out.is_amid();
        state.is_writing |= may;
        is_writing.by_task |= may;
        may
    }

    /// Ends it: the other node is no member any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// Whether the task writes; it is over with the connection.
struct IsWriting<'a> {
    link: &'a Link,
    by_task: bool,
}

impl IsWriting<'_> {
    fn end(&mut self) {
        if std::mem::take(&mut self.by_task) {
            self.link.state.lock().is_writing = false;
        }
    }
}

impl Drop for IsWriting<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Keeps a link going until it is closed.
pub(crate) async fn run(shared: Arc<Shared>, link: Arc<Link>) {
    let mut pause = RETRY_MIN;
    while !link.is_closed() {
        let began = tokio::time::Instant::now();
        if let Err(why) = converse(&shared, &link).await {
            tracing::debug!(%why, to = format_args!("{:016x}", link.to), "a link broke");
            let who = format!("the node {} at {}", link.name, link.address);
            transport::tell_untrusted(&shared.guard, &who, &why);
        }
        pause = if began.elapsed() > SILENCE_MAX { RETRY_MIN } else { (pause * 2).min(RETRY_MAX) };
        tokio::select! {
            () = sleep(pause) => {}
            // More to send is no reason to dial sooner, but an end is.
            () = async { while !link.is_closed() { link.wake.notified().await } } => {}
        }
    }
}

async fn converse(shared: &Shared, link: &Link) -> Result<(), Broken> {
    let (mut stream, mut welcome) = greet(shared, link, VERSION).await?;
    let mut version = VERSION;
    // A former version is for nodes that were never sent anything of a later one.
    if !link.has_bundles() && matches!(&welcome, Welcome::Refused { why } if No::Version.says(why))
    {
        version = WIRE_FLOOR;
        (stream, welcome) = greet(shared, link, WIRE_FLOOR).await?;
    }
    let received = match welcome {
        Welcome::Since { received } => received,
        Welcome::Refused { why } => return Err(No::of_words(why)),
        Welcome::Client { .. } => return Err(No::NotMeant.heard()),
    };
    let (to, from) = stream.into_socket(None)?;
    {
        let mut state = link.state.lock();
        state.out.resume(received).map_err(impossible)?;
        state.socket = Some(to.clone());
    }
    if version >= BUNDLES_SINCE {
        link.has_bundles.store(true, Ordering::Release);
    }
    let ended = tokio::select! {
        ended = tell(shared, link, &to) => ended,
        ended = hear(shared, link, from) => ended,
    };
    link.state.lock().socket = None;
    ended
}

/// Connects and says who is there, in that version.
async fn greet(shared: &Shared, link: &Link, version: u32) -> Result<(Stream, Welcome), Broken> {
    let whom = Whom { address: &link.address, turn: 0, node: Some(&link.name) };
    let mut stream = transport::dial(&shared.guard, &whom, GREETING_TIMEOUT).await?;
    let (cluster, from) = (shared.config.cluster.clone(), shared.me());
    write(&mut stream, &Greeting { version, cluster, from, to: link.to }).await?;
    let welcome = timeout(GREETING_TIMEOUT, read::<Welcome>(&mut stream, GREETING_LEN_MAX));
    let welcome = welcome.await.map_err(|_| Broken::Silent)??;
    Ok((stream, welcome))
}

fn impossible(number: u64) -> Broken {
    Broken::Refused(format!("it acknowledges item {number}, which was never sent"))
}

/// Writes items while the node has its lease, and pings in any case.
async fn tell(shared: &Shared, link: &Link, to: &Socket) -> Result<(), Broken> {
    let ping = framed(&Forth::Ping);
    let mut is_writing = IsWriting { link, by_task: false };
    loop {
        if link.is_closed() {
            return Ok(());
        }
        // Looked at for each write: a node that was stopped for a while says nothing in between.
        let is_serving = shared.is_serving();
        let part = if is_serving { link.next_part(&mut is_writing) } else { None };
        if let Some(part) = part {
            let count = to.write_some(part.bytes()).await?;
            link.wrote(&part, count);
            continue;
        }
        is_writing.end();
        if is_serving && !to.try_flush()? {
            to.writable().await?;
            continue;
        }
        let wait = if is_serving { PING_EVERY } else { LOOK_EVERY };
        if timeout(wait, link.wake.notified()).await.is_err() {
            // Not into the middle of a frame: what is behind it comes soon, or the connection ends.
            if to.is_flushed() && link.begin(&mut is_writing) {
                to.write_all(&ping).await?;
                is_writing.end();
            }
        } else if !is_serving {
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Reads acknowledgements; the latest one that has come counts.
async fn hear(shared: &Shared, link: &Link, mut from: Reader) -> Result<(), Broken> {
    let mut inbox = Inbox::new(GREETING_LEN_MAX);
    loop {
        let mut latest = None;
        while let Some(frame) = inbox.frame()? {
            latest = Some(Back::decode(frame)?);
        }
        if let Some(back) = latest {
            let mut state = link.state.lock();
            state.out.acknowledge(back.received, back.taken).map_err(impossible)?;
            // What senders see: there may be room since this connection began.
            let has_room = link.is_crowded() && !state.out.is_crowded();
            if has_room {
                link.is_crowded.store(false, Ordering::Release);
            }
            drop(state);
            if has_room {
                shared.wake_senders();
                shared.catch_up(link.to);
            }
        }
        let read = timeout(SILENCE_MAX, from.read_into(inbox.room()));
        if read.await.map_err(|_| Broken::Silent)?? == 0 {
            return Err(Broken::Io(std::io::ErrorKind::UnexpectedEof.into()));
        }
    }
}
