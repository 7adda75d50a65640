//! `--against REV`: this program and that of an older revision, in turn, and whether we became
//! worse.
//!
//! Round 1 runs ours and then theirs, round 2 theirs and then ours, and so on; every run is a
//! process of its own, so that neither side inherits anything and slow drift of the machine falls
//! on both. The two runs of a round are compared with each other, never with those of another
//! round.

mod checkout;
mod ratio;
mod table;

use crate::Amount;
use crate::build::Launch;
use crate::catalogue::{Better, Workload};
use crate::machine::Machine;
use crate::rounds::{Outcome, Plan, run_once};
use crate::row::{Row, Sample};
use crate::stolen::Ticks;
use crate::systems;
use anyhow::{Context, Result, anyhow, bail, ensure};
use ratio::Ratio;
use std::fs;
use std::path::Path;

/// The fewest rounds whose extremes enclose the median with more than 98 %, with one to spare for a
/// round that breaks off.
const ROUNDS_MIN: u32 = 7;
/// Below it the upper end of a ratio's interval means that we became worse.
const WORSE_BELOW: f64 = 0.97;

/// What is to be compared.
pub(crate) struct Request<'a> {
    pub(crate) revision: &'a str,
    pub(crate) workloads: Vec<&'static Workload>,
    pub(crate) amount: Amount,
    pub(crate) json: bool,
    /// Where the comparison is written as Markdown.
    pub(crate) out: Option<&'a Path>,
}

/// One metric of one workload, on both sides.
struct Line {
    workload: &'static str,
    metric: String,
    unit: String,
    ours: Option<Row>,
    theirs: Option<Row>,
    /// Absent for what has no better or worse, or no counterpart.
    ratio: Option<Ratio>,
    remark: String,
    is_worse: bool,
    /// Percent of the processors' time stolen by other guests of the host meanwhile.
    stolen_percent: f64,
}

/// Everything that was found out, and on what.
struct Comparison {
    machine: Machine,
    /// The other side's commit and the name of its rows.
    against: String,
    rounds: u32,
    seconds: f64,
    load_before: f64,
    stolen_percent: f64,
    lines: Vec<Line>,
}

/// Compares, prints, and fails if something became worse.
pub(crate) fn run(request: &Request<'_>) -> Result<()> {
    let Amount { rounds, seconds, .. } = request.amount;
    let rounds = rounds.unwrap_or(ROUNDS_MIN);
    ensure!(rounds >= ROUNDS_MIN, "--against needs at least {ROUNDS_MIN} rounds, not {rounds}");
    ensure!((0.0..=600.0).contains(&seconds), "--seconds {seconds} is not between 0 and 600");
    if cfg!(debug_assertions) {
        bail!("the other side is a release build; run this with `cargo run --release`");
    }
    let revision = checkout::build(request.revision)?;
    let ours = systems::ours()?.launch.map_err(|reason| anyhow!(reason))?;
    let (load_before, before) = (Machine::load(), Ticks::now());
    let mut lines = Vec::new();
    for workload in &request.workloads {
        let messages = request.amount.messages.unwrap_or(workload.messages);
        let plan = Plan { workload, messages, seconds, rounds };
        lines.extend(measure(&plan, &ours, &revision.launch)?);
    }
    let comparison = Comparison {
        machine: Machine::current(),
        against: revision.commit,
        rounds,
        seconds,
        load_before,
        stolen_percent: before.stolen_percent(),
        lines,
    };
    if request.json {
        print!("{}", table::json(&comparison)?);
    } else {
        print!("{}", table::terminal(&comparison));
    }
    if let Some(path) = request.out {
        fs::write(path, table::markdown(&comparison))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    verdict(&comparison)
}

/// Fails with the names of what became worse.
fn verdict(comparison: &Comparison) -> Result<()> {
    let worse: Vec<String> = comparison
        .lines
        .iter()
        .filter(|line| line.is_worse)
        .map(|line| format!("{} {} ({})", line.workload, line.metric, table::why(line)))
        .collect();
    ensure!(worse.is_empty(), "worse than {}: {}", comparison.against, worse.join(", "));
    Ok(())
}

/// One side of a workload, round by round.
#[derive(Default)]
struct Side {
    /// The samples of each round that was measured, by the round's number.
    rounds: Vec<(u32, Vec<Sample>)>,
    /// Why there are no more, if it broke off or does not have the workload.
    ended: Option<Ended>,
}

enum Ended {
    NotOffered,
    Failed(String),
}

impl Side {
    fn run(&mut self, plan: &Plan, launch: &Launch, name: &str, round: u32) -> Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        eprintln!("{} {name} round {round}", plan.workload.name);
        match run_once(plan, launch)? {
            Outcome::Measured(samples) => self.rounds.push((round, samples)),
            Outcome::NotOffered => self.ended = Some(Ended::NotOffered),
            Outcome::Failed(reason) => self.ended = Some(Ended::Failed(reason)),
        }
        Ok(())
    }

    /// The values of a metric with the numbers of their rounds.
    fn values(&self, metric: &str) -> Vec<(u32, f64)> {
        let of_round = |(round, samples): &(u32, Vec<Sample>)| {
            let sample = samples.iter().find(|sample| sample.metric == metric)?;
            Some((*round, sample.value))
        };
        self.rounds.iter().filter_map(of_round).collect()
    }

    fn row(&self, workload: &str, system: &str, metric: &str) -> Option<Row> {
        let of_metric = |sample: &&Sample| sample.metric == metric;
        let samples: Vec<Sample> = self
            .rounds
            .iter()
            .flat_map(|(_, samples)| samples)
            .filter(of_metric)
            .cloned()
            .collect();
        Row::summarize(workload, system, &samples)
    }
}

