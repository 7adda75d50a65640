//! The driver of the sending side: dials, writes what is queued, dials again.
//!
//! Whoever queues an item writes it from its own thread, without waiting, if the link has been
//! quiet. Otherwise the link's task writes, on the cluster's thread, all that has come meanwhile. At
//! any moment one of them writes at most; who comes in between leaves its item to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::{Outgoing, Part};
use crate::member::Shared;
use crate::protocol::{
    Back, Broken, Forth, GREETING_LEN_MAX, Greeting, Item, VERSION, Welcome, append_framed, framed,
    read, write,
};
use crate::transport::{self, GREETING_TIMEOUT};

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

/// What goes to one other node.
pub(crate) struct Link {
    pub(crate) to: u64,
    pub(crate) address: String,
    /// Longest frame that the other node reads.
    len_max: usize,
    state: Mutex<State>,
    wake: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    out: Outgoing,
    /// The present connection, once both sides have greeted.
    socket: Option<Arc<OwnedWriteHalf>>,
    is_writing: bool,
    /// The task was woken and has not looked yet.
    is_woken: bool,
    wrote_at: Option<Instant>,
}

impl Link {
    pub(crate) fn new(to: u64, address: String, len_max: usize) -> Self {
        let (state, wake, is_closed) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        Self { to, address, len_max, state, wake, is_closed }
    }

    /// Queues an item; `flush` or `wake` has it written. The caller holds the lock under which the
    /// order of items is decided.
    ///
    /// # Errors
    /// Its length, if that is more than `len_max` or than the other node reads.
    pub(crate) fn push(&self, view: u64, item: Item, len_max: usize) -> Result<(), usize> {
        self.state.lock().out.push(len_max.min(self.len_max), |number, bytes| {
            append_framed(&Forth::Item { number, view, item }, bytes);
        })
    }

    /// Whether senders should wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.state.lock().out.is_crowded()
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
        if has_more {
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
    let mut stream = transport::dial(&link.address, GREETING_TIMEOUT, 0).await?;
    let (cluster, from) = (shared.config.cluster.clone(), shared.me());
    let greeting = Greeting { version: VERSION, cluster, from, to: link.to };
    write(&mut stream, &greeting).await?;
    let welcome = timeout(GREETING_TIMEOUT, read::<Welcome>(&mut stream, GREETING_LEN_MAX));
    let received = match welcome.await.map_err(|_| Broken::Silent)?? {
        Welcome::Since { received } => received,
        Welcome::Refused { why } => return Err(Broken::Refused(why)),
    };
    let (from, to) = stream.into_split();
    let to = Arc::new(to);
    {
        let mut state = link.state.lock();
        state.out.resume(received).map_err(impossible)?;
        state.socket = Some(to.clone());
    }
    let ended = tokio::select! {
        ended = tell(shared, link, &to) => ended,
        ended = hear(shared, link, BufReader::new(from)) => ended,
    };
    link.state.lock().socket = None;
    ended
}

fn impossible(number: u64) -> Broken {
    Broken::Refused(format!("it acknowledges item {number}, which was never sent"))
}

/// Writes items while the node has its lease, and pings in any case.
async fn tell(shared: &Shared, link: &Link, to: &OwnedWriteHalf) -> Result<(), Broken> {
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
            let count = write_some(to, part.bytes()).await?;
            link.wrote(&part, count);
            continue;
        }
        is_writing.end();
        let wait = if is_serving { PING_EVERY } else { LOOK_EVERY };
        if timeout(wait, link.wake.notified()).await.is_err() {
            // Not into the middle of a frame: what is behind it comes soon, or the connection ends.
            if link.begin(&mut is_writing) {
                let mut rest = &ping[..];
                while !rest.is_empty() {
                    rest = &rest[write_some(to, rest).await?..];
                }
                is_writing.end();
            }
        } else if !is_serving {
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn write_some(to: &OwnedWriteHalf, bytes: &[u8]) -> Result<usize, Broken> {
    loop {
        match to.try_write(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => to.writable().await?,
            wrote => return Ok(wrote?),
        }
    }
}

async fn hear(
    shared: &Shared,
    link: &Link,
    mut from: impl AsyncRead + Unpin,
) -> Result<(), Broken> {
    loop {
        let back = timeout(SILENCE_MAX, read::<Back>(&mut from, GREETING_LEN_MAX));
        let Back { received, taken } = back.await.map_err(|_| Broken::Silent)??;
        let mut state = link.state.lock();
        let was_crowded = state.out.is_crowded();
        state.out.acknowledge(received, taken).map_err(impossible)?;
        let has_room = was_crowded && !state.out.is_crowded();
        drop(state);
        if has_room {
            shared.wake_senders();
        }
    }
}
