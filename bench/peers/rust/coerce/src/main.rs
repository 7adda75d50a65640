//! coerce under the shared workloads: anonymous actors started without waiting for
//! them, unbounded mailboxes (it has no others).

use althing_bench_workloads::{CountingAllocator, System, Tally, main as run};
use coerce::actor::context::ActorContext;
use coerce::actor::message::{Handler, Message};
use coerce::actor::scheduler::ActorType::Anonymous;
use coerce::actor::system::ActorSystem;
use coerce::actor::{Actor, LocalActorRef, new_actor_id};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Coerce {
    runtime: Runtime,
    system: ActorSystem,
}

struct Counter(Tally);

#[async_trait::async_trait]
impl Actor for Counter {
    async fn started(&mut self, _: &mut ActorContext) {
        self.0.started();
    }
}

struct Add(u64);

impl Message for Add {
    type Result = u64;
}

#[async_trait::async_trait]
impl Handler<Add> for Counter {
    async fn handle(&mut self, message: Add, _: &mut ActorContext) -> u64 {
        self.0.add(message.0)
    }
}

struct Producer(LocalActorRef<Counter>);

impl Actor for Producer {}

struct Burst(u64);

impl Message for Burst {
    type Result = ();
}

#[async_trait::async_trait]
impl Handler<Burst> for Producer {
    async fn handle(&mut self, message: Burst, _: &mut ActorContext) {
        for number in 0..message.0 {
            self.0.notify(Add(number)).expect("counters live as long as the run");
        }
    }
}

impl System for Coerce {
    const NAME: &'static str = "coerce";
    const PUBLISHES_BY: &'static str = "loop of tells";
    type Address = LocalActorRef<Counter>;
    type Producer = LocalActorRef<Producer>;
    type Group = Vec<LocalActorRef<Counter>>;

    fn start() -> Self {
        let runtime =
            Builder::new_multi_thread().enable_all().build().expect("a tokio runtime starts");
        let system = runtime.block_on(async { ActorSystem::new() });
        Self { runtime, system }
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    async fn spawn(&self, tally: Tally) -> Self::Address {
        self.system.new_actor_deferred(new_actor_id(), Counter(tally), Anonymous).await
    }

    async fn spawn_producer(&self, target: Self::Address) -> Self::Producer {
        self.system.new_actor_deferred(new_actor_id(), Producer(target), Anonymous).await
    }

    async fn burst(producer: &Self::Producer, count: u64) {
        producer.notify(Burst(count)).expect("producers live as long as the run");
    }

    async fn tell(to: &Self::Address, number: u64) {
        to.notify(Add(number)).expect("counters live as long as the run");
    }

    async fn ask(to: &Self::Address, number: u64) -> u64 {
        to.send(Add(number)).await.expect("counters live as long as the run")
    }

    async fn stop(address: Self::Address) {
        address.notify_stop().expect("a counter is stopped once");
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
    run::<Coerce>(std::env::args().skip(1))
}
