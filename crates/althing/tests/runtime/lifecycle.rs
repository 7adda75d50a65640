//! Restarts, heavy work, the end of a node, and asks that nest: what an actor's life promises to
//! those around it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, Handler, MailboxKind, Node,
    RestartPolicy, SendError, StopReason, Supervision,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it is held up")
}

/// Three restarts in a minute, a second apart at first.
const POLICY: RestartPolicy = RestartPolicy {
    restarts_max: 3,
    window: Duration::from_secs(60),
    backoff: Duration::from_secs(1),
    backoff_max: Duration::from_secs(10),
};

#[derive(Default)]
struct Worker {
    done: u32,
    diary: Option<mpsc::UnboundedSender<&'static str>>,
}

struct Work;
struct Fail;
struct Heavy(oneshot::Receiver<()>);
struct Aside(oneshot::Receiver<()>);
struct Finished;
struct Broken;
struct Hold(oneshot::Receiver<()>);
struct RingSoon;
#[derive(Clone)]
struct Ring;

impl Actor for Worker {
    const NAME: &'static str = "test.worker";

    fn options() -> ActorOptions {
        ActorOptions::default()
            .supervision(Supervision::Restart(POLICY))
            .mailbox(MailboxKind::Bounded(2))
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.note("started");
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        self.note("stopping");
    }
}

impl Worker {
    fn note(&self, what: &'static str) {
        if let Some(diary) = &self.diary {
            diary.send(what).ok();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

impl Handler<Work> for Worker {
    type Reply = u32;

    async fn handle(&mut self, _: Work, _: &mut Context<Self>) -> u32 {
        self.note("work");
        self.done += 1;
        self.done
    }
}

impl Handler<Fail> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Heavy> for Worker {
    type Reply = u32;

    async fn handle(&mut self, Heavy(release): Heavy, ctx: &mut Context<Self>) -> u32 {
        ctx.blocking(move || release.blocking_recv().ok()).await;
        self.done
    }
}

impl Handler<Aside> for Worker {
    type Reply = ();

    async fn handle(&mut self, Aside(release): Aside, ctx: &mut Context<Self>) {
        let work = ctx.blocking(move || release.blocking_recv().ok());
        ctx.pipe(work, |_| Finished);
    }
}

impl Handler<Finished> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Finished, _: &mut Context<Self>) {
        self.done += 100;
        self.note("finished");
    }
}

impl Handler<Broken> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Broken, ctx: &mut Context<Self>) {
        ctx.blocking(|| panic!("heavy work on purpose")).await
    }
}

impl Handler<Hold> for Worker {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _: &mut Context<Self>) {
        release.await.ok();
    }
}

impl Handler<RingSoon> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: RingSoon, ctx: &mut Context<Self>) {
        ctx.after(Duration::from_millis(10), Ring);
    }
}

impl Handler<Ring> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Ring, _: &mut Context<Self>) {
        self.note("ring");
    }
}

fn node() -> Node {
    Node::builder("test").build()
}

