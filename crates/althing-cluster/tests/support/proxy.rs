//! A way to a node that breaks and hangs when a test wants it.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::any_port;

/// A way to a node that breaks and hangs on demand.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) target: Arc<OnceLock<SocketAddr>>,
    /// Whether connections stay open and pass nothing on. Each change ends those that pass.
    hangs: watch::Sender<bool>,
    /// How many connections pass now.
    passing: watch::Sender<usize>,
    dials: watch::Receiver<u64>,
}

impl Proxy {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind(any_port()).await.expect("any port");
        let address = listener.local_addr().expect("it is bound");
        let target: Arc<OnceLock<SocketAddr>> = Arc::default();
        let hangs = watch::Sender::new(false);
        let (to, changes) = (target.clone(), hangs.subscribe());
        let passing = watch::Sender::new(0);
        let pass_one = passing.clone();
        let (dialled, dials) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                dialled.send_modify(|count| *count += 1);
                if let Some(to) = to.get().copied() {
                    tokio::spawn(pass(near, to, changes.clone(), pass_one.clone()));
                }
            }
        });
        Self { address, target, hangs, passing, dials }
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        self.hangs.send_modify(|_| {});
    }

    /// Leaves all connections half open until somebody dials again.
    pub(crate) async fn hang(&mut self) {
        self.dials.mark_unchanged();
        self.hangs.send_replace(true);
        self.dials.changed().await.expect("the proxy goes on");
        self.go_on();
    }

    /// Leaves all connections half open until it is told to go on. Nothing passes any more when
    /// this returns.
    pub(crate) async fn stop(&self) {
        self.hangs.send_replace(true);
        let mut passing = self.passing.subscribe();
        passing.wait_for(|count| *count == 0).await.expect("the proxy has the sender");
    }

    /// Ends the connections that hang; new ones pass.
    pub(crate) fn go_on(&self) {
        self.hangs.send_replace(false);
    }
}

async fn pass(
    mut near: TcpStream,
    to: SocketAddr,
    mut hangs: watch::Receiver<bool>,
    passing: watch::Sender<usize>,
) {
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    // Counted before it looks, so that who waits for none to pass misses no connection.
    passing.send_modify(|count| *count += 1);
    let ended = if *hangs.borrow_and_update() {
        false
    } else {
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => true,
            _ = hangs.changed() => false,
        }
    };
    passing.send_modify(|count| *count -= 1);
    if ended {
        return;
    }
    // What the copy had read is lost, so a connection that hung does not go on.
    _ = hangs.wait_for(|hangs| !hangs).await;
}
