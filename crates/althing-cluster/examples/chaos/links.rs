//! The ways between nodes, and from nodes to etcd, all of which can be cut, stopped and slowed, each
//! direction for itself.
//!
//! Each process that is reached has a proxy on an address of its own. A way that is stopped keeps
//! its connections and what was sent on them, as a network that loses every packet does; one that is
//! cut ends them, and each new one at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::plan::NODES;
use crate::whose::whose;

/// An end of a way: a node, etcd, or whoever is neither, whose ways are always open.
pub(crate) type End = usize;

pub(crate) const ETCD: End = NODES;
const OTHERS: End = NODES + 1;
const ENDS: usize = NODES + 2;

/// Read at once; with a pause for each on slow ways.
const CHUNK: usize = 16 << 10;

/// What passes at a time on ways that trickle, and the pause between: some 10 KB a second, so that
/// whatever comes next meets most frames half there.
const DROP: usize = 24;
const DROP_EVERY: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Open,
    /// Everything comes later by that.
    Slow(Duration),
    /// A few bytes come at a time.
    Trickling,
    /// Nothing comes, and nobody is told.
    Stopped,
    /// Connections end.
    Cut,
}

pub(crate) struct Links {
    /// From, to.
    modes: [[watch::Sender<Mode>; ENDS]; ENDS],
    /// The processes of the nodes; 0 while there is none.
    pub(crate) processes: [AtomicU32; NODES],
}

impl Links {
    pub(crate) fn new() -> Self {
        let open = || watch::Sender::new(Mode::Open);
        let modes = std::array::from_fn(|_| std::array::from_fn(|_| open()));
        Self { modes, processes: [const { AtomicU32::new(0) }; NODES] }
    }

    pub(crate) fn set(&self, from: End, to: End, mode: Mode) {
        self.modes[from][to].send_replace(mode);
    }

    fn mode(&self, from: End, to: End) -> watch::Receiver<Mode> {
        self.modes[from][to].subscribe()
    }

    /// Opens a way in to that end, on an address of its own; its place behind that may change.
    pub(crate) async fn way_in(self: &Arc<Self>, to: End) -> Way {
        let host = Ipv4Addr::new(127, 0, 0, 100 + u8::try_from(to).expect("there are few"));
        let listener = TcpListener::bind((host, 0)).await.expect("loopback has such addresses");
        let address = listener.local_addr().expect("it is bound");
        let target = watch::Sender::new(None);
        let (links, behind) = (self.clone(), target.subscribe());
        tokio::spawn(async move {
            while let Ok((near, from)) = listener.accept().await {
                let target: Option<SocketAddr> = *behind.borrow();
                let Some(target) = target else { continue };
                tokio::spawn(links.clone().join(near, from, address, to, target));
            }
        });
        Way { address, target }
    }

    /// Joins two connections for as long as the way between their ends is not cut.
    async fn join(
        self: Arc<Self>,
        near: TcpStream,
        from: SocketAddr,
        here: SocketAddr,
        to: End,
        target: SocketAddr,
    ) {
        let processes = self.processes.each_ref().map(|id| id.load(Ordering::Relaxed));
        let found = tokio::task::spawn_blocking(move || {
            let owner = whose(from, here, &processes)?;
            processes.iter().position(|process| *process == owner)
        });
        let from = found.await.ok().flatten().unwrap_or(OTHERS);
        let (mut forth, mut back) = (self.mode(from, to), self.mode(to, from));
        if *forth.borrow() == Mode::Cut || *back.borrow() == Mode::Cut {
            return;
        }
        let Ok(far) = TcpStream::connect(target).await else { return };
        _ = (near.set_nodelay(true), far.set_nodelay(true));
        let ((near_in, near_out), (far_in, far_out)) = (split(near), split(far));
        tokio::select! {
            () = pass(near_in, far_out, forth.clone()) => {}
            () = pass(far_in, near_out, back.clone()) => {}
            _ = forth.wait_for(|mode| *mode == Mode::Cut) => {}
            _ = back.wait_for(|mode| *mode == Mode::Cut) => {}
        }
    }
}

