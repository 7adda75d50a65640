//! Drops are foreign code: they may panic, send, start actors, or look at what is being taken
//! apart.
//!
//! The runtime drops messages, states, factories, events, wakers and the payloads of panics. None
//! of these drops may run under one of its locks, and none may take more along than the actor that
//! it belongs to.

use std::future::{Future, IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{self, RawWaker, RawWakerVTable, Wake, Waker};
use std::time::Duration;

use crate::support::{
    AtDrop, Charge, Flex, Log, Note, On, act, alone, flex, later, lines, node, nothing, settle,
    soon, within,
};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, Delayed, DelayedHandler, EventHandler,
    Group, Handler, Node, Published, Receives, ReplyTo, StopReason, Supervision, Terminated,
    TopicOptions,
};
use parking_lot::Mutex;

/// Starts an actor with a timer when it is dropped.
struct StartsAtDrop(Node);

impl Drop for StartsAtDrop {
    fn drop(&mut self) {
        self.0.spawn(Alarm);
    }
}

impl Handler<StartsAtDrop> for Flex {
    type Reply = ();

    async fn handle(&mut self, _: StartsAtDrop, _: &mut Context<Self>) {}
}

struct Alarm;

#[derive(Clone)]
struct Ring;

impl Actor for Alarm {
    const NAME: &'static str = "test.alarm";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.after(Duration::from_secs(60), Ring);
        Ok(())
    }
}

impl Handler<Ring> for Alarm {
    type Reply = ();

    async fn handle(&mut self, _: Ring, _: &mut Context<Self>) {}
}

#[test]
fn a_cancelled_timers_message_may_set_timers_when_it_is_dropped() {
    within(On::OneThread, async {
        let cancelling = act(|_, ctx| {
            let message = StartsAtDrop(ctx.node());
            let timer = ctx.after(Duration::from_secs(60), message);
            ctx.cancel(timer);
        });
        assert_eq!(flex(&node()).send(cancelling).await, Ok(0));
    });
}

/// Asks its node for a topic when it is dropped.
struct TopicAtDrop(Node);

impl Drop for TopicAtDrop {
    fn drop(&mut self) {
        self.0.topic::<u64>("another", TopicOptions::default());
    }
}

