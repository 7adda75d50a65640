//! kameo under the shared workloads: mailboxes bounded to 1,024 (its default is 64) or unbounded,
//! as asked; tracing compiled out.

use althing_bench_workloads::{CountingAllocator, Mailbox, System, Tally, main as run};
use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::mailbox;
use kameo::message::{Context, Message};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Kameo {
    runtime: Runtime,
    mailbox: Mailbox,
}

struct Counter(Tally);

impl Actor for Counter {
    type Args = Tally;
    type Error = Infallible;

    async fn on_start(tally: Tally, _: ActorRef<Self>) -> Result<Self, Infallible> {
        tally.started();
        Ok(Self(tally))
    }
}

struct Add(u64);

impl Message<Add> for Counter {
    type Reply = u64;

    async fn handle(&mut self, message: Add, _: &mut Context<Self, u64>) -> u64 {
        self.0.add(message.0)
    }
}

struct Producer(ActorRef<Counter>);

impl Actor for Producer {
    type Args = ActorRef<Counter>;
    type Error = Infallible;

    async fn on_start(target: Self::Args, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self(target))
    }
}

struct Burst(u64);

impl Message<Burst> for Producer {
    type Reply = ();

    async fn handle(&mut self, message: Burst, _: &mut Context<Self, ()>) {
        for number in 0..message.0 {
            Kameo::tell(&self.0, number).await;
        }
    }
}

impl System for Kameo {
    const NAME: &'static str = "kameo";
    const PUBLISHES_BY: &'static str = "loop of tells";
    type Address = ActorRef<Counter>;
    type Producer = ActorRef<Producer>;
    type Group = Vec<ActorRef<Counter>>;

    fn start() -> Self {
        let runtime =
            Builder::new_multi_thread().enable_all().build().expect("a tokio runtime starts");
        Self { runtime, mailbox: Mailbox::asked_for() }
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    async fn spawn(&self, tally: Tally) -> Self::Address {
        let mailbox = match self.mailbox {
            Mailbox::Bounded => mailbox::bounded(Mailbox::LEN_MAX as usize),
            Mailbox::Unbounded => mailbox::unbounded(),
        };
        Counter::spawn_with_mailbox(tally, mailbox)
    }

    async fn spawn_producer(&self, target: Self::Address) -> Self::Producer {
        Producer::spawn(target)
    }

    async fn burst(producer: &Self::Producer, count: u64) {
        producer.tell(Burst(count)).await.expect("producers live as long as the run");
    }

    async fn tell(to: &Self::Address, number: u64) {
        to.tell(Add(number)).await.expect("counters live as long as the run");
    }

    async fn ask(to: &Self::Address, number: u64) -> u64 {
        to.ask(Add(number)).await.expect("counters live as long as the run")
    }

    async fn stop(address: Self::Address) {
        address.stop_gracefully().await.expect("a counter is stopped once");
    }

    async fn group(&self, members: Vec<Tally>) -> Self::Group {
        let mut group = Vec::with_capacity(members.len());
        for tally in members {
            group.push(self.spawn(tally).await);
        }
        group
    }

    async fn publish(group: &Self::Group, number: u64) {
        for member in group {
            Self::tell(member, number).await;
        }
    }
}

fn main() -> ExitCode {
    run::<Kameo>(std::env::args().skip(1))
}
