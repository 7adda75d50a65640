//! Workloads that need more of Althing than `althing-bench-workloads` knows, or that are Folkmoot's.
//! Peers have `remote-tell` and `remote-ask` too, and are asked for none of the others.

pub(crate) mod audience;
mod chain;
mod chat;
pub(crate) mod cluster;
mod durable;
mod fairness;
mod folkmoot;
mod foreign;
mod kept;
mod map;
mod passivate;
mod read_states;
pub(crate) mod relay;
mod reminders;
pub(crate) mod remote;
mod rolling;
mod rooms;
mod store;
mod timers;
mod treasure;

use self::kept::On;
use crate::stolen::Ticks;
use althing_bench_workloads::{Arguments, Sample};

/// Runs the solo workload of that name; `None` when there is none.
pub(crate) fn run(arguments: &Arguments) -> Option<Result<Vec<Sample>, String>> {
    match arguments.workload.as_str() {
        "fairness" => Some(fairness::run(arguments.budget)),
        "ask-chain-100k" => Some(chain::run(arguments.budget)),
        "durable-commit" => Some(durable::run(On::Embedded, arguments.budget)),
        "durable-commit-postgres" => Some(durable::run(On::Postgres, arguments.budget)),
        "durable-commit-cassandra" => Some(durable::run(On::Cassandra, arguments.budget)),
        "reminders" => Some(reminders::run(On::Embedded, arguments.budget.messages)),
        "reminders-postgres" => Some(reminders::run(On::Postgres, arguments.budget.messages)),
        "durable-wake" => Some(durable::run_wake(arguments.budget)),
        "read-states" => Some(read_states::run(arguments.budget)),
        "read-states-durable" => Some(said(read_states::durable::run(arguments.budget))),
        "read-states-paced" => Some(watched(|| said(read_states::paced::run(arguments.budget)))),
        "store-append" => Some(said(store::run_append("embedded", arguments.budget))),
        "store-append-postgres" => Some(said(store::run_append("postgres", arguments.budget))),
        "store-append-cassandra" => Some(said(store::run_append("cassandra", arguments.budget))),
        "store-history" => Some(said(store::run_history(arguments.budget))),
        "relay-broadcast" => Some(relay::run(arguments.budget)),
        "relay-channels" => Some(relay::channels::run(arguments.budget)),
        "relay-histories" => Some(watched(|| relay::histories::run(arguments.budget))),
        "relay-idle" => Some(relay::idle::run(arguments.budget)),
        "relay-modes" => Some(relay::modes::run(arguments.budget)),
        "remote-tell" => Some(remote::run_tell(arguments.budget)),
        "remote-ask" => Some(remote::run_ask(arguments.budget)),
        "takeover" => Some(watched(|| cluster::run_takeover(arguments.budget))),
        "move" => Some(watched(|| cluster::run_moves(arguments.budget))),
        "million" => Some(watched(|| cluster::run_million(arguments.budget))),
        "remote-publish" => Some(watched(|| audience::run(arguments.budget))),
        "rolling-restart" => Some(watched(|| said(rolling::run(arguments.budget)))),
        "chat-send-foreign" => Some(watched(|| said(foreign::run(arguments.budget)))),
        "timers" => Some(timers::run(arguments.budget)),
        "passivate" => Some(passivate::run(arguments.budget)),
        "chat-send" => Some(said(chat::run(On::Embedded, arguments.budget))),
        "chat-send-postgres" => Some(said(chat::run(On::Postgres, arguments.budget))),
        "chat-send-cassandra" => Some(said(chat::run(On::Cassandra, arguments.budget))),
        "treasure-3k" => Some(watched(|| treasure::run(&treasure::MANY_SOCKETS, arguments.budget))),
        "treasure-50k" => {
            Some(watched(|| treasure::run(&treasure::MANY_PLAYERS, arguments.budget)))
        }
        name @ ("map-http" | "map-ingest" | "map-million") => {
            Some(watched(|| map::run(name, arguments.budget)))
        }
        _ => rooms::run(arguments),
    }
}

fn said<T>(result: anyhow::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{error:#}"))
}

/// Adds how much of the machine was stolen meanwhile: tails of several processes are worth little
/// without it.
fn watched(measure: impl FnOnce() -> Result<Vec<Sample>, String>) -> Result<Vec<Sample>, String> {
    let before = Ticks::now();
    let mut samples = measure()?;
    samples.push(Sample::new("stolen", "% of CPU", before.stolen_percent()));
    Ok(samples)
}
