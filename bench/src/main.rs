//! `althing-bench`: named workloads, on Althing alone or beside its peers.
//!
//! `althing-bench WORKLOAD [--json]` measures ours, with `--against REV` in turn with an older
//! revision of this program; `peers` builds the peers and interleaves them with ours; `once` is one
//! round in this process and speaks the same command line as every peer.
//! Data flow: catalogue (what) → systems (who) → rounds (run) → row (median) → report and plot.

mod against;
mod althing;
mod build;
mod catalogue;
mod machine;
mod metrics_cost;
mod plot;
mod ratios;
mod report;
mod results;
mod rooms;
mod rounds;
mod row;
mod solo;
mod stolen;
mod systems;

use althing_bench_workloads::CountingAllocator;
use anyhow::{Context, Result, bail};
use catalogue::{CATALOGUE, Scope, Workload};
use clap::{Args, Parser, Subcommand};
use machine::Machine;
use rounds::Plan;
use serde::Serialize;
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use systems::Candidate;

/// Rounds when none are asked for.
const ROUNDS: u32 = 5;

/// mimalloc, as in the peers' programs, with a counter that only `tell-allocs` turns on.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Measures named workloads on Althing and on its peers.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Workloads to measure on Althing; `list` shows them, none means all shared ones
    workloads: Vec<String>,
    #[command(flatten)]
    amount: Amount,
    /// Build the bench program of this git revision and measure it in turn with ours
    #[arg(long, value_name = "REV")]
    against: Option<String>,
    /// Write the comparison as Markdown, too
    #[arg(long, value_name = "FILE", requires = "against")]
    out: Option<PathBuf>,
    /// One JSON object per row instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the workloads
    List,
    /// Builds the peers and measures them in turn with Althing
    Peers {
        /// Workloads to measure; none means every shared one
        workloads: Vec<String>,
        #[command(flatten)]
        amount: Amount,
        /// Measure only these systems (comma separated); Althing is always one of them
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// One JSON object per row instead of a table
        #[arg(long)]
        json: bool,
        /// Leave bench/results and the plot as they are
        #[arg(long)]
        no_record: bool,
    },
    /// Measures what always-on metrics cost: with and without, in turn, in one process
    MetricsCost(metrics_cost::Amount),
    /// Measures rooms at scale, and writes results/rooms.md and its plot
    Rooms {
        #[command(flatten)]
        amount: Amount,
        /// Only writes them again from what was measured last
        #[arg(long)]
        report: bool,
    },
    /// Writes RESULTS.md and the plot again from the recorded results
    Report,
}

