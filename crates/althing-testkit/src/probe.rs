//! An actor that hands what it is told to the test, and answers what the test says.

use std::sync::Arc;

use althing::{
    Actor, ActorOptions, ActorRef, Context, Handler, KindName, MailboxKind, Node, Supervision,
    WeakRef,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Takes messages of type `M` for a test to look at, and replies `R`.
///
/// A probe that replies `()` does so by itself. Any other answers by a rule ([`Heard::answers`]),
/// or when the test has looked at the question ([`Heard::next_ask`]); it answers one question after
/// the other.
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
///
///     let (prices, mut asked) = Probe::<&str, u32>::spawn_asked(&node);
///     asked.answers(|thing| u32::try_from(thing.len()).unwrap());
///     assert_eq!(prices.send("bread").await, Ok(5));
///     assert_eq!(asked.next().await, "bread");
/// });
/// ```
pub struct Probe<M, R = ()> {
    heard: Sender<M, R>,
    rule: SharedRule<M, R>,
}

/// A probe that has no node yet: for factories, which are written before their node is built.
///
/// ```
/// use althing::{ActorRef, actor};
/// use althing_testkit::{Probe, World};
///
/// struct Greeter(ActorRef<Probe<String>>);
///
/// #[actor(name = "example.greeter")]
/// impl Greeter {
///     async fn greet(&mut self, name: String) {
///         self.0.send(format!("Hello, {name}")).tell().await.ok();
///     }
/// }
///
/// let world = World::new(7);
/// let (log, mut heard) = Probe::unplaced();
/// let node = world
///     .node("test")
///     .actor(move |start| {
///         let log = log.on(&start.node());
///         async move { Ok(Greeter(log)) }
///     })
///     .build();
/// world.run(async {
///     node.get::<Greeter>("Reykjavik").greet("Ada".to_owned()).await.expect("it runs");
///     assert_eq!(heard.next().await, "Hello, Ada");
/// });
/// ```
pub struct Unplaced<M: Send + 'static, R: Send + 'static = ()> {
    heard: Sender<M, R>,
    rule: SharedRule<M, R>,
    placed: Arc<Mutex<Placed<M, R>>>,
}

/// What a probe was told and asked, in order.
pub struct Heard<M, R = ()> {
    heard: mpsc::UnboundedReceiver<(M, Option<Answer<R>>)>,
    rule: SharedRule<M, R>,
}

/// The reply that an asker of a probe waits for. Dropped, it fails the ask, as a handler that
/// panics does.
pub struct Answer<R> {
    to: oneshot::Sender<R>,
}

type Sender<M, R> = mpsc::UnboundedSender<(M, Option<Answer<R>>)>;
type Rule<M, R> = Box<dyn FnMut(&M) -> R + Send>;
type Placed<M, R> = Vec<WeakRef<Probe<M, R>>>;
type SharedRule<M, R> = Arc<Mutex<Option<Rule<M, R>>>>;

impl<M: Send + 'static, R: Send + 'static> Actor for Probe<M, R> {
    const NAME: &'static str = "testkit.probe";

    fn kind_name() -> KindName {
        let (asked, answered) = (std::any::type_name::<M>(), std::any::type_name::<R>());
        KindName::new(format!("{}<{asked}, {answered}>", Self::NAME))
    }

    fn options() -> ActorOptions {
        // A dropped answer panics its handler, and the probe must live on.
        ActorOptions::default().mailbox(MailboxKind::Unbounded).supervision(Supervision::Resume)
    }
}

impl<M: Send + 'static, R: Send + 'static> Handler<M> for Probe<M, R> {
    type Reply = R;

    async fn handle(&mut self, message: M, _ctx: &mut Context<Self>) -> R {
        let ruled = self.rule.lock().as_mut().map(|rule| rule(&message));
        // A test that has stopped listening is over.
        if let Some(reply) = ruled {
            self.heard.send((message, None)).ok();
            return reply;
        }
        let (to, reply) = oneshot::channel();
        self.heard.send((message, Some(Answer { to }))).ok();
        reply.await.expect("the test answers what a probe was asked")
    }
}

impl<M: Send + 'static> Probe<M> {
    /// Starts a probe on `node` that replies by itself.
    pub fn spawn(node: &Node) -> (ActorRef<Self>, Heard<M>) {
        let (unplaced, heard) = Self::unplaced();
        (unplaced.on(node), heard)
    }

    /// A probe that replies by itself and has no node yet.
    pub fn unplaced() -> (Unplaced<M>, Heard<M>) {
        let (unplaced, heard) = Self::unplaced_asked();
        heard.answers(|_| ());
        (unplaced, heard)
    }
}

