//! What an actor lets out arrives in the order in which it let it out: tells, replies, events,
//! futures that go on elsewhere.
//!
//! Tells of one handler travel in bundles. Whatever leaves the handler by another way must not
//! overtake a bundle, and a bundle must not reach anybody but the actor that it was made for.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    AtDrop, Count, Flex, Note, On, act, flex, later, lines, logging, node, soon, within,
};
use althing::{
    Actor, ActorRef, Context, EventHandler, Handler, Published, Subscription, Topic, TopicOptions,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the actor has taken everything it was sent into its hands.
async fn drained(actor: &ActorRef<Flex>) {
    while actor.mailbox_depth() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Two tells: the second one begins a bundle.
fn tell_twice(to: &ActorRef<Flex>) {
    to.send(Note(1)).try_tell().expect("there is room");
    to.send(Note(2)).try_tell().expect("there is room");
}

/// Tokio keeps the latest task for its own worker; this one sets the told actor's free for another,
/// while the handler goes on.
fn set_the_told_free() {
    tokio::spawn(async {});
}

#[test]
fn a_reply_comes_after_the_tells_that_its_handler_made() {
    within(On::Workers(3), async {
        let node = node();
        let (teller, told) = (flex(&node), flex(&node));
        let (release, wait) = oneshot::channel::<()>();
        teller.send(later(async { wait.await.map_or(1, |()| 0) })).try_tell().unwrap();
        drained(&teller).await;
        // The asker is no task, as the body of `main` is none, so that its asks go through
        // mailboxes.
        let handle = Handle::current();
        let has_counted = Arc::new(AtomicBool::new(false));
        let asker = tokio::task::spawn_blocking({
            let (teller, told, counting) = (teller.clone(), told.clone(), has_counted.clone());
            move || {
                handle.block_on(async move {
                    let to = told.clone();
                    let telling = act(move |_, _| {
                        tell_twice(&to);
                        set_the_told_free();
                    });
                    teller.send(telling).timeout(PATIENCE).await.unwrap();
                    let count = told.send(Count).timeout(PATIENCE).await.unwrap();
                    counting.store(true, SeqCst);
                    count
                })
            }
        });
        while teller.mailbox_depth() < 1 {
            tokio::task::yield_now().await;
        }
        // More work in the same batch, during which the bundle is not handed over by itself.
        for _ in 0..14 {
            let has_counted = has_counted.clone();
            teller.send(act(move |_, _| wait_until(&has_counted))).try_tell().unwrap();
        }
        release.send(()).unwrap();
        assert_eq!(soon("the asker", asker).await.unwrap(), 2);
    });
}

#[test]
fn a_detached_future_runs_after_the_tells_made_before_it() {
    within(On::Workers(3), async {
        let node = node();
        let (teller, told) = (flex(&node), flex(&node));
        let (tx, seen) = oneshot::channel();
        let detaching = act(move |_, ctx| {
            tell_twice(&told);
            let has_counted = Arc::new(AtomicBool::new(false));
            let counting = has_counted.clone();
            ctx.detach(async move {
                tx.send(told.send(Count).timeout(PATIENCE).await).ok();
                counting.store(true, SeqCst);
            });
            // Tokio keeps the latest task for its own worker; this one sets the first free for
            // another.
            ctx.detach(async {});
            wait_until(&has_counted);
        });
        teller.send(detaching).try_tell().unwrap();
        assert_eq!(soon("the detached future", seen).await.unwrap(), Ok(2));
    });
}

#[test]
fn a_channel_of_somebody_elses_is_seen_after_the_tells_made_before_it() {
    within(On::Workers(3), async {
        let node = node();
        let (teller, told) = (flex(&node), flex(&node));
        let (tx, rx) = oneshot::channel();
        let has_counted = Arc::new(AtomicBool::new(false));
        let (to, counting) = (told.clone(), has_counted.clone());
        let sending = act(move |_, _| {
            tell_twice(&to);
            set_the_told_free();
            tx.send(()).ok();
            wait_until(&has_counted);
        });
        teller.send(sending).try_tell().unwrap();
        let handle = Handle::current();
        let seen = tokio::task::spawn_blocking(move || {
            handle.block_on(async move {
                soon("the channel", rx).await.unwrap();
                let count = told.send(Count).timeout(PATIENCE).await;
                counting.store(true, SeqCst);
                count
            })
        });
        assert_eq!(soon("the count", seen).await.unwrap(), Ok(2));
    });
}

#[test]
fn a_handler_tells_after_what_it_saw_another_running_one_tell() {
    within(On::Workers(3), async {
        let node = node();
        let ((told, log), first, second) = (logging(&node), flex(&node), flex(&node));
        let step = Arc::new(AtomicU32::new(0));
        let wait_for = |step: &AtomicU32, wanted| {
            let until = Instant::now() + PATIENCE;
            while step.load(SeqCst) < wanted && Instant::now() < until {
                thread::yield_now();
            }
        };
        let (to, at) = (told.clone(), step.clone());
        let one = act(move |_, _| {
            tell_twice(&to);
            at.store(1, SeqCst);
            wait_for(&at, 2);
            to.send(Note(3)).try_tell().expect("there is room");
            at.store(3, SeqCst);
            wait_for(&at, 4);
        });
        let (to, at) = (told.clone(), step.clone());
        let other = act(move |_, _| {
            wait_for(&at, 1);
            tell_twice(&to);
            at.store(2, SeqCst);
            wait_for(&at, 3);
            to.send(Note(4)).try_tell().expect("there is room");
            at.store(4, SeqCst);
        });
        first.send(one).try_tell().unwrap();
        second.send(other).try_tell().unwrap();
        soon("the end of both", async {
            while lines(&log).len() < 6 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(lines(&log), ["1", "2", "1", "2", "3", "4"]);
    });
}

/// Hears events and is told, and says whether an event came before the tell made before it.
struct Listener {
    told: bool,
    heard: mpsc::Sender<bool>,
}

/// Whether it is the last one, which is in a bundle.
struct Told(bool);

impl Actor for Listener {
    const NAME: &'static str = "test.listener";
}

impl Handler<Told> for Listener {
    type Reply = ();

    async fn handle(&mut self, Told(is_last): Told, _: &mut Context<Self>) {
        self.told = is_last;
    }
}

/// What the test's topic carries.
enum Step {
    /// Is popped from the replay ring by the event that matters, and then sees to it that another
    /// thread delivers that one.
    Oldest(#[expect(dead_code, reason = "it acts when it is dropped")] AtDrop<Release>),
    /// Keeps another thread at the topic's delivery.
    Busy,
    /// Was told of before it was published.
    Announced,
}

type Release = Box<dyn FnMut() + Send + Sync>;

impl EventHandler<Step> for Listener {
    async fn event(&mut self, event: &Published<Step>, _: &mut Context<Self>) {
        if matches!(event.payload, Step::Announced) {
            self.heard.send(self.told).ok();
        }
    }
}

/// Blocks whoever delivers [`Step::Busy`] until it is released.
struct Blocker {
    delivering: Arc<AtomicBool>,
    released: Arc<AtomicBool>,
}

impl Actor for Blocker {
    const NAME: &'static str = "test.blocker";
}

impl EventHandler<Step> for Blocker {
    async fn event(&mut self, event: &Published<Step>, _: &mut Context<Self>) {
        if matches!(event.payload, Step::Busy) {
            self.delivering.store(true, SeqCst);
            wait_until(&self.released);
        }
    }
}

fn wait_until(flag: &AtomicBool) {
    let began = Instant::now();
    while !flag.load(SeqCst) && began.elapsed() < PATIENCE {
        thread::yield_now();
    }
}

/// Another thread is at the topic's delivery, so that it takes the next event as soon as that is in
/// the topic.
fn another_thread_delivers(topic: &Topic<Step>, blocker: &Blocker) {
    let (released, topic_of_another) = (blocker.released.clone(), topic.clone());
    let oldest: Release = Box::new(move || {
        released.store(true, SeqCst);
        // What must not happen, that the event is heard already, gets this long to happen.
        thread::sleep(Duration::from_millis(300));
    });
    topic.publish(Step::Oldest(AtDrop(oldest))).expect("anybody may publish");
    let handle = Handle::current();
    thread::spawn(move || {
        handle.block_on(async {
            tokio::spawn(async move { topic_of_another.publish(Step::Busy) }).await.ok();
        });
    });
    wait_until(&blocker.delivering);
}

#[test]
fn an_event_comes_after_the_tells_that_its_publisher_made_before_it() {
    within(On::Workers(3), async {
        let node = node();
        let topic = node.topic::<Step>("steps", TopicOptions { replay: 2 });
        let (delivering, released) = (Arc::default(), Arc::default());
        let blocker =
            || Blocker { delivering: Arc::clone(&delivering), released: Arc::clone(&released) };
        let (heard, was_told) = mpsc::channel();
        let first = node.spawn(blocker());
        let listener = node.spawn(Listener { told: false, heard });
        let _subscriptions: [Subscription; 2] =
            [topic.subscribe(&first), topic.subscribe(&listener)];
        another_thread_delivers(&topic, &blocker());
        let publishing = act(move |_, _| {
            listener.send(Told(false)).try_tell().unwrap();
            listener.send(Told(true)).try_tell().unwrap();
            topic.publish(Step::Announced).expect("anybody may publish");
        });
        flex(&node).send(publishing).await.unwrap();
        let was_told = tokio::task::spawn_blocking(move || was_told.recv_timeout(PATIENCE));
        assert_eq!(was_told.await.unwrap(), Ok(true));
    });
}

/// Tells twice when it is dropped.
struct TellsAtDrop(Option<ActorRef<Flex>>);

impl Drop for TellsAtDrop {
    fn drop(&mut self) {
        if let Some(to) = self.0.take() {
            to.send(Note(100)).try_tell().ok();
            to.send(Note(101)).try_tell().ok();
        }
    }
}

impl Handler<TellsAtDrop> for Flex {
    type Reply = ();

    async fn handle(&mut self, mut message: TellsAtDrop, _: &mut Context<Self>) {
        message.0 = None;
    }
}

/// A refused bundle is dropped when the next one begins. If its messages tell meanwhile, two
/// bundles are under way on one thread.
#[test]
fn tells_that_a_refused_message_makes_go_to_whom_they_name() {
    within(On::OneThread, async {
        let node = node();
        let ((x, log_of_x), (y, log_of_y)) = (logging(&node), logging(&node));
        let (teller, refusing) = (flex(&node), flex(&node));
        let telling = act(move |_, _| {
            refusing.send(TellsAtDrop(None)).try_tell().unwrap();
            refusing.send(TellsAtDrop(Some(y))).try_tell().unwrap();
            refusing.kill();
            for n in 1..=3 {
                x.send(Note(n)).try_tell().unwrap();
            }
        });
        teller.send(telling).await.unwrap();
        crate::support::settle().await;
        assert_eq!(lines(&log_of_x), ["1", "2", "3"]);
        assert_eq!(lines(&log_of_y), ["100", "101"]);
    });
}