#[test]
fn an_event_may_use_topics_when_a_shutdown_drops_it() {
    within(On::OneThread, async {
        let node = node();
        let topic = node.topic::<TopicAtDrop>("events", TopicOptions::default());
        topic.publish(TopicAtDrop(node.clone())).expect("anybody may publish");
        drop(topic);
        node.shutdown(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_factory_may_use_the_node_when_a_shutdown_drops_it() {
    within(On::OneThread, async {
        let known = Arc::<Mutex<Option<Node>>>::default();
        let of_factory = known.clone();
        let looks = AtDrop(move || {
            of_factory.lock().as_ref().map(Node::metrics);
        });
        let factory = move |_| {
            let _ = &looks;
            async { Ok(Flex::default()) }
        };
        let node = Node::builder("test").actor(factory).build();
        *known.lock() = Some(node.clone());
        node.shutdown(Duration::from_secs(1)).await;
    });
}

struct Ear;

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u64> for Ear {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {}
}

/// An actor that has stopped and whose last reference calls `at_drop` when it goes.
async fn stopped_with(node: &Node, at_drop: impl FnMut() + Send + Sync + 'static) -> ActorRef<Ear> {
    let at_drop = AtDrop(at_drop);
    let ear = node.spawn_with(move |_| {
        let _ = &at_drop;
        async { Ok(Ear) }
    });
    soon("the start", async {
        while !ear.is_active() {
            tokio::task::yield_now().await
        }
    })
    .await;
    ear
}

#[test]
fn a_subscriber_may_use_its_topic_when_its_last_reference_goes() {
    within(On::OneThread, async {
        let node = node();
        let topic = node.topic::<u64>("numbers", TopicOptions::default());
        let looked_at = topic.clone();
        let ear = stopped_with(&node, move || {
            looked_at.last();
        })
        .await;
        let subscription = topic.subscribe(&ear);
        ear.stop().await;
        drop(ear);
        tokio::task::yield_now().await;
        drop(subscription);
    });
}

#[test]
fn a_member_may_use_its_group_when_its_last_reference_goes() {
    within(On::OneThread, async {
        let group = Group::<Ear>::new();
        let looked_at = group.clone();
        let ear = stopped_with(&node(), move || {
            looked_at.members();
        })
        .await;
        group.join(&ear);
        ear.stop().await;
        drop(ear);
        tokio::task::yield_now().await;
        assert!(group.round_robin().is_none());
    });
}

/// Looks at an actor when its last reference goes.
struct LooksAtDrop(Mutex<Option<ActorRef<Flex>>>);

impl Wake for LooksAtDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for LooksAtDrop {
    fn drop(&mut self) {
        if let Some(actor) = self.0.get_mut().take() {
            actor.mailbox_depth();
        }
    }
}

#[test]
fn a_waiters_old_waker_may_use_the_actor_when_it_is_dropped() {
    within(On::OneThread, async {
        let actor = flex(&node());
        let mut stopped = Box::pin(actor.stopped());
        let mut poll_with = |looks_at| {
            let waker = Waker::from(Arc::new(LooksAtDrop(Mutex::new(looks_at))));
            stopped.as_mut().poll(&mut task::Context::from_waker(&waker))
        };
        assert!(poll_with(Some(actor)).is_pending());
        // The first waker, whose last reference the actor holds, makes room for this one.
        assert!(poll_with(None).is_pending());
    });
}

/// A hundred thousand factories, each with the last reference of the next one's actor.
#[test]
fn a_long_chain_of_stopped_actors_is_freed_without_using_up_the_stack() {
    const NAME: &str =
        "foreign_code::a_long_chain_of_stopped_actors_is_freed_without_using_up_the_stack";
    alone(NAME, || {
        within(On::Workers(1), async {
            let node = node();
            let mut next: Option<ActorRef<Flex>> = None;
            for _ in 0..100_000 {
                let held = next.take();
                let actor = node.spawn_with(move |_| {
                    let _ = &held;
                    async { Ok(Flex::default()) }
                });
                actor.stop().await;
                next = Some(actor);
            }
        });
    });
}

fn rebuilt(node: &Node) -> ActorRef<Flex> {
    node.spawn_with(async |_| Ok(Flex::default()))
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_is_one_like_any_other() {
    within(On::PausedTime, async {
        let actor = rebuilt(&node());
        actor.send(act(|_, _| std::panic::panic_any(Charge))).try_tell().unwrap();
        settle().await;
        assert_eq!(actor.send(nothing()).await, Ok(0), "after one that was told");
        let asker = actor.clone();
        let asking = async move { asker.send(act(|_, _| std::panic::panic_any(Charge))).await };
        let asked = tokio::spawn(asking).await;
        assert!(asked.is_ok_and(|reply| reply.is_err()), "the asker panicked");
        assert_eq!(actor.send(nothing()).await, Ok(0), "after one that was asked");
    });
}

/// Begins to wait with something in its hands that panics when it is dropped.
async fn waits_with_a_charge(actor: &ActorRef<Flex>) {
    let waiting = later(async {
        let _charge = Charge;
        pending().await
    });
    actor.send(waiting).try_tell().expect("there is room");
    settle().await;
}

#[test]
fn a_kill_holds_though_the_handler_that_it_drops_panics() {
    within(On::PausedTime, async {
        let builds = Arc::new(AtomicU32::new(0));
        let counted = builds.clone();
        let actor = node().spawn_with(move |_| {
            counted.fetch_add(1, SeqCst);
            async { Ok(Flex::default()) }
        });
        waits_with_a_charge(&actor).await;
        actor.kill();
        soon("the end", actor.stopped()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((builds.load(SeqCst), actor.is_active()), (1, false));
    });
}

struct Watcher(Log);

struct Watch(ActorRef<Flex>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.lock().push(format!("{:?}", other.reason));
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

#[test]
fn a_watcher_hears_of_a_kill_as_one_though_the_handler_that_it_drops_panics() {
    within(On::PausedTime, async {
        let node = node();
        let (actor, log) = (flex(&node), Log::default());
        node.spawn(Watcher(log.clone())).send(Watch(actor.clone())).await.unwrap();
        waits_with_a_charge(&actor).await;
        actor.kill();
        soon("the end", actor.stopped()).await;
        settle().await;
        assert_eq!(lines(&log), [format!("{:?}", StopReason::Killed)]);
    });
}

/// Wakes nobody: it panics.
struct Charged;

impl Wake for Charged {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[test]
fn a_waiter_whose_waker_panics_keeps_the_end_from_nobody() {
    within(On::PausedTime, async {
        let node = node();
        let (actor, log) = (flex(&node), Log::default());
        let news = node.spawn(Watcher(log.clone()));
        news.send(Watch(actor.clone())).await.unwrap();
        let mut waiter = Box::pin(actor.stopped());
        let waker = Waker::from(Arc::new(Charged));
        assert!(waiter.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
        let after = tokio::spawn(actor.stopped());
        settle().await;
        actor.send(act(|_, ctx| ctx.stop())).try_tell().unwrap();
        soon("the end", after).await.expect("it waits for it");
        settle().await;
        assert_eq!(lines(&log), ["Requested"]);
        let weak = actor.downgrade();
        drop((actor, waiter));
        assert!(weak.upgrade().is_none(), "the directory has let it go");
    });
}

#[test]
fn an_actor_survives_an_asker_whose_waker_panics() {
    within(On::OneThread, async {
        let actor = flex(&node());
        let waiting = later(async {
            tokio::task::yield_now().await;
            7
        });
        let mut ask = Box::pin(actor.send(waiting).into_future());
        let waker = Waker::from(Arc::new(Charged));
        assert!(ask.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
        settle().await;
        assert_eq!(ask.await, Ok(7));
        assert_eq!(actor.send(nothing()).await, Ok(0), "it has not failed");
    });
}

/// Joins a group when it is dropped.
struct JoinsAtDrop(Group<Flex>, ActorRef<Flex>);

impl Drop for JoinsAtDrop {
    fn drop(&mut self) {
        self.0.join(&self.1);
    }
}

impl Handler<JoinsAtDrop> for Flex {
    type Reply = ();

    async fn handle(&mut self, _: JoinsAtDrop, _: &mut Context<Self>) {}
}

/// What a handler has told is handed over before it looks at a group, and what a stopped actor
/// refuses is dropped then.
#[test]
fn a_refused_message_may_use_the_group_that_its_sender_looks_at() {
    within(On::Workers(2), async {
        let node = node();
        let (teller, target, member) = (flex(&node), flex(&node), flex(&node));
        let group = Group::from_iter([member.clone()]);
        let (killed, looked_at) = (target.clone(), group.clone());
        let telling = act(move |_, _| {
            for _ in 0..3 {
                target.send(Note(1)).try_tell().expect("it lives");
            }
            // On another worker.
            let runtime = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        killed.kill();
                        runtime.block_on(killed.stopped());
                    });
                });
            });
            // Into the lane that is open still: it is refused when the lane is handed over.
            let joins = JoinsAtDrop(looked_at.clone(), member.clone());
            target.send(joins).try_tell().expect("its end is not known here yet");
            assert_eq!(looked_at.members().len(), 1);
        });
        soon("the handler's end", teller.send(telling)).await.expect("it runs");
        assert_eq!(group.members().len(), 1, "it is a member once");
    });
}

type AtClone = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// The function of a waker that calls something when it is cloned for the first time; its data is
/// an `Arc<AtClone>`.
static CALLS_AT_CLONE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: the data is an `Arc`'s, which the waker at hand keeps.
        let at_clone: &AtClone = unsafe { &*data.cast() };
        let call = at_clone.lock().take();
        if let Some(call) = call {
            call();
        }
        // SAFETY: as above.
        unsafe { Arc::<AtClone>::increment_strong_count(data.cast()) }
        RawWaker::new(data, &CALLS_AT_CLONE)
    },
    |data| {
        // SAFETY: the waker's own reference, which ends with it.
        drop(unsafe { Arc::<AtClone>::from_raw(data.cast()) });
    },
    |_| {},
    |data| {
        // SAFETY: as above.
        drop(unsafe { Arc::<AtClone>::from_raw(data.cast()) });
    },
);

/// A waker that calls something when it is cloned, and wakes nobody.
fn calling_at_clone(call: impl FnOnce() + Send + 'static) -> Waker {
    let at_clone: Arc<AtClone> = Arc::new(Mutex::new(Some(Box::new(call))));
    // SAFETY: the functions take an `Arc<AtClone>` and keep count of it.
    unsafe { Waker::new(Arc::into_raw(at_clone).cast(), &CALLS_AT_CLONE) }
}

/// Polls once with a waker that calls something when it is cloned.
fn poll_calling<F: Future>(
    future: std::pin::Pin<&mut F>,
    call: impl FnOnce() + Send + 'static,
) -> Option<F::Output> {
    let waker = calling_at_clone(call);
    match future.poll(&mut task::Context::from_waker(&waker)) {
        task::Poll::Ready(output) => Some(output),
        task::Poll::Pending => None,
    }
}

struct Keeper(Arc<Mutex<Option<ReplyTo<u32>>>>);
struct Keep;

impl Actor for Keeper {
    const NAME: &'static str = "test.keeper";
}

impl Receives<Keep> for Keeper {
    type Reply = u32;
    type Way = Delayed;
}

impl DelayedHandler<Keep> for Keeper {
    type Reply = u32;

    async fn handle(&mut self, _: Keep, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        *self.0.lock() = Some(reply);
    }
}

#[test]
fn an_askers_waker_may_use_the_reply_when_it_is_cloned() {
    within(On::OneThread, async {
        let kept = Arc::new(Mutex::new(None));
        let keeper = node().spawn(Keeper(kept.clone()));
        let mut ask = Box::pin(keeper.send(Keep).into_future());
        assert!(futures_util::poll!(&mut ask).is_pending());
        settle().await;
        let reply = move || {
            let reply: ReplyTo<u32> = kept.lock().take().expect("it was kept");
            reply.send(7);
        };
        let answer = match poll_calling(ask.as_mut(), reply) {
            Some(answer) => answer,
            None => soon("the answer", ask).await,
        };
        assert_eq!(answer, Ok(7));
    });
}

#[test]
fn a_readers_waker_may_publish_when_it_is_cloned() {
    within(On::OneThread, async {
        let topic = node().topic::<u32>("numbers", TopicOptions::default());
        let mut stream = topic.stream(topic.last());
        let publishing = topic.clone();
        let publish = move || _ = publishing.publish(7).expect("nobody owns it");
        let mut next = Box::pin(stream.next());
        let event = match poll_calling(next.as_mut(), publish) {
            Some(event) => event,
            None => soon("the event", next).await,
        };
        assert_eq!(event.expect("the node lives").expect("no gap").payload, 7);
    });
}

/// Why a clerk failed; tells it once more when nobody keeps that any longer.
#[derive(Debug)]
struct LastWord(ActorRef<Clerk>);

impl std::fmt::Display for LastWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("on purpose")
    }
}

