//! What the role, the database and the server have set otherwise.

use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use folkmoot::storage::{DatabaseAddress, OpenError, Store};
use tokio::task::block_in_place;

use super::{admin, append, numbers, options};
use crate::storage_postgres;
use crate::storage_support::{TestDirectory, populate};

/// Settings with which other programs may want to be treated.
const STRICT: &str = "
    CREATE ROLE strict LOGIN SUPERUSER;
    ALTER ROLE strict SET default_transaction_isolation = 'serializable';
    ALTER ROLE strict SET default_transaction_read_only = on;
    ALTER ROLE strict SET search_path = 'pg_catalog';
    ALTER ROLE strict SET statement_timeout = '300ms';
    ALTER ROLE strict SET lock_timeout = '1ms';
    ALTER ROLE strict SET idle_in_transaction_session_timeout = '1ms';
    ALTER ROLE strict SET idle_session_timeout = '300ms';
    ALTER ROLE strict SET synchronous_commit = off";

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_role_change_nothing_and_a_server_that_idles_keeps_others_out() {
    let server = block_in_place(PostgresServer::start);
    let admin = admin(&server.url()).await;
    admin.batch_execute(STRICT).await.unwrap();
    let database: DatabaseAddress = server.url().replace("test@", "strict@").parse().unwrap();
    let directories = ["pg-strict", "pg-strict-other"].map(TestDirectory::new);
    let store = directories[0].open_on(&database);
    populate(&store).await;
    for seq in 1..=20 {
        append(&store, seq).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = Store::open(&options(&directories[1], &database)).unwrap_err();
    assert!(matches!(refused, OpenError::DatabaseInUse { .. }), "{refused}");
    // Somebody has the row for longer than the role's statements may wait.
    admin.batch_execute("BEGIN; SELECT FROM folkmoot.store FOR UPDATE").await.unwrap();
    let waiting = store.append(store.write_epoch(), &super::said(21));
    tokio::time::sleep(Duration::from_secs(1)).await;
    admin.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap();
    assert_eq!(numbers(&store).await, (1..=21).collect::<Vec<_>>());
    store.close().await;
}

const POOR: &str = "
    CREATE ROLE poor LOGIN;
    GRANT USAGE ON SCHEMA folkmoot TO poor;
    GRANT ALL ON ALL TABLES IN SCHEMA folkmoot TO poor";

#[tokio::test(flavor = "multi_thread")]
async fn who_may_make_nothing_is_told_so_and_uses_what_is_there() {
    let database = storage_postgres::new_database().await;
    let url = database.to_string();
    let directory = TestDirectory::new("pg-poor");
    let admin = admin(&url).await;
    admin.batch_execute("CREATE ROLE guest LOGIN").await.unwrap();
    let guest: DatabaseAddress = url.replace("test@", "guest@").parse().unwrap();
    let refused = Store::open(&options(&directory, &guest)).unwrap_err().to_string();
    assert!(refused.contains("permission denied for database"), "{refused}");
    let store = directory.open_on(&database);
    populate(&store).await;
    store.close().await;
    admin.batch_execute(POOR).await.unwrap();
    let poor: DatabaseAddress = url.replace("test@", "poor@").parse().unwrap();
    let store = directory.open_on(&poor);
    append(&store, 1).await.unwrap();
    assert_eq!(numbers(&store).await, [1]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_encoding_or_without_room_for_a_session_is_refused_by_name() {
    let server = block_in_place(PostgresServer::start);
    let admin = admin(&server.url()).await;
    let make =
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'";
    admin.batch_execute(make).await.unwrap();
    let directory = TestDirectory::new("pg-latin");
    let latin: DatabaseAddress = server.url().replace("/postgres", "/latin").parse().unwrap();
    let refused = Store::open(&options(&directory, &latin)).unwrap_err().to_string();
    assert!(refused.contains("LATIN1"), "{refused}");
    admin.batch_execute("CREATE DATABASE narrow CONNECTION LIMIT 1").await.unwrap();
    admin
        .batch_execute("CREATE ROLE one LOGIN; GRANT CREATE ON DATABASE narrow TO one")
        .await
        .unwrap();
    let narrow = server.url().replace("test@", "one@").replace("/postgres", "/narrow");
    let narrow: DatabaseAddress = narrow.parse().unwrap();
    let refused = Store::open(&options(&directory, &narrow)).unwrap_err().to_string();
    assert!(refused.contains("too many connections"), "{refused}");
    // Amid its life: it waits, refuses by name, and goes on.
    admin.batch_execute("ALTER DATABASE narrow CONNECTION LIMIT -1").await.unwrap();
    let store = directory.open_on(&narrow);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    admin.batch_execute("ALTER DATABASE narrow CONNECTION LIMIT 0").await.unwrap();
    let end =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'narrow'";
    admin.batch_execute(end).await.unwrap();
    let refused = append(&store, 2).await.unwrap_err().to_string();
    assert!(refused.contains("too many connections"), "{refused}");
    admin.batch_execute("ALTER DATABASE narrow CONNECTION LIMIT -1").await.unwrap();
    while store.ready().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    append(&store, 2).await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2]);
    store.close().await;
}
