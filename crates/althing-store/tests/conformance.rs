//! Every adapter of this crate keeps what a store promises.

#[path = "served/refused.rs"]
mod refused;

use std::sync::Arc;

use althing::{ActorId, Epoch};
use althing_store::{Embedded, Memory, OpenError, Snapshot, Store, Turn, conformance};

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
async fn a_turn_that_the_database_refuses_takes_nothing_of_the_others_along() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Embedded::open(directory.path()).expect("it opens");
    refused::a_turn_that_is_refused_takes_nothing_of_the_others_along(&store).await;
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
        Err(OpenError::Later { found: 99, known: 2, .. })
    ));
}

#[tokio::test]
async fn a_file_of_the_first_format_is_migrated_and_keeps_what_it_has() {
    let directory = tempfile::tempdir().expect("a directory");
    let id = ActorId::named("conformance", "old");
    let snapshot = Snapshot { schema: 1, bytes: b"old".to_vec(), includes: 0 };
    let turn = Turn { snapshot: Some(snapshot.clone()), ..Turn::new(id.clone(), Epoch(3), 1) };
    let store = Embedded::open(directory.path()).expect("it opens");
    store.commit(turn).await.expect("it follows");
    drop(store);
    // As the first release left it.
    let file = directory.path().join("actors.sqlite");
    let connection = rusqlite::Connection::open(&file).expect("it opens");
    connection
        .execute_batch("DROP TABLE deliveries; DROP TABLE replies; PRAGMA user_version = 1")
        .expect("it is written");
    drop(connection);
    let open = || -> Arc<dyn Store> {
        Arc::new(Embedded::open(directory.path()).expect("it is migrated"))
    };
    let store = open();
    let kept = store.open(&id, Epoch(3)).await.expect("it opens");
    assert_eq!((kept.version, kept.snapshot), (1, Some(snapshot)));
    conformance::run(store, async |store| {
        drop(store);
        open()
    })
    .await;
}
