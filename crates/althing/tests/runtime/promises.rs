//! What the runtime promises, one test per promise, against the public API only.

use std::future::{Future, pending};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Admission, AskError, Context, Delayed,
    DelayedHandler, EventHandler, Handler, MailboxKind, Node, Published, Read, ReadHandler,
    Receives, ReplyTo, SendError, Sequence, StopReason, Supervision, Terminated, TopicOptions,
};
use tokio::sync::{Notify, mpsc, oneshot};

#[derive(Default)]
struct Counter {
    total: u64,
    ready: bool,
}

struct Add(u64);
struct Get;
struct Panic;
struct Hold(oneshot::Receiver<()>);
struct Later(Option<mpsc::UnboundedSender<ReplyTo<u32>>>);
struct Ready;
struct WhenReady;
#[derive(Clone)]
struct Tick;

impl Actor for Counter {
    const NAME: &'static str = "test.counter";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(4))
    }
}

impl Handler<Add> for Counter {
    type Reply = u64;

    async fn handle(&mut self, Add(n): Add, _ctx: &mut Context<Self>) -> u64 {
        self.total += n;
        self.total
    }
}

impl ReadHandler<Get> for Counter {
    type Reply = u64;

    async fn read(&self, _: Get, _ctx: &Context<Self>) -> u64 {
        self.total
    }
}

impl Receives<Get> for Counter {
    type Reply = u64;
    type Way = Read;
}

impl Handler<Panic> for Counter {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _ctx: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Hold> for Counter {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _ctx: &mut Context<Self>) {
        release.await.ok();
    }
}

impl DelayedHandler<Later> for Counter {
    type Reply = u32;

    async fn handle(&mut self, Later(to): Later, reply: ReplyTo<u32>, _ctx: &mut Context<Self>) {
        if let Some(to) = to {
            to.send(reply).expect("the test keeps the receiver");
        }
    }
}

impl Receives<Later> for Counter {
    type Reply = u32;
    type Way = Delayed;
}

impl Handler<Ready> for Counter {
    type Reply = ();

    async fn handle(&mut self, _: Ready, ctx: &mut Context<Self>) {
        self.ready = true;
        ctx.unstash_all();
    }
}

impl Handler<WhenReady> for Counter {
    type Reply = u64;

    fn admit(&mut self, _: &WhenReady, _ctx: &mut Context<Self>) -> Admission {
        if self.ready { Admission::Run } else { Admission::Stash }
    }

    async fn handle(&mut self, _: WhenReady, _ctx: &mut Context<Self>) -> u64 {
        self.total
    }
}

impl Handler<Tick> for Counter {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _ctx: &mut Context<Self>) {
        self.total += 1;
    }
}

fn node() -> Node {
    Node::builder("test").build()
}

fn held(counter: &ActorRef<Counter>) -> oneshot::Sender<()> {
    let (release, wait) = oneshot::channel();
    counter.send(Hold(wait)).try_tell().expect("room");
    release
}

/// Waits until the actor has taken everything it was sent into its hands.
/// Polls a future once with the task's own waker.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

