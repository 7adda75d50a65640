//! What handlers cannot do to others: panic, block, never return, tell themselves without end, or
//! fail in a drop.
//!
//! Every test bounds its waiting with [`soon`]: a runtime that is held up fails it instead of
//! hanging.

use std::future::{Future, pending};
use std::sync::mpsc as threads;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, EventHandler, Handler,
    MailboxKind, Node, Published, SendError, StopReason, TopicOptions,
};
use tokio::sync::mpsc;

/// Far above what an answer takes on a busy machine, far below what a test may hang.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.expect("it is held up")
}

/// Does what it is told.
#[derive(Default)]
struct Subject {
    ran: u32,
    panics_at_stop: bool,
    /// Panics where it is dropped.
    charge: Option<Charge>,
}

/// Panics when it is dropped: two at once would end the process.
struct Charge;

impl Drop for Charge {
    fn drop(&mut self) {
        panic!("a drop on purpose");
    }
}

struct Ping;
struct Panic;
struct Block(threads::Receiver<()>);
struct Never;
struct Again;
struct Fill;
struct Charged(Charge);
struct ReplyCharged;
struct Arm;

impl Actor for Subject {
    const NAME: &'static str = "test.subject";

    fn options() -> ActorOptions {
        ActorOptions::default()
            .mailbox(MailboxKind::Bounded(4))
            .deadline(Duration::from_millis(500))
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        assert!(!self.panics_at_stop, "a hook on purpose");
    }
}

impl Handler<Ping> for Subject {
    type Reply = u32;

    async fn handle(&mut self, _: Ping, _: &mut Context<Self>) -> u32 {
        self.ran += 1;
        self.ran
    }
}

impl Handler<Panic> for Subject {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Block> for Subject {
    type Reply = ();

    async fn handle(&mut self, Block(release): Block, _: &mut Context<Self>) {
        release.recv().ok();
    }
}

impl Handler<Never> for Subject {
    type Reply = ();

    async fn handle(&mut self, _: Never, _: &mut Context<Self>) {
        pending().await
    }
}

impl Handler<Again> for Subject {
    type Reply = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        self.ran += 1;
        ctx.address().send(Again).tell().await.ok();
    }
}

impl Handler<Fill> for Subject {
    type Reply = Result<(), SendError<Ping>>;

    async fn handle(&mut self, _: Fill, ctx: &mut Context<Self>) -> Result<(), SendError<Ping>> {
        loop {
            ctx.address().send(Ping).timeout(Duration::from_millis(100)).tell().await?;
        }
    }
}

impl Handler<Charged> for Subject {
    type Reply = ();

    async fn handle(&mut self, message: Charged, _: &mut Context<Self>) {
        std::mem::forget(message);
    }
}

impl Handler<ReplyCharged> for Subject {
    type Reply = Charge;

    async fn handle(&mut self, _: ReplyCharged, _: &mut Context<Self>) -> Charge {
        tokio::task::yield_now().await;
        Charge
    }
}

impl Handler<Arm> for Subject {
    type Reply = ();

    async fn handle(&mut self, _: Arm, _: &mut Context<Self>) {
        self.charge = Some(Charge);
    }
}

fn node() -> Node {
    Node::builder("test").build()
}

fn rebuilt(node: &Node) -> ActorRef<Subject> {
    node.spawn_with(|_| async { Ok::<_, ActorError>(Subject::default()) })
}

fn panics(node: &Node) -> u64 {
    node.metrics().kind(Subject::NAME).expect("a subject runs").panicked
}

