//! Write-behind, in a world of virtual time: what is written when, and what is not lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::{ActorError, ActorId, Epoch, Node, Start, Wire, actor};
use althing_store::{
    Answer, Fold, Journaled, Memory, RequestId, Saved, State, Store, StoreError, Turn, Writes,
};
use althing_testkit::World;
use tokio::sync::watch;

use crate::through::{Differs, Through};

const WINDOW: Duration = Duration::from_secs(5);
/// What waits for a window is written then.
const WRITTEN_AFTER: Duration = Duration::from_millis(5_010);

#[derive(Default, Wire)]
struct Position {
    metres: u64,
}

impl State for Position {
    const WRITES: Writes = Writes::Behind(WINDOW);
}

struct Vehicle {
    saved: Saved<Position>,
}

#[actor(name = "test.vehicle", durable = saved)]
impl Vehicle {
    async fn drive(&mut self, metres: u64) -> u64 {
        self.saved.metres += metres;
        self.saved.metres
    }

    async fn drive_once(&mut self, request: RequestId, metres: u64) -> u64 {
        self.saved.once(&request, |position| {
            position.metres += metres;
            position.metres
        })
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Vehicle, ActorError>> + Send>>;

/// A store that takes no commits for a while, or does not say what became of them.
#[derive(Default)]
struct Failing {
    /// So many commits it does not take.
    refusals: AtomicUsize,
    /// Whether those who are refused wait for their answer, as they do for a server that is away.
    is_slow: watch::Sender<bool>,
    /// So many after those it takes, and says that it does not know.
    doubts: AtomicUsize,
    commits: AtomicUsize,
}

impl Failing {
    /// Whether one more is to fail so.
    fn is_next(left: &AtomicUsize) -> bool {
        let is_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_less).is_ok()
    }
}

impl Differs for Failing {
    fn commit(&self, memory: &Memory, turn: Turn) -> Answer<()> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        let why = Arc::new(std::io::Error::other("it is away"));
        if Self::is_next(&self.refusals) {
            let mut slow = self.is_slow.subscribe();
            return Box::pin(async move {
                slow.wait_for(|is_slow| !is_slow).await.expect("the test goes on");
                Err(StoreError::Unavailable(why))
            });
        }
        let answer = memory.commit(turn);
        match Self::is_next(&self.doubts) {
            true => Box::pin(async { Err(StoreError::Unknown(why)) }),
            false => answer,
        }
    }
}

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Vehicle>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Vehicle { saved: Saved::load(store, &start).await? }) })
    }
}

fn fleet<S: Store>(world: &World, store: &Arc<S>) -> Node {
    let store: Arc<dyn Store> = store.clone();
    world.node("fleet").actor(opening(store.clone())).build()
}

/// What the store has: commits, and the state.
async fn stored(store: &dyn Store) -> (u64, u64) {
    let kept = store.open(&ActorId::named("test.vehicle", "v"), Epoch(0)).await.expect("it opens");
    let state = kept.snapshot.map(|snapshot| Position::decode(&snapshot.bytes).expect("it reads"));
    (kept.version, state.map_or(0, |position| position.metres))
}

#[test]
fn changes_of_a_window_are_written_as_one_and_their_replies_do_not_wait() {
    let (world, store) = (World::new(1), Arc::new(Memory::new()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        for window in 1..=3 {
            for n in 1..=100 {
                assert_eq!(vehicle.drive(1).await, Ok((window - 1) * 100 + n));
            }
            assert_eq!(stored(&*store).await, (window - 1, (window - 1) * 100));
            node.sleep(WRITTEN_AFTER).await;
            assert_eq!(stored(&*store).await, (window, window * 100));
        }
    });
}

#[test]
fn an_actor_that_is_unloaded_is_written_first() {
    let (world, store) = (World::new(2), Arc::new(Memory::new()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        for n in 1..=20 {
            assert_eq!(vehicle.drive(1).await, Ok(n));
            vehicle.stop().await;
            assert_eq!(stored(&*store).await.1, n);
        }
    });
}

#[test]
fn a_kept_reply_is_written_through_behind_what_waits() {
    let (world, store) = (World::new(3), Arc::new(Memory::new()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        vehicle.drive(1).await.expect("it runs");
        assert_eq!(vehicle.drive_once(RequestId::new("r"), 10).await, Ok(11));
        assert_eq!(stored(&*store).await, (2, 11));
        vehicle.drive(100).await.expect("it runs");
        node.sleep(WINDOW * 2).await;
        assert_eq!(stored(&*store).await, (3, 111));
    });
}