fn rebuilt(node: &Node) -> ActorRef<Worker> {
    node.spawn_with(|_| async { Ok::<_, ActorError>(Worker::default()) })
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_longer_each_time_and_end_at_the_intensity_limit() {
    let worker = rebuilt(&node());
    let begun = Instant::now();
    for (restart, pause_s) in [0, 1, 2].into_iter().enumerate() {
        let failed = Instant::now();
        assert_eq!(worker.send(Fail).await, Err(AskError::HandlerPanicked(worker.id())));
        assert_eq!(worker.send(Work).await, Ok(1), "restart {restart} begins anew");
        assert_eq!(failed.elapsed().as_secs(), pause_s, "restart {restart}");
    }
    worker.send(Fail).await.unwrap_err();
    worker.stopped().await;
    assert_eq!(worker.send(Work).await, Err(AskError::Stopped(worker.id())));
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn resume_keeps_the_state_and_stop_ends_it() {
    let supervised = |supervision| {
        let options = ActorOptions::default().supervision(supervision);
        rebuilt(&Node::builder("test").options::<Worker>(options).build())
    };
    let worker = supervised(Supervision::Resume);
    assert_eq!(worker.send(Work).await, Ok(1));
    worker.send(Fail).await.unwrap_err();
    assert_eq!(worker.send(Work).await, Ok(2));
    let worker = supervised(Supervision::Stop);
    worker.send(Fail).await.unwrap_err();
    soon(worker.stopped()).await;
    assert_eq!(worker.send(Work).await, Err(AskError::Stopped(worker.id())));
}

#[tokio::test]
async fn hooks_stand_around_all_messages_of_a_life() {
    let (diary, mut notes) = mpsc::unbounded_channel();
    let worker = node().spawn(Worker { diary: Some(diary), ..Worker::default() });
    worker.send(Work).tell().await.unwrap();
    worker.send(Work).tell().await.unwrap();
    soon(worker.stop()).await;
    for expected in ["started", "work", "work", "stopping", "dropped"] {
        assert_eq!(soon(notes.recv()).await, Some(expected));
    }
}

#[tokio::test]
async fn heavy_work_parks_the_actor_and_piped_heavy_work_leaves_it_serving() {
    let worker = rebuilt(&node());
    let (release, wait) = oneshot::channel();
    worker.send(Aside(wait)).await.unwrap();
    assert_eq!(soon(worker.send(Work)).await, Ok(1), "it serves meanwhile");
    release.send(()).unwrap();
    while soon(worker.send(Work)).await.unwrap() < 100 {
        tokio::task::yield_now().await;
    }
    let (release, wait) = oneshot::channel();
    let heavy = worker.send(Heavy(wait)).timeout(Duration::from_secs(60));
    let mut heavy = pin!(heavy.into_future());
    assert!(futures_util::poll!(&mut heavy).is_pending());
    let mut next = pin!(worker.send(Work).into_future());
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut next).is_pending(), "it is parked");
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert!(soon(heavy).await.unwrap() >= 100);
    assert!(soon(next).await.is_ok());
}

#[tokio::test]
async fn heavy_work_runs_in_a_bounded_pool_and_the_rest_waits_in_line() {
    let node = Node::builder("test").blocking_jobs_max(2).build();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let jobs = (0..16).map(|_| {
        let (running, most) = (running.clone(), most.clone());
        node.blocking(move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        })
    });
    soon(futures_util::future::join_all(jobs)).await;
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
}

#[tokio::test]
async fn heavy_work_that_panics_is_its_handlers_panic() {
    let worker = rebuilt(&node());
    assert_eq!(soon(worker.send(Broken)).await, Err(AskError::HandlerPanicked(worker.id())));
    assert_eq!(soon(worker.send(Work)).await, Ok(1));
}

