//! A turn that the database itself refuses, among others that are written together with it.

use althing::{ActorId, Epoch, Timestamp};
use althing_store::{Reply, Snapshot, Store, StoreError, Turn};

fn turn(key: u64, version: u64, replies: Vec<Reply>) -> Turn {
    let snapshot = Some(Snapshot { schema: 1, bytes: vec![1], includes: 0 });
    Turn { snapshot, replies, ..Turn::new(id(key), Epoch(1), version) }
}

fn id(key: u64) -> ActorId {
    ActorId::named("refused", key.to_string())
}

pub(crate) async fn a_turn_that_is_refused_takes_nothing_of_the_others_along(store: &dyn Store) {
    let reply = || {
        let (request, at) = ("asked".to_owned(), Timestamp(1));
        Reply { number: 1, request, at, bytes: vec![1] }
    };
    store.commit(turn(0, 1, vec![reply()])).await.expect("it follows");
    let before: Vec<_> = (1..=20).map(|key| store.commit(turn(key, 1, vec![]))).collect();
    // A reply of its number is there already.
    let bad = store.commit(turn(0, 2, vec![reply()]));
    let last = store.commit(turn(21, 1, vec![]));
    for other in before {
        other.await.expect("it follows");
    }
    let refused = bad.await.expect_err("the number is taken");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    last.await.expect("it follows");
    assert_eq!(store.open(&id(0), Epoch(1)).await.expect("it opens").version, 1);
    store.commit(turn(0, 2, vec![])).await.expect("the actor goes on");
}
