//! What a handler borrows lives as long as its future: the context, the event, the state, and the
//! actor that a tell names.
//!
//! Each of these was once freed, or given to somebody else, while a future could still see it. No
//! such thing may follow from safe code, whatever a drop does and whenever a runtime ends.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Flex, Note, On, act, alone, flex, node, settle, within};
use althing::{
    Actor, ActorError, ActorRef, Context, EventHandler, Handler, Metrics, Node, Published,
    TopicOptions,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;

const PATIENCE: Duration = Duration::from_secs(5);

/// Waits in its first hook for ever, with its context in its hands.
struct Waiting(Arc<Mutex<Vec<String>>>);

/// Notes whose context this is, when it is made and when it is dropped.
struct SeesContext<'a>(Arc<Mutex<Vec<String>>>, &'a mut Context<Waiting>);

impl<'a> SeesContext<'a> {
    fn new(seen: &Arc<Mutex<Vec<String>>>, ctx: &'a mut Context<Waiting>) -> Self {
        seen.lock().push(ctx.id().to_string());
        Self(seen.clone(), ctx)
    }
}

impl Drop for SeesContext<'_> {
    fn drop(&mut self) {
        self.0.lock().push(self.1.id().to_string());
    }
}

/// Starts an actor when it is dropped, which takes the memory that has just been given back.
struct Spawns(Node);

impl Drop for Spawns {
    fn drop(&mut self) {
        self.0.spawn(Flex::default());
    }
}

impl Actor for Waiting {
    const NAME: &'static str = "test.waiting";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        let node = ctx.node();
        // Dropped in the opposite order: first an actor starts, then the context is looked at.
        let _sees = SeesContext::new(&self.0, ctx);
        let _spawns = Spawns(node);
        pending().await
    }
}

#[test]
fn a_context_stays_its_hooks_until_the_hook_is_dropped() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let node = runtime.block_on(async {
        let node = node();
        node.spawn(Waiting(seen.clone()));
        tokio::task::yield_now().await;
        node
    });
    // The hook is dropped with the runtime.
    drop(runtime);
    let seen = seen.lock().clone();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1], "the context names another actor by now");
    drop(node);
}

/// The steps of two threads that meet in one topic.
#[derive(Default)]
struct Steps {
    /// The publisher's thread has left the sixteenth subscriber.
    left: AtomicBool,
    /// Another thread is inside its handler.
    entered: AtomicBool,
    /// The publisher has come back.
    published: AtomicBool,
}

/// A subscriber that notices when its state is dropped while a handler uses it.
#[derive(Default)]
struct Subscriber {
    inside: Arc<AtomicBool>,
    dropped_inside: Arc<AtomicBool>,
    tells: Option<(ActorRef<Flex>, Arc<Steps>)>,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if self.inside.load(SeqCst) {
            self.dropped_inside.store(true, SeqCst);
        }
    }
}

impl Actor for Subscriber {
    const NAME: &'static str = "test.subscriber";
}

/// What panics when it is refused, once another thread is in the innocent subscriber.
struct Trap(Arc<Steps>);

impl Drop for Trap {
    fn drop(&mut self) {
        if thread::panicking() || self.0.left.swap(true, SeqCst) {
            return;
        }
        wait_for(&self.0.entered);
        panic!("a drop on purpose");
    }
}

fn wait_for(flag: &AtomicBool) {
    let begun = Instant::now();
    while !flag.load(SeqCst) && begun.elapsed() < PATIENCE {
        thread::yield_now();
    }
}

impl Handler<Trap> for Flex {
    type Reply = ();

    async fn handle(&mut self, trap: Trap, _: &mut Context<Self>) {
        trap.0.left.store(true, SeqCst);
    }
}

impl EventHandler<u64> for Subscriber {
    async fn event(&mut self, _: &Published<u64>, _: &mut Context<Self>) {
        if let Some((refusing, steps)) = &self.tells {
            refusing.send(Note(0)).try_tell().expect("there is room");
            // In a bundle, which is handed over once sixteen subscribers have run.
            refusing.send(Trap(steps.clone())).try_tell().expect("there is room");
            refusing.kill();
        }
    }
}

struct Dwell(Arc<Steps>);

impl Handler<Dwell> for Subscriber {
    type Reply = ();

    async fn handle(&mut self, Dwell(steps): Dwell, _: &mut Context<Self>) {
        self.inside.store(true, SeqCst);
        steps.entered.store(true, SeqCst);
        // `&mut self` is this handler's for all this time.
        wait_for(&steps.published);
        self.inside.store(false, SeqCst);
    }
}

/// A panic between two subscribers must not be taken for one of the subscriber that was just left:
/// another thread may run it.
#[test]
fn a_state_is_never_dropped_while_its_handler_runs() {
    within(On::Workers(3), async {
        // Without samples, so that the sixteen run in one loop.
        let node = Node::builder("test").metrics(Metrics::Off).build();
        let topic = node.topic::<u64>("numbers", TopicOptions::default());
        let steps = Arc::<Steps>::default();
        let mut first = Subscriber::default();
        first.tells = Some((flex(&node), steps.clone()));
        let innocent = Subscriber::default();
        let dropped_inside = innocent.dropped_inside.clone();
        let mut all = vec![node.spawn(first)];
        all.extend((0..14).map(|_| node.spawn(Subscriber::default())));
        let innocent = node.spawn(innocent);
        all.push(innocent.clone());
        let _subscriptions: Vec<_> = all.iter().map(|one| topic.subscribe(one)).collect();
        let handle = Handle::current();
        let of_other = steps.clone();
        let other = thread::spawn(move || {
            wait_for(&of_other.left);
            handle.block_on(async { innocent.send(Dwell(of_other)).timeout(PATIENCE).await })
        });
        let publisher = tokio::spawn(async move { topic.publish(1) });
        let published = publisher.await.map_err(|error| error.is_panic());
        steps.published.store(true, SeqCst);
        let dwelt = tokio::task::spawn_blocking(|| other.join().unwrap()).await.unwrap();
        assert!(!dropped_inside.load(SeqCst), "published: {published:?}, dwelt: {dwelt:?}");
    });
}

/// Of another type and shape than [`Flex`].
struct Other {
    words: [u64; 8],
    read: Arc<Mutex<Vec<[u64; 8]>>>,
}

struct Read;

impl Actor for Other {
    const NAME: &'static str = "test.other";
}

impl Handler<Read> for Other {
    type Reply = ();

    async fn handle(&mut self, _: Read, _: &mut Context<Self>) {
        let words = self.words;
        self.read.lock().push(words);
    }
}

/// Tells twice when it is dropped, which makes a bundle.
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

/// In a process of its own: a handler that runs on the memory of another type's state can do
/// anything.
#[test]
fn a_handler_runs_on_a_state_of_its_own_type() {
    alone("lifetimes::a_handler_runs_on_a_state_of_its_own_type", || {
        within(On::PausedTime, async {
            let node = node();
            let read = Arc::default();
            let x = node.spawn(Other { words: [7; 8], read: Arc::clone(&read) });
            let (teller, refusing, y) = (flex(&node), flex(&node), flex(&node));
            let telling = act(move |_, _| {
                refusing.send(TellsAtDrop(None)).try_tell().unwrap();
                refusing.send(TellsAtDrop(Some(y))).try_tell().unwrap();
                refusing.kill();
                x.send(Read).try_tell().unwrap();
                x.send(Read).try_tell().unwrap();
            });
            teller.send(telling).await.unwrap();
            settle().await;
            assert_eq!(*read.lock(), [[7; 8]; 2]);
        });
    });
}
