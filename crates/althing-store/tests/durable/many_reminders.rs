//! Many reminders: half of them cancelled, more than memory holds, and some of actors that cannot be told.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::remote::Letter;
use althing::{ActorError, ActorId, Context, Epoch, Node, Start, Timestamp, Wire, actor};
use althing_store::{
    Courier, CourierOptions, Delivery, Memory, Posting, Reminder, Saved, State, Store, Turn, When,
};
use althing_testkit::World;

#[derive(Default, Wire)]
struct Rings {
    /// What has come, and how many milliseconds late.
    heard: Vec<(String, u64)>,
}

impl State for Rings {}

struct Clock {
    saved: Saved<Rings>,
}

#[actor(name = "test.clock", wire, durable = saved)]
impl Clock {
    #[wire(skip)]
    async fn set(&mut self, name: String, when: When, ctx: &mut Context<Self>) {
        let me = ctx.address();
        let set = self.saved.post().remind(&name, when, |it| me.ring(it));
        set.expect("it can be written down");
    }

    #[wire(skip)]
    async fn cancel(&mut self, name: String) {
        self.saved.post().cancel(&name);
    }

    async fn ring(&mut self, reminder: Reminder, ctx: &mut Context<Self>) {
        let late = ctx.now().0 - reminder.due.0;
        self.saved.once(&reminder.request, |rings| rings.heard.push((reminder.name, late)));
    }

    #[wire(skip)]
    async fn heard(&self) -> Vec<(String, u64)> {
        self.saved.heard.clone()
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Clock, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Clock>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Clock { saved: Saved::load(store, &start).await? }) })
    }
}

/// A node with so much memory for what is to be delivered.
fn town(world: &World, memory: &Arc<Memory>, in_memory_max: usize) -> Node {
    let mut options = CourierOptions::default();
    (options.in_memory_max, options.at_once_max) = (in_memory_max, 16);
    let courier = Arc::new(Courier::with_options(memory.clone(), options));
    let node = world.node("town").actor(opening(courier.clone())).build();
    courier.start(&node);
    node
}

#[test]
fn of_many_that_are_due_together_those_that_were_not_cancelled_come_once_and_in_time() {
    const CLOCKS: u64 = 50;
    const EACH: u64 = 100;
    let (world, memory) = (World::new(41), Arc::new(Memory::new()));
    let node = town(&world, &memory, 500);
    world.run(async {
        let due = Timestamp(node.now().0 + 100_000);
        for clock in 0..CLOCKS {
            let clock = node.get::<Clock>(clock.to_string());
            for n in 0..EACH {
                clock.set(n.to_string(), When::At(due)).await.expect("it runs");
            }
            for n in (0..EACH).step_by(2) {
                clock.cancel(n.to_string()).await.expect("it runs");
            }
        }
        node.sleep(Duration::from_secs(110)).await;
        for clock in 0..CLOCKS {
            let heard = node.get::<Clock>(clock.to_string()).heard().await.expect("it runs");
            let mut names: Vec<u64> = heard.iter().map(|(name, _)| name.parse().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, (1..EACH).step_by(2).collect::<Vec<_>>(), "{clock}");
            assert!(heard.iter().all(|(_, late)| *late <= 1_000), "{clock}: {heard:?}");
        }
    });
}

#[test]
fn the_first_and_the_last_of_all_times_can_be_set() {
    let (world, memory) = (World::new(42), Arc::new(Memory::new()));
    let node = town(&world, &memory, 500);
    world.run(async {
        let clock = node.get::<Clock>("a");
        for (name, due) in [("first", 0), ("late", i64::MAX as u64), ("last", u64::MAX)] {
            clock.set(name.to_owned(), When::At(Timestamp(due))).await.expect("it runs");
        }
        node.sleep(Duration::from_secs(1)).await;
        let names = async || {
            let heard = clock.heard().await.expect("it runs");
            heard.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["first"]);
        // They can be replaced and cancelled like all others.
        let soon = When::After(Duration::from_secs(1));
        clock.set("last".to_owned(), soon).await.expect("it runs");
        clock.cancel("late".to_owned()).await.expect("it runs");
        node.sleep(Duration::from_secs(3)).await;
        assert_eq!(names().await, ["first", "last"]);
        let left = memory.due(Timestamp(u64::MAX), None, 1).await.expect("it reads");
        assert!(left.is_empty(), "{left:?}");
    });
}

/// More than memory holds, of a kind of actor that a later version may know.
#[test]
fn reminders_that_cannot_be_delivered_hold_up_no_others() {
    let (world, memory) = (World::new(43), Arc::new(Memory::new()));
    world.run(async {
        for n in 0..100 {
            let owner = ActorId::named("test.of-a-later-version", n.to_string());
            let letter = Letter { to: owner.clone(), message: "ring".to_owned(), body: Vec::new() };
            let (name, due) = ("@tea".to_owned(), Timestamp(n));
            let left = Delivery { owner: owner.clone(), name, due, cron: None, letter };
            let turn = Turn { postings: vec![Posting::Put(left)], ..Turn::new(owner, Epoch(0), 1) };
            memory.commit(turn).await.expect("it follows");
        }
        let node = town(&world, &memory, 20);
        let clock = node.get::<Clock>("a");
        for minutes in 0..5 {
            node.sleep(Duration::from_secs(60)).await;
            let soon = When::After(Duration::from_secs(10));
            clock.set(minutes.to_string(), soon).await.expect("it runs");
            node.sleep(Duration::from_secs(12)).await;
            let heard = clock.heard().await.expect("it runs");
            assert_eq!(heard.len(), minutes + 1, "{heard:?}");
            assert!(heard.iter().all(|(_, late)| *late <= 1_000), "{heard:?}");
        }
        let left = memory.due(Timestamp(u64::MAX), None, 1_000).await.expect("it reads");
        assert_eq!(left.len(), 100, "they are kept");
    });
}
