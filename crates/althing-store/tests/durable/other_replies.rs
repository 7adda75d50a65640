//! A request that is asked again for another type of reply, in a world of virtual time.

use std::sync::Arc;

use althing::{ActorError, AskError, Start, Wire, actor};
use althing_store::{Memory, RequestId, Saved, State, Store};
use althing_testkit::World;

#[derive(Default, Wire)]
struct Tally {
    count: u64,
}

impl State for Tally {}

struct Counter {
    saved: Saved<Tally>,
}

#[actor(name = "test.other-replies", durable = saved)]
impl Counter {
    async fn count(&mut self, request: RequestId) -> u64 {
        self.saved.once(&request, |tally| {
            tally.count += 1;
            tally.count
        })
    }

    async fn count_in_words(&mut self, request: RequestId) -> String {
        self.saved.once(&request, |tally| {
            tally.count += 1;
            format!("{} times", tally.count)
        })
    }
}

#[test]
fn a_request_that_is_asked_again_for_another_type_of_reply_is_refused_and_done_once() {
    let world = World::new(15);
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let open = move |start: Start<Counter>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Counter { saved: Saved::load(store, &start).await? }) }
    };
    let node = world.node("town").actor(open).build();
    world.run(async {
        let counter = node.get::<Counter>("c");
        let request = || RequestId::new("r");
        assert_eq!(counter.count(request()).await, Ok(1));
        let refused = counter.count_in_words(request()).await;
        assert!(matches!(refused, Err(AskError::HandlerPanicked(_))), "{refused:?}");
        assert_eq!(counter.count(request()).await, Ok(1));
        assert_eq!(counter.count(RequestId::new("s")).await, Ok(2));
    });
}
