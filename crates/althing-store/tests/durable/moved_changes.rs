//! Changes that wait, of an actor that ends in order: they are with the store before its next life
//! begins, also on a node whose way to the store is shorter.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorId, Epoch, Start, Timestamp, Wire, actor};
use althing_store::{
    Answer, Delivery, Event, Kept, Mark, Memory, Saved, Settled, State, Store, StoreError, Turn,
    Writes,
};
use althing_testkit::{Bridge, World};
use parking_lot::Mutex;
use tokio::sync::oneshot;

#[derive(Default, Wire)]
struct Steps {
    count: u64,
}

impl State for Steps {
    const WRITES: Writes = Writes::Behind(Duration::from_secs(60));
}

struct Walker {
    saved: Saved<Steps>,
}

#[actor(name = "test.walker", wire, durable = saved)]
impl Walker {
    async fn walk(&mut self, steps: u64) -> u64 {
        self.saved.count += steps;
        self.saved.count
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Walker, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Walker>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Walker { saved: Saved::load(store, &start).await? }) })
    }
}

type Waiting = (Turn, oneshot::Sender<Result<(), StoreError>>);

/// A node's way to a store, on which commits wait.
struct Queue {
    memory: Arc<Memory>,
    waiting: Mutex<Vec<Waiting>>,
}

impl Queue {
    async fn go_on(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for (turn, reply) in waiting {
            // Whoever asked may have gone.
            _ = reply.send(self.memory.commit(turn).await);
        }
    }
}

impl Store for Queue {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.memory.open(id, epoch)
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        let (reply, answer) = oneshot::channel();
        self.waiting.lock().push((turn, reply));
        Box::pin(async { answer.await.expect("the test goes on") })
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.memory.events(id, after, limit)
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        self.memory.due(until, after, limit)
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        self.memory.left_before(names, limit)
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        self.memory.settle(settled)
    }
}

#[test]
fn changes_that_wait_are_written_before_their_actor_lives_on_another_node() {
    let (world, bridge, memory) = (World::new(1), Bridge::new(), Arc::new(Memory::new()));
    let queue = Arc::new(Queue { memory: memory.clone(), waiting: Mutex::default() });
    let one = world.node("one").cluster(bridge.end()).actor(opening(queue.clone())).build();
    let two = world.node("two").cluster(bridge.end()).actor(opening(memory)).build();
    world.run(async {
        let id = ActorId::named("test.walker", "ada");
        bridge.settle(&id, &one);
        assert_eq!(one.get::<Walker>("ada").walk(1).await, Ok(1));
        let moves = async {
            bridge.carry(&id, &two).await;
            two.get::<Walker>("ada").walk(10).await
        };
        let goes_on = async {
            one.sleep(Duration::from_secs(1)).await;
            queue.go_on().await;
        };
        let (walked, ()) = tokio::join!(moves, goes_on);
        assert_eq!(walked, Ok(11));
    });
}
