//! A Cassandra for all tests of a process, with a keyspace for each. It ends with the process.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use althing_testkit::servers::CassandraServer;
use folkmoot::storage::CassandraAddress;

static SERVER: LazyLock<CassandraServer> = LazyLock::new(CassandraServer::start);
static KEYSPACES: AtomicU32 = AtomicU32::new(0);

/// Host and port.
pub(crate) async fn host() -> String {
    tokio::task::spawn_blocking(|| SERVER.host()).await.expect("it starts")
}

/// A new keyspace, which who opens it makes.
pub(crate) async fn new_keyspace() -> CassandraAddress {
    let number = KEYSPACES.fetch_add(1, Ordering::Relaxed);
    let text = format!("cassandra://{}/test{number}?replicas=1&snapshot_mib=1", host().await);
    text.parse().expect("it is an address")
}
