//! `folkmoot read-states`: read states for a chat that keeps its messages elsewhere.
//!
//! They live in `read-states/` of the data directory. The work is done by [`folkmoot_read_states`];
//! this is what an administrator says and sees.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use folkmoot_read_states::{Options, ReadStates, SqliteRows};
use tokio::net::TcpListener;

/// How read states are served.
#[derive(Debug, clap::Args)]
pub struct ReadStatesFlags {
    /// Address to listen on; there is no authentication, so only your own servers should reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8600")]
    pub at: SocketAddr,
    /// Memory for entries in MiB; 192 hold 8 million entries of users in 40 rooms
    #[arg(long, value_name = "MIB", default_value_t = 192, value_parser = clap::value_parser!(u32).range(1..))]
    pub memory: u32,
    /// Seconds that a change may stay out of the database; the log has it meanwhile
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub store_after: u32,
}

/// A server that listens and does not answer yet.
pub struct ReadStatesServer {
    listener: TcpListener,
    states: ReadStates,
}

/// Opens the read states of a data directory and listens.
///
/// # Errors
/// The directory is used by another process or cannot be read, or the address is taken.
pub async fn open(data: &Path, flags: ReadStatesFlags) -> anyhow::Result<ReadStatesServer> {
    let directory = data.join("read-states");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("{} cannot be made", directory.display()))?;
    let store = SqliteRows::open(&directory.join("read-states.db"))?;
    let options = Options {
        bytes_max: flags.memory as usize * 1024 * 1024,
        store_after: Duration::from_secs(flags.store_after.into()),
        log: Some(directory.join("log")),
        ..Options::default()
    };
    let states = ReadStates::open(Arc::new(store), options).await?;
    let listener = TcpListener::bind(flags.at)
        .await
        .with_context(|| format!("cannot listen on {}", flags.at))?;
    Ok(ReadStatesServer { listener, states })
}

impl ReadStatesServer {
    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `stop` is ready, and stores what was changed.
    ///
    /// # Errors
    /// The last changes could not be stored; the log has them.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        Ok(folkmoot_read_states::serve(self.listener, self.states, stop).await?)
    }
}
