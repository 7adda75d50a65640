//! ractor under the shared workloads: its mailboxes are unbounded, message span propagation is
//! compiled out, publishing goes through its second output port.

use althing_bench_workloads::{CountingAllocator, System, Tally, main as run};
use ractor::{Actor, ActorProcessingErr, ActorRef, OutputPort, RpcReplyPort};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Ractor(Runtime);

struct Counter;

enum ToCounter {
    Add(u64),
    Ask(u64, RpcReplyPort<u64>),
}

impl Actor for Counter {
    type Msg = ToCounter;
    type State = Tally;
    type Arguments = Tally;

    async fn pre_start(
        &self,
        _: ActorRef<ToCounter>,
        tally: Tally,
    ) -> Result<Tally, ActorProcessingErr> {
        tally.started();
        Ok(tally)
    }

    async fn handle(
        &self,
        _: ActorRef<ToCounter>,
        message: ToCounter,
        tally: &mut Tally,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ToCounter::Add(number) => {
                tally.add(number);
            }
            ToCounter::Ask(number, reply) => reply.send(tally.add(number))?,
        }
        Ok(())
    }
}

struct Producer;

struct Burst(u64);

impl Actor for Producer {
    type Msg = Burst;
    type State = ActorRef<ToCounter>;
    type Arguments = ActorRef<ToCounter>;

    async fn pre_start(
        &self,
        _: ActorRef<Burst>,
        target: ActorRef<ToCounter>,
    ) -> Result<ActorRef<ToCounter>, ActorProcessingErr> {
        Ok(target)
    }

    async fn handle(
        &self,
        _: ActorRef<Burst>,
        message: Burst,
        target: &mut ActorRef<ToCounter>,
    ) -> Result<(), ActorProcessingErr> {
        for number in 0..message.0 {
            target.cast(ToCounter::Add(number))?;
        }
        Ok(())
    }
}

/// The port alone reaches the subscribers, but their addresses keep them alive.
struct Group {
    port: OutputPort<u64>,
    _members: Vec<ActorRef<ToCounter>>,
}

impl System for Ractor {
    const NAME: &'static str = "ractor";
    const PUBLISHES_BY: &'static str = "output port v2";
    type Address = ActorRef<ToCounter>;
    type Producer = ActorRef<Burst>;
    type Group = Group;

    fn start() -> Self {
        Self(Builder::new_multi_thread().enable_all().build().expect("a tokio runtime starts"))
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    async fn spawn(&self, tally: Tally) -> Self::Address {
        Actor::spawn(None, Counter, tally).await.expect("a counter starts").0
    }

    async fn spawn_producer(&self, target: Self::Address) -> Self::Producer {
        Actor::spawn(None, Producer, target).await.expect("a producer starts").0
    }

    async fn burst(producer: &Self::Producer, count: u64) {
        producer.cast(Burst(count)).expect("producers live as long as the run");
    }

    async fn tell(to: &Self::Address, number: u64) {
        to.cast(ToCounter::Add(number)).expect("counters live as long as the run");
    }

    async fn ask(to: &Self::Address, number: u64) -> u64 {
        let answer = to.call(|reply| ToCounter::Ask(number, reply), None).await;
        answer.expect("counters live as long as the run").expect("a counter replies")
    }

    async fn stop(address: Self::Address) {
        address.stop(None);
    }

    async fn group(&self, members: Vec<Tally>) -> Self::Group {
        let port = OutputPort::default();
        let mut addresses = Vec::with_capacity(members.len());
        for tally in members {
            let address = self.spawn(tally).await;
            port.subscribe(address.clone(), |number| Some(ToCounter::Add(number)));
            addresses.push(address);
        }
        Group { port, _members: addresses }
    }

    async fn publish(group: &Self::Group, number: u64) {
        group.port.send(number);
    }
}

fn main() -> ExitCode {
    run::<Ractor>(std::env::args().skip(1))
}
