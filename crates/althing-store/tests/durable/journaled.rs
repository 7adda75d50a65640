//! Actors whose state is the fold of their events.

use std::sync::Arc;
use std::time::Instant;

use althing::{ActorError, ActorId, AskError, Epoch, Node, Start, Wire, WireError, actor};
use althing_store::{Embedded, Fold, Journaled, Memory, State, Store};
use proptest::prelude::*;

#[derive(Clone, Debug, Default, PartialEq, Wire)]
struct Stock {
    pieces: u64,
    moves: u64,
}

#[derive(Clone, Debug, Wire)]
enum Moved {
    In(u64),
    Out(u64),
}

impl State for Stock {}

impl Fold for Stock {
    type Event = Moved;

    fn apply(&mut self, event: Moved) {
        self.moves += 1;
        match event {
            Moved::In(pieces) => self.pieces += pieces,
            Moved::Out(pieces) => self.pieces -= pieces,
        }
    }
}

struct Shelf {
    journal: Journaled<Stock>,
}

/// A journal of ten events of which somebody else has removed one.
async fn open_without(number: u64, snapshot_every: u64) -> Result<Stock, String> {
    let directory = tempfile::tempdir().expect("the system has room");
    let id = || ActorId::named("test.shelf", "lacking");
    let open = || -> Arc<dyn Store> {
        Arc::new(Embedded::open(directory.path()).expect("nobody else has it"))
    };
    let journal = Journaled::<Stock>::open(open(), id(), Epoch(1)).await.expect("it is new");
    let mut journal = journal.snapshot_every(snapshot_every);
    for pieces in 1..=10 {
        journal.record(Moved::In(pieces));
        journal.commit().await.expect("it follows");
    }
    drop(journal);
    let file = rusqlite::Connection::open(directory.path().join("actors.sqlite"));
    let file = file.expect("nobody else has it");
    let removed = file.execute("DELETE FROM events WHERE number = ?1", [number.cast_signed()]);
    assert_eq!(removed, Ok(1));
    drop(file);
    let opened = Journaled::<Stock>::open(open(), id(), Epoch(2)).await;
    opened.map(|journal| (*journal).clone()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_journal_that_lacks_an_event_is_refused_and_not_folded_without_it() {
    for number in [1, 5, 10] {
        let refused = open_without(number, 500).await.expect_err("it is folded without it");
        assert!(refused.contains(&format!("event {number}")), "{refused}");
    }
    // What a snapshot includes is not read.
    let stock = open_without(5, 6).await.expect("the snapshot has it");
    assert_eq!((stock.pieces, stock.moves), (55, 10));
}

#[actor(name = "test.shelf", durable = journal)]
impl Shelf {
    async fn put(&mut self, pieces: u64) -> u64 {
        self.journal.record(Moved::In(pieces));
        self.journal.pieces
    }

    async fn swap(&mut self, out: u64, back: u64) -> u64 {
        self.journal.record(Moved::Out(out));
        self.journal.record(Moved::In(back));
        self.journal.pieces
    }

    async fn panics_after_it_recorded(&mut self) {
        self.journal.record(Moved::In(1_000));
        panic!("on purpose");
    }

    async fn stock(&self) -> (u64, u64) {
        (self.journal.pieces, self.journal.last_event())
    }
}

fn shop(store: &Arc<dyn Store>, snapshot_every: u64) -> Node {
    let store = store.clone();
    let open = move |start: Start<Shelf>| {
        let store = store.clone();
        async move {
            let journal = Journaled::<Stock>::load(store, &start).await?;
            Ok::<_, ActorError>(Shelf { journal: journal.snapshot_every(snapshot_every) })
        }
    };
    Node::builder("shop").actor(open).build()
}

#[tokio::test]
async fn a_journaled_actor_comes_back_as_its_events_say() {
    let directory = tempfile::tempdir().expect("a directory");
    for snapshot_every in [1, 7, 10_000] {
        let store: Arc<dyn Store> = Arc::new(Embedded::open(directory.path()).expect("it opens"));
        let node = shop(&store, snapshot_every);
        let key = format!("every {snapshot_every}");
        let shelf = node.get::<Shelf>(&key);
        for _ in 0..40 {
            shelf.put(3).await.expect("it runs");
            shelf.swap(2, 1).await.expect("it runs");
        }
        assert_eq!(shelf.stock().await, Ok((80, 120)));
        node.kill();
        drop(node);
        let again = shop(&store, snapshot_every);
        assert_eq!(again.get::<Shelf>(&key).stock().await, Ok((80, 120)));
        // It has the store.
        again.kill();
    }
}

#[tokio::test]
async fn events_of_a_turn_that_failed_never_happened() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let shelf = shop(&store, 100).get::<Shelf>("tea");
    shelf.put(5).await.expect("it runs");
    let failed = shelf.panics_after_it_recorded().await;
    assert_eq!(failed, Err(AskError::HandlerPanicked(shelf.id())));
    assert_eq!(shelf.stock().await, Ok((5, 1)));
    let events = store.events(&shelf.id(), 0, 10).await.expect("it reads");
    assert_eq!(events.len(), 1);
}

#[tokio::test]
async fn an_actor_with_a_long_journal_wakes_by_its_snapshot() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let id = ActorId::named("test.shelf", "long");
    let open = async || {
        Journaled::<Stock>::open(store.clone(), id.clone(), Epoch(1)).await.expect("it opens")
    };
    let mut journal = open().await;
    for _ in 0..20_000 {
        journal.record(Moved::In(1));
        journal.commit().await.expect("it follows");
    }
    let began = Instant::now();
    let again = open().await;
    let took = began.elapsed();
    assert_eq!((again.pieces, again.last_event()), (20_000, 20_000));
    // All events take hundreds of times as long as those after a snapshot; the bound leaves room
    // for a busy machine.
    let kept = store.open(&id, Epoch(1)).await.expect("it opens");
    let included = kept.snapshot.expect("one was due").includes;
    assert!(20_000 - included < 500, "{included}");
    assert!(took.as_millis() < 1_000, "{took:?}");
}

