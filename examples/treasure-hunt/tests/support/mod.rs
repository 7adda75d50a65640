//! A server in the test's own process, on a free port and a directory of its own.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use treasure_hunt::load::client::Client;
use treasure_hunt::place::{ActSeq, RegionId};
use treasure_hunt::rules::{Act, Deed};
use treasure_hunt::serve::{Options, Server};
use treasure_hunt::wire::{Command, Joined, Notice, Outcome};
use treasure_hunt::world::World;

/// Longest wait for anything; a promise broken shows as this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) world: Arc<World>,
    pub(crate) data: PathBuf,
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    /// Starts on an empty directory.
    pub(crate) async fn new(name: &str) -> Self {
        let data = std::env::temp_dir().join(format!("hunt-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&data).ok();
        Self::on(data).await
    }

    /// Starts on a directory that has a log.
    pub(crate) async fn on(data: PathBuf) -> Self {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let options = Options { data: data.clone(), address, seed: 7, chaos: None };
        let server = Server::start(options).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let (address, world) = (server.address, server.world.clone());
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { address, world, data, stop, task }
    }

    /// Stops; the directory is left.
    pub(crate) async fn stop(self) -> PathBuf {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
        self.data
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await.unwrap()
    }
}

/// Joins at a region's camp.
pub(crate) async fn join(client: &mut Client, name: &str, near: u16) -> Joined {
    let near = RegionId::new(near);
    client.send(&[Command::Join { tag: 9, near, name: name.into() }]).await.unwrap();
    match answer(client).await {
        Notice::Joined(joined) => joined,
        other => panic!("a join is answered with {other:?}"),
    }
}

/// The next answer.
pub(crate) async fn answer(client: &mut Client) -> Notice {
    tokio::time::timeout(PATIENCE, client.answer()).await.expect("an answer in time").unwrap()
}

/// An act with the number after `state`.
pub(crate) fn act(state: &Outcome, deed: Deed, dx: i16, dy: i16) -> Command {
    Command::Act(Act {
        player: state.player,
        seq: ActSeq(state.seq.0 + 1),
        deed,
        x: state.x.wrapping_add_signed(dx),
        y: state.y.wrapping_add_signed(dy),
    })
}

/// Does something that must succeed.
pub(crate) async fn done(client: &mut Client, command: Command) -> Outcome {
    client.send(&[command]).await.unwrap();
    match answer(client).await {
        Notice::Done(outcome) => outcome,
        other => panic!("an act is answered with {other:?}"),
    }
}

/// Does something that must be refused; returns the code.
pub(crate) async fn refused(client: &mut Client, command: Command) -> u8 {
    client.send(&[command]).await.unwrap();
    match answer(client).await {
        Notice::Refused { code, text, .. } => {
            assert!(!text.is_empty());
            code
        }
        other => panic!("an act is answered with {other:?}"),
    }
}