/// Passes on what comes, when the way lets it.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut bytes = vec![0; CHUNK];
    loop {
        // The end of a connection is news, too, and waits like them.
        let read = from.read(&mut bytes).await.unwrap_or(0);
        let now = *mode.borrow_and_update();
        if let Mode::Slow(by) = now {
            sleep(by).await;
        }
        if mode.wait_for(|mode| *mode != Mode::Stopped).await.is_err() || read == 0 {
            return;
        }
        let mut rest = &bytes[..read];
        while !rest.is_empty() {
            let Some(len) = may_pass(&mut mode, rest.len()).await else { return };
            if to.write_all(&rest[..len]).await.is_err() {
                return;
            }
            rest = &rest[len..];
        }
    }
}

/// Waits until some of so many bytes may pass; `None` when the ways are gone.
async fn may_pass(mode: &mut watch::Receiver<Mode>, len: usize) -> Option<usize> {
    let now = *mode.wait_for(|mode| *mode != Mode::Stopped).await.ok()?;
    if now != Mode::Trickling {
        return Some(len);
    }
    sleep(DROP_EVERY).await;
    // It may have been stopped meanwhile, in the middle of a frame.
    mode.wait_for(|mode| *mode != Mode::Stopped).await.ok()?;
    Some(len.min(DROP))
}

/// A way in.
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
}

impl Way {
    pub(crate) fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(Some(target));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (mut from, mut to) = stream.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from, &mut to).await });
            }
        });
        address
    }

    async fn hears(stream: &mut TcpStream) -> bool {
        let mut one = [0];
        let heard = stream.read_exact(&mut one);
        matches!(timeout(Duration::from_millis(300), heard).await, Ok(Ok(_)))
    }

    #[tokio::test]
    async fn a_way_that_was_stopped_keeps_what_was_sent_and_one_that_is_cut_ends() {
        let links = Arc::new(Links::new());
        links.processes[1].store(std::process::id(), Ordering::Relaxed);
        let way = links.way_in(0).await;
        way.lead_to(echo().await);
        let mut stream = TcpStream::connect(way.address).await.expect("it listens");
        stream.write_all(b"a").await.expect("open");
        assert!(hears(&mut stream).await);
        // Only the answer is held up.
        links.set(0, 1, Mode::Stopped);
        stream.write_all(b"b").await.expect("open");
        assert!(!hears(&mut stream).await);
        links.set(0, 1, Mode::Open);
        assert!(hears(&mut stream).await);
        links.set(1, 0, Mode::Stopped);
        stream.write_all(b"c").await.expect("open");
        assert!(!hears(&mut stream).await);
        links.set(1, 0, Mode::Open);
        assert!(hears(&mut stream).await);
        // A few bytes come at a time, and when it stalls the rest is on its way.
        links.set(1, 0, Mode::Trickling);
        let mut many = [0; 100 * DROP];
        stream.write_all(&many).await.expect("open");
        assert!(hears(&mut stream).await);
        links.set(1, 0, Mode::Stopped);
        let rest = timeout(Duration::from_millis(300), stream.read_exact(&mut many[1..])).await;
        assert!(rest.is_err(), "all of it has come");
        links.set(1, 0, Mode::Open);
        while timeout(Duration::from_millis(300), stream.read(&mut many)).await.is_ok() {}
        // Of other ends it is no concern.
        links.set(2, 0, Mode::Cut);
        stream.write_all(b"d").await.expect("open");
        assert!(hears(&mut stream).await);
        links.set(1, 0, Mode::Cut);
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0, "it has ended");
        let mut again = TcpStream::connect(way.address).await.expect("it listens");
        assert_eq!(again.read(&mut [0]).await.unwrap_or(0), 0, "it ends at once");
    }
}
