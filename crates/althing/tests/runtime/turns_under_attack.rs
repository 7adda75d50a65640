//! Turns that are held, where they are easiest to get wrong: ends that come from within, panics,
//! forwards, hooks, and actors run in place.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Admission, AskError, Commit, Context, Delayed,
    DelayedHandler, Handler, Node, Receives, Rejection, ReplyTo, SendError, Supervision,
    Terminated, Turns,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(5);

/// A disk that writes when the test says so.
#[derive(Clone, Default)]
struct Disk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    written: u32,
    waiting: VecDeque<(u32, oneshot::Sender<bool>)>,
    /// Panics that are due: in `commit`, or in what it returns.
    panics: VecDeque<Panics>,
    starts: u32,
}

enum Panics {
    AtOnce,
    Later,
}

impl Disk {
    fn write(&self, value: u32) -> Commit {
        let (sender, receiver) = oneshot::channel();
        let panics = self.inner.lock().panics.pop_front();
        if matches!(panics, Some(Panics::AtOnce)) {
            panic!("the disk is on fire");
        }
        self.inner.lock().waiting.push_back((value, sender));
        Commit::when(async move {
            assert!(panics.is_none(), "the disk is on fire");
            let is_written = receiver.await.unwrap_or(false);
            is_written.then_some(()).ok_or_else(|| ActorError::new("no space left on the disk"))
        })
    }

    fn next(&self, is_written: bool) {
        let mut inner = self.inner.lock();
        let (value, waiting) = inner.waiting.pop_front().expect("something waits");
        if is_written {
            inner.written = value;
        }
        drop(inner);
        _ = waiting.send(is_written);
    }

    async fn until_waiting(&self, count: usize) {
        let until = async {
            while self.inner.lock().waiting.len() < count {
                yield_now().await;
            }
        };
        timeout(SOON, until).await.expect("the turn ends");
    }

    fn starts(&self) -> u32 {
        self.inner.lock().starts
    }
}

/// A counter whose value is on the disk, and whose handlers are the test's.
struct Keeper {
    disk: Disk,
    value: u32,
    is_changed: bool,
    listener: ActorRef<Listener>,
}

type Work<'a> = Pin<Box<dyn Future<Output = u32> + Send + 'a>>;

type Step = dyn for<'a> FnOnce(&'a mut Keeper, &'a mut Context<Keeper>) -> Work<'a> + Send;

/// A turn: what the test wants to be done.
struct Do(Box<Step>);

fn turn(
    work: impl for<'a> FnOnce(&'a mut Keeper, &'a mut Context<Keeper>) -> Work<'a> + Send + 'static,
) -> Do {
    Do(Box::new(work))
}

/// Adds one, and nothing else.
fn add() -> Do {
    turn(|keeper, _| Box::pin(ready(keeper.add())))
}

/// Passes the question on to the listener.
struct Forward;

/// Is refused when the value is more than nothing.
struct Guarded;

impl Actor for Keeper {
    const NAME: &'static str = "test.keeper";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        if !std::mem::take(&mut self.is_changed) {
            return Commit::unchanged();
        }
        self.disk.write(self.value)
    }

    async fn terminated(&mut self, _: &mut Context<Self>, _: Terminated) {
        let value = self.add();
        self.listener.send(Hear(value)).tell().await.expect("there is room");
    }
}

impl Keeper {
    fn add(&mut self) -> u32 {
        self.value += 1;
        self.is_changed = true;
        self.value
    }
}

impl Handler<Do> for Keeper {
    type Reply = u32;

    async fn handle(&mut self, Do(work): Do, ctx: &mut Context<Self>) -> u32 {
        work(self, ctx).await
    }
}

impl DelayedHandler<Forward> for Keeper {
    type Reply = Vec<u32>;

    async fn handle(&mut self, _: Forward, reply: ReplyTo<Vec<u32>>, _: &mut Context<Self>) {
        self.add();
        self.listener.send(Heard).reply_to(reply);
    }
}