impl std::error::Error for LastWord {}

impl Drop for LastWord {
    fn drop(&mut self) {
        self.0.send(Note(3)).try_tell().ok();
    }
}

/// A named actor that fails when it is told to.
struct Clerk(Log);

struct Fail;

impl Actor for Clerk {
    const NAME: &'static str = "test.clerk";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Stop)
    }
}

impl Handler<Note> for Clerk {
    type Reply = ();

    async fn handle(&mut self, Note(n): Note, _: &mut Context<Self>) {
        self.0.lock().push(n.to_string());
    }
}

impl Handler<Fail> for Clerk {
    type Reply = ();

    async fn handle(&mut self, _: Fail, ctx: &mut Context<Self>) {
        let clerk = ctx.address();
        ctx.fail(LastWord(clerk));
    }
}

/// Why a life ended is kept until the next one ends, and then dropped: not under the actor's lock.
#[test]
fn the_cause_of_an_end_may_tell_its_actor_when_it_is_dropped() {
    within(On::OneThread, async {
        let log = Log::default();
        let each = log.clone();
        let node = Node::builder("test")
            .actor(move |_| {
                let log = each.clone();
                async move { Ok(Clerk(log)) }
            })
            .build();
        let clerk = node.get::<Clerk>("a");
        clerk.send(Fail).await.unwrap();
        settle().await;
        clerk.send(Note(2)).await.unwrap();
        soon("the stop", clerk.stop()).await;
        settle().await;
        assert_eq!(lines(&log), ["2", "3"]);
    });
}
