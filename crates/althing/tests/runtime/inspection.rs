//! What an inspector tells of handlers that do not come back, of topics, and of the tree of
//! supervision.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use althing::{
    Activity, Actor, ActorId, ActorOptions, ActorRef, Context, Epoch, LongRunning, MailboxKind,
    Node, Published, Sequence, TopicOptions, TopicView, actor,
};
use tokio::sync::{Semaphore, oneshot};

type Began = oneshot::Sender<()>;

/// What a blocking handler waits for, with its thread.
type Latch = Arc<Mutex<mpsc::Receiver<()>>>;

#[derive(Default)]
struct Clerk;

fn four() -> ActorOptions {
    ActorOptions::default().mailbox(MailboxKind::Bounded(4))
}

#[actor(name = "test.clerk", options = four)]
impl Clerk {
    async fn greet(&mut self) {}

    async fn hold(&mut self, began: Began, gate: Arc<Semaphore>) {
        let _ = began.send(());
        gate.acquire().await.expect("never closed").forget();
    }

    async fn ask(&mut self, other: ActorRef<Clerk>, began: Began, gate: Arc<Semaphore>) {
        let _ = other.hold(began, gate).await;
    }

    async fn block(&mut self, began: Began, latch: Latch) {
        let _ = began.send(());
        let _ = latch.lock().expect("no panic").recv();
    }

    async fn nap(&mut self, seconds: u64, ctx: &mut Context<Self>) {
        ctx.node().sleep(Duration::from_secs(seconds)).await;
    }

    #[event]
    async fn on_price(&mut self, _event: &Published<u32>) {}
}

fn named(found: &[LongRunning], id: &ActorId) -> LongRunning {
    found.iter().find(|one| one.id == *id).cloned().expect("it is told")
}

