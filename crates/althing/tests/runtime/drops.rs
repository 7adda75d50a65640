//! Asks whose halves go in any order, and what becomes of messages that wait when their actor ends.

use std::future::{Future, pending};
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Admission, AskError, Context, Delayed,
    DelayedHandler, Handler, MailboxKind, Node, Receives, ReplyTo, SendError, StopReason,
    Supervision, Terminated,
};
use futures_util::poll;
use tokio::sync::{mpsc, oneshot};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it is held up")
}

/// Keeps messages until it is open.
#[derive(Default)]
struct Door {
    open: bool,
    passed: u32,
    stopped: Option<mpsc::UnboundedSender<StopReason>>,
}

struct Hold(oneshot::Receiver<()>);
struct Pass;
struct Open;
struct Passed;
struct Panic;
struct Later(mpsc::UnboundedSender<ReplyTo<u32>>);
struct Echo(u32);
struct Ring;

impl Actor for Door {
    const NAME: &'static str = "test.door";

    fn options() -> ActorOptions {
        ActorOptions::default()
            .mailbox(MailboxKind::Bounded(4))
            .supervision(Supervision::Resume)
            .passivate_after(Duration::from_secs(30))
    }

    async fn stopping(&mut self, _: &mut Context<Self>, reason: StopReason) {
        if let Some(stopped) = &self.stopped {
            stopped.send(reason).ok();
        }
    }
}

impl Handler<Hold> for Door {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _: &mut Context<Self>) {
        release.await.ok();
    }
}

impl Handler<Pass> for Door {
    type Reply = u32;

    fn admit(&mut self, _: &Pass, _: &mut Context<Self>) -> Admission {
        if self.open { Admission::Run } else { Admission::Stash }
    }

    async fn handle(&mut self, _: Pass, _: &mut Context<Self>) -> u32 {
        self.passed += 1;
        self.passed
    }
}

impl Handler<Open> for Door {
    type Reply = ();

    async fn handle(&mut self, _: Open, ctx: &mut Context<Self>) {
        self.open = true;
        ctx.unstash_all();
    }
}

impl Handler<Passed> for Door {
    type Reply = u32;

    async fn handle(&mut self, _: Passed, _: &mut Context<Self>) -> u32 {
        self.passed
    }
}

impl Handler<Panic> for Door {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl DelayedHandler<Later> for Door {
    type Reply = u32;

    async fn handle(&mut self, Later(to): Later, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        to.send(reply).expect("the test keeps the receiver");
    }
}

impl Receives<Later> for Door {
    type Reply = u32;
    type Way = Delayed;
}

impl Handler<Echo> for Door {
    type Reply = u32;

    async fn handle(&mut self, Echo(n): Echo, _: &mut Context<Self>) -> u32 {
        if n % 3 == 0 {
            tokio::task::yield_now().await;
        }
        n
    }
}

impl Handler<Ring> for Door {
    type Reply = ();

