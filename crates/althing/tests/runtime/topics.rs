//! Who subscribes hears every event, whoever else comes, goes, stops or panics meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use crate::support::{On, node, settle, within};
use althing::{
    Actor, ActorError, ActorRef, Context, EventHandler, Handler, Node, Published, Start,
    Subscription, Topic, TopicOptions,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Writes events down; drops the subscriptions that it holds when event 2 comes.
#[derive(Default)]
struct Ear {
    heard: Arc<Mutex<Vec<u64>>>,
    held: Vec<Subscription>,
}

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u64> for Ear {
    async fn event(&mut self, event: &Published<u64>, _: &mut Context<Self>) {
        if event.payload == 2 {
            self.held.clear();
        }
        self.heard.lock().push(event.payload);
    }
}

/// What one subscriber hears of three events if `stopped` others, whose subscriptions it holds,
/// have stopped before the first.
async fn heard_beside(stopped: usize) -> (Vec<u64>, usize) {
    let node = node();
    let topic = node.topic::<u64>("numbers", TopicOptions::default());
    let others: Vec<_> = (0..stopped).map(|_| node.spawn(Ear::default())).collect();
    let held = others.iter().map(|other| topic.subscribe(other)).collect();
    let heard = Arc::default();
    let ear = node.spawn(Ear { heard: Arc::clone(&heard), held });
    let _subscription = topic.subscribe(&ear);
    for other in &others {
        other.stop().await;
    }
    // The first finds that the others are gone. While the second is delivered, their subscriptions
    // are dropped.
    for n in 1..=3 {
        topic.publish(n).expect("anybody may publish");
    }
    settle().await;
    let heard = heard.lock().clone();
    (heard, topic.subscribers())
}

/// A subscriber that had been found gone and then unsubscribed counted twice, so that its neighbour
/// counted as nobody.
#[test]
fn a_subscriber_hears_every_event_while_a_stopped_one_unsubscribes() {
    within(On::PausedTime, async {
        assert_eq!(heard_beside(1).await, (vec![1, 2, 3], 1));
    });
}

#[test]
fn a_subscriber_hears_every_event_while_several_stopped_ones_unsubscribe() {
    within(On::PausedTime, async {
        assert_eq!(heard_beside(2).await, (vec![1, 2, 3], 1));
    });
}

/// Owns its own subscription, as sessions do, so that its end is the end of both.
#[derive(Default)]
struct Session {
    subscription: Option<Subscription>,
    last: Arc<AtomicU64>,
}

struct Own(Subscription);
struct Touch;

impl Actor for Session {
    const NAME: &'static str = "test.session";
}

impl EventHandler<u64> for Session {
    async fn event(&mut self, event: &Published<u64>, _: &mut Context<Self>) {
        self.last.store(event.payload, SeqCst);
    }
}

impl Handler<Touch> for Session {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

impl Handler<Own> for Session {
    type Reply = ();

    async fn handle(&mut self, Own(subscription): Own, _: &mut Context<Self>) {
        self.subscription = Some(subscription);
    }
}

/// Publishes 1, 2, 3 and so on without pause until `ends`; returns the last one.
fn publish_until(ends: &Arc<AtomicBool>, topic: &Topic<u64>) -> std::thread::JoinHandle<u64> {
    let (ends, topic, handle) = (ends.clone(), topic.clone(), Handle::current());
    std::thread::spawn(move || {
        let _entered = handle.enter();
        let mut last = 0;
        while !ends.load(SeqCst) {
            last += 1;
            topic.publish(last).expect("anybody may publish");
        }
        last
    })
}

#[test]
fn a_live_subscriber_hears_the_last_event_after_any_number_of_sessions() {
    within(On::Workers(2), async {
        let node = node();
        let topic = node.topic::<u64>("numbers", TopicOptions::default());
        let last = Arc::new(AtomicU64::new(0));
        let live = node.spawn(Session { subscription: None, last: last.clone() });
        let _subscription = topic.subscribe(&live);
        let ends = Arc::new(AtomicBool::new(false));
        let publisher = publish_until(&ends, &topic);
        let begun = Instant::now();
        let mut sessions = 0;
        while begun.elapsed() < Duration::from_secs(2) && !is_deaf(&topic, &last).await {
            sessions += 1;
            let session = node.spawn(Session::default());
            let own = Own(topic.subscribe(&session));
            session.send(own).await.unwrap();
            session.stop().await;
        }
        ends.store(true, SeqCst);
        let published = tokio::task::spawn_blocking(|| publisher.join().unwrap()).await.unwrap();
        while topic.pending() > 0 || live.mailbox_depth() > 0 {
            tokio::task::yield_now().await;
        }
        // Now it is idle, so that this one cannot find its mailbox full.
        topic.publish(published + 1).expect("anybody may publish");
        live.send(Touch).await.unwrap();
        let missing = published + 1 - last.load(SeqCst);
        assert_eq!(missing, 0, "after {sessions} sessions; {} subscribers", topic.subscribers());
    });
}

/// Whether the topic counts nobody, and nobody hears anything for a while either.
async fn is_deaf(topic: &Topic<u64>, last: &AtomicU64) -> bool {
    if topic.subscribers() > 0 {
        return false;
    }
    let before = last.load(SeqCst);
    tokio::time::sleep(Duration::from_millis(100)).await;
    last.load(SeqCst) == before
}

/// A named actor that counts its lives.
struct Named;

impl Actor for Named {
    const NAME: &'static str = "test.named";
}

impl EventHandler<u64> for Named {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {}
}

impl Handler<Touch> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

fn counting_lives() -> (ActorRef<Named>, Arc<AtomicU32>) {
    let lives = Arc::new(AtomicU32::new(0));
    let counted = lives.clone();
    let node = Node::builder("test")
        .actor(move |_: Start<Named>| {
            counted.fetch_add(1, SeqCst);
            async { Ok::<_, ActorError>(Named) }
        })
        .build();
    (node.get("a"), lives)
}

#[test]
fn a_subscription_ends_when_its_actor_is_stopped() {
    within(On::PausedTime, async {
        let (named, lives) = counting_lives();
        let topic = named.node().topic::<u64>("numbers", TopicOptions::default());
        named.send(Touch).await.unwrap();
        let _subscription = topic.subscribe(&named);
        named.stop().await;
        topic.publish(1).expect("anybody may publish");
        settle().await;
        assert_eq!(lives.load(SeqCst), 1, "an event began another life");
    });
}

/// An event that looks at its topic when it is dropped.
struct Looks(Option<Topic<Self>>);

impl Drop for Looks {
    fn drop(&mut self) {
        if let Some(topic) = self.0.take() {
            topic.last();
        }
    }
}

/// The oldest event leaves the replay ring when a new one comes; foreign code must not run under
/// the topic's lock.
#[test]
fn an_event_may_use_its_topic_when_it_is_dropped() {
    within(On::OneThread, async {
        let topic = node().topic::<Looks>("events", TopicOptions { replay: 1 });
        topic.publish(Looks(Some(topic.clone()))).expect("anybody may publish");
        topic.publish(Looks(None)).expect("anybody may publish");
        assert_eq!(topic.last().0, 2);
    });
}

/// Panics when it is dropped.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

impl EventHandler<Explosive> for Idle {
    async fn event(&mut self, _: &Published<Explosive>, _: &mut Context<Self>) {
        tokio::task::yield_now().await;
    }
}

/// Its last reference is the one of the subscriber whose handler waited.
#[test]
fn an_event_whose_drop_panics_fails_no_subscriber() {
    within(On::OneThread, async {
        let node = node();
        let topic = node.topic::<Explosive>("events", TopicOptions { replay: 0 });
        let idle = node.spawn(Idle);
        let subscription = topic.subscribe(&idle);
        assert!(topic.publish(Explosive).is_ok(), "anybody may publish");
        settle().await;
        assert!(idle.is_active() && !idle.is_stopped());
        drop(subscription);
    });
}

struct Idle;

impl Actor for Idle {
    const NAME: &'static str = "test.idle";
}

impl EventHandler<u64> for Idle {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {}
}

/// Whoever publishes delivers. Two that publish without pause must not end with one of them
/// delivering for both for ever.
#[test]
fn a_publisher_does_not_deliver_for_another_without_end() {
    within(On::Workers(3), async {
        let node = node();
        let topic = node.topic::<u64>("numbers", TopicOptions { replay: 0 });
        let idle: Vec<_> = (0..20).map(|_| node.spawn(Idle)).collect();
        let _subscriptions: Vec<_> = idle.iter().map(|idle| topic.subscribe(idle)).collect();
        let until = Instant::now() + Duration::from_secs(1);
        let publishers = [(); 2].map(|()| {
            let topic = topic.clone();
            std::thread::spawn(move || {
                let mut longest = Duration::ZERO;
                while Instant::now() < until {
                    let begun = Instant::now();
                    topic.publish(0).expect("anybody may publish");
                    longest = longest.max(begun.elapsed());
                }
                longest
            })
        });
        for publisher in publishers {
            let longest = tokio::task::spawn_blocking(|| publisher.join()).await.unwrap().unwrap();
            // Who delivers for the other does so for most of the second.
            assert!(longest < Duration::from_millis(700), "one publish took {longest:?}");
        }
    });
}

/// An event that tells of its end.
struct Payload(Arc<AtomicBool>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Handles events with a future written by hand, whose drop looks whether its event is still there.
struct ByHand {
    event_is_gone: Arc<AtomicBool>,
    outlived_its_event: Arc<AtomicBool>,
}

struct HandFuture {
    event_is_gone: Arc<AtomicBool>,
    outlived_its_event: Arc<AtomicBool>,
}

impl Future for HandFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        panic!("on purpose");
    }
}

impl Drop for HandFuture {
    fn drop(&mut self) {
        self.outlived_its_event.store(self.event_is_gone.load(SeqCst), SeqCst);
    }
}

impl Actor for ByHand {
    const NAME: &'static str = "test.by_hand";
}

impl EventHandler<Payload> for ByHand {
    // The event's lifetime is the future's, which is why the event must outlive it.
    fn event(
        &mut self,
        _: &Published<Payload>,
        _: &mut Context<Self>,
    ) -> impl Future<Output = ()> + Send {
        HandFuture {
            event_is_gone: self.event_is_gone.clone(),
            outlived_its_event: self.outlived_its_event.clone(),
        }
    }
}

struct Wait(oneshot::Receiver<()>);

impl Handler<Wait> for ByHand {
    type Reply = ();

    async fn handle(&mut self, Wait(wait): Wait, _: &mut Context<Self>) {
        wait.await.ok();
    }
}

#[test]
fn an_event_lives_until_its_handlers_future_is_dropped_even_after_a_panic() {
    within(On::PausedTime, async {
        let node = node();
        let topic = node.topic::<Payload>("events", TopicOptions { replay: 0 });
        let gone = Arc::new(AtomicBool::new(false));
        let outlived = Arc::new(AtomicBool::new(false));
        let subscriber = node
            .spawn(ByHand { event_is_gone: gone.clone(), outlived_its_event: outlived.clone() });
        let _subscription = topic.subscribe(&subscriber);
        let (release, wait) = oneshot::channel();
        subscriber.send(Wait(wait)).try_tell().unwrap();
        tokio::task::yield_now().await;
        // Queued, because the subscriber is busy; nobody else holds it.
        topic.publish(Payload(gone.clone())).expect("anybody may publish");
        release.send(()).unwrap();
        settle().await;
        assert!(gone.load(SeqCst), "the event has been handled");
        assert!(!outlived.load(SeqCst), "the future was dropped after its event");
    });
}
