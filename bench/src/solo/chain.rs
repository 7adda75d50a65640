//! `ask-chain-100k`: the first of 100,000 actors asks the second, which asks the third, and so on.
//!
//! At the deepest moment every actor waits for the next one. The reply counts the links, so a chain
//! that broke anywhere fails the run, and one that used the stack per link would end the process.

use crate::althing::Althing;
use althing::{Actor, ActorOptions, ActorRef, Context, Handler};
use althing_bench_workloads::{Budget, Sample, System, median_ns, on_worker};
use std::time::{Duration, Instant};

const LINKS: u64 = 100_000;
/// Longest wait of the first link, which waits for all others.
const DEADLINE: Duration = Duration::from_secs(60);

struct Link(Option<ActorRef<Self>>);

impl Actor for Link {
    const NAME: &'static str = "bench.link";

    fn options() -> ActorOptions {
        ActorOptions::default().deadline(DEADLINE)
    }
}

/// Asks for the number of links from here to the end.
struct Count;

impl Handler<Count> for Link {
    type Reply = Result<u64, String>;

    async fn handle(&mut self, _: Count, _: &mut Context<Self>) -> Self::Reply {
        match &self.0 {
            None => Ok(1),
            Some(next) => match next.send(Count).await {
                Ok(counted) => counted.map(|links| links + 1),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Althing::start();
    let mut chain = Vec::new();
    for _ in 0..LINKS {
        chain.push(system.node().spawn(Link(chain.last().cloned())));
    }
    let first = chain.last().expect("there are links").clone();
    let mut durations = budget.run(|| {
        let first = first.clone();
        on_worker(&system, async move {
            let begun = Instant::now();
            match first.send(Count).await {
                Ok(Ok(LINKS)) => Ok(begun.elapsed()),
                Ok(Ok(links)) => Err(format!("{links} links answered instead of {LINKS}")),
                Ok(Err(error)) => Err(error),
                Err(error) => Err(error.to_string()),
            }
        })
    })?;
    Ok(vec![Sample::new("per-link", "ns", median_ns(&mut durations) / LINKS as f64)])
}