async fn drained(counter: &ActorRef<Counter>) {
    while counter.mailbox_depth() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tells_of_one_sender_run_in_order_and_before_its_ask() {
    let counter = node().spawn(Counter::default());
    for n in 0..100 {
        counter.send(Add(n)).tell().await.unwrap();
    }
    assert_eq!(counter.send(Get).await, Ok(4950));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_with_many_senders_and_a_small_mailbox() {
    const TELLS: u64 = if cfg!(miri) { 20 } else { 2_000 };
    let counter = node().spawn(Counter::default());
    let senders: Vec<_> = (0..16)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..TELLS {
                    counter.send(Add(1)).tell().await.unwrap();
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    assert_eq!(counter.send(Get).await, Ok(16 * TELLS));
}

#[tokio::test]
async fn a_full_mailbox_hands_the_message_back() {
    let counter = node().spawn(Counter::default());
    let release = held(&counter);
    drained(&counter).await;
    for n in 0..4 {
        counter.send(Add(n)).try_tell().unwrap();
    }
    assert!(matches!(counter.send(Add(7)).try_tell(), Err(SendError::Full(Add(7)))));
    release.send(()).unwrap();
    assert_eq!(counter.send(Get).await, Ok(6));
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_is_called_up_and_does_not_come_holds_nobody_up() {
    let counter = node().spawn(Counter::default());
    let release = held(&counter);
    drained(&counter).await;
    for _ in 0..4 {
        counter.send(Add(0)).try_tell().unwrap();
    }
    // The first in the line are polled once and never again.
    let mut absent: Vec<_> = (0..4).map(|_| Box::pin(counter.send(Add(1)).tell())).collect();
    for tell in &mut absent {
        assert!(poll_once(tell.as_mut()).await.is_pending());
    }
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move { counter.send(Add(1)).tell().await })
        })
        .collect();
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    let begun = tokio::time::Instant::now();
    for told in waiting {
        assert!(told.await.unwrap().is_ok());
    }
    assert!(begun.elapsed() < Duration::from_millis(200), "long before the deadline");
}

#[tokio::test]
async fn a_node_may_replace_the_options_of_a_type() {
    let options = ActorOptions::default().mailbox(MailboxKind::Bounded(1));
    let counter =
        Node::builder("test").options::<Counter>(options).build().spawn(Counter::default());
    let _release = held(&counter);
    drained(&counter).await;
    counter.send(Add(1)).try_tell().unwrap();
    assert!(matches!(counter.send(Add(2)).try_tell(), Err(SendError::Full(Add(2)))));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_tell_gives_up_at_its_deadline_with_the_message() {
    let counter = node().spawn(Counter::default());
    let _release = held(&counter);
    drained(&counter).await;
    for n in 0..4 {
        counter.send(Add(n)).try_tell().unwrap();
    }
    let told = counter.send(Add(9)).timeout(Duration::from_millis(50)).tell().await;
    assert!(matches!(told, Err(SendError::Timeout(Add(9)))));
    let asked = counter.send(Add(9)).timeout(Duration::from_millis(50)).await;
    assert_eq!(asked, Err(AskError::Overloaded(counter.id())));
}

#[tokio::test(start_paused = true)]
async fn an_ask_times_out_by_default() {
    let counter = node().spawn(Counter::default());
    let _release = held(&counter);
    assert_eq!(counter.send(Get).await, Err(AskError::Timeout(counter.id())));
}

#[tokio::test]
async fn a_dropped_ask_that_has_not_started_does_not_run() {
    let counter = node().spawn(Counter::default());
    let release = held(&counter);
    drained(&counter).await;
    let mut ask = Box::pin(counter.send(Add(5)));
    assert!(futures_util::poll!(&mut ask).is_pending());
    drop(ask);
    release.send(()).unwrap();
    assert_eq!(counter.send(Get).await, Ok(0));
}

#[tokio::test]
async fn a_panic_reaches_the_asker_as_an_error_and_the_actor_restarts() {
    let builds = Arc::new(AtomicU32::new(0));
    let node = node();
    let counted = builds.clone();
    let counter = node.spawn_with(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, ActorError>(Counter::default()) }
    });
    counter.send(Add(3)).await.unwrap();
    assert_eq!(counter.send(Panic).await, Err(AskError::HandlerPanicked(counter.id())));
    assert_eq!(counter.send(Get).await, Ok(0));
    assert_eq!(builds.load(Ordering::Relaxed), 2);
    assert_eq!(node.metrics().kinds[0].restarted, 1);
}

#[tokio::test]
async fn an_actor_without_a_factory_stops_after_a_panic() {
    let counter = node().spawn(Counter::default());
    counter.send(Panic).await.unwrap_err();
    counter.stopped().await;
    assert_eq!(counter.send(Get).await, Err(AskError::Stopped(counter.id())));
    assert!(matches!(counter.send(Add(1)).try_tell(), Err(SendError::Stopped(Add(1)))));
}

#[tokio::test]
async fn stop_runs_what_waits_first() {
    let counter = node().spawn(Counter::default());
    let release = held(&counter);
    drained(&counter).await;
    counter.send(Add(2)).try_tell().unwrap();
    let mut ask = Box::pin(counter.send(Get));
    assert!(futures_util::poll!(&mut ask).is_pending());
    let stopped = counter.stop();
    release.send(()).unwrap();
    assert_eq!(ask.await, Ok(2));
    stopped.await;
}

#[tokio::test]
async fn kill_interrupts_a_handler_that_waits() {
    let counter = node().spawn(Counter::default());
    let _release = held(&counter);
    drained(&counter).await;
    let mut ask = Box::pin(counter.send(Get));
    assert!(futures_util::poll!(&mut ask).is_pending());
    counter.kill();
    assert_eq!(ask.await, Err(AskError::Stopped(counter.id())));
    counter.stopped().await;
}