impl Receives<Forward> for Keeper {
    type Reply = Vec<u32>;
    type Way = Delayed;
}

impl Handler<Guarded> for Keeper {
    type Reply = ();

    fn admit(&mut self, _: &Guarded, _: &mut Context<Self>) -> Admission {
        if self.value == 0 {
            return Admission::Run;
        }
        Admission::Reject(Rejection::Other("there is something".into()))
    }

    async fn handle(&mut self, _: Guarded, _: &mut Context<Self>) {}
}

/// Hears numbers.
#[derive(Default)]
struct Listener(Vec<u32>);

struct Hear(u32);
struct Heard;

impl Actor for Listener {
    const NAME: &'static str = "test.listener";
}

impl Handler<Hear> for Listener {
    type Reply = ();

    async fn handle(&mut self, Hear(value): Hear, _: &mut Context<Self>) {
        self.0.push(value);
    }
}

impl Handler<Heard> for Listener {
    type Reply = Vec<u32>;

    async fn handle(&mut self, _: Heard, _: &mut Context<Self>) -> Vec<u32> {
        self.0.clone()
    }
}

/// Tells the listener twice and answers.
struct Herald(ActorRef<Listener>);

struct Announce;

impl Actor for Herald {
    const NAME: &'static str = "test.herald";
}

impl Handler<Announce> for Herald {
    type Reply = ();

    async fn handle(&mut self, _: Announce, _: &mut Context<Self>) {
        for value in [1, 2] {
            self.0.send(Hear(value)).try_tell().expect("there is room");
        }
    }
}

struct Scene {
    disk: Disk,
    listener: ActorRef<Listener>,
    keeper: ActorRef<Keeper>,
    node: Node,
}

fn scene_with(supervision: Supervision) -> Scene {
    let disk = Disk::default();
    let node = Node::builder("friends").build();
    let listener = node.spawn(Listener::default());
    let (from, friend) = (disk.clone(), listener.clone());
    let keepers = Node::builder("keepers")
        .options::<Keeper>(ActorOptions::default().supervision(supervision))
        .actor(move |_| {
            let mut inner = from.inner.lock();
            inner.starts += 1;
            let value = inner.written;
            let (disk, listener) = (from.clone(), friend.clone());
            async move { Ok(Keeper { disk, value, is_changed: false, listener }) }
        })
        .build();
    Scene { disk, listener, keeper: keepers.get("a"), node }
}

fn scene() -> Scene {
    scene_with(Supervision::default())
}

impl Scene {
    fn ask(&self, work: Do) -> JoinHandle<Result<u32, AskError>> {
        let keeper = self.keeper.clone();
        tokio::spawn(async move { keeper.send(work).await })
    }

    async fn heard(&self) -> Vec<u32> {
        self.listener.send(Heard).await.expect("it answers")
    }

    fn not_committed<T>(&self) -> Result<T, AskError> {
        Err(AskError::NotCommitted(self.keeper.id()))
    }

    /// The value that the keeper has now.
    async fn value(&self) -> u32 {
        let asked = self.keeper.send(turn(|keeper, _| Box::pin(ready(keeper.value))));
        timeout(SOON, asked).await.expect("it answers soon").expect("it answers")
    }
}

async fn soon<T>(asked: JoinHandle<T>) -> T {
    timeout(SOON, asked).await.expect("it ends soon").expect("no panic")
}

async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

#[tokio::test]
async fn an_actor_that_stops_itself_in_a_turn_stops_when_the_turn_is_durable() {
    let ends: [fn(&mut Context<Keeper>); 2] = [Context::stop, Context::passivate];
    for ends in ends {
        let scene = scene();
        let asked = scene.ask(turn(move |keeper, ctx| {
            ends(ctx);
            Box::pin(ready(keeper.add()))
        }));
        scene.disk.until_waiting(1).await;
        settle().await;
        assert!(scene.keeper.is_active(), "its turn is not durable yet");
        let stopped = scene.keeper.stopped();
        scene.disk.next(true);
        assert_eq!(soon(asked).await, Ok(1));
        timeout(SOON, stopped).await.expect("it stops");
    }
}