#[test]
fn what_a_store_that_was_away_has_not_taken_is_written_before_its_actor_is_unloaded() {
    let (world, store) = (World::new(5), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(1, Ordering::Relaxed);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(stored(&*store).await, (0, 0));
        vehicle.stop().await;
        assert_eq!(stored(&*store).await, (1, 1));
        assert_eq!(vehicle.drive(1).await, Ok(2));
    });
}

#[test]
fn what_a_store_that_was_away_has_not_taken_is_written_once_it_is_back() {
    let (world, store) = (World::new(6), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(3, Ordering::Relaxed);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WINDOW * 3 + Duration::from_millis(10)).await;
        assert_eq!(stored(&*store).await, (0, 0));
        node.sleep(WINDOW).await;
        assert_eq!(stored(&*store).await, (1, 1));
        node.sleep(WINDOW * 3).await;
        assert_eq!(store.commits.load(Ordering::Relaxed), 4, "it is written once a window");
        assert_eq!(vehicle.drive(1).await, Ok(2));
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(stored(&*store).await, (2, 2));
    });
}

#[test]
fn a_change_after_one_that_was_not_taken_is_written_through_behind_it_or_fails() {
    let (world, store) = (World::new(7), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(1, Ordering::Relaxed);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(vehicle.drive(10).await, Ok(11));
        assert_eq!(stored(&*store).await, (2, 11));

        // Away for its own write, and for the two of the change.
        assert_eq!(vehicle.drive(100).await, Ok(111));
        store.refusals.store(3, Ordering::Relaxed);
        node.sleep(WRITTEN_AFTER).await;
        vehicle.drive(1_000).await.expect_err("the store is away");
        assert_eq!(stored(&*store).await, (3, 111), "only what has failed is lost");
        assert_eq!(vehicle.drive(1).await, Ok(112));
    });
}

#[test]
fn a_kept_reply_that_is_not_taken_takes_nothing_along_that_was_acknowledged_before() {
    let (world, store) = (World::new(9), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        assert_eq!(vehicle.drive(1).await, Ok(1));
        // What waits, and the kept reply.
        store.refusals.store(2, Ordering::Relaxed);
        vehicle.drive_once(RequestId::new("r"), 10).await.expect_err("the store is away");
        assert_eq!(stored(&*store).await, (1, 1));
        assert_eq!(vehicle.drive(1).await, Ok(2));
    });
}

#[test]
fn what_gathers_while_the_store_does_not_answer_is_kept_with_what_it_then_does_not_take() {
    let (world, store) = (World::new(10), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        // Away for the first change, and for that one, the second and the third together.
        store.refusals.store(4, Ordering::Relaxed);
        store.is_slow.send_replace(true);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(vehicle.drive(10).await, Ok(11), "the first one is on its way");
        store.is_slow.send_replace(false);
        node.sleep(Duration::from_millis(10)).await;
        vehicle.drive(100).await.expect_err("the store is away");
        assert_eq!(stored(&*store).await, (2, 11), "only what has failed is lost");
        assert_eq!(vehicle.drive(1).await, Ok(12));
    });
}

#[test]
fn what_gathers_behind_what_is_not_taken_is_written_with_it_once_the_store_is_back() {
    let (world, store) = (World::new(11), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(1, Ordering::Relaxed);
        store.is_slow.send_replace(true);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(vehicle.drive(10).await, Ok(11), "the first one is on its way");
        store.is_slow.send_replace(false);
        node.sleep(Duration::from_millis(10)).await;
        assert_eq!(vehicle.drive(100).await, Ok(111));
        assert_eq!(stored(&*store).await, (3, 111));
    });
}

#[test]
fn a_change_while_what_was_not_taken_is_on_its_way_again_is_not_acknowledged_before_it() {
    let (world, store) = (World::new(12), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(2, Ordering::Relaxed);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        store.is_slow.send_replace(true);
        node.sleep(WRITTEN_AFTER).await;
        vehicle.drive(10).await.expect_err("what comes before it was not taken");
        assert_eq!(stored(&*store).await, (1, 1));
        store.is_slow.send_replace(false);
        assert_eq!(vehicle.drive(1).await, Ok(2));
    });
}

#[test]
fn what_is_on_its_way_to_a_store_that_is_away_is_given_to_it_again_when_its_actor_is_unloaded() {
    let (world, store) = (World::new(13), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.refusals.store(1, Ordering::Relaxed);
        store.is_slow.send_replace(true);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WRITTEN_AFTER).await;
        vehicle.stop().await;
        store.is_slow.send_replace(false);
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(stored(&*store).await, (1, 1));
        assert_eq!(vehicle.drive(1).await, Ok(2));
    });
}