fn measure(plan: &Plan, ours: &Launch, theirs: &Launch) -> Result<Vec<Line>> {
    let before = Ticks::now();
    let (mut our_side, mut their_side) = (Side::default(), Side::default());
    for round in 1..=plan.rounds {
        if round % 2 == 1 {
            our_side.run(plan, ours, "ours", round)?;
            their_side.run(plan, theirs, "theirs", round)?;
        } else {
            their_side.run(plan, theirs, "theirs", round)?;
            our_side.run(plan, ours, "ours", round)?;
        }
    }
    let mut lines = compare(plan.workload.name, &our_side, &their_side);
    let stolen_percent = before.stolen_percent();
    lines.iter_mut().for_each(|line| line.stolen_percent = stolen_percent);
    Ok(lines)
}

/// A line for each metric that either side has.
fn compare(workload: &'static str, ours: &Side, theirs: &Side) -> Vec<Line> {
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    for sample in ours.rounds.iter().chain(&theirs.rounds).flat_map(|(_, samples)| samples) {
        if metrics.iter().all(|(metric, _)| *metric != sample.metric) {
            metrics.push((&sample.metric, &sample.unit));
        }
    }
    if metrics.is_empty() {
        metrics.push(("", ""));
    }
    metrics.into_iter().map(|(metric, unit)| line(workload, metric, unit, ours, theirs)).collect()
}

fn line(workload: &'static str, metric: &str, unit: &str, ours: &Side, theirs: &Side) -> Line {
    let pairs: Vec<(f64, f64)> = ours
        .values(metric)
        .into_iter()
        .filter_map(|(round, value)| {
            let (_, other) = theirs.values(metric).into_iter().find(|(at, _)| *at == round)?;
            Some((value, other))
        })
        .collect();
    let ratio = Better::of(metric, unit).and_then(|better| Ratio::of(better, &pairs));
    let remark = match (&ours.ended, &theirs.ended) {
        (Some(Ended::Failed(reason)), _) => format!("ours failed: {reason}"),
        (Some(Ended::NotOffered), _) => "gone".to_owned(),
        (None, Some(Ended::NotOffered)) => "new".to_owned(),
        (None, Some(Ended::Failed(reason))) => format!("theirs failed: {reason}"),
        (None, None) if theirs.values(metric).is_empty() => "new".to_owned(),
        (None, None) => String::new(),
    };
    let is_slower = ratio.as_ref().is_some_and(|ratio| ratio.to < WORSE_BELOW);
    Line {
        workload,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        ours: ours.row(workload, "althing", metric),
        theirs: theirs.row(workload, "against", metric),
        is_worse: is_slower || ours.ended.is_some(),
        ratio,
        remark,
        stolen_percent: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(values: &[f64]) -> Side {
        let round = |(index, value): (usize, &f64)| {
            (u32::try_from(index).unwrap(), vec![Sample::new("rate", "M/s", *value)])
        };
        Side { rounds: values.iter().enumerate().map(round).collect(), ended: None }
    }

    #[test]
    fn a_rate_that_fell_in_every_round_is_worse() {
        let lines = compare("ask-8", &side(&[9.0; 7]), &side(&[10.0; 7]));
        assert!(lines[0].is_worse);
        let lines = compare("ask-8", &side(&[10.0; 7]), &side(&[9.0; 7]));
        assert!(!lines[0].is_worse);
    }

    #[test]
    fn one_round_as_good_as_theirs_leaves_room_for_doubt() {
        let ours = [9.0, 9.0, 9.0, 10.0, 9.0, 9.0, 9.0];
        assert!(!compare("ask-8", &side(&ours), &side(&[10.0; 7]))[0].is_worse);
    }

    #[test]
    fn a_workload_that_they_do_not_have_is_new() {
        let theirs = Side { rounds: Vec::new(), ended: Some(Ended::NotOffered) };
        let lines = compare("timers", &side(&[1.0; 7]), &theirs);
        assert_eq!((lines[0].remark.as_str(), lines[0].is_worse), ("new", false));
        assert!(lines[0].ratio.is_none());
    }

    #[test]
    fn our_own_failure_is_worse_and_says_why() {
        let ours = Side { rounds: Vec::new(), ended: Some(Ended::Failed("lost one".to_owned())) };
        let lines = compare("ask-8", &ours, &side(&[1.0; 7]));
        assert!(lines[0].is_worse);
        assert_eq!(lines[0].remark, "ours failed: lost one");
    }

    #[test]
    fn rounds_are_compared_with_their_own_partner() {
        let mut theirs = side(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        theirs.rounds.remove(0);
        let ours = side(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        let ratio = compare("ask-8", &ours, &theirs)[0].ratio.clone().unwrap();
        assert_eq!((ratio.from, ratio.median, ratio.to), (1.0, 1.0, 1.0));
    }
}
