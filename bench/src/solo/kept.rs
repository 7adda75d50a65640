//! Where durable actors are kept while they are measured: a directory, or a real server that ends
//! with the run. Each syncs what it acknowledges.

use std::any::Any;
use std::sync::Arc;

use althing_bench_workloads::on_worker;
use althing_store::{Cassandra, CassandraOptions, Embedded, Postgres, Store};
use althing_testkit::servers::{CassandraServer, PostgresServer};

use crate::althing::Althing;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Embedded,
    Postgres,
    Cassandra,
}

/// Ends with the measurement, and removes what was kept.
pub(crate) struct Kept {
    _until_the_end: Box<dyn Any + Send>,
}

impl Kept {
    /// A new store, whose connections are those of the system's runtime.
    pub(crate) fn start(system: &Althing, on: On) -> Result<(Self, Arc<dyn Store>), String> {
        Ok(match on {
            On::Embedded => {
                let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
                let store = Embedded::open(directory.path()).map_err(|error| error.to_string())?;
                (Self::of(directory), Arc::new(store))
            }
            On::Postgres => {
                let server = PostgresServer::start();
                let url = server.url();
                let store = on_worker(system, async move { Postgres::connect(&url).await });
                (Self::of(server), Arc::new(store.map_err(|error| error.to_string())?))
            }
            On::Cassandra => {
                let server = CassandraServer::start();
                let (node, mut options) = (server.host(), CassandraOptions::default());
                (options.replicas, options.partitions) = (1, 64);
                let connect = async move { Cassandra::connect_with(&[node], options).await };
                let store = on_worker(system, connect).map_err(|error| error.to_string())?;
                (Self::of(server), Arc::new(store))
            }
        })
    }

    fn of(what: impl Any + Send) -> Self {
        Self { _until_the_end: Box::new(what) }
    }
}
