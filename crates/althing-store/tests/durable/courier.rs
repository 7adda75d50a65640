//! Letters and reminders of durable actors, in a world of virtual time: what was committed is
//! delivered, through failures and restarts, and has its effect once.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorError, ActorId, Context, Epoch, Node, NodeBuilder, Start, Timestamp, Wire, actor,
};
use althing_store::{
    Courier, CourierOptions, Memory, PostError, Posting, Reminder, RequestId, Retention, Saved,
    State, Store, Turn, When,
};
use althing_testkit::{Bridge, World};

const DAY: Duration = Duration::from_secs(86_400);
/// A reminder that sets itself anew until five things were heard.
const AGAIN: &str = "again";

#[derive(Default, Wire)]
struct Diary {
    /// What has come, in its order.
    heard: Vec<String>,
    /// When it came.
    at: Vec<u64>,
}

impl State for Diary {
    const REPLIES: Retention = Retention { within: Duration::from_secs(60), replies_max: 5 };
}

struct Person {
    saved: Saved<Diary>,
}

#[actor(name = "test.person", wire, durable = saved)]
impl Person {
    async fn hear(&mut self, request: RequestId, what: String, ctx: &mut Context<Self>) -> u64 {
        let now = ctx.now().0;
        self.saved.once(&request, |diary| {
            diary.heard.push(what);
            diary.at.push(now);
            diary.heard.len() as u64
        })
    }

    /// Tells another person in the next turn's commit.
    async fn write_to(&mut self, other: String, what: Vec<String>, ctx: &mut Context<Self>) {
        let other = ctx.node().get::<Person>(other);
        for what in what {
            let letter = |request| other.hear(request, what);
            self.saved.post().tell(letter).expect("it can be written down");
        }
    }

    #[wire(skip)]
    async fn remind_me(
        &mut self,
        name: String,
        when: When,
        ctx: &mut Context<Self>,
    ) -> Result<(), PostError> {
        let me = ctx.address();
        self.saved.post().remind(&name, when, |reminder| me.ring(reminder))
    }

    #[wire(skip)]
    async fn remind_wrongly(&mut self, ctx: &mut Context<Self>) -> Result<(), PostError> {
        let me = ctx.address();
        let when = When::After(DAY);
        self.saved.post().remind("wrong", when, |reminder| me.hear(reminder.request, String::new()))
    }

    async fn cancel(&mut self, name: String) {
        self.saved.post().cancel(&name);
    }

    async fn ring(&mut self, reminder: Reminder, ctx: &mut Context<Self>) {
        let now = ctx.now().0;
        assert!(reminder.due.0 <= now, "never early");
        let me = ctx.address();
        self.saved.once(&reminder.request, |diary| {
            if reminder.name == AGAIN && diary.heard.len() < 4 {
                let at_once = When::After(Duration::ZERO);
                let set = diary.post().remind(AGAIN, at_once, |reminder| me.ring(reminder));
                set.expect("it can be written down");
            }
            diary.heard.push(reminder.name);
            diary.at.push(now);
        });
    }

    #[wire(skip)]
    async fn diary(&self) -> Vec<String> {
        self.saved.heard.clone()
    }

    #[wire(skip)]
    async fn times(&self) -> Vec<u64> {
        self.saved.at.clone()
    }

    #[wire(skip)]
    async fn fails_after_it_wrote(&mut self, other: String, ctx: &mut Context<Self>) {
        let other = ctx.node().get::<Person>(other);
        self.saved.heard.push("never".to_owned());
        self.saved.post().tell(|request| other.hear(request, "never".to_owned())).expect("it can");
        panic!("on purpose");
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Person, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Person>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Person { saved: Saved::load(store, &start).await? }) })
    }
}

/// A node whose actors are in that store, with a courier.
fn town(builder: NodeBuilder, memory: &Arc<Memory>) -> Node {
    let courier = Arc::new(Courier::new(memory.clone()));
    let node = builder.actor(opening(courier.clone())).build();
    courier.start(&node);
    node
}

