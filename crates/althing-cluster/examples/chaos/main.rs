//! Real processes of a cluster, with a real etcd and a real PostgreSQL, under faults from a seed;
//! afterwards it is checked whether the cluster kept its promises.
//!
//! `chaos --seconds 600 --seed 7` runs three nodes, injects faults for so long, lets all recover, and
//! prints a report. It ends with 1 if a promise was broken, and keeps the diaries then. A seed fixes
//! which faults come when; what they meet is up to the machine.
//!
//! Each node is this program again (`chaos node ..`). Nodes reach each other, the authorities and
//! etcd through proxies in the first process, which cut and slow the ways. Counters keep what they
//! are told in PostgreSQL, under epochs; nodes reach that directly, so that a node which is cut off
//! from all others could still write, and only the epochs hold it back.

mod arguments;
mod callers;
mod checks;
mod clock;
mod cluster;
mod counter;
mod diary;
mod faults;
mod history;
mod links;
mod node;
mod plan;
mod process;
mod random;
mod report;
mod whose;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::arguments::{Arguments, Timing};
use crate::cluster::Cluster;
use crate::report::Report;

/// Longer than a busy machine needs until all nodes serve after the last fault: a lease may have to
/// run out twice, and nodes start again.
const RECOVERY_MAX: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("{why}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    match arguments {
        Arguments::Node(options) => match runtime.block_on(node::run(options)) {
            Ok(code) => code,
            Err(why) => {
                eprintln!("the node ended: {why}");
                ExitCode::FAILURE
            }
        },
        Arguments::Run { seconds, seed, timing } => {
            let report = runtime.block_on(chaos(seconds, seed, timing));
            println!("{report}");
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

/// Runs a cluster under the faults of a seed, and checks what came of it.
async fn chaos(seconds: u64, seed: u64, timing: Timing) -> Report {
    let plan = plan::draw(seed, Duration::from_secs(seconds), timing.lease);
    println!("seed {seed}: {} faults in {seconds} s, {timing:?}", plan.len());
    let cluster = Arc::new(Cluster::start(timing).await);
    let callers = callers::start(&cluster, seed);
    let looking = tokio::spawn(cluster::look_on(cluster.clone()));
    let faults = faults::inject(&cluster, plan).await;
    looking.abort();
    println!("the last fault has ended; waiting for all to recover");
    let mut troubles = cluster.recover(RECOVERY_MAX).await;
    let (acks, stuck) = callers.finish(RECOVERY_MAX).await;
    troubles.extend(stuck);
    troubles.extend(cluster.finish_senders(RECOVERY_MAX).await);
    troubles.extend(callers::reach_all(&cluster, RECOVERY_MAX).await);
    let history = cluster.end(acks).await;
    troubles.extend(checks::all(&history));
    let diaries = if troubles.is_empty() { None } else { cluster.keep_diaries(seed).ok() };
    Report::new(seed, faults, &history, troubles, diaries)
}
