//! An actor that hands what it is told to the test.

use althing::{Actor, ActorOptions, ActorRef, Context, Handler, MailboxKind, Node};
use tokio::sync::mpsc;

/// Takes messages of type `M` for a test to look at.
///
/// ```
/// use althing_testkit::{Probe, World};
///
/// let world = World::new(7);
/// let node = world.node("test").build();
/// world.run(async {
///     let (probe, mut heard) = Probe::spawn(&node);
///     probe.send("one").tell().await.expect("it runs");
///     probe.send("two").tell().await.expect("it runs");
///     assert_eq!(heard.next().await, "one");
///     assert_eq!(heard.next().await, "two");
/// });
/// ```
#[derive(Debug)]
pub struct Probe<M> {
    heard: mpsc::UnboundedSender<M>,
}

/// What a probe was told, in order.
#[derive(Debug)]
pub struct Heard<M> {
    heard: mpsc::UnboundedReceiver<M>,
}

impl<M: Send + 'static> Actor for Probe<M> {
    const NAME: &'static str = "testkit.probe";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Unbounded)
    }
}

impl<M: Send + 'static> Handler<M> for Probe<M> {
    type Reply = ();

    async fn handle(&mut self, message: M, _ctx: &mut Context<Self>) {
        // A test that has stopped listening is over.
        self.heard.send(message).ok();
    }
}

impl<M: Send + 'static> Probe<M> {
    /// Starts a probe on `node`.
    pub fn spawn(node: &Node) -> (ActorRef<Self>, Heard<M>) {
        let (to, heard) = mpsc::unbounded_channel();
        (node.spawn(Self { heard: to }), Heard { heard })
    }
}

impl<M> Heard<M> {
    /// The next message; waits for it.
    ///
    /// # Panics
    /// If the probe has stopped and nothing is left.
    pub async fn next(&mut self) -> M {
        self.heard.recv().await.expect("the probe runs")
    }

    /// What has been told and not been taken.
    pub fn so_far(&mut self) -> Vec<M> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}
