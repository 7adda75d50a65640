//! `metrics-cost`: the same workloads with metrics on and off, in turn, and the ratio of each pair.
//!
//! Round by round the two run one after the other, so that slow drift of the machine falls on both;
//! the cost is the median of the rounds' ratios, with its quartiles to tell it from noise.

use crate::althing::Althing;
use crate::catalogue::{self, Better};
use crate::rounds::{self, Plan};
use crate::systems;
use althing::Metrics;
use althing_bench_workloads::{System, Tally};
use anyhow::{Context, Result, ensure};
use std::future::Future;

/// What is measured: batches of every size, from the one of an ask in place to thousands.
const WORKLOADS: [&str; 5] = ["tell-8to1", "tell-8to8", "tell-8to1-actors", "ask-1", "publish-1k"];
/// Name of the argument that starts one run without metrics.
pub(crate) const ONCE: &str = "once-without-metrics";

/// Althing with metrics off.
pub(crate) struct Uncounted(Althing);

impl System for Uncounted {
    const NAME: &'static str = "althing-without-metrics";
    const PUBLISHES_BY: &'static str = Althing::PUBLISHES_BY;
    type Address = <Althing as System>::Address;
    type Producer = <Althing as System>::Producer;
    type Group = <Althing as System>::Group;

    fn start() -> Self {
        Self(Althing::with(Metrics::Off))
    }

    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.run_task(task);
    }

    fn on_thread<F: Future>(&self, future: F) -> F::Output {
        self.0.on_thread(future)
    }

    fn spawn(&self, tally: Tally) -> impl Future<Output = Self::Address> + Send {
        self.0.spawn(tally)
    }

    fn spawn_producer(&self, target: Self::Address) -> impl Future<Output = Self::Producer> + Send {
        self.0.spawn_producer(target)
    }

    fn burst(producer: &Self::Producer, count: u64) -> impl Future<Output = ()> + Send {
        Althing::burst(producer, count)
    }

    fn tell(to: &Self::Address, number: u64) -> impl Future<Output = ()> + Send {
        Althing::tell(to, number)
    }

    fn ask(to: &Self::Address, number: u64) -> impl Future<Output = u64> + Send {
        Althing::ask(to, number)
    }

    fn stop(address: Self::Address) -> impl Future<Output = ()> + Send {
        Althing::stop(address)
    }

    fn group(&self, members: Vec<Tally>) -> impl Future<Output = Self::Group> + Send {
        self.0.group(members)
    }

    fn publish(group: &Self::Group, number: u64) -> impl Future<Output = ()> + Send {
        Althing::publish(group, number)
    }
}

/// Measures the cost on `names`, or on `WORKLOADS`, and prints a table.
pub(crate) fn run(names: &[String], count: u32, seconds: f64) -> Result<()> {
    let names =
        if names.is_empty() { WORKLOADS.map(str::to_owned).to_vec() } else { names.to_vec() };
    let (counted, uncounted) = (systems::ours()?, systems::ours_without_metrics()?);
    println!("{:18} {:>8} {:>16} {:>10} {:>10}", "workload", "cost %", "quartiles", "on", "off");
    for name in &names {
        let workload = catalogue::find(name).with_context(|| format!("no workload {name}"))?;
        let plan = Plan { workload, messages: workload.messages, seconds, rounds: count };
        let on = rounds::launch_of(&counted)?;
        let off = rounds::launch_of(&uncounted)?;
        let mut pairs = Vec::new();
        for round in 1..=count {
            eprintln!("{name} round {round}");
            // Who goes first changes: the second may find a warmer processor.
            let (first, second) = if round % 2 == 0 { (on, off) } else { (off, on) };
            let (a, b) = (rounds::first_value(&plan, first)?, rounds::first_value(&plan, second)?);
            pairs.push(if round % 2 == 0 { (a, b) } else { (b, a) });
        }
        println!("{name:18} {}", Cost::of(&pairs, workload.better)?);
    }
    Ok(())
}

/// How much slower the first of each pair is, in percent.
#[derive(Debug, PartialEq)]
struct Cost {
    median: f64,
    quartiles: (f64, f64),
    on: f64,
    off: f64,
}

impl Cost {
    fn of(pairs: &[(f64, f64)], better: Better) -> Result<Self> {
        ensure!(!pairs.is_empty(), "no rounds");
        let cost = |(on, off): &(f64, f64)| match better {
            Better::Higher => (off / on - 1.0) * 100.0,
            Better::Lower => (on / off - 1.0) * 100.0,
        };
        let costs = sorted(pairs.iter().map(cost));
        let at = |values: &[f64], share: f64| {
            values[((values.len() - 1) as f64 * share).round() as usize]
        };
        Ok(Self {
            median: at(&costs, 0.5),
            quartiles: (at(&costs, 0.25), at(&costs, 0.75)),
            on: at(&sorted(pairs.iter().map(|pair| pair.0)), 0.5),
            off: at(&sorted(pairs.iter().map(|pair| pair.1)), 0.5),
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quartiles = format!("{:.1} to {:.1}", self.quartiles.0, self.quartiles.1);
        write!(f, "{:8.1} {quartiles:>16} {:10.2} {:10.2}", self.median, self.on, self.off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_the_median_of_the_pairs_whichever_way_is_better() {
        let pairs = [(100.0, 103.0), (50.0, 51.0), (100.0, 101.0)];
        let cost = Cost::of(&pairs, Better::Higher).unwrap();
        assert!((cost.median - 2.0).abs() < 1e-9, "{cost:?}");
        let pairs = [(103.0, 100.0), (51.0, 50.0), (101.0, 100.0)];
        let cost = Cost::of(&pairs, Better::Lower).unwrap();
        assert!((cost.median - 2.0).abs() < 1e-9, "{cost:?}");
        assert!(Cost::of(&[], Better::Lower).is_err());
    }
}