fn message(long: &LongRunning) -> &'static str {
    match long.activity {
        Activity::Message(name) => name.rsplit("::").next().unwrap_or(name),
        other => panic!("no message: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_that_wait_are_told_with_their_messages_and_for_whom_they_wait() {
    let node = Node::builder("office").build();
    let (first, second) = (node.spawn(Clerk), node.spawn(Clerk));
    let mut inspector = node.inspector();
    let (began, has_begun) = oneshot::channel();
    let gate = Arc::new(Semaphore::new(0));
    first.ask(second.clone(), began, gate.clone()).tell().await.unwrap();
    has_begun.await.unwrap();
    first.greet().tell().await.unwrap();
    assert_eq!(inspector.long_running(Duration::ZERO, 10), [], "one look tells nothing");
    tokio::time::advance(Duration::from_secs(2)).await;
    let found = inspector.long_running(Duration::from_secs(2), 10);
    let (asker, asked) = (named(&found, &first.id()), named(&found, &second.id()));
    assert_eq!((message(&asker), message(&asked)), ("Ask", "Hold"));
    assert_eq!(asker.waits_for, [second.id()]);
    assert_eq!((asker.depth, asked.depth), (1, 0));
    assert_eq!(asker.at_least, Duration::from_secs(2));
    assert!(!asker.blocks_thread && !asked.blocks_thread && asked.waits_for.is_empty());
    gate.add_permits(1);
    first.greet().await.unwrap();
    assert_eq!(inspector.long_running(Duration::ZERO, 10), [], "they have ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_is_told_with_its_message() {
    let node = Node::builder("office").build();
    let clerk = node.spawn(Clerk);
    let mut inspector = node.inspector();
    let (began, has_begun) = oneshot::channel();
    let (open, latch) = mpsc::channel();
    for _ in 0..3 {
        clerk.greet().tell().await.unwrap();
    }
    clerk.block(began, Arc::new(Mutex::new(latch))).tell().await.unwrap();
    has_begun.await.unwrap();
    inspector.long_running(Duration::ZERO, 10);
    let found = inspector.long_running(Duration::ZERO, 10);
    open.send(()).unwrap();
    let clerk_found = named(&found, &clerk.id());
    assert_eq!(message(&clerk_found), "Block");
    assert!(clerk_found.blocks_thread);
    clerk.greet().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_takes_one_message_after_the_other_is_not_taken_for_one_that_hangs() {
    let node = Node::builder("office").build();
    let clerk = node.spawn(Clerk);
    let mut inspector = node.inspector();
    for _ in 0..4 {
        clerk.nap(2).tell().await.unwrap();
    }
    for _ in 0..7 {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let found = inspector.long_running(Duration::from_secs(2), 10);
        assert_eq!(found, [], "each nap takes two seconds, of which a look sees less");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_does_not_come_back_is_told() {
    struct Slow;
    impl Actor for Slow {
        const NAME: &'static str = "test.slow";
    }
    let node = Node::builder("office").build();
    let slow = node.spawn_with(|_| async {
        std::future::pending::<()>().await;
        Ok(Slow)
    });
    let mut inspector = node.inspector();
    tokio::task::yield_now().await;
    inspector.long_running(Duration::ZERO, 10);
    tokio::time::advance(Duration::from_secs(9)).await;
    let found = inspector.long_running(Duration::from_secs(9), 10);
    assert_eq!(named(&found, &slow.id()).activity, Activity::Starting);
}

fn topic(node: &Node, name: &str) -> TopicView {
    let (topics, _) = node.inspector().topics(name, "", 10);
    topics.first().cloned().expect("somebody holds it")
}

#[tokio::test]
async fn a_topic_is_told_with_what_waits_what_was_missed_and_who_owns_it() {
    let node = Node::builder("market").build();
    let clerk = node.spawn(Clerk);
    let prices = node.topic::<u32>("prices", TopicOptions { replay: 5 });
    let _subscription = prices.subscribe(&clerk);
    let (began, has_begun) = oneshot::channel();
    let gate = Arc::new(Semaphore::new(0));
    clerk.hold(began, gate.clone()).tell().await.unwrap();
    has_begun.await.unwrap();
    for price in 1..=7 {
        prices.publish(price).unwrap();
    }
    while prices.pending() > 0 {
        tokio::task::yield_now().await;
    }
    let view = topic(&node, "prices");
    assert_eq!((view.subscribers, view.last, view.kept), (1, Sequence(7), 5));
    assert_eq!((view.pending, view.missed), (0, 3), "the mailbox has room for four");
    assert_eq!(node.metrics().kind("test.clerk").unwrap().missed, 3);
    assert!(view.event.ends_with("u32"), "{}", view.event);
    assert_eq!((view.epoch, view.is_owned), (None, false));
    let publisher = prices.publisher(Epoch(3)).unwrap();
    assert_eq!(
        (topic(&node, "prices").epoch, topic(&node, "prices").is_owned),
        (Some(Epoch(3)), true)
    );
    drop(publisher);
    assert_eq!(
        (topic(&node, "prices").epoch, topic(&node, "prices").is_owned),
        (Some(Epoch(3)), false)
    );
    gate.add_permits(1);
}

#[tokio::test]
async fn what_a_reader_of_a_topic_is_too_slow_for_counts_as_missed() {
    let node = Node::builder("market").build();
    let prices = node.topic::<u32>("prices", TopicOptions::default());
    let stream = prices.stream(Sequence(0));
    for price in 0..1_030 {
        prices.publish(price).unwrap();
    }
    while prices.pending() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(topic(&node, "prices").missed, 6, "its buffer has room for 1,024");
    drop(stream);
}

#[tokio::test]
async fn topics_are_told_by_name_page_by_page_as_long_as_somebody_holds_them() {
    let node = Node::builder("market").build();
    let held: Vec<_> =
        (0..10).map(|n| node.topic::<u32>(format!("room:{n}"), TopicOptions::default())).collect();
    drop(node.topic::<u32>("room:gone", TopicOptions::default()));
    let inspector = node.inspector();
    let names = |(topics, left): (Vec<TopicView>, usize)| {
        (topics.iter().map(|topic| topic.name.to_string()).collect::<Vec<_>>(), left)
    };
    assert_eq!(names(inspector.topics("room", "", 2)), (vec!["room:0".into(), "room:1".into()], 8));
    assert_eq!(names(inspector.topics("room", "room:8", 2)), (vec!["room:9".into()], 0));
    assert_eq!(names(inspector.topics(":7", "", 2)), (vec!["room:7".into()], 0));
    drop(held);
    assert_eq!(names(inspector.topics("", "", 2)), (vec![], 0));
}

struct Foreman;
struct Worker;

#[actor(name = "test.foreman")]
impl Foreman {
    async fn hire(&mut self, ctx: &mut Context<Self>) -> ActorRef<Worker> {
        ctx.spawn(|_| async { Ok(Worker) })
    }
}

#[actor(name = "test.worker")]
impl Worker {
    async fn trip(&mut self) {
        panic!("over the cable");
    }

    async fn greet(&self) {}
}

#[tokio::test]
async fn the_tree_has_parents_children_restarts_and_the_last_failure() {
    let node = Node::builder("site").build();
    let foreman = node.spawn(Foreman);
    let workers = [foreman.hire().await.unwrap(), foreman.hire().await.unwrap()];
    let _bystander = node.spawn(Worker);
    workers[1].trip().await.unwrap_err();
    workers[1].greet().await.unwrap();
    let tree = node.inspector().tree("", 10);
    assert_eq!((tree.actors.len(), tree.left), (3, 0), "a bystander has no relatives");
    let [top, calm, clumsy] = &tree.actors[..] else { panic!("three") };
    assert_eq!((&top.id, &top.parent, top.children), (&foreman.id(), &None, 2));
    assert_eq!((&calm.id, &calm.parent), (&workers[0].id(), &Some(foreman.id())));
    assert_eq!((calm.restarts, &calm.last_failure), (0, &None));
    assert_eq!((&clumsy.id, clumsy.restarts, clumsy.is_active), (&workers[1].id(), 1, true));
    let failure = clumsy.last_failure.as_ref().expect("it tripped");
    assert!(failure.text.contains("over the cable"), "{failure:?}");
}

#[tokio::test]
async fn the_tree_is_searched_by_kind_and_key_and_shows_the_way_up() {
    let node = Node::builder("site").actor(async |_| Ok(Worker)).build();
    let foreman = node.spawn(Foreman);
    let hired = foreman.hire().await.unwrap();
    for key in ["ada", "bob"] {
        node.get::<Worker>(key).greet().await.unwrap();
    }
    let inspector = node.inspector();
    let ids = |text: &str| -> Vec<_> {
        inspector.tree(text, 10).actors.into_iter().map(|actor| actor.id).collect()
    };
    let ada = ActorId::named("test.worker", "ada");
    assert_eq!(ids("ada"), std::slice::from_ref(&ada));
    assert_eq!(ids("test.worker/ada"), [ada]);
    assert_eq!(ids(&hired.id().to_string()), [foreman.id(), hired.id()]);
    assert_eq!(ids("nobody"), []);
    let some = inspector.tree("test.worker", 1);
    assert_eq!(some.left, 2, "one of three");
}
