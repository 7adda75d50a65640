//! Althing under the shared workloads, through its public API: default mailboxes (bounded, 1,024)
//! or unbounded ones, as asked; metrics on.

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, EventHandler, Handler, MailboxKind,
    Metrics, Node, Published, Subscription, Topic, TopicOptions,
};
use althing_bench_workloads::{Mailbox, System, Tally};
use std::thread;
use tokio::runtime::{Builder, Runtime};

pub(crate) struct Althing {
    runtime: Runtime,
    node: Node,
}

impl Althing {
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Runs `work` inside the runtime, where a node can be built.
    pub(crate) fn enter_with<T>(&self, work: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        work()
    }
}

pub(crate) struct Counter(Tally);

impl Actor for Counter {
    const NAME: &'static str = "bench.counter";

    fn options() -> ActorOptions {
        match Mailbox::asked_for() {
            Mailbox::Bounded => ActorOptions::default(),
            Mailbox::Unbounded => ActorOptions::default().mailbox(MailboxKind::Unbounded),
        }
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.0.started();
        Ok(())
    }
}

pub(crate) struct Add(u64);

impl Handler<Add> for Counter {
    type Reply = u64;

    async fn handle(&mut self, message: Add, _: &mut Context<Self>) -> u64 {
        self.0.add(message.0)
    }
}

impl EventHandler<u64> for Counter {
    async fn event(&mut self, event: &Published<u64>, _: &mut Context<Self>) {
        self.0.add(event.payload);
    }
}

pub(crate) struct Producer(ActorRef<Counter>);

impl Actor for Producer {
    const NAME: &'static str = "bench.producer";
}

struct Burst(u64);

impl Handler<Burst> for Producer {
    type Reply = ();

    async fn handle(&mut self, message: Burst, _: &mut Context<Self>) {
        for number in 0..message.0 {
            Althing::tell(&self.0, number).await;
        }
    }
}

/// A topic and what keeps its subscribers.
pub(crate) struct Group {
    topic: Topic<u64>,
    _subscriptions: Vec<Subscription>,
    _members: Vec<ActorRef<Counter>>,
}

impl Althing {
    pub(crate) fn with(metrics: Metrics, workers: usize) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .expect("a tokio runtime starts");
        let node = {
            let _inside = runtime.enter();
            Node::builder("bench").metrics(metrics).build()
        };
        Self { runtime, node }
    }
}

impl System for Althing {
    const NAME: &'static str = "althing";
    const PUBLISHES_BY: &'static str = "topic";
    type Address = ActorRef<Counter>;
    type Producer = ActorRef<Producer>;
    type Group = Group;

    fn start() -> Self {
        Self::with(Metrics::On, thread::available_parallelism().map_or(1, usize::from))
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Inside the runtime's context: a tell that waits for room sets a timer.
    fn on_thread<F: Future>(&self, future: F) -> F::Output {
        self.runtime.handle().block_on(future)
    }

    async fn spawn(&self, tally: Tally) -> Self::Address {
        self.node.spawn(Counter(tally))
    }

    async fn spawn_producer(&self, target: Self::Address) -> Self::Producer {
        self.node.spawn(Producer(target))
    }

    async fn burst(producer: &Self::Producer, count: u64) {
        producer.send(Burst(count)).tell().await.expect("producers live as long as the run");
    }

    async fn tell(to: &Self::Address, number: u64) {
        to.send(Add(number)).tell().await.expect("counters live as long as the run");
    }

    async fn ask(to: &Self::Address, number: u64) -> u64 {
        to.send(Add(number)).await.expect("counters live as long as the run")
    }

    async fn stop(address: Self::Address) {
        // The call sends the stop; its future would wait until the actor is gone.
        drop(address.stop());
    }

    async fn group(&self, members: Vec<Tally>) -> Self::Group {
        let topic = self.node.topic("bench", TopicOptions::default());
        let members: Vec<_> =
            members.into_iter().map(|tally| self.node.spawn(Counter(tally))).collect();
        let subscriptions = members.iter().map(|member| topic.subscribe(member)).collect();
        Group { topic, _subscriptions: subscriptions, _members: members }
    }

    async fn publish(group: &Self::Group, number: u64) {
        group.topic.publish(number).expect("nobody owns the topic");
    }
}