#[test]
fn what_a_store_may_have_written_is_not_written_twice() {
    let (world, store) = (World::new(8), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.doubts.store(1, Ordering::Relaxed);
        assert_eq!(vehicle.drive(1).await, Ok(1));
        node.sleep(WINDOW * 3).await;
        vehicle.drive(1).await.expect_err("nobody knows what was written");
        assert_eq!(store.commits.load(Ordering::Relaxed), 1);
        assert_eq!(vehicle.drive(1).await, Ok(2), "it is as the store has it");
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(stored(&*store).await, (2, 2));
    });
}

#[test]
fn an_owner_that_was_fenced_meanwhile_writes_nothing_and_fails_with_its_next_change() {
    let (world, store) = (World::new(4), Arc::new(Memory::new()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        vehicle.drive(1).await.expect("it runs");
        let id = ActorId::named("test.vehicle", "v");
        store.open(&id, Epoch(7)).await.expect("a later epoch");
        node.sleep(WINDOW * 2).await;
        vehicle.drive(1).await.expect_err("it has lost its actor");
        let kept = store.open(&id, Epoch(7)).await.expect("it opens");
        assert_eq!(kept.version, 0);
    });
}

#[derive(Default, Wire)]
struct Length {
    bytes: u64,
}

impl State for Length {
    const WRITES: Writes = Writes::Behind(WINDOW);
}

impl Fold for Length {
    type Event = Vec<u8>;

    fn apply(&mut self, event: Vec<u8>) {
        self.bytes += event.len() as u64;
    }
}

struct Logbook {
    journal: Journaled<Length>,
}

#[actor(name = "test.logbook", durable = journal)]
impl Logbook {
    async fn note(&mut self, bytes: u64) -> u64 {
        self.journal.record(vec![7; usize::try_from(bytes).expect("it is small")]);
        self.journal.bytes
    }
}

/// A store that takes no turn of more than 8 MiB, as that on Cassandra.
#[derive(Default)]
struct Narrow;

impl Differs for Narrow {
    fn commit(&self, memory: &Memory, turn: Turn) -> Answer<()> {
        let (bytes, max) = (turn.events.iter().map(|event| event.bytes.len()).sum(), 8 << 20);
        if bytes <= max {
            return memory.commit(turn);
        }
        let id = turn.id;
        Box::pin(async move { Err(StoreError::TooLarge { id, what: "turn", bytes, max }) })
    }
}

#[test]
fn events_that_gather_do_not_become_a_turn_that_no_store_takes() {
    const NOTE: u64 = 256 << 10;
    let (world, store) = (World::new(14), Arc::new(Through::<Narrow>::default()));
    let open = move |start: Start<Logbook>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Logbook { journal: Journaled::load(store, &start).await? }) }
    };
    let node = world.node("ship").actor(open).build();
    world.run(async {
        let book = node.get::<Logbook>("v");
        for n in 1..=40 {
            assert_eq!(book.note(NOTE).await, Ok(n * NOTE));
        }
        book.stop().await;
        assert_eq!(book.note(NOTE).await, Ok(41 * NOTE));
    });
}

/// Counts the errors in the log.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn what_is_lost_for_good_is_an_error_in_the_log_and_counted() {
    let (world, store) = (World::new(15), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    let errors = Errors::default();
    let _listening = tracing::subscriber::set_default(errors.clone());
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        for (refusals, lost) in [(0, 0), (1, 0), (2, 1)] {
            vehicle.drive(1).await.expect("it runs");
            store.refusals.store(refusals, Ordering::Relaxed);
            let before = errors.0.load(Ordering::Relaxed);
            vehicle.stop().await;
            node.sleep(Duration::from_millis(10)).await;
            let since = errors.0.load(Ordering::Relaxed) - before;
            assert_eq!(since, lost, "{refusals} refusals");
            assert_eq!(lost_changes(&node), lost as u64);
        }
        assert_eq!(stored(&*store).await, (2, 2));
    });
}

#[test]
fn what_a_former_owner_had_to_write_and_what_a_store_may_have_written_are_counted_as_lost() {
    let (world, store) = (World::new(16), Arc::new(Through::<Failing>::default()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        store.doubts.store(1, Ordering::Relaxed);
        vehicle.drive(1).await.expect("it runs");
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(lost_changes(&node), 1);
        vehicle.drive(1).await.expect_err("it starts again from what is stored");
        vehicle.drive(1).await.expect("it runs");
        store.open(&ActorId::named("test.vehicle", "v"), Epoch(9)).await.expect("it opens");
        node.sleep(WRITTEN_AFTER).await;
        assert_eq!(lost_changes(&node), 2);
        let page = node.metrics().prometheus_text();
        assert!(page.contains("althing_changes_lost_total{actor=\"test.vehicle\"} 2"), "{page}");
    });
}

fn lost_changes(node: &Node) -> u64 {
    node.metrics().kind("test.vehicle").map_or(0, |kind| kind.lost)
}
