//! Changes that wait, of an actor that ends in order: they are with the store before its next life
//! begins, also on a node whose way to the store is shorter.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorId, Start, Wire, actor};
use althing_store::{Answer, Memory, Saved, State, Store, StoreError, Turn, Writes};
use althing_testkit::{Bridge, World};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::through::{Differs, Through};

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
#[derive(Default)]
struct Queue {
    waiting: Mutex<Vec<Waiting>>,
}

impl Queue {
    async fn go_on(&self, memory: &Memory) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for (turn, reply) in waiting {
            // Whoever asked may have gone.
            _ = reply.send(memory.commit(turn).await);
        }
    }
}

impl Differs for Queue {
    fn commit(&self, _: &Memory, turn: Turn) -> Answer<()> {
        let (reply, answer) = oneshot::channel();
        self.waiting.lock().push((turn, reply));
        Box::pin(async { answer.await.expect("the test goes on") })
    }
}

#[test]
fn changes_that_wait_are_written_before_their_actor_lives_on_another_node() {
    let (world, bridge, memory) = (World::new(1), Bridge::new(), Arc::new(Memory::new()));
    let queue = Arc::new(Through::<Queue>::before(memory.clone()));
    let one = world.node("one").cluster(bridge.end()).actor(opening(queue.clone())).build();
    let two = world.node("two").cluster(bridge.end()).actor(opening(memory.clone())).build();
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
            queue.go_on(&memory).await;
        };
        let (walked, ()) = tokio::join!(moves, goes_on);
        assert_eq!(walked, Ok(11));
    });
}