/// Waits until a person has heard so many things.
async fn heard(node: &Node, who: &str, count: usize) -> Vec<String> {
    loop {
        let diary = node.get::<Person>(who).diary().await.expect("it runs");
        if diary.len() >= count {
            return diary;
        }
        node.sleep(Duration::from_millis(10)).await;
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

async fn is_empty(memory: &Memory) -> bool {
    memory.due(Timestamp(u64::MAX), None, 1).await.expect("it reads").is_empty()
}

#[test]
fn a_letter_arrives_once_it_is_committed_and_is_then_forgotten() {
    let (world, memory) = (World::new(1), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let alice = node.get::<Person>("alice");
        alice.write_to("bob".into(), texts(&["one", "two", "three"])).await.expect("it runs");
        assert_eq!(heard(&node, "bob", 3).await, texts(&["one", "two", "three"]));
        node.sleep(Duration::from_secs(1)).await;
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn a_turn_that_fails_leaves_no_letter() {
    let (world, memory) = (World::new(2), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let alice = node.get::<Person>("alice");
        alice.fails_after_it_wrote("bob".into()).await.expect_err("it panics");
        node.sleep(DAY).await;
        assert_eq!(heard(&node, "bob", 0).await, texts(&[]));
        assert_eq!(heard(&node, "alice", 0).await, texts(&[]));
    });
}

#[test]
fn a_letter_outlives_the_node_that_has_committed_it() {
    let (world, memory) = (World::new(3), Arc::new(Memory::new()));
    // A courier that was never started: the node crashes before anything is sent.
    let store: Arc<dyn Store> = Arc::new(Courier::new(memory.clone()));
    let before = world.node("before").actor(opening(store)).build();
    world.run(async {
        let alice = before.get::<Person>("alice");
        alice.write_to("bob".into(), texts(&["a", "b"])).await.expect("it runs");
        world.crash(&before);
        let after = town(world.node("after"), &memory);
        assert_eq!(heard(&after, "bob", 2).await, texts(&["a", "b"]));
    });
}

#[test]
fn a_letter_is_sent_again_until_it_was_taken_and_others_wait_behind_it() {
    let (world, memory) = (World::new(4), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.panic_next::<Person, person_messages::Hear>(5);
    world.run(async {
        let alice = node.get::<Person>("alice");
        alice.write_to("bob".into(), texts(&["first", "second"])).await.expect("it runs");
        assert_eq!(heard(&node, "bob", 2).await, texts(&["first", "second"]));
    });
}

#[test]
fn a_request_that_comes_again_gets_its_reply_again_also_after_a_crash() {
    let (world, memory) = (World::new(5), Arc::new(Memory::new()));
    world.run(async {
        let request = || RequestId::new("b1b2");
        for name in ["first", "second", "third"] {
            let node = town(world.node(name), &memory);
            let bob = node.get::<Person>("bob");
            for _ in 0..3 {
                assert_eq!(bob.hear(request(), "it".into()).await, Ok(1));
            }
            world.crash(&node);
        }
    });
}

#[test]
fn replies_are_kept_as_long_and_as_many_as_declared() {
    let (world, memory) = (World::new(6), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let bob = node.get::<Person>("bob");
        let hear = async |id: &str| bob.hear(RequestId::new(id), id.into()).await.expect("it runs");
        for (id, count) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)] {
            assert_eq!(hear(id).await, count);
        }
        assert_eq!(hear("c").await, 3, "one of the last five");
        node.sleep(Duration::from_secs(61)).await;
        assert_eq!(hear("g").await, 7);
        assert_eq!(hear("f").await, 8, "it was forgotten with the turn before");
        let kept = memory.open(&bob.id(), Epoch(0)).await.expect("it opens").replies;
        let kept: Vec<_> = kept.iter().map(|reply| reply.request.as_str()).collect();
        assert_eq!(kept, ["g", "f"]);
    });
}

#[test]
fn a_reminder_wakes_its_actor_within_a_second_of_its_time() {
    let (world, memory) = (World::new(7), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let bob = node.get::<Person>("bob");
        let waits =
            [Duration::ZERO, Duration::from_millis(1_500), Duration::from_secs(89), DAY * 2];
        let mut expected = Vec::new();
        for wait in waits {
            expected.push(node.now().0 + wait.as_millis() as u64);
            let set = bob.remind_me(format!("{wait:?}"), When::After(wait)).await;
            set.expect("it runs").expect("it is set");
        }
        bob.stop().await;
        node.sleep(DAY * 2 + Duration::from_secs(1)).await;
        let times = bob.times().await.expect("it runs");
        assert_eq!(times.len(), waits.len());
        for (due, at) in expected.into_iter().zip(times) {
            assert!((due..=due + 1_000).contains(&at), "{at} for {due}");
        }
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn a_cron_reminder_comes_each_time() {
    let (world, memory) = (World::new(8), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let bob = node.get::<Person>("bob");
        let each_hour = When::Cron("0 * * * *".to_owned());
        bob.remind_me("hourly".into(), each_hour).await.expect("it runs").expect("it is set");
        // The last one is due at the end of the day.
        node.sleep(DAY + Duration::from_secs(1)).await;
        let times = bob.times().await.expect("it runs");
        assert_eq!(times.len(), 24);
        assert!(times.iter().all(|at| at % 3_600_000 < 1_000), "{times:?}");
        bob.cancel("hourly".into()).await.expect("it runs");
        node.sleep(DAY).await;
        assert_eq!(bob.times().await.expect("it runs").len(), 24, "it was cancelled");
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn what_was_missed_while_nobody_ran_comes_once() {
    let (world, memory) = (World::new(9), Arc::new(Memory::new()));
    world.run(async {
        let before = town(world.node("before"), &memory);
        let bob = before.get::<Person>("bob");
        let each_minute = When::Cron("* * * * *".to_owned());
        bob.remind_me("cron".into(), each_minute).await.expect("it runs").expect("it is set");
        let once = When::After(Duration::from_secs(5));
        bob.remind_me("once".into(), once).await.expect("it runs").expect("it is set");
        world.crash(&before);
        // Half a minute after the last time that was missed.
        let day_ms = DAY.as_millis() as u64;
        world.sleep(Duration::from_millis(day_ms - before.now().0 % 60_000 + 30_000)).await;
        let after = town(world.node("after"), &memory);
        after.sleep(Duration::from_secs(10)).await;
        let mut diary = heard(&after, "bob", 2).await;
        diary.sort_unstable();
        assert_eq!(diary, texts(&["cron", "once"]));
        after.sleep(Duration::from_secs(60)).await;
        assert_eq!(heard(&after, "bob", 3).await[2], "cron", "and then at its time");
    });
}

#[test]
fn a_reminder_of_the_same_name_takes_the_place_of_the_first_and_can_be_cancelled() {
    let (world, memory) = (World::new(10), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let bob = node.get::<Person>("bob");
        let set = async |name: &str, seconds: u64| {
            let when = When::After(Duration::from_secs(seconds));
            bob.remind_me(name.into(), when).await.expect("it runs").expect("it is set");
        };
        set("tea", 10).await;
        set("tea", 20).await;
        set("bread", 30).await;
        set("milk", 200).await;
        bob.cancel("bread".into()).await.expect("it runs");
        bob.cancel("milk".into()).await.expect("it runs");
        let begun = node.now().0;
        node.sleep(DAY).await;
        assert_eq!(heard(&node, "bob", 0).await, texts(&["tea"]));
        let at = bob.times().await.expect("it runs")[0];
        assert!((20_000..21_001).contains(&(at - begun)), "{at}");
    });
}

#[test]
fn a_reminder_that_sets_itself_anew_at_once_comes_each_time() {
    let (world, memory) = (World::new(18), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let bob = node.get::<Person>("bob");
        let at_once = When::After(Duration::ZERO);
        bob.remind_me(AGAIN.into(), at_once).await.expect("it runs").expect("it is set");
        node.sleep(Duration::from_secs(5)).await;
        assert_eq!(heard(&node, "bob", 0).await, [AGAIN; 5]);
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn what_nobody_could_deliver_is_refused_by_name() {
    let (world, memory) = (World::new(11), Arc::new(Memory::new()));
    let alone = world.node("alone").actor(opening(memory.clone())).build();
    let node = town(world.node("town"), &memory);
    world.run(async {
        let soon = || When::After(Duration::from_secs(1));
        let refused = alone.get::<Person>("bob").remind_me("tea".into(), soon()).await;
        assert!(matches!(refused, Ok(Err(PostError::NoCourier(_)))), "{refused:?}");
        let eve = node.get::<Person>("eve");
        let refused = eve.remind_wrongly().await;
        assert!(matches!(refused, Ok(Err(PostError::NotAReminder(_)))), "{refused:?}");
        for expression in ["", "soon", "61 * * * *", "0 0 30 2 *"] {
            let refused = eve.remind_me("tea".into(), When::Cron(expression.to_owned())).await;
            assert!(
                matches!(refused, Ok(Err(PostError::Cron { .. }))),
                "{expression}: {refused:?}"
            );
        }
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn each_node_delivers_for_the_actors_that_live_on_it() {
    let (world, bridge, memory) = (World::new(12), Bridge::new(), Arc::new(Memory::new()));
    let one = town(world.node("one").cluster(bridge.end()), &memory);
    let two = town(world.node("two").cluster(bridge.end()), &memory);
    world.run(async {
        let id = |who: &str| ActorId::named("test.person", who);
        bridge.settle(&id("alice"), &one);
        bridge.settle(&id("bob"), &two);
        let alice = one.get::<Person>("alice");
        alice.write_to("bob".into(), texts(&["hello"])).await.expect("it runs");
        let soon = When::After(Duration::from_secs(50));
        two.get::<Person>("bob").remind_me("tea".into(), soon).await.expect("runs").expect("set");
        two.sleep(Duration::from_secs(100)).await;
        assert_eq!(heard(&two, "bob", 2).await, texts(&["hello", "tea"]));
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn what_is_left_while_much_is_read_is_neither_lost_nor_doubled() {
    let (world, memory) = (World::new(13), Arc::new(Memory::new()));
    world.run(async {
        // More than a page of what an earlier node has left, all of it due.
        let before =
            world.node("before").actor(opening(Arc::new(Courier::new(memory.clone())))).build();
        for batch in 0..5 {
            let many: Vec<_> = (0..250).map(|n| format!("{batch} {n:03}")).collect();
            before.get::<Person>("alice").write_to("bob".into(), many).await.expect("it runs");
        }
        world.crash(&before);
        let node = town(world.node("town"), &memory);
        let alice = node.get::<Person>("alice");
        alice.write_to("bob".into(), texts(&["last"])).await.expect("it runs");
        let diary = heard(&node, "bob", 1_251).await;
        let mut sorted = diary.clone();
        sorted.sort_unstable();
        assert_eq!(diary, sorted, "in the order in which they were left");
        assert_eq!(diary.len(), 1_251);
        node.sleep(Duration::from_secs(1)).await;
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn more_than_memory_holds_is_delivered_in_time_and_in_order() {
    let (world, memory) = (World::new(15), Arc::new(Memory::new()));
    let mut options = CourierOptions::default();
    (options.in_memory_max, options.at_once_max) = (20, 3);
    let courier = Arc::new(Courier::with_options(memory.clone(), options));
    let node = world.node("town").actor(opening(courier.clone())).build();
    world.run(async {
        let people = ["a", "b", "c", "d"];
        for who in people {
            // Due together, a minute from now, as reminders; and letters, due now.
            let person = node.get::<Person>(who);
            for n in 0..50 {
                let when = When::At(Timestamp(node.now().0 / 60_000 * 60_000 + 120_000));
                person.remind_me(format!("r{n}"), when).await.expect("it runs").expect("it is set");
            }
            let many: Vec<_> = (0..50).map(|n| format!("l{n:02}")).collect();
            person.write_to(format!("{who} again"), many).await.expect("it runs");
        }
        courier.start(&node);
        node.sleep(Duration::from_secs(121)).await;
        for who in people {
            let letters: Vec<_> = (0..50).map(|n| format!("l{n:02}")).collect();
            assert_eq!(heard(&node, &format!("{who} again"), 50).await, letters);
            let times = node.get::<Person>(who).times().await.expect("it runs");
            assert_eq!(times.len(), 50);
            assert!(times.iter().all(|at| at % 60_000 < 1_000), "{times:?}");
        }
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn what_is_left_for_now_is_not_held_up_by_much_that_is_due_later() {
    let (world, memory) = (World::new(16), Arc::new(Memory::new()));
    let mut options = CourierOptions::default();
    options.in_memory_max = 20;
    let courier = Arc::new(Courier::with_options(memory, options));
    let node = world.node("town").actor(opening(courier.clone())).build();
    world.run(async {
        let bob = node.get::<Person>("bob");
        for n in 0..100 {
            let later = When::After(Duration::from_secs(60));
            bob.remind_me(format!("r{n}"), later).await.expect("it runs").expect("it is set");
        }
        courier.start(&node);
        node.sleep(Duration::from_secs(1)).await;
        bob.write_to("carol".into(), texts(&["now"])).await.expect("it runs");
        node.sleep(Duration::from_secs(1)).await;
        assert_eq!(heard(&node, "carol", 0).await, texts(&["now"]));
    });
}

#[test]
fn what_was_delivered_is_taken_down_before_an_orderly_end() {
    let (world, memory) = (World::new(17), Arc::new(Memory::new()));
    let node = town(world.node("town"), &memory);
    world.run(async {
        let alice = node.get::<Person>("alice");
        for (count, what) in ["one", "two"].into_iter().enumerate() {
            alice.write_to("bob".into(), texts(&[what])).await.expect("it runs");
            heard(&node, "bob", count + 1).await;
        }
        assert!(!is_empty(&memory).await, "the second one waits to be taken down with others");
        node.shutdown(Duration::from_secs(5)).await;
        assert!(is_empty(&memory).await);
    });
}

#[test]
fn a_delivery_for_a_kind_that_is_not_there_is_kept() {
    let (world, memory) = (World::new(14), Arc::new(Memory::new()));
    let letter = althing::remote::Letter {
        to: ActorId::named("test.of-a-later-version", "x"),
        message: "hear".to_owned(),
        body: vec![],
    };
    let owner = ActorId::named("test.person", "alice");
    let (name, due) = (">1".to_owned(), Timestamp(1));
    let left = althing_store::Delivery { owner: owner.clone(), name, due, cron: None, letter };
    let node = town(world.node("town"), &memory);
    world.run(async {
        let turn = Turn { postings: vec![Posting::Put(left)], ..Turn::new(owner, Epoch(0), 1) };
        memory.commit(turn).await.expect("it follows");
        node.sleep(DAY).await;
        assert!(!is_empty(&memory).await, "a later version may know it");
    });
}
