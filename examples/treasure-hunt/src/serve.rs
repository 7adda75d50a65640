//! Starts a world, serves it, and ends it in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;

use crate::actors;
use crate::chaos;
use crate::gateway::{self, Gateway, dismiss};
use crate::journal::Journal;
use crate::limits::ABSENCE_MAX;
use crate::world::{Attendance, World};

/// How long actors may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// What to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the event log is kept.
    pub data: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    pub address: SocketAddr,
    /// Everything about the ground follows from it.
    pub seed: u64,
    /// Period of killing; `None` for peace.
    pub chaos: Option<Duration>,
}

/// A world that is being served.
#[derive(Debug)]
pub struct Server {
    /// Where.
    pub address: SocketAddr,
    /// Which.
    pub world: Arc<World>,
    listener: TcpListener,
    chaos: Option<Duration>,
}

impl Server {
    /// Reads the log, starts the actors and listens.
    ///
    /// # Errors
    /// The data directory or the address cannot be used.
    pub async fn start(options: Options) -> Result<Self> {
        let data = options.data.display();
        let (journal, left) = Journal::open(&options.data, options.seed)
            .with_context(|| format!("cannot use the data directory {data}"))?;
        let present = left.players.clone();
        let attendance = Attendance::new(left.players, left.player_max);
        let world = Arc::new(World::new(options.seed, journal, attendance));
        actors::start(&world);
        let listener = TcpListener::bind(options.address)
            .await
            .with_context(|| format!("cannot listen on {}", options.address))?;
        let late = world.clone();
        tokio::spawn(async move {
            late.node().sleep(ABSENCE_MAX).await;
            for player in present {
                let seat = late.attendance.seat(player);
                if seat.is_some_and(|seat| seat.is_left_by(None)) {
                    dismiss(&late, &late.player(player)).await;
                }
            }
        });
        let address = listener.local_addr()?;
        Ok(Self { address, world, listener, chaos: options.chaos })
    }

    /// Serves until `stop` resolves or the log fails.
    ///
    /// # Errors
    /// The log cannot be written, so that nothing can be acknowledged any more.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<()> {
        let gateway = Gateway::new(self.world.clone());
        let router = gateway::router(gateway.clone());
        let listener = Quick(self.listener);
        let rage = self.chaos.map(|period| tokio::spawn(chaos::rage(self.world.clone(), period)));
        let outcome = tokio::select! {
            served = async { axum::serve(listener, router).await } => served.context("serving"),
            cause = self.world.journal.failed() => {
                Err(anyhow::Error::new(cause).context("the event log cannot be written"))
            }
            never = gateway.patrol() => match never {},
            () = stop => Ok(()),
        };
        if let Some(rage) = rage {
            rage.abort();
        }
        let report = self.world.node().shutdown(STOP_WITHIN).await;
        // Killing is safe: what matters is in the log.
        if !report.killed.is_empty() {
            tracing::warn!(actors = ?report.killed, "did not stop in time");
        }
        let world = self.world.clone();
        tokio::task::spawn_blocking(move || world.journal.close()).await?;
        outcome
    }
}

/// A listener whose sockets send small frames at once.
pub(crate) struct Quick(pub(crate) TcpListener);

impl axum::serve::Listener for Quick {
    type Io = tokio::net::TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = axum::serve::Listener::accept(&mut self.0).await;
        if let Err(why) = stream.set_nodelay(true) {
            tracing::debug!(%why, "a socket keeps delaying small frames");
        }
        (stream, peer)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}