#[tokio::test]
async fn a_delayed_reply_may_come_from_elsewhere() {
    let counter = node().spawn(Counter::default());
    let (to, mut replies) = mpsc::unbounded_channel();
    let mut ask = Box::pin(counter.send(Later(Some(to))));
    assert!(futures_util::poll!(&mut ask).is_pending());
    assert!(replies.recv().await.unwrap().send(7));
    assert_eq!(ask.await, Ok(7));
}

#[tokio::test]
async fn a_dropped_reply_fails_the_ask() {
    let counter = node().spawn(Counter::default());
    assert_eq!(counter.send(Later(None)).await, Err(AskError::NoReply(counter.id())));
}

#[tokio::test]
async fn a_stashed_message_runs_after_unstash() {
    let counter = node().spawn(Counter::default());
    counter.send(Get).await.unwrap();
    let mut ask = Box::pin(counter.send(WhenReady));
    assert!(futures_util::poll!(&mut ask).is_pending());
    counter.send(Add(4)).await.unwrap();
    counter.send(Ready).await.unwrap();
    assert_eq!(ask.await, Ok(4));
}

struct Pair {
    other: Option<ActorRef<Pair>>,
}

struct Meet(ActorRef<Pair>);
struct Around;

impl Actor for Pair {
    const NAME: &'static str = "test.pair";
}

impl Handler<Meet> for Pair {
    type Reply = ();

    async fn handle(&mut self, Meet(other): Meet, _ctx: &mut Context<Self>) {
        self.other = Some(other);
    }
}

impl Handler<Around> for Pair {
    type Reply = Result<(), AskError>;

