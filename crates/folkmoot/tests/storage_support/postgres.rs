//! A PostgreSQL server for all tests of a process, with a database for each. It ends with the process.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use althing_testkit::servers::PostgresServer;
use folkmoot::storage::DatabaseAddress;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A new, empty database.
pub(crate) async fn new_database() -> DatabaseAddress {
    let server = tokio::task::spawn_blocking(|| SERVER.url()).await.expect("it starts");
    let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let (client, connection) =
        tokio_postgres::connect(&server, tokio_postgres::NoTls).await.expect("it is there");
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("it is new");
    drop(client);
    connection.await.expect("no panic").expect("it ends");
    let server = server.trim_end_matches("postgres");
    format!("{server}{name}").parse().expect("it is an address")
}
