//! The driver of the sending side: dials, writes what is queued, dials again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Outgoing;
use crate::member::Shared;
use crate::protocol::{
    Back, Broken, Forth, GREETING_LEN_MAX, Greeting, Item, VERSION, Welcome, framed, read, write,
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

/// What goes to one other node.
pub(crate) struct Link {
    pub(crate) to: u64,
    pub(crate) address: String,
    pub(crate) out: Mutex<Outgoing>,
    wake: Notify,
    is_closed: AtomicBool,
}

impl Link {
    pub(crate) fn new(to: u64, address: String) -> Self {
        let out = Mutex::new(Outgoing::default());
        Self { to, address, out, wake: Notify::new(), is_closed: AtomicBool::new(false) }
    }

    /// Queues an item. The caller holds the lock under which the order of items is decided.
    ///
    /// # Errors
    /// Its length, if no frame is that long.
    pub(crate) fn push(&self, view: u64, item: Item, len_max: usize) -> Result<(), usize> {
        let mut out = self.out.lock();
        let forth = Forth::Item { number: out.number(), view, item };
        let frame = framed(&forth);
        if frame.len() > len_max {
            return Err(frame.len());
        }
        out.push(Arc::from(frame));
        drop(out);
        self.wake.notify_one();
        Ok(())
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
    let mut stream = transport::dial(&link.address).await?;
    let (cluster, from) = (shared.config.cluster.clone(), shared.me());
    let greeting = Greeting { version: VERSION, cluster, from, to: link.to };
    write(&mut stream, &greeting).await?;
    let welcome = timeout(GREETING_TIMEOUT, read::<Welcome>(&mut stream, GREETING_LEN_MAX));
    let received = match welcome.await.map_err(|_| Broken::Silent)?? {
        Welcome::Since { received } => received,
        Welcome::Refused { why } => return Err(Broken::Refused(why)),
    };
    link.out.lock().resume(received).map_err(impossible)?;
    let (from, to) = tokio::io::split(stream);
    tokio::select! {
        ended = tell(shared, link, BufWriter::new(to)) => ended,
        ended = hear(shared, link, BufReader::new(from)) => ended,
    }
}

fn impossible(number: u64) -> Broken {
    Broken::Refused(format!("it acknowledges item {number}, which was never sent"))
}

/// Writes items while the node has its lease, and pings in any case.
async fn tell(shared: &Shared, link: &Link, mut to: impl AsyncWrite + Unpin) -> Result<(), Broken> {
    let ping = framed(&Forth::Ping);
    loop {
        if link.is_closed() {
            return Ok(());
        }
        // Looked at for each frame: a node that was stopped for a while says nothing in between.
        let is_serving = shared.is_serving();
        let frame = if is_serving { link.out.lock().take() } else { None };
        if let Some(frame) = frame {
            to.write_all(&frame).await?;
            continue;
        }
        to.flush().await?;
        let wait = if is_serving { PING_EVERY } else { LOOK_EVERY };
        if timeout(wait, link.wake.notified()).await.is_err() {
            to.write_all(&ping).await?;
        } else if !is_serving {
            sleep(LOOK_EVERY).await;
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
        let mut out = link.out.lock();
        let was_crowded = out.is_crowded();
        out.acknowledge(received, taken).map_err(impossible)?;
        let has_room = was_crowded && !out.is_crowded();
        drop(out);
        if has_room {
            shared.wake_senders();
        }
    }
}
