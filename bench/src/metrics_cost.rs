//! `metrics-cost`: what always-on metrics cost, by two Althings that take turns in one process.
//!
//! A round starts both anew, with metrics and without, so that neither keeps a lucky layout of
//! memory. They then run short slices in the order on-off-off-on (the next round the other way), so
//! that drift of the machine falls on both sides of every four slices; each four give one cost, of
//! wall time and of processor time. Shown is the median of all, with the 95 % interval of a
//! bootstrap over rounds.

mod interval;

use crate::althing::Althing;
use crate::build::bench_directory;
use crate::machine::Machine;
use althing::Metrics;
use althing_bench_workloads::Repeat;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use interval::Interval;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Measured unless others are named: batches of hundreds, of a handler's bundle, of eight, and
/// events.
const WORKLOADS: [&str; 4] =
    ["tell-8to8-tasks", "tell-8to1-actors", "tell-8to8-by-8", "publish-100k"];
/// Both systems run this long before a round's first slice.
const WARM_UP: Duration = Duration::from_millis(40);

/// How much is measured.
#[derive(Args, Debug)]
pub(crate) struct Amount {
    /// Workloads to measure; none means one for each size of batch
    workloads: Vec<String>,
    /// Rounds, each with both systems started anew
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Groups of four slices per round
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    fours: u32,
    /// Seconds of one slice
    #[arg(long, default_value_t = 0.06)]
    seconds: f64,
    /// Messages per batch of the tells
    #[arg(long, default_value_t = 200_000)]
    messages: u64,
    /// Worker threads of each runtime; as many as there are cores when absent
    #[arg(long)]
    workers: Option<usize>,
    /// Run this many batches of one side and print nothing, for a counter of instructions
    #[arg(long, requires = "side")]
    batches: Option<u32>,
    /// The side that `--batches` runs
    #[arg(long)]
    side: Option<Side>,
    /// Leave bench/results as it is
    #[arg(long)]
    no_record: bool,
}

/// With metrics or without.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Side {
    On,
    Off,
}

/// Measures and prints a table, and records it.
pub(crate) fn run(amount: &Amount) -> Result<()> {
    ensure!((0.0..=60.0).contains(&amount.seconds), "--seconds must be between 0 and 60");
    let names = match amount.workloads.as_slice() {
        [] => WORKLOADS.map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };
    if let (Some(batches), Some(side)) = (amount.batches, amount.side) {
        return names.iter().try_for_each(|name| {
            let mut repeat = start(amount, name, side)?;
            (0..batches).try_for_each(|_| repeat.batch().map(drop).map_err(|error| anyhow!(error)))
        });
    }
    let mut text = heading(amount);
    for name in &names {
        let line = measure(amount, name)?;
        eprintln!("{line}");
        let _ = writeln!(text, "{line}");
    }
    print!("{text}");
    if amount.no_record {
        return Ok(());
    }
    let path = bench_directory().join("results/metrics-cost.md");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn start(amount: &Amount, workload: &str, side: Side) -> Result<Repeat> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let metrics = match side {
        Side::On => Metrics::On,
        Side::Off => Metrics::Off,
    };
    let system = Althing::with(metrics, amount.workers.unwrap_or(cores));
    Repeat::new(system, workload, amount.messages).map_err(|error| anyhow!(error))
}

fn heading(amount: &Amount) -> String {
    let machine = Machine::current();
    format!(
        "# What always-on metrics cost\n\n\
         Written by `althing-bench metrics-cost` (`make metrics-cost`); do not edit. {} rounds of {} slices of \
         {} s, on-off-off-on,\nin one process; both sides are started anew for each round. Median of the \
         costs of {} groups of four slices, with the 95 %\ninterval of a bootstrap over rounds. {} ({} cores), \
         Linux {}, commit {}, {}.\n\n\
         | workload | wall time, % | 95 % interval | processor time, % | 95 % interval | ns per message on | \
         off |\n|---|---|---|---|---|---|---|\n",
        amount.rounds,
        amount.fours * 4,
        amount.seconds,
        amount.rounds * amount.fours,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.commit,
        machine.date(),
    )
}

/// Time per message in one slice.
#[derive(Clone, Copy, Default)]
struct Slice {
    wall_ns: f64,
    processor_ns: f64,
}

/// The costs in percent that one group of four slices shows.
struct Four {
    on: Slice,
    off: Slice,
}

fn measure(amount: &Amount, workload: &str) -> Result<String> {
    let mut rounds = Vec::new();
    for number in 0..amount.rounds {
        eprintln!("{workload} round {}", number + 1);
        rounds.push(round(amount, workload, number % 2 == 0)?);
    }
    let costs = |of: fn(&Slice) -> f64| -> Vec<Vec<f64>> {
        let cost = |four: &Four| (of(&four.on) / of(&four.off) - 1.0) * 100.0;
        rounds.iter().map(|fours| fours.iter().map(cost).collect()).collect()
    };
    let wall = Interval::of_median(&costs(|slice| slice.wall_ns));
    let processor = Interval::of_median(&costs(|slice| slice.processor_ns));
    let typical =
        |of: fn(&Four) -> f64| interval::median(rounds.iter().flatten().map(of).collect());
    Ok(format!(
        "| {workload} | {wall} | {processor} | {:.2} | {:.2} |",
        typical(|four| four.on.wall_ns),
        typical(|four| four.off.wall_ns),
    ))
}

/// One round: both systems anew, then groups of four slices.
fn round(amount: &Amount, workload: &str, on_first: bool) -> Result<Vec<Four>> {
    // Who is started first gets the lower addresses; that changes from round to round.
    let (mut on, mut off);
    if on_first {
        on = start(amount, workload, Side::On)?;
        off = start(amount, workload, Side::Off)?;
    } else {
        off = start(amount, workload, Side::Off)?;
        on = start(amount, workload, Side::On)?;
    }
    slice(&mut on, WARM_UP)?;
    slice(&mut off, WARM_UP)?;
    let length = Duration::from_secs_f64(amount.seconds);
    let mut fours = Vec::new();
    for _ in 0..amount.fours {
        let (outer, inner) = if on_first { (&mut on, &mut off) } else { (&mut off, &mut on) };
        let first = slice(outer, length)?;
        let second = sum(slice(inner, length)?, slice(inner, length)?);
        let first = sum(first, slice(outer, length)?);
        let (on, off) = if on_first { (first, second) } else { (second, first) };
        fours.push(Four { on, off });
    }
    Ok(fours)
}

/// The mean of two slices.
fn sum(a: Slice, b: Slice) -> Slice {
    Slice {
        wall_ns: f64::midpoint(a.wall_ns, b.wall_ns),
        processor_ns: f64::midpoint(a.processor_ns, b.processor_ns),
    }
}

/// Runs batches for `length`. The other system's threads are parked and use no processor.
fn slice(repeat: &mut Repeat, length: Duration) -> Result<Slice> {
    let (begun, processor_begun) = (Instant::now(), processor_time());
    let (mut wall, mut batches) = (Duration::ZERO, 0_u64);
    while batches == 0 || begun.elapsed() < length {
        wall += repeat.batch().map_err(|error| anyhow!(error))?;
        batches += 1;
    }
    let messages = (batches * repeat.messages()) as f64;
    let processor = processor_time().saturating_sub(processor_begun);
    Ok(Slice {
        wall_ns: wall.as_nanos() as f64 / messages,
        processor_ns: processor.as_nanos() as f64 / messages,
    })
}

/// Processor time of all threads of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