#[tokio::test]
async fn a_timer_fires_past_a_full_mailbox() {
    let (diary, mut notes) = mpsc::unbounded_channel();
    let worker = node().spawn(Worker { diary: Some(diary), ..Worker::default() });
    worker.send(RingSoon).await.unwrap();
    let (release, wait) = oneshot::channel();
    worker.send(Hold(wait)).try_tell().unwrap();
    tokio::task::yield_now().await;
    while worker.send(Ring).try_tell().is_ok() {}
    let waiting = worker.mailbox_depth();
    while worker.mailbox_depth() == waiting {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert_eq!(soon(notes.recv()).await, Some("started"));
    for _ in 0..=waiting {
        assert_eq!(soon(notes.recv()).await, Some("ring"));
    }
}

#[tokio::test]
async fn after_its_shutdown_a_node_starts_nobody_any_more() {
    let node =
        Node::builder("test").actor(async |_| Ok::<_, ActorError>(Worker::default())).build();
    let (named, anonymous) = (node.get::<Worker>("a"), rebuilt(&node));
    assert_eq!(named.send(Work).await, Ok(1));
    let report = soon(node.shutdown(Duration::from_secs(10))).await;
    assert!(report.killed.is_empty(), "{report:?}");
    assert!(soon(anonymous.send(Work)).await.is_err());
    assert_eq!(soon(named.send(Work)).await, Err(AskError::Stopped(named.id())));
    named.activate();
    assert!(!named.is_active());
    assert!(soon(node.get::<Worker>("late").send(Work)).await.is_err());
    assert!(matches!(anonymous.send(Work).try_tell(), Err(SendError::Stopped(Work))));
}

#[tokio::test]
async fn a_killed_node_runs_no_hook_and_refuses_everybody() {
    let node = node();
    let (diary, mut notes) = mpsc::unbounded_channel();
    let idle = node.spawn(Worker { diary: Some(diary.clone()), ..Worker::default() });
    let busy = node.spawn(Worker { diary: Some(diary), ..Worker::default() });
    assert_eq!(idle.send(Work).await, Ok(1));
    let (_release, held) = oneshot::channel();
    busy.send(Hold(held)).tell().await.unwrap();
    tokio::task::yield_now().await;
    node.kill();
    soon(busy.stopped()).await;
    let told: Vec<_> = std::iter::from_fn(|| notes.try_recv().ok()).collect();
    assert_eq!(told, ["started", "started", "work", "dropped", "dropped"]);
    for worker in [idle, busy] {
        assert_eq!(soon(worker.send(Work)).await, Err(AskError::Stopped(worker.id())));
    }
}

/// Has a last word for a worker.
struct Speaker(ActorRef<Worker>);

impl Actor for Speaker {
    const NAME: &'static str = "test.speaker";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        self.0.send(Work).tell().await.ok();
    }
}

#[tokio::test]
async fn who_is_woken_by_a_last_word_is_stopped_by_the_shutdown_too() {
    let (diary, mut notes) = mpsc::unbounded_channel();
    let node = Node::builder("test")
        .actor(move |_| {
            let diary = Some(diary.clone());
            async move { Ok::<_, ActorError>(Worker { diary, ..Worker::default() }) }
        })
        .build();
    let _speaker = node.spawn(Speaker(node.get::<Worker>("asleep")));
    tokio::task::yield_now().await;
    let report = soon(node.shutdown(Duration::from_secs(10))).await;
    assert!(report.killed.is_empty(), "{report:?}");
    for expected in ["started", "work", "stopping", "dropped"] {
        assert_eq!(notes.try_recv().ok(), Some(expected));
    }
}

/// Asks the next in a row, down to the last.
struct Link(Option<ActorRef<Link>>);
struct Length;

impl Actor for Link {
    const NAME: &'static str = "test.link";

    fn options() -> ActorOptions {
        // All the others answer before the first: that takes a busy machine longer than an ask
        // usually may.
        ActorOptions::default().deadline(Duration::from_secs(60))
    }
}

impl Handler<Length> for Link {
    type Reply = u32;

    async fn handle(&mut self, _: Length, _: &mut Context<Self>) -> u32 {
        match &self.0 {
            Some(next) => 1 + next.send(Length).await.expect("the row holds"),
            None => 1,
        }
    }
}

#[tokio::test]
async fn asks_may_nest_deeper_than_any_stack() {
    const LINKS: u32 = 20_000;
    let node = node();
    let first = (0..LINKS).fold(None, |next, _| Some(node.spawn(Link(next)))).unwrap();
    assert_eq!(first.send(Length).await, Ok(LINKS));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on a thread that knows no runtime.
fn outside<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_outside_the_runtime_may_ask_tell_and_wait_for_room() {
    let worker = rebuilt(&node());
    let asker = worker.clone();
    let asked = thread::spawn(move || {
        outside(async {
            for _ in 0..500 {
                asker.send(Work).tell().await.expect("room in time");
            }
            asker.send(Work).await
        })
    });
    assert_eq!(soon(tokio::task::spawn_blocking(|| asked.join().unwrap())).await.unwrap(), Ok(501));
}