    async fn handle(&mut self, _: Ring, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

fn door() -> ActorRef<Door> {
    Node::builder("test").build().spawn(Door::default())
}

/// A door whose handler waits and whose mailbox is full.
async fn full_door() -> (ActorRef<Door>, oneshot::Sender<()>) {
    let door = door();
    let (release, wait) = oneshot::channel();
    door.send(Hold(wait)).try_tell().expect("room");
    while door.mailbox_depth() > 0 {
        tokio::task::yield_now().await;
    }
    while door.send(Passed).try_tell().is_ok() {}
    assert!(matches!(door.send(Passed).try_tell(), Err(SendError::Full(Passed))));
    (door, release)
}

#[tokio::test]
async fn an_ask_dropped_while_its_handler_runs_lets_it_finish() {
    let door = door();
    let (release, wait) = oneshot::channel();
    let mut ask = Box::pin(door.send(Hold(wait)));
    assert!(poll!(&mut ask).is_pending());
    drop(ask);
    release.send(()).expect("the handler still waits for it");
    assert_eq!(soon(door.send(Echo(1))).await, Ok(1));
}

#[tokio::test]
async fn a_reply_to_an_asker_who_has_gone_is_refused() {
    let door = door();
    let (to, mut replies) = mpsc::unbounded_channel();
    let mut ask = Box::pin(door.send(Later(to)));
    assert!(poll!(&mut ask).is_pending());
    let reply = soon(replies.recv()).await.unwrap();
    assert!(!reply.is_abandoned());
    drop(ask);
    assert!(reply.is_abandoned());
    assert!(!reply.send(1));
}

#[tokio::test]
async fn a_reply_dropped_after_its_actor_has_ended_still_fails_the_ask() {
    let door = door();
    let (to, mut replies) = mpsc::unbounded_channel();
    let mut ask = Box::pin(door.send(Later(to)));
    assert!(poll!(&mut ask).is_pending());
    let reply = soon(replies.recv()).await.unwrap();
    soon(door.stop()).await;
    assert!(poll!(&mut ask).is_pending(), "the reply may still come");
    drop(reply);
    assert_eq!(soon(ask).await, Err(AskError::NoReply(door.id())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_ask_gets_its_own_reply_whatever_others_drop() {
    const ASKS: u32 = if cfg!(miri) { 30 } else { 3_000 };
    let door = Node::builder("test")
        .options::<Door>(ActorOptions::default())
        .build()
        .spawn(Door::default());
    let askers: Vec<_> = (0..8)
        .map(|asker| {
            let door = door.clone();
            tokio::spawn(async move {
                for n in 0..ASKS {
                    let number = asker * 10_000 + n;
                    let mut ask = Box::pin(door.send(Echo(number)));
                    if n % 5 == 0 && poll!(&mut ask).is_pending() {
                        continue;
                    }
                    if n % 5 != 0 {
                        assert_eq!(ask.await, Ok(number));
                    }
                }
            })
        })
        .collect();
    for asker in askers {
        soon(asker).await.unwrap();
    }
}

#[tokio::test]
async fn stashed_asks_fail_when_their_actor_stops() {
    let door = door();
    let mut asks: Vec<_> = (0..3).map(|_| Box::pin(door.send(Pass))).collect();
    for ask in &mut asks {
        assert!(poll!(ask).is_pending());
    }
    soon(door.stop()).await;
    for ask in asks {
        assert_eq!(soon(ask).await, Err(AskError::Stopped(door.id())));
    }
}

#[tokio::test]
async fn stashed_asks_fail_when_their_actor_is_killed() {
    let door = door();
    let mut ask = Box::pin(door.send(Pass));
    assert!(poll!(&mut ask).is_pending());
    door.kill();
    assert_eq!(soon(ask).await, Err(AskError::Stopped(door.id())));
}

#[tokio::test]
async fn stashed_messages_outlive_a_panic_and_keep_their_order() {
    let door = door();
    let mut asks: Vec<_> = (0..3).map(|_| Box::pin(door.send(Pass))).collect();
    for ask in &mut asks {
        assert!(poll!(ask).is_pending());
    }
    soon(door.send(Panic)).await.unwrap_err();
    soon(door.send(Open)).await.unwrap();
    for (ask, turn) in asks.into_iter().zip(1..) {
        assert_eq!(soon(ask).await, Ok(turn));
    }
}

/// The runner has taken those that wait out of the mailbox by the time that the door opens.
#[tokio::test]
async fn messages_put_aside_run_before_those_that_came_after_them() {
    let door = door();
    for _ in 0..2 {
        door.send(Pass).try_tell().unwrap();
    }
    door.send(Open).try_tell().unwrap();
    let mut late: Vec<_> = (0..2).map(|_| Box::pin(door.send(Pass))).collect();
    for ask in &mut late {
        assert!(poll!(ask).is_pending());
    }
    for (ask, turn) in late.into_iter().zip(3..) {
        assert_eq!(soon(ask).await, Ok(turn));
    }
}

#[tokio::test]
async fn a_stash_holds_no_more_than_the_mailbox() {
    let door = door();
    let mut asks: Vec<_> = (0..4).map(|_| Box::pin(door.send(Pass))).collect();
    for ask in &mut asks {
        assert!(poll!(ask).is_pending());
        // Each is put aside before the next comes.
        soon(door.send(Passed)).await.unwrap();
    }
    assert_eq!(soon(door.send(Pass)).await, Err(AskError::Overloaded(door.id())));
    soon(door.send(Open)).await.unwrap();
    for ask in asks {
        assert!(soon(ask).await.is_ok());
    }
}

#[tokio::test]
async fn stop_and_kill_reach_an_actor_whose_mailbox_is_full() {
    let (door, _release) = full_door().await;
    door.kill();
    soon(door.stopped()).await;
    let (door, release) = full_door().await;
    let stopped = door.stop();
    release.send(()).unwrap();
    soon(stopped).await;
}

struct Watcher(mpsc::UnboundedSender<Terminated>);
struct Watch(ActorRef<Door>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(1))
    }

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.send(other).ok();
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

impl Handler<Hold> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _: &mut Context<Self>) {
        release.await.ok();
    }
}

#[tokio::test]
async fn the_end_of_a_watched_actor_does_not_wait_behind_a_full_mailbox() {
    let node = Node::builder("test").build();
    let (news, mut heard) = mpsc::unbounded_channel();
    let (watcher, door) = (node.spawn(Watcher(news)), node.spawn(Door::default()));
    watcher.send(Watch(door.clone())).await.unwrap();
    let (release, wait) = oneshot::channel();
    watcher.send(Hold(wait)).try_tell().unwrap();
    tokio::task::yield_now().await;
    // The next one in the mailbox never ends: the news must run before it.
    let (_never, blocked) = oneshot::channel();
    watcher.send(Hold(blocked)).try_tell().unwrap();
    soon(door.stop()).await;
    release.send(()).unwrap();
    assert_eq!(soon(heard.recv()).await.unwrap().id, door.id());
}

#[tokio::test(start_paused = true)]
async fn an_actor_with_stashed_messages_is_not_unloaded() {
    let (stopped, mut reasons) = mpsc::unbounded_channel();
    let node = Node::builder("test")
        .actor(move |_| {
            let stopped = Some(stopped.clone());
            async move { Ok::<_, ActorError>(Door { stopped, ..Door::default() }) }
        })
        .build();
    let door = node.get::<Door>("a");
    let mut ask = Box::pin(door.send(Pass).timeout(Duration::from_secs(600)));
    assert!(poll!(&mut ask).is_pending());
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(reasons.try_recv().is_err(), "it owes an answer");
    door.send(Open).await.unwrap();
    assert_eq!(soon(ask).await, Ok(1));
    assert_eq!(reasons.recv().await, Some(StopReason::Passivated));
}

#[tokio::test]
async fn messages_put_aside_go_over_into_the_next_life_of_a_named_actor() {
    let node = Node::builder("test").actor(async |_| Ok::<_, ActorError>(Door::default())).build();
    let door = node.get::<Door>("a");
    for _ in 0..3 {
        door.send(Pass).tell().await.unwrap();
    }
    soon(door.send(Ring)).await.unwrap();
    soon(door.send(Open)).await.unwrap();
    assert_eq!(soon(door.send(Passed)).await, Ok(3));
    assert_eq!(node.metrics().kind(Door::NAME).unwrap().started, 2);
}

#[tokio::test]
async fn a_handler_that_stops_its_actor_refuses_what_waits() {
    let (door, release) = full_door().await;
    let mut ask = Box::pin(door.send(Echo(1)).timeout(Duration::from_secs(60)));
    assert!(poll!(&mut ask).is_pending());
    release.send(()).unwrap();
    // Runs before the ask that waits for room, or finds no room: told until it is taken.
    while door.send(Ring).try_tell().is_err() {
        tokio::task::yield_now().await;
    }
    let outcome = soon(ask).await;
    assert!(matches!(outcome, Ok(1) | Err(AskError::Stopped(_))), "{outcome:?}");
    soon(door.stopped()).await;
}

#[tokio::test]
async fn a_weak_address_keeps_nothing_and_ends_with_its_actor() {
    let door = door();
    let weak = door.downgrade();
    assert_eq!(weak.upgrade().as_ref(), Some(&door));
    let mut never = Box::pin(async {
        door.send(Echo(1)).await.unwrap();
        pending::<()>().await
    });
    assert!(poll!(&mut never).is_pending());
    drop(never);
    soon(door.stop()).await;
    drop(door);
    assert!(weak.upgrade().is_none());
}
