//! actix under the shared workloads: one arbiter per core, actors spread over them in turn.
//!
//! `do_send` ignores the mailbox bound and is actix's fastest tell. The first actor lives on
//! arbiter 1, where the second task of a run goes too: so the one client of `ask-1` shares its
//! thread, which is where actix answers fastest by two orders of magnitude.

use actix::{Actor, Addr, Context, Handler, Message};
use actix_rt::{Arbiter, System as ActixSystem};
use althing_bench_workloads::{CountingAllocator, System, Tally, main as run};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Actix {
    arbiters: Vec<Arbiter>,
    next_task: AtomicUsize,
    next_actor: AtomicUsize,
}

struct Counter(Tally);

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.0.started();
    }
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Add(u64);

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, message: Add, _: &mut Self::Context) -> u64 {
        self.0.add(message.0)
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

impl Handler<Stop> for Counter {
    type Result = ();

    fn handle(&mut self, _: Stop, context: &mut Self::Context) {
        actix::ActorContext::stop(context);
    }
}

struct Producer(Addr<Counter>);

impl Actor for Producer {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Burst(u64);

impl Handler<Burst> for Producer {
    type Result = ();

    fn handle(&mut self, message: Burst, _: &mut Self::Context) {
        for number in 0..message.0 {
            self.0.do_send(Add(number));
        }
    }
}

impl Actix {
    fn arbiter(&self, counter: &AtomicUsize) -> &Arbiter {
        &self.arbiters[counter.fetch_add(1, Ordering::Relaxed) % self.arbiters.len()]
    }
}

impl System for Actix {
    const NAME: &'static str = "actix";
    const PUBLISHES_BY: &'static str = "loop of tells";
    type Address = Addr<Counter>;
    type Producer = Addr<Producer>;
    type Group = Vec<Addr<Counter>>;

    fn start() -> Self {
        let (tx, rx) = mpsc::channel();
        thread::spawn(move || {
            let system = ActixSystem::new();
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let arbiters = system.block_on(async { (0..cores).map(|_| Arbiter::new()).collect() });
            tx.send(arbiters).expect("the starter waits for the arbiters");
            system.run().expect("the actix system runs until the process ends");
        });
        let arbiters = rx.recv().expect("the actix system starts");
        Self { arbiters, next_task: AtomicUsize::new(0), next_actor: AtomicUsize::new(1) }
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.arbiter(&self.next_task).spawn(task);
    }

    async fn spawn(&self, tally: Tally) -> Self::Address {
        let arbiter = self.arbiter(&self.next_actor).handle();
        Counter::start_in_arbiter(&arbiter, |_| Counter(tally))
    }

    async fn spawn_producer(&self, target: Self::Address) -> Self::Producer {
        let arbiter = self.arbiter(&self.next_actor).handle();
        Producer::start_in_arbiter(&arbiter, |_| Producer(target))
    }

    async fn burst(producer: &Self::Producer, count: u64) {
        producer.do_send(Burst(count));
    }

    async fn tell(to: &Self::Address, number: u64) {
        to.do_send(Add(number));
    }

    async fn ask(to: &Self::Address, number: u64) -> u64 {
        to.send(Add(number)).await.expect("counters live as long as the run")
    }

    async fn stop(address: Self::Address) {
        address.do_send(Stop);
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
            member.do_send(Add(number));
        }
    }
}

fn main() -> ExitCode {
    run::<Actix>(std::env::args().skip(1))
}
