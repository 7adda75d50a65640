//! What the tests of the runtime's promises share: runtimes with a watchdog, and an actor that does
//! what it is told.
//!
//! A broken promise often shows as a hang, and some hangs hold a thread. So every test runs on a
//! thread of its own and is given up after [`LIMIT`]; what is left of it ends with the process. The
//! test body is a task, because only tasks run idle actors in place.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use althing::{Actor, ActorRef, Context, Handler, Node, Terminated};
use parking_lot::Mutex;
use tokio::runtime::Builder;

/// Far above what any test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Far above what an answer takes, below [`LIMIT`].
const SOON: Duration = Duration::from_secs(5);
/// Names the test for whose sake a process was started.
const ALONE: &str = "ALTHING_TEST_ALONE";

/// What a test runs on.
#[derive(Clone, Copy)]
pub(crate) enum On {
    /// The one thread of a runtime.
    OneThread,
    /// The same, in time that passes only while nobody has anything to do.
    PausedTime,
    /// That many workers.
    Workers(usize),
}

/// Runs `test` as a task of a runtime of its own; one that hangs fails.
pub(crate) fn within(on: On, test: impl Future<Output = ()> + Send + 'static) {
    watched(move || {
        let runtime = match on {
            On::OneThread => Builder::new_current_thread().enable_all().build(),
            On::PausedTime => Builder::new_current_thread().enable_all().start_paused(true).build(),
            On::Workers(workers) => {
                Builder::new_multi_thread().worker_threads(workers).enable_all().build()
            }
        };
        let runtime = runtime.expect("a runtime can be built");
        let outcome = runtime.block_on(async { tokio::spawn(test).await });
        runtime.shutdown_background();
        if let Err(error) = outcome {
            std::panic::resume_unwind(error.into_panic());
        }
    });
}

/// Runs `test` on a thread of its own; one that hangs fails.
pub(crate) fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Sends when it drops, so that a panic is no hang.
        let _done = Done(done);
        test();
    });
    let outcome = wait.recv_timeout(LIMIT);
    assert!(outcome.is_ok(), "not done within {LIMIT:?}");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

struct Done(mpsc::Sender<()>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

/// Runs `test`, which is the body of the test called `name`, in a process of its own: it may abort.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|alone| alone == name) {
        return test();
    }
    let program = std::env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, name)
        .output()
        .expect("the test's program starts again");
    let said = String::from_utf8_lossy(&output.stderr);
    let heard = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{heard}\n{said}", output.status);
    assert!(heard.contains("1 passed"), "no test is called {name}:\n{heard}");
}

/// The output of a future that has little to wait for.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(output) => output,
        Err(_) => panic!("held up: {what}"),
    }
}

/// Lets everybody else go on until nobody has anything to do: in paused time only then does time
/// pass.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// What a log has by now.
pub(crate) fn lines(log: &Log) -> Vec<String> {
    log.lock().clone()
}

/// Does what it is told.
#[derive(Default)]
pub(crate) struct Flex {
    pub(crate) log: Log,
    pub(crate) kept: Vec<Box<dyn Any + Send + Sync>>,
}

pub(crate) type Doing<'a> = Pin<Box<dyn Future<Output = u64> + Send + 'a>>;

type Act = dyn for<'a> FnOnce(&'a mut Flex, &'a mut Context<Flex>) -> Doing<'a> + Send;

/// What a [`Flex`] is to do.
pub(crate) struct Do(pub(crate) Box<Act>);

/// A line for the log; replies with how many lines it has.
pub(crate) struct Note(pub(crate) u32);

/// Replies with how many lines the log has.
pub(crate) struct Count;

impl Actor for Flex {
    const NAME: &'static str = "test.flex";
}

impl Handler<Do> for Flex {
    type Reply = u64;

    async fn handle(&mut self, Do(act): Do, ctx: &mut Context<Self>) -> u64 {
        act(self, ctx).await
    }
}

impl Handler<Note> for Flex {
    type Reply = usize;

    async fn handle(&mut self, Note(n): Note, _: &mut Context<Self>) -> usize {
        let mut log = self.log.lock();
        log.push(n.to_string());
        log.len()
    }
}

impl Handler<Count> for Flex {
    type Reply = usize;

    async fn handle(&mut self, _: Count, _: &mut Context<Self>) -> usize {
        lines(&self.log).len()
    }
}

/// Something to do without waiting.
pub(crate) fn act(act: impl FnOnce(&mut Flex, &mut Context<Flex>) + Send + 'static) -> Do {
    Do(Box::new(move |flex, ctx| {
        Box::pin(async move {
            act(flex, ctx);
            0
        })
    }))
}

/// Something to do that waits and needs neither state nor context.
pub(crate) fn later(future: impl Future<Output = u64> + Send + 'static) -> Do {
    Do(Box::new(move |_, _| Box::pin(future)))
}

/// Nothing to do.
pub(crate) fn nothing() -> Do {
    act(|_, _| {})
}

pub(crate) fn node() -> Node {
    Node::builder("test").build()
}

pub(crate) fn flex(node: &Node) -> ActorRef<Flex> {
    node.spawn(Flex::default())
}

/// A [`Flex`] whose log is here too.
pub(crate) fn logging(node: &Node) -> (ActorRef<Flex>, Log) {
    let log = Log::default();
    (node.spawn(Flex { log: log.clone(), kept: Vec::new() }), log)
}

/// Panics when it is dropped, except during another panic, which would end the process.
pub(crate) struct Charge;

impl Drop for Charge {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a drop on purpose");
    }
}

/// Calls something when it is dropped.
pub(crate) struct AtDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// What an actor fails with; it does what is in it when it is dropped.
pub(crate) struct Cause<T>(pub(crate) T);

impl<T> fmt::Debug for Cause<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}

impl<T> fmt::Display for Cause<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on purpose")
    }
}

impl<T> std::error::Error for Cause<T> {}

/// Watches whom it is told to.
pub(crate) struct Watcher;

pub(crate) struct Watch<A: Actor>(pub(crate) ActorRef<A>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, _: Terminated) {}
}

impl<A: Actor> Handler<Watch<A>> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch<A>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}