    async fn handle(&mut self, _: Around, _ctx: &mut Context<Self>) -> Result<(), AskError> {
        match &self.other {
            Some(other) => other.send(Around).await.and_then(|inner| inner),
            None => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_cycle_of_asks_fails_and_names_its_path() {
    let node = node();
    let [a, b] = [(); 2].map(|()| node.spawn(Pair { other: None }));
    a.send(Meet(b.clone())).await.unwrap();
    b.send(Meet(a.clone())).await.unwrap();
    let Err(AskError::Cycle(path)) = a.send(Around).await.unwrap() else { panic!("no cycle") };
    // It begins at the actor whose ask closed the circle.
    assert!(path == [a.id(), b.id(), a.id()] || path == [b.id(), a.id(), b.id()], "{path:?}");
}

struct Reader {
    both: Arc<tokio::sync::Barrier>,
}

struct Together;
struct Change;

impl Actor for Reader {
    const NAME: &'static str = "test.reader";
}

impl ReadHandler<Together> for Reader {
    type Reply = ();

    async fn read(&self, _: Together, _ctx: &Context<Self>) {
        self.both.wait().await;
    }
}

impl Receives<Together> for Reader {
    type Reply = ();
    type Way = Read;
}

impl Handler<Change> for Reader {
    type Reply = usize;

    async fn handle(&mut self, _: Change, _ctx: &mut Context<Self>) -> usize {
        Arc::strong_count(&self.both)
    }
}

#[tokio::test]
async fn reads_overlap_and_a_write_waits_for_them() {
    let reader = node().spawn(Reader { both: Arc::new(tokio::sync::Barrier::new(2)) });
    let (first, second, write) =
        tokio::join!(reader.send(Together), reader.send(Together), reader.send(Change));
    assert_eq!((first, second, write), (Ok(()), Ok(()), Ok(1)));
}

struct Entity {
    key: String,
    stops: mpsc::UnboundedSender<StopReason>,
}

struct WhoAmI;
struct Sleep;

impl Actor for Entity {
    const NAME: &'static str = "test.entity";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(Duration::from_secs(30))
    }

    async fn stopping(&mut self, _ctx: &mut Context<Self>, reason: StopReason) {
        self.stops.send(reason).ok();
    }
}

impl Handler<WhoAmI> for Entity {
    type Reply = String;

    async fn handle(&mut self, _: WhoAmI, _ctx: &mut Context<Self>) -> String {
        self.key.clone()
    }
}

impl Handler<Sleep> for Entity {
    type Reply = ();

    async fn handle(&mut self, _: Sleep, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

fn entities() -> (Node, mpsc::UnboundedReceiver<StopReason>) {
    let (stops, stopped) = mpsc::unbounded_channel();
    let node = Node::builder("test")
        .actor(move |start: althing::Start<Entity>| {
            let (key, stops) = (start.key().to_owned(), stops.clone());
            async move {
                if key == "bad" {
                    return Err(ActorError::new("no such entity"));
                }
                Ok(Entity { key, stops })
            }
        })
        .build();
    (node, stopped)
}

#[tokio::test]
async fn a_name_has_one_actor_and_its_first_message_activates_it() {
    let (node, _stops) = entities();
    let (one, two) = (node.get::<Entity>("a"), node.get::<Entity>("a"));
    assert_eq!(one, two);
    assert!(!one.is_active());
    assert_eq!(two.send(WhoAmI).await.as_deref(), Ok("a"));
    assert!(one.is_active());
}

#[tokio::test]
async fn a_failed_start_reaches_the_asker() {
    let (node, _stops) = entities();
    let bad = node.get::<Entity>("bad");
    let error = AskError::NotStarted(bad.id(), ActorError::new("no such entity"));
    assert_eq!(bad.send(WhoAmI).await, Err(error));
}

#[tokio::test(start_paused = true)]
async fn an_idle_actor_is_passivated_and_its_next_message_brings_it_back() {
    let (node, mut stops) = entities();
    let one = node.get::<Entity>("a");
    one.send(WhoAmI).await.unwrap();
    assert_eq!(stops.recv().await, Some(StopReason::Passivated));
    one.stopped().await;
    assert!(!one.is_active());
    assert_eq!(one.send(WhoAmI).await.as_deref(), Ok("a"));
    one.send(Sleep).await.unwrap();
    assert_eq!(stops.recv().await, Some(StopReason::Passivated));
}

struct Watcher {
    news: mpsc::UnboundedSender<Terminated>,
}

struct Watch(ActorRef<Counter>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _ctx: &mut Context<Self>, other: Terminated) {
        self.news.send(other).ok();
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

#[tokio::test]
async fn a_watcher_hears_of_a_stop_even_afterwards() {
    let node = node();
    let (news, mut heard) = mpsc::unbounded_channel();
    let watcher = node.spawn(Watcher { news });
    let counter = node.spawn(Counter::default());
    watcher.send(Watch(counter.clone())).await.unwrap();
    counter.stop().await;
    assert_eq!(heard.recv().await.unwrap().reason, StopReason::Requested);
    watcher.send(Watch(counter.clone())).await.unwrap();
    assert_eq!(heard.recv().await.unwrap().id, counter.id());
}

struct Arm;

struct Alarm {
    fired: mpsc::UnboundedSender<u128>,
    started: tokio::time::Instant,
}

#[derive(Clone)]
struct Ring;

impl Actor for Alarm {
    const NAME: &'static str = "test.alarm";
}

impl Handler<Arm> for Alarm {
    type Reply = bool;

    async fn handle(&mut self, _: Arm, ctx: &mut Context<Self>) -> bool {
        ctx.after(Duration::from_millis(70), Ring);
        let cancelled = ctx.after(Duration::from_millis(10), Ring);
        ctx.every(Duration::from_millis(100), Ring);
        ctx.cancel(cancelled)
    }
}

impl Handler<Ring> for Alarm {
    type Reply = ();

    async fn handle(&mut self, _: Ring, _ctx: &mut Context<Self>) {
        self.fired.send(self.started.elapsed().as_millis()).ok();
    }
}

#[tokio::test(start_paused = true)]
async fn timers_fire_once_or_repeat_and_can_be_cancelled() {
    let (fired, mut rings) = mpsc::unbounded_channel();
    let started = tokio::time::Instant::now();
    let alarm = node().spawn(Alarm { fired, started });
    assert_eq!(alarm.send(Arm).await, Ok(true));
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(rings.recv().await.unwrap());
    }
    for (at, due) in heard.iter().zip([70, 100, 200, 300]) {
        assert!((due..due + 10).contains(at), "{heard:?}");
    }
}

struct Listener {
    heard: Arc<AtomicU64>,
    all: Arc<Notify>,
    last: u64,
}

impl Actor for Listener {
    const NAME: &'static str = "test.listener";
}

impl EventHandler<u64> for Listener {
    async fn event(&mut self, event: &Published<u64>, _ctx: &mut Context<Self>) {
        assert_eq!(event.previous, Sequence(self.last), "a gap");
        assert_eq!(event.sequence.0, event.payload);
        self.last = event.sequence.0;
        self.heard.fetch_add(1, Ordering::Relaxed);
        self.all.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_subscriber_gets_every_event_in_order() {
    const SUBSCRIBERS: u64 = if cfg!(miri) { 20 } else { 2_000 };
    let node = node();
    let (heard, all) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let topic = node.topic::<u64>("numbers", TopicOptions { replay: 8 });
    let mut subscriptions = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let listener = Listener { heard: heard.clone(), all: all.clone(), last: 0 };
        subscriptions.push(topic.subscribe(&node.spawn(listener)));
    }
    for n in 1..=100 {
        assert_eq!(topic.publish(n).unwrap(), Sequence(n));
    }
    while heard.load(Ordering::Relaxed) < SUBSCRIBERS * 100 {
        all.notified().await;
    }
    assert_eq!(topic.replay_since(Sequence(97)).unwrap().len(), 3);
    assert!(topic.replay_since(Sequence(50)).is_err());
    drop(subscriptions);
    assert_eq!(topic.subscribers(), 0);
}

/// In paused time: on a busy machine the first one may need longer to stop than the other is given.
#[tokio::test(start_paused = true)]
async fn shutdown_stops_everybody_and_names_those_it_had_to_kill() {
    let node = node();
    let good = node.spawn(Counter::default());
    let stuck = node.spawn(Counter::default());
    good.send(Get).await.unwrap();
    let _release = held(&stuck);
    drained(&stuck).await;
    let report = node.shutdown(Duration::from_millis(30)).await;
    assert_eq!(report.killed, [stuck.id()]);
    assert_eq!(report.stopped, 1);
    assert!(good.is_stopped());
}

struct Never;

impl Actor for Never {
    const NAME: &'static str = "test.never";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Resume)
    }

    async fn started(&mut self, _ctx: &mut Context<Self>) -> Result<(), ActorError> {
        pending().await
    }
}

#[tokio::test]
async fn kill_ends_an_actor_that_never_finishes_starting() {
    let never = node().spawn(Never);
    tokio::task::yield_now().await;
    never.kill();
    never.stopped().await;
}

struct Crossed {
    other: Option<ActorRef<Crossed>>,
    both: Arc<tokio::sync::Barrier>,
}

struct Introduce(ActorRef<Crossed>);
struct AskTheOther;
struct Nothing;

impl Actor for Crossed {
    const NAME: &'static str = "test.crossed";
}

impl Handler<Introduce> for Crossed {
    type Reply = ();

    async fn handle(&mut self, Introduce(other): Introduce, _ctx: &mut Context<Self>) {
        self.other = Some(other);
    }
}

impl Handler<Nothing> for Crossed {
    type Reply = ();

    async fn handle(&mut self, _: Nothing, _ctx: &mut Context<Self>) {}
}

impl Handler<AskTheOther> for Crossed {
    type Reply = Result<(), AskError>;

    async fn handle(&mut self, _: AskTheOther, _ctx: &mut Context<Self>) -> Result<(), AskError> {
        self.both.wait().await;
        self.other.as_ref().expect("introduced").send(Nothing).await
    }
}

#[tokio::test]
async fn two_that_ask_each_other_at_once_do_not_wait_for_their_deadlines() {
    let node = node();
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let [a, b] = [(); 2].map(|()| node.spawn(Crossed { other: None, both: both.clone() }));
    a.send(Introduce(b.clone())).await.unwrap();
    b.send(Introduce(a.clone())).await.unwrap();
    let asked = std::time::Instant::now();
    let (one, two) = tokio::join!(a.send(AskTheOther), b.send(AskTheOther));
    assert!(asked.elapsed() < Duration::from_secs(2));
    let outcomes = [one.unwrap(), two.unwrap()];
    assert!(outcomes.iter().any(|outcome| matches!(outcome, Err(AskError::Cycle(_)))));
}

/// Reads what the process uses from the system, which an interpreter of the program has not.
#[tokio::test(start_paused = true)]
#[cfg_attr(miri, ignore)]
async fn above_its_memory_budget_a_node_unloads_who_was_idle_for_longest() {
    // A pass a second unloads 10,000 at most, so that it has to choose.
    const OLD: Range<u32> = 0..20_000;
    const NEW: Range<u32> = 20_000..25_000;
    let (stops, _stopped) = mpsc::unbounded_channel();
    let node = Node::builder("test")
        // Any process is above one byte.
        .memory_budget_bytes(1)
        .actor(move |start: althing::Start<Entity>| {
            let (key, stops) = (start.key().to_owned(), stops.clone());
            async move { Ok(Entity { key, stops }) }
        })
        .build();
    let entity = |number: u32| node.get::<Entity>(number.to_string());
    let active = |numbers: Range<u32>| numbers.filter(|n| entity(*n).is_active()).count();
    for number in OLD {
        entity(number).send(WhoAmI).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(active(OLD), 10_000);
    for number in NEW {
        entity(number).send(WhoAmI).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((active(OLD), active(NEW)), (0, 5_000));
    assert_eq!(entity(7).send(WhoAmI).await.as_deref(), Ok("7"));
}
