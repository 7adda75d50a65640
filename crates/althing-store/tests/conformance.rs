//! Every adapter of this crate keeps what a store promises.

use std::sync::Arc;

use althing_store::{Embedded, Memory, OpenError, Store, conformance};

#[tokio::test]
async fn the_memory_keeps_every_promise() {
    conformance::run(Arc::new(Memory::new()), async |store| store).await;
}

#[tokio::test]
async fn the_embedded_store_keeps_every_promise() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let open = || -> Arc<dyn Store> { Arc::new(Embedded::open(path).expect("it opens")) };
    conformance::run(open(), async |store| {
        drop(store);
        open()
    })
    .await;
}

#[tokio::test]
async fn one_process_at_a_time_has_the_embedded_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Embedded::open(directory.path()).expect("it opens");
    assert!(matches!(Embedded::open(directory.path()), Err(OpenError::InUse { .. })));
    drop(store);
    Embedded::open(directory.path()).expect("it was let go");
}

#[test]
fn a_file_that_is_no_database_or_of_a_later_version_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("actors.sqlite");
    std::fs::write(&file, b"not a database, but long enough to be looked at by anybody who cares")
        .expect("it is written");
    let refused = Embedded::open(directory.path()).expect_err("no database");
    assert!(refused.to_string().contains("actors.sqlite"), "{refused}");
    std::fs::remove_file(&file).expect("it is there");
    drop(Embedded::open(directory.path()).expect("it opens"));
    let connection = rusqlite::Connection::open(&file).expect("it opens");
    connection.pragma_update(None, "user_version", 99).expect("it is written");
    drop(connection);
    assert!(matches!(
        Embedded::open(directory.path()),
        Err(OpenError::Later { found: 99, known: 1, .. })
    ));
}
