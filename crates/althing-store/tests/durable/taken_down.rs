//! What was taken is taken down in its order, also by a store that does not answer for a while.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Start, Timestamp, Wire, actor};
use althing_store::{
    Answer, Courier, Memory, Reminder, RequestId, Saved, Settled, State, Store, StoreError, When,
};
use althing_testkit::World;
use tokio::sync::watch;

use crate::through::{Differs, Through};

#[derive(Default, Wire)]
struct Strokes {
    last: u64,
}

impl State for Strokes {}

struct Tower {
    saved: Saved<Strokes>,
}

#[actor(name = "test.tower", wire, durable = saved)]
impl Tower {
    #[wire(skip)]
    async fn strike_each_second(&mut self, ctx: &mut Context<Self>) {
        let me = ctx.address();
        let each_second = When::Cron("* * * * * *".to_owned());
        let set = self.saved.post().remind("strike", each_second, |it| me.strike(it));
        set.expect("it can be written down");
    }

    async fn strike(&mut self, reminder: Reminder) {
        self.saved.last = reminder.due.0;
    }

    #[wire(skip)]
    async fn call(&mut self, other: String, ctx: &mut Context<Self>) {
        let other = ctx.node().get::<Tower>(other);
        self.saved.post().tell(|request| other.hear(request)).expect("it can be written down");
    }

    async fn hear(&mut self, request: RequestId) {
        self.saved.once(&request, |strokes| strokes.last += 1);
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Tower, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Tower>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Tower { saved: Saved::load(store, &start).await? }) })
    }
}

/// A store that keeps those waiting for a while who say what was taken, and then has not heard.
#[derive(Default)]
struct Slow {
    is_slow: watch::Sender<bool>,
}

impl Differs for Slow {
    fn settle(&self, memory: &Memory, settled: Vec<Settled>) -> Answer<()> {
        if !*self.is_slow.borrow() {
            return memory.settle(settled);
        }
        let mut slow = self.is_slow.subscribe();
        Box::pin(async move {
            slow.wait_for(|is_slow| !is_slow).await.expect("the test goes on");
            let why = std::io::Error::other("it is away");
            Err(StoreError::Unavailable(Arc::new(why)))
        })
    }
}

#[test]
fn what_comes_again_while_the_store_does_not_answer_is_taken_down_in_its_order() {
    let (world, store) = (World::new(1), Arc::new(Through::<Slow>::default()));
    let courier = Arc::new(Courier::new(store.clone()));
    let node = world.node("town").actor(opening(courier.clone())).build();
    courier.start(&node);
    world.run(async {
        node.get::<Tower>("church").strike_each_second().await.expect("it runs");
        node.sleep(Duration::from_secs(2)).await;
        store.is_slow.send_replace(true);
        node.sleep(Duration::from_secs(5)).await;
        store.is_slow.send_replace(false);
        node.sleep(Duration::from_secs(5)).await;
        let late = Timestamp(node.now().0 - 3_000);
        let left = store.memory.due(late, None, 9).await.expect("it reads");
        assert_eq!(left, [], "it would come once more");
    });
}

/// After a crash it would come again, and its actor remembers so many requests only.
#[test]
fn a_letter_that_was_taken_is_taken_down_at_once() {
    let (world, store) = (World::new(1), Arc::new(Memory::default()));
    let courier = Arc::new(Courier::new(store.clone()));
    let node = world.node("town").actor(opening(courier.clone())).build();
    courier.start(&node);
    world.run(async {
        for _ in 0..10 {
            let church = node.get::<Tower>("church");
            church.call("gate".to_owned()).await.expect("it runs");
            node.sleep(Duration::from_millis(50)).await;
            let left = store.due(Timestamp(u64::MAX), None, 9).await.expect("it reads");
            assert_eq!(left, []);
        }
    });
}