#[tokio::test]
async fn an_actor_that_fails_itself_in_a_turn_fails_when_the_turn_is_durable() {
    let scene = scene();
    let asked = scene.ask(turn(|keeper, ctx| {
        ctx.fail(ActorError::new("on purpose"));
        Box::pin(ready(keeper.add()))
    }));
    scene.disk.until_waiting(1).await;
    scene.disk.next(true);
    assert_eq!(soon(asked).await, Ok(1));
    assert_eq!(scene.value().await, 1);
    assert_eq!(scene.disk.starts(), 2, "its state was loaded again");
}

#[tokio::test]
async fn an_actor_run_in_place_within_a_turn_lets_nothing_of_the_turn_out() {
    let scene = scene();
    let herald = scene.node.spawn(Herald(scene.listener.clone()));
    for _ in 0..50 {
        // So that it is known to be quick, and runs in place.
        herald.send(Announce).await.expect("it answers");
    }
    let before = scene.heard().await.len();
    let asked = scene.ask(turn(move |keeper, _| {
        Box::pin(async move {
            herald.send(Announce).await.expect("it answers");
            keeper.listener.send(Hear(99)).try_tell().expect("there is room");
            keeper.add()
        })
    }));
    scene.disk.until_waiting(1).await;
    settle().await;
    assert_eq!(scene.heard().await[before..], [1, 2], "99 belongs to the turn");
    scene.disk.next(true);
    assert_eq!(soon(asked).await, Ok(1));
    assert_eq!(scene.heard().await[before..], [1, 2, 99]);
}

#[tokio::test]
async fn a_commit_that_panics_aborts_its_turn_and_its_asker_hears_so() {
    for panics in [Panics::AtOnce, Panics::Later] {
        let scene = scene();
        scene.disk.inner.lock().panics.push_back(panics);
        let asked = scene.ask(turn(|keeper, _| {
            Box::pin(async {
                keeper.listener.send(Hear(7)).try_tell().expect("there is room");
                keeper.add()
            })
        }));
        assert_eq!(soon(asked).await, scene.not_committed());
        assert_eq!(scene.value().await, 0, "as it is on the disk");
        assert_eq!(scene.heard().await, []);
    }
}

#[tokio::test]
async fn a_turn_that_waits_is_aborted_with_the_commit_before_it() {
    let scene = scene();
    let first = scene.ask(add());
    scene.disk.until_waiting(1).await;
    let (begun, has_begun) = oneshot::channel();
    let second = scene.ask(turn(move |keeper, _| {
        keeper.add();
        _ = begun.send(());
        Box::pin(pending())
    }));
    has_begun.await.expect("it begins");
    scene.disk.next(false);
    assert_eq!(soon(first).await, scene.not_committed());
    assert_eq!(soon(second).await, scene.not_committed(), "it was built on the first");
    assert_eq!(scene.value().await, 0);
}

#[tokio::test]
async fn an_actor_that_resumes_after_failures_loads_its_state_again_all_the_same() {
    let scene = scene_with(Supervision::Resume);
    let asked = scene.ask(add());
    scene.disk.until_waiting(1).await;
    scene.disk.next(false);
    assert_eq!(soon(asked).await, scene.not_committed());
    assert_eq!(scene.value().await, 0, "what is not durable is not built on");
}

#[tokio::test]
async fn an_ask_that_a_turn_hands_on_leaves_with_its_commit() {
    let scene = scene();
    for is_written in [true, false] {
        let keeper = scene.keeper.clone();
        let asked = tokio::spawn(async move { keeper.send(Forward).await });
        scene.disk.until_waiting(1).await;
        settle().await;
        assert!(!asked.is_finished(), "the answer would be news of the turn");
        scene.disk.next(is_written);
        let expected = if is_written { Ok(vec![]) } else { scene.not_committed() };
        assert_eq!(soon(asked).await, expected);
    }
}

