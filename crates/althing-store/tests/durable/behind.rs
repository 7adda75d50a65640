//! Write-behind, in a world of virtual time: what is written when, and what is not lost.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorId, Epoch, Node, Start, Wire, actor};
use althing_store::{Memory, RequestId, Saved, State, Store, Writes};
use althing_testkit::World;

const WINDOW: Duration = Duration::from_secs(5);

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

fn opening(store: Arc<Memory>) -> impl Fn(Start<Vehicle>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Vehicle { saved: Saved::load(store, &start).await? }) })
    }
}

fn fleet(world: &World, store: &Arc<Memory>) -> Node {
    world.node("fleet").actor(opening(store.clone())).build()
}

/// What the store has: commits, and the state.
async fn stored(store: &Memory) -> (u64, u64) {
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
            assert_eq!(stored(&store).await, (window - 1, (window - 1) * 100));
            node.sleep(WINDOW + Duration::from_millis(10)).await;
            assert_eq!(stored(&store).await, (window, window * 100));
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
            assert_eq!(stored(&store).await.1, n);
        }
    });
}

#[test]
fn a_kept_reply_is_written_through_with_what_waits() {
    let (world, store) = (World::new(3), Arc::new(Memory::new()));
    let node = fleet(&world, &store);
    world.run(async {
        let vehicle = node.get::<Vehicle>("v");
        vehicle.drive(1).await.expect("it runs");
        assert_eq!(vehicle.drive_once(RequestId::new("r"), 10).await, Ok(11));
        assert_eq!(stored(&store).await, (1, 11));
        vehicle.drive(100).await.expect("it runs");
        node.sleep(WINDOW * 2).await;
        assert_eq!(stored(&store).await, (2, 111));
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