#[tokio::test]
async fn a_handler_that_panics_harms_nobody_else_and_is_counted() {
    let node = node();
    let (bad, good) = (rebuilt(&node), rebuilt(&node));
    for asked in 1..=5 {
        assert_eq!(soon(bad.send(Panic)).await, Err(AskError::HandlerPanicked(bad.id())));
        assert_eq!(soon(good.send(Ping)).await, Ok(asked));
    }
    assert_eq!(panics(&node), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_blocks_its_thread_keeps_nobody_else_waiting() {
    let node = node();
    let (bad, good) = (node.spawn(Subject::default()), node.spawn(Subject::default()));
    let (release, wait) = threads::channel();
    // Told, so that it blocks a worker and not the test.
    bad.send(Block(wait)).try_tell().unwrap();
    for asked in 1..=100 {
        assert_eq!(soon(good.send(Ping)).await, Ok(asked));
    }
    let late = soon(bad.send(Ping).timeout(Duration::from_millis(50))).await;
    assert_eq!(late, Err(AskError::Timeout(bad.id())));
    release.send(()).unwrap();
    assert_eq!(soon(bad.send(Ping)).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_fails_its_asker_in_time() {
    let node = node();
    let subject = node.spawn(Subject::default());
    let (release, wait) = threads::channel();
    // The first ask with this message: nobody knows yet that its handler blocks.
    let asker = tokio::spawn({
        let subject = subject.clone();
        async move { subject.send(Block(wait)).await }
    });
    assert_eq!(soon(asker).await.unwrap(), Err(AskError::Timeout(subject.id())));
    release.send(()).unwrap();
    // Now it answers promptly, so that further asks run in place, but never those with a timeout of
    // their own.
    let (release, wait) = threads::channel();
    release.send(()).unwrap();
    assert_eq!(soon(subject.send(Block(wait))).await, Ok(()));
    let (release, wait) = threads::channel();
    let asker = tokio::spawn({
        let subject = subject.clone();
        async move { subject.send(Block(wait)).timeout(Duration::from_millis(50)).await }
    });
    assert_eq!(soon(asker).await.unwrap(), Err(AskError::Timeout(subject.id())));
    release.send(()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_returns_fails_its_asker_in_time_and_can_be_killed() {
    let node = node();
    let subject = node.spawn(Subject::default());
    let asked = subject.send(Never).timeout(Duration::from_millis(50)).await;
    assert_eq!(asked, Err(AskError::Timeout(subject.id())));
    assert_eq!(node.metrics().kind(Subject::NAME).unwrap().timed_out, 1);
    subject.kill();
    subject.stopped().await;
    assert_eq!(subject.send(Ping).await, Err(AskError::Stopped(subject.id())));
}

#[tokio::test]
async fn an_actor_that_tells_itself_without_end_lets_others_run() {
    let node = node();
    let (endless, good) = (node.spawn(Subject::default()), node.spawn(Subject::default()));
    endless.send(Again).try_tell().unwrap();
    for asked in 1..=100 {
        assert_eq!(soon(good.send(Ping)).await, Ok(asked));
    }
    // It takes other messages in between, and can be stopped.
    assert!(soon(endless.send(Ping)).await.unwrap() > 1);
    soon(endless.stop()).await;
}

#[tokio::test]
async fn an_actor_that_fills_its_own_mailbox_gets_its_message_back() {
    let node = node();
    let subject = node.spawn(Subject::default());
    let filled = soon(subject.send(Fill)).await.unwrap();
    assert!(matches!(filled, Err(SendError::Timeout(Ping) | SendError::Full(Ping))), "{filled:?}");
    // Those that found room have run; the running message takes one place of the four.
    assert_eq!(soon(subject.send(Ping)).await, Ok(4));
}

#[tokio::test]
async fn messages_whose_drop_panics_keep_no_news_of_an_end_from_others() {
    let node = node();
    let (bad, good) = (node.spawn(Subject::default()), node.spawn(Subject::default()));
    bad.send(Never).try_tell().unwrap();
    tokio::task::yield_now().await;
    bad.send(Charged(Charge)).try_tell().unwrap();
    bad.send(Charged(Charge)).try_tell().unwrap();
    let mut ask = Box::pin(bad.send(Ping));
    assert!(futures_util::poll!(&mut ask).is_pending());
    let stopped = bad.stopped();
    let asked = tokio::time::Instant::now();
    bad.kill();
    soon(stopped).await;
    assert_eq!(soon(ask).await, Err(AskError::Stopped(bad.id())));
    assert!(asked.elapsed() < SOON / 2, "nobody was woken");
    assert_eq!(soon(good.send(Ping)).await, Ok(1));
}

#[tokio::test]
async fn a_state_whose_drop_panics_is_contained() {
    let node = node();
    let (bad, good) = (node.spawn(Subject::default()), node.spawn(Subject::default()));
    bad.send(Arm).await.unwrap();
    soon(bad.stop()).await;
    assert_eq!(soon(good.send(Ping)).await, Ok(1));
    assert_eq!(soon(bad.send(Ping)).await, Err(AskError::Stopped(bad.id())));
}

#[tokio::test]
async fn a_reply_whose_drop_panics_is_contained() {
    let node = node();
    let subject = node.spawn(Subject::default());
    let mut ask = Box::pin(subject.send(ReplyCharged));
    assert!(futures_util::poll!(&mut ask).is_pending());
    drop(ask);
    assert!(soon(subject.send(Ping)).await.is_ok_and(|ran| ran == 1));
}

#[tokio::test]
async fn a_hook_that_panics_still_ends_the_actor() {
    let node = node();
    let bad = node.spawn(Subject { panics_at_stop: true, ..Subject::default() });
    assert_eq!(soon(bad.send(Ping)).await, Ok(1));
    soon(bad.stop()).await;
    assert_eq!(soon(bad.send(Ping)).await, Err(AskError::Stopped(bad.id())));
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_panics_fails_the_asker_in_time() {
    let node = Node::builder("test")
        .actor(async |_| -> Result<Subject, ActorError> { panic!("a factory on purpose") })
        .build();
    let subject = node.get::<Subject>("a");
    // It is tried again, slower each time, for as long as the ask has time.
    assert_eq!(soon(subject.send(Ping)).await, Err(AskError::Timeout(subject.id())));
}

struct Ear {
    heard: mpsc::UnboundedSender<u64>,
    panics: bool,
}

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u64> for Ear {
    async fn event(&mut self, event: &Published<u64>, _: &mut Context<Self>) {
        assert!(!self.panics, "on purpose");
        self.heard.send(event.payload).ok();
    }
}

#[tokio::test]
async fn a_subscriber_that_panics_takes_no_event_from_the_others() {
    let node = node();
    let topic = node.topic::<u64>("numbers", TopicOptions::default());
    let (heard, mut events) = mpsc::unbounded_channel();
    let ears: Vec<_> =
        (0..9).map(|n| node.spawn(Ear { heard: heard.clone(), panics: n % 3 == 1 })).collect();
    let subscriptions: Vec<_> = ears.iter().map(|ear| topic.subscribe(ear)).collect();
    topic.publish(7).unwrap();
    topic.publish(8).unwrap();
    let mut sum = 0;
    for _ in 0..6 * 2 {
        sum += soon(events.recv()).await.expect("six of nine listen");
    }
    assert_eq!(sum, 6 * (7 + 8));
    drop(subscriptions);
}

static CURIOUS: parking_lot::Mutex<Option<Node>> = parking_lot::Mutex::new(None);

/// Whose options look at half a thousand actors of another type.
struct Curious;

impl Actor for Curious {
    const NAME: &'static str = "test.curious";

    fn options() -> ActorOptions {
        if let Some(node) = CURIOUS.lock().take() {
            for n in 0..500 {
                drop(node.get::<Quiet>(n.to_string().as_str()));
            }
        }
        ActorOptions::default()
    }
}

struct Quiet;

impl Actor for Quiet {
    const NAME: &'static str = "test.quiet";
}

/// No lock is held while a type says its options.
#[test]
fn the_options_of_a_type_may_use_the_node() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let node = Node::builder("test").build();
            *CURIOUS.lock() = Some(node.clone());
            drop(node.get::<Curious>("a"));
        });
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("it does not hang");
}