#[derive(Debug, Default, PartialEq, Wire)]
struct Later {
    pieces: i64,
}

impl State for Later {
    const SCHEMA: u32 = 2;

    fn upgrade(_: u32, bytes: &[u8]) -> Result<Self, WireError> {
        let old = Stock::decode(bytes)?;
        Ok(Self { pieces: old.pieces.cast_signed() })
    }
}

impl Fold for Later {
    type Event = i64;
    const EVENT_SCHEMA: u32 = 2;

    fn apply(&mut self, event: i64) {
        self.pieces += event;
    }

    fn upgrade_event(_: u32, bytes: &[u8]) -> Result<i64, WireError> {
        Ok(match Moved::decode(bytes)? {
            Moved::In(pieces) => pieces.cast_signed(),
            Moved::Out(pieces) => -pieces.cast_signed(),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is recorded, in turns of whatever length, with snapshots however often: what is
    /// loaded is what was there, also by a later version of both types.
    #[test]
    fn what_is_folded_anew_is_what_was_there(turns in prop::collection::vec(prop::collection::vec(0_u64..9, 0..5), 0..30), every in 1_u64..20) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let store: Arc<dyn Store> = Arc::new(Memory::new());
            let id = ActorId::named("test.shelf", "any");
            let mut journal = Journaled::<Stock>::open(store.clone(), id.clone(), Epoch(1)).await.expect("it opens").snapshot_every(every);
            for turn in turns {
                for pieces in turn {
                    journal.record(if pieces <= journal.pieces && pieces % 2 == 0 { Moved::Out(pieces) } else { Moved::In(pieces) });
                }
                journal.commit().await.expect("it follows");
            }
            let again = Journaled::<Stock>::open(store.clone(), id.clone(), Epoch(1)).await.expect("it opens");
            assert_eq!((&*again, again.last_event()), (&*journal, journal.last_event()));
            let later = Journaled::<Later>::open(store, id, Epoch(2)).await.expect("it upgrades");
            assert_eq!(later.pieces, journal.pieces.cast_signed());
        });
    }
}
