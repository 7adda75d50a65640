//! What topics promise beyond order: how long they live, what happens inside an event, and how long
//! a publisher is kept.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use althing::{
    Actor, ActorRef, Context, Epoch, EventHandler, Handler, Node, Published, Sequence,
    Subscription, Topic, TopicOptions,
};
use tokio::sync::oneshot;

type Heard = Arc<Mutex<Vec<u64>>>;
type Act = Box<dyn FnMut(&Published<u64>, &mut Context<Ear>) + Send>;

/// Notes what it hears, and does something about it.
struct Ear {
    heard: Heard,
    act: Act,
}

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u64> for Ear {
    async fn event(&mut self, event: &Published<u64>, ctx: &mut Context<Self>) {
        self.heard.lock().expect("nobody panics with it").push(event.payload);
        (self.act)(event, ctx);
    }
}

/// Keeps the actor busy until it resolves.
struct Wait(oneshot::Receiver<()>);

impl Handler<Wait> for Ear {
    type Reply = ();

    async fn handle(&mut self, Wait(wait): Wait, _: &mut Context<Self>) {
        wait.await.ok();
    }
}

fn ear(
    node: &Node,
    act: impl FnMut(&Published<u64>, &mut Context<Ear>) + Send + 'static,
) -> (ActorRef<Ear>, Heard) {
    let heard = Heard::default();
    (node.spawn(Ear { heard: heard.clone(), act: Box::new(act) }), heard)
}

fn quiet_ear(node: &Node) -> (ActorRef<Ear>, Heard) {
    ear(node, |_, _| {})
}

fn node() -> Node {
    Node::builder("topics").build()
}

fn topic(node: &Node, replay: usize) -> Topic<u64> {
    node.topic("t", TopicOptions { replay })
}

/// Runs in a task, where idle subscribers handle events in place.
async fn in_task<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(test).await.expect("the test passes")
}

async fn settled<T: Send + Sync + 'static>(topic: &Topic<T>) {
    while topic.pending() > 0 {
        tokio::task::yield_now().await;
    }
}