impl<M: Send + 'static, R: Send + 'static> Probe<M, R> {
    /// Starts a probe on `node` that the test answers for.
    pub fn spawn_asked(node: &Node) -> (ActorRef<Self>, Heard<M, R>) {
        let (unplaced, heard) = Self::unplaced_asked();
        (unplaced.on(node), heard)
    }

    /// A probe that the test answers for and that has no node yet.
    pub fn unplaced_asked() -> (Unplaced<M, R>, Heard<M, R>) {
        let (to, heard) = mpsc::unbounded_channel();
        let rule = SharedRule::default();
        let unplaced = Unplaced { heard: to, rule: rule.clone(), placed: Arc::default() };
        (unplaced, Heard { heard, rule })
    }
}

impl<M: Send + 'static, R: Send + 'static> Unplaced<M, R> {
    /// The probe's address on `node`, where it is started if it is not there. What several of them
    /// hear comes to one test.
    pub fn on(&self, node: &Node) -> ActorRef<Probe<M, R>> {
        let mut placed = self.placed.lock();
        let mut there = placed.iter().filter_map(WeakRef::upgrade);
        let found = there.find(|probe| !probe.is_stopped() && probe.node() == *node);
        found.unwrap_or_else(|| {
            let probe = node.spawn(Probe { heard: self.heard.clone(), rule: self.rule.clone() });
            placed.push(probe.downgrade());
            probe
        })
    }
}

impl<M, R> Heard<M, R> {
    /// Has the probe answer by a rule from now on.
    pub fn answers(&self, rule: impl FnMut(&M) -> R + Send + 'static) {
        *self.rule.lock() = Some(Box::new(rule));
    }

    /// The next message; waits for it.
    ///
    /// # Panics
    /// If the probe has stopped and nothing is left.
    pub async fn next(&mut self) -> M {
        self.heard.recv().await.expect("the probe runs").0
    }

    /// The next question, and where its answer goes; waits for it.
    ///
    /// # Panics
    /// If the probe answered by its rule, or has stopped and nothing is left.
    pub async fn next_ask(&mut self) -> (M, Answer<R>) {
        let (message, answer) = self.heard.recv().await.expect("the probe runs");
        (message, answer.expect("a probe with a rule has answered already"))
    }

    /// What has been told and not been taken.
    pub fn so_far(&mut self) -> Vec<M> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).map(|(message, _)| message).collect()
    }
}

impl<R> Answer<R> {
    /// Answers; returns whether the probe still waits for it.
    pub fn send(self, reply: R) -> bool {
        self.to.send(reply).is_ok()
    }
}

impl<M: Send + 'static, R: Send + 'static> Clone for Unplaced<M, R> {
    fn clone(&self) -> Self {
        let (heard, rule) = (self.heard.clone(), self.rule.clone());
        Self { heard, rule, placed: self.placed.clone() }
    }
}

impl<M, R> std::fmt::Debug for Probe<M, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

impl<M: Send + 'static, R: Send + 'static> std::fmt::Debug for Unplaced<M, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unplaced")
    }
}

impl<M, R> std::fmt::Debug for Heard<M, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heard")
    }
}

impl<R> std::fmt::Debug for Answer<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}