#[tokio::test]
async fn a_guard_that_refuses_waits_for_what_it_may_have_seen() {
    let scene = scene();
    let asked = scene.ask(add());
    scene.disk.until_waiting(1).await;
    let keeper = scene.keeper.clone();
    let refused = tokio::spawn(async move { keeper.send(Guarded).await });
    settle().await;
    assert!(!refused.is_finished(), "it tells of what is not durable");
    scene.disk.next(true);
    assert_eq!(soon(asked).await, Ok(1));
    assert!(matches!(soon(refused).await, Err(AskError::Rejected(..))));
}

#[tokio::test]
async fn a_turn_that_lets_out_more_than_it_may_is_told_so_at_once() {
    let scene = scene();
    let asked = scene.ask(turn(|keeper, _| {
        Box::pin(async {
            let mut told = 0;
            loop {
                let tell = keeper.listener.send(Hear(told)).timeout(Duration::from_secs(1)).tell();
                match tell.await {
                    Ok(()) => told += 1,
                    Err(SendError::Full(_)) => return told,
                    Err(other) => panic!("{other}"),
                }
            }
        })
    }));
    let told = soon(asked).await.expect("it answers");
    assert!(told >= 1_024, "{told}");
    assert_eq!(scene.heard().await.len(), told as usize);
}

#[tokio::test]
async fn an_end_by_a_link_waits_for_what_is_on_its_way_to_the_disk() {
    let scene = scene();
    let other = scene.node.spawn(Listener::default());
    let asked = scene.ask(turn({
        let other = other.clone();
        move |keeper, ctx| {
            ctx.link(&other);
            Box::pin(ready(keeper.add()))
        }
    }));
    scene.disk.until_waiting(1).await;
    other.stop().await;
    settle().await;
    let stopped = scene.keeper.stopped();
    scene.disk.next(true);
    assert_eq!(soon(asked).await, Ok(1));
    timeout(SOON, stopped).await.expect("it stops");
}

#[tokio::test]
async fn what_a_hook_lets_out_leaves_with_its_commit() {
    let scene = scene();
    let other = scene.node.spawn(Listener::default());
    let watched = other.clone();
    let asked = scene.ask(turn(move |_, ctx| {
        ctx.watch(&watched);
        Box::pin(ready(0))
    }));
    assert_eq!(soon(asked).await, Ok(0));
    other.stop().await;
    scene.disk.until_waiting(1).await;
    settle().await;
    assert_eq!(scene.heard().await, []);
    scene.disk.next(true);
    timeout(SOON, async {
        while scene.heard().await.is_empty() {
            yield_now().await;
        }
    })
    .await
    .expect("it is told");
    assert_eq!(scene.heard().await, [1]);
}

#[tokio::test]
async fn a_disk_that_is_slow_is_waited_for_and_nothing_is_lost() {
    let scene = scene();
    let asked: Vec<_> = (0..1_500).map(|_| scene.ask(add())).collect();
    scene.disk.until_waiting(1_024).await;
    settle().await;
    assert_eq!(scene.disk.inner.lock().waiting.len(), 1_024, "the next turn waits");
    for _ in 0..1_500 {
        scene.disk.until_waiting(1).await;
        scene.disk.next(true);
    }
    for asked in asked {
        soon(asked).await.expect("it is committed");
    }
    assert_eq!(scene.value().await, 1_500);
}

#[test]
fn a_runtime_that_ends_tells_the_askers_of_turns_on_their_way() {
    let [theirs, ours] = [(); 2].map(|()| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build().expect("threads can be started")
    });
    let scene = theirs.block_on(async { scene() });
    ours.block_on(async {
        let asked = scene.ask(add());
        scene.disk.until_waiting(1).await;
        theirs.shutdown_background();
        assert_eq!(soon(asked).await, scene.not_committed());
    });
}