/// What a handler does that needs the processor.
fn spin(duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

// How long a topic lives.

type Handle = Box<dyn std::any::Any>;

/// A payload that tells whether it is still kept.
struct Kept(#[expect(dead_code, reason = "held for its count")] Arc<()>);

#[tokio::test]
async fn a_topic_goes_with_its_last_handle_and_takes_what_it_keeps_along() {
    let node = node();
    let mark = Arc::new(());
    let open = || node.topic::<Kept>("t", TopicOptions { replay: 4 });
    let handles: [fn(&Topic<Kept>) -> Handle; 3] = [
        |topic| Box::new(topic.clone()),
        |topic| Box::new(topic.publisher(Epoch(topic.last().0 + 1)).unwrap()),
        |topic| Box::new(topic.stream(Sequence(1))),
    ];
    for handle in handles {
        let topic = open();
        topic.publish(Kept(mark.clone())).unwrap();
        let handle = handle(&topic);
        drop(topic);
        assert_eq!((open().last(), Arc::strong_count(&mark)), (Sequence(1), 2));
        drop(handle);
        assert_eq!((open().last(), Arc::strong_count(&mark)), (Sequence(0), 1));
    }
}

#[tokio::test]
async fn a_subscription_keeps_its_topic() {
    let node = node();
    let (ear, heard) = quiet_ear(&node);
    let subscription = topic(&node, 0).subscribe(&ear);
    for n in 1..=3 {
        topic(&node, 0).publish(n).unwrap();
    }
    until(|| heard.lock().unwrap().len() == 3).await;
    assert_eq!(topic(&node, 0).last(), Sequence(3));
    drop(subscription);
    assert_eq!(topic(&node, 0).last(), Sequence(0));
}

// Publishing, subscribing and leaving inside an event.

#[tokio::test]
async fn a_handler_may_publish_to_its_own_topic_and_order_holds() {
    in_task(async {
        let node = node();
        let topic = topic(&node, 0);
        let (first, heard_first) = ear(&node, {
            let topic = topic.clone();
            move |event, _| {
                if event.payload < 3_000 {
                    topic.publish(event.payload + 1).unwrap();
                }
            }
        });
        let (second, heard_second) = quiet_ear(&node);
        let _subscriptions = (topic.subscribe(&first), topic.subscribe(&second));
        topic.publish(1).unwrap();
        settled(&topic).await;
        let expected: Vec<_> = (1..=3_000).collect();
        until(|| heard_second.lock().unwrap().len() == expected.len()).await;
        assert_eq!(*heard_first.lock().unwrap(), expected);
        assert_eq!(*heard_second.lock().unwrap(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_handler_may_publish_through_a_chain_of_topics_deeper_than_any_stack() {
    in_task(async {
        const DEPTH: usize = 5_000;
        let node = node();
        let topics: Vec<_> =
            (0..DEPTH).map(|n| node.topic::<u64>(n.to_string(), TopicOptions::default())).collect();
        let (last, heard) = quiet_ear(&node);
        let mut subscriptions = vec![topics[DEPTH - 1].subscribe(&last)];
        for pair in topics.windows(2) {
            let next = pair[1].clone();
            let (relay, _) = ear(&node, move |event, _| {
                next.publish(event.payload).unwrap();
            });
            subscriptions.push(pair[0].subscribe(&relay));
        }
        topics[0].publish(7).unwrap();
        until(|| *heard.lock().unwrap() == [7]).await;
    })
    .await;
}

#[tokio::test]
async fn a_handler_may_subscribe_others_and_unsubscribe_itself() {
    in_task(async {
        let node = node();
        let topic = topic(&node, 0);
        let (late, heard_late) = quiet_ear(&node);
        let own = Arc::new(Mutex::new(None::<Subscription>));
        let others = Arc::new(Mutex::new(None::<Subscription>));
        let (ear, heard) = ear(&node, {
            let (topic, own, others) = (topic.clone(), own.clone(), others.clone());
            move |event, _| {
                if event.payload == 2 {
                    *others.lock().unwrap() = Some(topic.subscribe(&late));
                    own.lock().unwrap().take().unwrap().cancel();
                }
            }
        });
        *own.lock().unwrap() = Some(topic.subscribe(&ear));
        for n in 1..=4 {
            topic.publish(n).unwrap();
        }
        settled(&topic).await;
        assert_eq!(*heard.lock().unwrap(), [1, 2]);
        assert_eq!(*heard_late.lock().unwrap(), [3, 4]);
        assert_eq!(topic.subscribers(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_handler_may_drop_the_last_handle_of_its_topic() {
    in_task(async {
        let node = node();
        let held = Arc::new(Mutex::new(None::<(Topic<u64>, Subscription)>));
        let (ear, heard) = ear(&node, {
            let held = held.clone();
            move |_, _| drop(held.lock().unwrap().take())
        });
        let topic = topic(&node, 4);
        *held.lock().unwrap() = Some((topic.clone(), topic.subscribe(&ear)));
        let publisher = topic.publisher(Epoch(1)).unwrap();
        drop(topic);
        publisher.publish(1).unwrap();
        drop(publisher);
        until(|| *heard.lock().unwrap() == [1]).await;
        assert_eq!(node.topic::<u64>("t", TopicOptions::default()).last(), Sequence(0));
    })
    .await;
}

/// Panics when it is dropped.
struct Charge;

impl Drop for Charge {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a drop on purpose");
        }
    }
}

struct ChargeEar(Arc<AtomicU32>);

impl Actor for ChargeEar {
    const NAME: &'static str = "test.charge_ear";
}

impl EventHandler<Charge> for ChargeEar {
    async fn event(&mut self, _: &Published<Charge>, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Handler<Wait> for ChargeEar {
    type Reply = ();

    async fn handle(&mut self, Wait(wait): Wait, _: &mut Context<Self>) {
        wait.await.ok();
    }
}

#[tokio::test]
async fn a_panic_in_an_events_drop_reaches_neither_publisher_nor_subscriber() {
    in_task(async {
        let node = node();
        let heard = Arc::new(AtomicU32::new(0));
        let topic = node.topic::<Charge>("t", TopicOptions { replay: 1 });
        let (idle, busy) =
            (node.spawn(ChargeEar(heard.clone())), node.spawn(ChargeEar(heard.clone())));
        let _subscriptions = (topic.subscribe(&idle), topic.subscribe(&busy));
        let (release, wait) = oneshot::channel();
        busy.send(Wait(wait)).try_tell().unwrap();
        tokio::task::yield_now().await;
        for _ in 0..3 {
            topic.publish(Charge).unwrap();
        }
        release.send(()).unwrap();
        until(|| heard.load(Ordering::Relaxed) == 6).await;
        assert!(idle.is_active() && busy.is_active());
    })
    .await;
}

// How long a publisher is kept, and what waits.

#[tokio::test]
async fn a_publisher_leaves_slow_handlers_to_a_worker() {
    in_task(async {
        let node = node();
        let topic = topic(&node, 0);
        let slow = || ear(&node, |_, _| spin(Duration::from_millis(1)));
        let ears: Vec<_> = (0..100).map(|_| slow()).collect();
        let _subscriptions: Vec<_> = ears.iter().map(|(ear, _)| topic.subscribe(ear)).collect();
        topic.publish(1).unwrap();
        // On one thread, whoever has heard it by now heard it from the publisher.
        let heard = || ears.iter().filter(|(_, heard)| !heard.lock().unwrap().is_empty()).count();
        assert!((1..=8).contains(&heard()), "{}", heard());
        settled(&topic).await;
        assert_eq!(heard(), 100);
    })
    .await;
}

#[tokio::test]
async fn a_worker_lets_other_tasks_run() {
    in_task(async {
        let node = node();
        let topic = topic(&node, 0);
        let ears: Vec<_> = (0..2_000).map(|_| quiet_ear(&node).0).collect();
        let _subscriptions: Vec<_> = ears.iter().map(|ear| topic.subscribe(ear)).collect();
        for n in 0..200 {
            topic.publish(n).unwrap();
        }
        let mut turns = 0;
        while topic.pending() > 0 {
            tokio::task::yield_now().await;
            turns += 1;
        }
        // A worker that never pauses gives one; how many there are depends on the speed of the machine.
        assert!(turns > 3, "{turns} turns while 200 events went to 2,000 subscribers");
    })
    .await;
}

#[tokio::test]
async fn who_publishes_without_a_pause_helps_and_idle_subscribers_miss_nothing() {
    in_task(async {
        const EVENTS: u64 = 9_000;
        let node = node();
        let topic = topic(&node, 0);
        let missed = Arc::new(AtomicU64::new(0));
        let ears: Vec<_> = (0..16)
            .map(|_| {
                let (missed, mut last) = (missed.clone(), Sequence(0));
                let (ear, heard) = ear(&node, move |event, _| {
                    if event.previous != last {
                        missed.fetch_add(1, Ordering::Relaxed);
                    }
                    last = event.sequence;
                    spin(Duration::from_micros(3));
                });
                heard.lock().unwrap().reserve(EVENTS as usize);
                (ear, heard)
            })
            .collect();
        let _subscriptions: Vec<_> = ears.iter().map(|(ear, _)| topic.subscribe(ear)).collect();
        // On one thread, no worker runs before the end of this loop.
        for n in 0..EVENTS {
            topic.publish(n).unwrap();
        }
        settled(&topic).await;
        assert_eq!(missed.load(Ordering::Relaxed), 0);
        assert!(ears.iter().all(|(_, heard)| heard.lock().unwrap().len() as u64 == EVENTS));
    })
    .await;
}

struct Idle;

impl Actor for Idle {
    const NAME: &'static str = "test.idle";
}

impl EventHandler<u64> for Idle {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {}
}

/// The longest `publish` of four threads that publish for two seconds.
fn longest_publish(subscribers: usize) -> Duration {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("the system has threads");
    let _entered = runtime.enter();
    let topic = topic(&node(), 0);
    let actors: Vec<_> = (0..subscribers).map(|_| topic.node().spawn(Idle)).collect();
    let _subscriptions: Vec<_> = actors.iter().map(|actor| topic.subscribe(actor)).collect();
    let ends = Arc::new(AtomicBool::new(false));
    let publishers: Vec<_> = (0..4)
        .map(|_| {
            let (topic, ends) = (topic.clone(), ends.clone());
            std::thread::spawn(move || {
                let mut longest = Duration::ZERO;
                while !ends.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    topic.publish(0).expect("nobody owns it");
                    longest = longest.max(began.elapsed());
                }
                longest
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    ends.store(true, Ordering::Relaxed);
    let longest = publishers.into_iter().map(|thread| thread.join().expect("no panic")).max();
    runtime.shutdown_background();
    longest.expect("there are publishers")
}

/// A publisher that delivers for as long as others publish is kept for the two seconds; the bound
/// leaves room for a machine on which ten other processes want the processor.
#[test]
fn no_publisher_delivers_for_as_long_as_others_publish() {
    for subscribers in [20, 500, 10_000] {
        let longest = longest_publish(subscribers);
        assert!(longest < Duration::from_secs(1), "{subscribers} subscribers: {longest:?}");
    }
}
