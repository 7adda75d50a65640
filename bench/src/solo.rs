//! Workloads that only make sense for Althing and Folkmoot; peers are never asked for them.

mod chat;
mod fairness;
mod map;
mod treasure;

use althing_bench_workloads::{Arguments, Sample};

/// Runs the solo workload of that name; `None` when there is none.
pub(crate) fn run(arguments: &Arguments) -> Option<Result<Vec<Sample>, String>> {
    match arguments.workload.as_str() {
        "fairness" => Some(fairness::run(arguments.budget)),
        "chat-send" => Some(chat::run(arguments.budget).map_err(|error| format!("{error:#}"))),
        "treasure-3k" => Some(treasure::run(&treasure::MANY_SOCKETS, arguments.budget)),
        "treasure-50k" => Some(treasure::run(&treasure::MANY_PLAYERS, arguments.budget)),
        name @ ("map-http" | "map-ingest" | "map-million") => {
            Some(map::run(name, arguments.budget))
        }
        _ => None,
    }
}
