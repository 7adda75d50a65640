//! Clients that are no nodes: each asks with a request id until it is answered, and looks in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use althing_cluster::{Client, ClientConfig, Tls};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::clock::{Micros, now};
use crate::cluster::Cluster;
use crate::counter::{COUNTERS, Counter, CounterCalls, name};
use crate::node::CLUSTER;
use crate::random::Random;

const CALLERS: u64 = 4;

/// So long one try waits for its answer. Short, so that requests come twice.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// Between two requests of a caller, and between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// An answer to a caller.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) counter: String,
    /// Empty for a look.
    pub(crate) request: String,
    pub(crate) value: u64,
    pub(crate) epoch: u64,
    /// When the first try began, and when the answer was there.
    pub(crate) from: Micros,
    pub(crate) to: Micros,
    pub(crate) tries: u64,
}

pub(crate) type Acks = Vec<Ack>;

pub(crate) struct Callers {
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Acks>>,
}

async fn client(cluster: &Cluster) -> Client {
    let config = ClientConfig::new(CLUSTER, cluster.addresses(), Tls::insecure_plaintext());
    let config = config.connect_timeout(Duration::from_secs(60));
    Client::connect(config).await.expect("a node answers")
}

/// Starts callers, each with a connection of its own.
pub(crate) fn start(cluster: &Arc<Cluster>, seed: u64) -> Callers {
    let is_over = Arc::new(AtomicBool::new(false));
    let call = |number| {
        let (cluster, is_over) = (cluster.clone(), is_over.clone());
        let random = Random::new(seed ^ (number + 1));
        tokio::spawn(async move { call(client(&cluster).await, number, random, &is_over).await })
    };
    Callers { tasks: (0..CALLERS).map(call).collect(), is_over }
}

async fn call(client: Client, caller: u64, mut random: Random, is_over: &AtomicBool) -> Acks {
    let mut acks = Vec::new();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let counter = name(random.below(COUNTERS));
        let is_look = random.below(4) == 0;
        let from = now();
        number += 1;
        let request = if is_look { String::new() } else { format!("caller-{caller}/{number}") };
        let mut tries = 0;
        let (value, epoch) = loop {
            tries += 1;
            let at = client.get::<Counter>(&*counter).expect("plaintext allows it");
            let answer = if is_look {
                at.look().timeout(TRY_TIMEOUT).await
            } else {
                let sender = format!("caller-{caller}");
                at.add(sender, number, request.clone()).timeout(TRY_TIMEOUT).await
            };
            match answer {
                Ok(answer) => break answer,
                Err(_) => sleep(PAUSE).await,
            }
        };
        acks.push(Ack { counter, request, value, epoch, from, to: now(), tries });
        sleep(PAUSE).await;
    }
    acks
}

impl Callers {
    /// Lets each end what it is at; returns what all were answered, and who waits for ever.
    pub(crate) async fn finish(self, within: Duration) -> (Acks, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let until = Instant::now() + within;
        let (mut acks, mut troubles) = (Acks::new(), Vec::new());
        for (number, task) in self.tasks.into_iter().enumerate() {
            match timeout_at(until, task).await {
                Ok(answered) => acks.extend(answered.expect("a caller does not fail")),
                Err(_) => troubles.push(format!(
                    "a request of caller {number} has no answer {within:?} after the last fault"
                )),
            }
        }
        (acks, troubles)
    }
}

/// Asks each counter through each node; tells who could not be reached.
pub(crate) async fn reach_all(cluster: &Cluster, within: Duration) -> Vec<String> {
    let until = Instant::now() + within;
    let mut troubles = Vec::new();
    for address in cluster.addresses() {
        let config = ClientConfig::new(CLUSTER, [address.clone()], Tls::insecure_plaintext());
        let Ok(client) = Client::connect(config).await else {
            troubles.push(format!("the node at {address} takes no client"));
            continue;
        };
        for number in 0..COUNTERS {
            let counter = client.get::<Counter>(name(number)).expect("plaintext allows it");
            let look = async {
                while counter.look().timeout(TRY_TIMEOUT).await.is_err() {
                    sleep(PAUSE).await;
                }
            };
            if timeout(until.saturating_duration_since(Instant::now()), look).await.is_err() {
                troubles.push(format!("counter {number} is not reached through {address}"));
            }
        }
    }
    troubles
}
