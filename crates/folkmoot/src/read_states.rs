//! `folkmoot read-states`: read states for a chat that keeps its messages elsewhere.
//!
//! They live in `read-states/` of the data directory, or in PostgreSQL or Cassandra with a log
//! there. The work is done by [`folkmoot_read_states`]; this is what an administrator says and sees.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use folkmoot_read_states::{
    CassandraRows, Options, PostgresRows, ReadStates, RowStore, SqliteRows,
};
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
    /// Where they are kept for good, if not in the data directory:
    /// `postgres://user:password@host:5432/database` or
    /// `cassandra://user:password@host:9042,host/keyspace?replicas=3`
    #[arg(long, env = "FOLKMOOT_READ_STATES_ROWS", value_name = "URL", hide_env_values = true)]
    pub rows: Option<String>,
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
    let store = rows(&directory, flags.rows.as_deref()).await?;
    let options = Options {
        bytes_max: flags.memory as usize * 1024 * 1024,
        store_after: Duration::from_secs(flags.store_after.into()),
        log: Some(directory.join("log")),
        ..Options::default()
    };
    let states = ReadStates::open(store, options).await?;
    let listener = TcpListener::bind(flags.at)
        .await
        .with_context(|| format!("cannot listen on {}", flags.at))?;
    Ok(ReadStatesServer { listener, states })
}

async fn rows(directory: &Path, url: Option<&str>) -> anyhow::Result<Arc<dyn RowStore>> {
    Ok(match url {
        None => Arc::new(SqliteRows::open(&directory.join("read-states.db"))?),
        Some(url) if url.starts_with("cassandra://") => {
            Arc::new(CassandraRows::connect(url).await?)
        }
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Arc::new(PostgresRows::connect(url).await?)
        }
        Some(_) => anyhow::bail!("--rows begins neither with postgres:// nor with cassandra://"),
    })
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
