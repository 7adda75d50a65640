//! The command line that every system under test speaks: `WORKLOAD --messages N --seconds S`.
//!
//! Prints one JSON line per metric. Exit status 0 means measured and verified, 1 a failed check,
//! 2 a bad argument, 3 a workload this system does not have.

use crate::lifecycle::Phase;
use crate::measure::{Budget, Sample};
use crate::system::System;
use crate::tell::From;
use crate::{allocs, ask, contended, lifecycle, memory, publish, tell};
use std::process::ExitCode;

/// Warm-up before the measured part when `--warmup` is not given.
const WARM_UP_SECONDS: f64 = 0.3;

/// What the command line asked for.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Name of the workload.
    pub workload: String,
    /// How much of it.
    pub budget: Budget,
}

impl Arguments {
    /// Reads `WORKLOAD --messages N --seconds S [--warmup S]`.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut budget =
            Budget { messages: 2_000_000, seconds: 1.0, warm_up_seconds: WARM_UP_SECONDS };
        let mut workload = None;
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--messages" => budget.messages = parse_value(&argument, &value()?)?,
                "--seconds" => budget.seconds = parse_value(&argument, &value()?)?,
                "--warmup" => budget.warm_up_seconds = parse_value(&argument, &value()?)?,
                name if name.starts_with('-') => return Err(format!("unknown option {name}")),
                name => workload = Some(name.to_owned()),
            }
        }
        let in_range = |seconds: f64| (0.0..=600.0).contains(&seconds);
        if budget.messages == 0 || !in_range(budget.seconds) || !in_range(budget.warm_up_seconds) {
            return Err("--messages must be positive, times between 0 and 600 s".to_owned());
        }
        let workload = workload.ok_or("no workload named")?;
        Ok(Self { workload, budget })
    }
}

fn parse_value<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} {text} is not a number"))
}

/// Runs the workload of `arguments` on system `S`; `None` when no workload has that name.
pub(crate) fn run<S: System>(arguments: &Arguments) -> Option<Result<Vec<Sample>, String>> {
    let budget = arguments.budget;
    Some(match arguments.workload.as_str() {
        "tell-8to1" => tell::run::<S>(budget, 1, From::Threads),
        "tell-8to1-tasks" => tell::run::<S>(budget, 1, From::Tasks),
        "tell-8to1-actors" => tell::run::<S>(budget, 1, From::Handlers),
        "tell-8to8" => tell::run::<S>(budget, 8, From::Threads),
        "tell-8to8-tasks" => tell::run::<S>(budget, 8, From::Tasks),
        "tell-allocs" => allocs::run::<S>(budget),
        "ask-1" => ask::run_one::<S>(budget),
        "ask-8" => ask::run_eight::<S>(budget),
        "ask-block-on" => ask::run_block_on::<S>(budget),
        "publish-1k" => publish::run::<S>(budget, 1_000),
        "publish-100k" => publish::run::<S>(budget, 100_000),
        "publish-1m" => publish::run::<S>(budget, 1_000_000),
        "publish-contended-500" => contended::run::<S>(budget, 500),
        "publish-contended-10k" => contended::run::<S>(budget, 10_000),
        "actor-memory" => memory::run::<S>(budget),
        "spawn" => lifecycle::run::<S>(budget, Phase::Spawn),
        "stop" => lifecycle::run::<S>(budget, Phase::Stop),
        _ => return None,
    })
}

/// Runs the workload that `arguments` (without the program's name) ask for and prints its samples.
#[must_use]
pub fn main<S: System>(arguments: impl Iterator<Item = String>) -> ExitCode {
    main_with::<S>(arguments, |_| None)
}

/// Like [`main`], with workloads that only this system has.
#[must_use]
pub fn main_with<S: System>(
    arguments: impl Iterator<Item = String>,
    own: impl FnOnce(&Arguments) -> Option<Result<Vec<Sample>, String>>,
) -> ExitCode {
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{}: {error}", S::NAME);
            return ExitCode::from(2);
        }
    };
    match own(&arguments).or_else(|| run::<S>(&arguments)) {
        None => {
            eprintln!("{}: no workload {}", S::NAME, arguments.workload);
            ExitCode::from(3)
        }
        Some(Err(error)) => {
            eprintln!("{} {}: {error}", S::NAME, arguments.workload);
            ExitCode::FAILURE
        }
        Some(Ok(samples)) => {
            for sample in samples {
                println!("{}", sample.json(S::NAME, &arguments.workload));
            }
            ExitCode::SUCCESS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_full_command_line_is_read() {
        let arguments = parse("ask-1 --messages 7 --seconds 0.5 --warmup 0").unwrap();
        assert_eq!(arguments.workload, "ask-1");
        assert_eq!(arguments.budget.messages, 7);
        assert_eq!(arguments.budget.seconds, 0.5);
        assert_eq!(arguments.budget.warm_up_seconds, 0.0);
    }

    #[test]
    fn bad_arguments_are_named() {
        assert_eq!(parse("ask-1 --messages x").unwrap_err(), "--messages x is not a number");
        assert_eq!(parse("ask-1 --seconds").unwrap_err(), "--seconds needs a value");
        assert_eq!(parse("--seconds 1").unwrap_err(), "no workload named");
        assert!(parse("ask-1 --messages 0").is_err());
        assert!(parse("ask-1 --seconds 1e9").is_err());
    }
}