#[derive(Args, Clone, Copy)]
struct Amount {
    /// Rounds; each runs every system once, in turn [default: 5; 7 with --against]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Messages per batch (or actors); the workload's own number when absent
    #[arg(long)]
    messages: Option<u64>,
    /// Seconds of measured batches per round and system
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some("once") {
        return althing_bench_workloads::main_with::<althing::Althing>(arguments, solo::run);
    }
    let mut arguments = env::args().skip(1);
    if let (Some("remote-node"), Some(authority)) = (arguments.next().as_deref(), arguments.next())
    {
        return solo::remote::serve(&authority);
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [command, name, authority] = &arguments[..]
        && command == "cluster-node"
    {
        return solo::cluster::serve(name, authority);
    }
    if let [command, name, authority, ears] = &arguments[..]
        && command == "audience-node"
    {
        return solo::audience::serve(name, authority, ears);
    }
    let outcome = match &arguments[..] {
        [command, directory] if command == solo::relay::histories::OPEN => {
            solo::relay::histories::open(directory)
        }
        _ => run(Cli::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("althing-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Some(Command::List) => {
            list();
            Ok(())
        }
        Some(Command::MetricsCost(amount)) => metrics_cost::run(&amount),
        Some(Command::Rooms { amount, report }) => rooms::run(amount, report),
        Some(Command::Report) => results::Recorded::load()?.publish(),
        Some(Command::Peers { workloads, amount, only, json, no_record }) => {
            let mut recorded = results::Recorded::load_or_new()?;
            let candidates = systems::with_peers(&only)?;
            let outcome = measure(&select(&workloads)?, &candidates, amount)?;
            print_rows(&outcome, json)?;
            if no_record {
                return Ok(());
            }
            recorded.merge(outcome, &candidates);
            recorded.publish()
        }
        None if cli.against.is_some() => {
            let revision = cli.against.unwrap_or_default();
            let request = against::Request {
                revision: &revision,
                workloads: select(&cli.workloads)?,
                amount: cli.amount,
                json: cli.json,
                out: cli.out.as_deref(),
            };
            against::run(&request)
        }
        None => {
            let rows = measure(&select(&cli.workloads)?, &[systems::ours()?], cli.amount)?;
            print_rows(&rows, cli.json)
        }
    }
}

/// Prints the workloads, in their two groups.
fn list() {
    let of_scope = |scope: Scope| {
        for workload in CATALOGUE.iter().filter(|workload| workload.scope == scope) {
            println!("  {:22} {}", workload.name, workload.about);
        }
    };
    println!("all: in one process each, a few seconds per round");
    of_scope(Scope::OneProcess);
    println!("applications: they build and start servers, up to two minutes per round");
    of_scope(Scope::Services);
}

/// The named workloads and groups, or all that have a meaning for every system.
fn select(names: &[String]) -> Result<Vec<&'static Workload>> {
    if names.is_empty() {
        return Ok(CATALOGUE.iter().filter(|workload| workload.shared).collect());
    }
    let mut selected = Vec::new();
    for name in names {
        let scope = match name.as_str() {
            "all" => Scope::OneProcess,
            "applications" => Scope::Services,
            name => {
                let workload = catalogue::find(name).with_context(|| {
                    format!("no workload {name}; `althing-bench list` names them")
                })?;
                selected.push(workload);
                continue;
            }
        };
        selected.extend(CATALOGUE.iter().filter(|workload| workload.scope == scope));
    }
    Ok(selected)
}

fn measure(
    workloads: &[&'static Workload],
    candidates: &[Candidate],
    amount: Amount,
) -> Result<Vec<row::Row>> {
    if !(0.0..=600.0).contains(&amount.seconds) {
        bail!("--seconds {} is not between 0 and 600", amount.seconds);
    }
    let rounds = amount.rounds.unwrap_or(ROUNDS);
    let mut rows = Vec::new();
    for workload in workloads {
        let messages = amount.messages.unwrap_or(workload.messages);
        let plan = Plan { workload, messages, seconds: amount.seconds, rounds };
        let taking = candidates.iter().filter(|candidate| candidate.takes(workload));
        rows.extend(rounds::interleave(&plan, taking)?);
    }
    Ok(rows)
}

/// A row as `--json` prints it: no figure goes without the number of cores.
#[derive(Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    row: &'a row::Row,
    cores: usize,
}

fn print_rows(rows: &[row::Row], json: bool) -> Result<()> {
    let cores = Machine::current().cores;
    if json {
        for row in rows {
            println!("{}", serde_json::to_string(&JsonLine { row, cores })?);
        }
    } else {
        print!("{}", report::terminal_table(rows, cores));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_starts_no_services_and_a_group_may_stand_beside_a_name() {
        let names = ["all", "chat-send"].map(str::to_owned);
        let selected = select(&names).unwrap();
        let services = selected.iter().filter(|workload| workload.scope == Scope::Services);
        assert_eq!(services.map(|workload| workload.name).collect::<Vec<_>>(), ["chat-send"]);
        assert!(selected.iter().any(|workload| workload.name == "passivate"));
    }

    #[test]
    fn an_unknown_workload_is_refused_by_name() {
        let error = select(&["ask-9".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("no workload ask-9"));
    }
}
