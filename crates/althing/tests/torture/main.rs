//! The torture test: random programs over the public interface, on real runtimes, checked against promises that hold for every
//! interleaving.
//!
//! `TORTURE_SEED=n` runs one program, `TORTURE_BASE=n` begins with another first seed, `TORTURE_SECONDS=n` says for how long.
//! `TORTURE_SHRINK=0` leaves failures as they are, `TORTURE_FAILURES=n` ends after so many broken promises.
//! A failure is shrunk and printed; a seed that failed belongs into `seeds.txt`.

mod alarm;
mod checks;
mod course;
mod events;
mod generate;
mod health;
mod life;
mod message;
mod perform;
mod program;
mod puppet;
mod random;
mod records;
mod report;
mod runtimes;
mod scope;
mod sending;
mod shrink;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::generate::generate;
use crate::records::{Entry, Violation};
use crate::report::Tally;
use crate::runtimes::{LOOKS_MANY, Run, Runtimes};

/// How long a run takes unless told otherwise.
const SECONDS_DEFAULT: u64 = 12;
/// Programs that run at once.
const BATCH: usize = 16;
/// How often a seed of the list, or the one asked for, is run.
const REPEATS: usize = 20;
/// Broken promises after which a run ends: there is enough to mend.
const FAILURES_MAX: u64 = 12;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn random_programs_find_every_promise_kept() {
    alarm::listen();
    let mut session = Session::default();
    if let Some(seed) = number("TORTURE_SEED") {
        session.repeat(seed);
    } else {
        for line in include_str!("seeds.txt").lines() {
            let word = line.split_whitespace().next().unwrap_or("#");
            if !word.starts_with('#') {
                session.repeat(word.parse().expect("a seed is a number"));
            }
        }
        session.explore();
    }
    session.tally.print(session.failures.len());
    let failures: Vec<_> = session.failures.into_values().collect();
    assert!(failures.is_empty(), "{} broken promises:\n{}", failures.len(), failures.join("\n"));
}

#[derive(Default)]
struct Session {
    tally: Tally,
    /// One for each promise.
    failures: BTreeMap<&'static str, String>,
}

impl Session {
    fn repeat(&mut self, seed: u64) {
        self.batch(&[seed; REPEATS]);
    }

    fn explore(&mut self) {
        let base = number("TORTURE_BASE").unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.as_secs() * 1_000_000
        });
        let seconds = number("TORTURE_SECONDS").unwrap_or(SECONDS_DEFAULT);
        println!("torture: first seed {base}, {seconds} s");
        let failures_max = number("TORTURE_FAILURES").unwrap_or(FAILURES_MAX);
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut seed = base;
        while Instant::now() < until && (self.failures.len() as u64) < failures_max {
            let seeds: Vec<_> = (seed..seed + BATCH as u64).collect();
            self.batch(&seeds);
            seed += BATCH as u64;
        }
    }

    /// Runs programs beside each other, then shrinks what failed in a new way.
    fn batch(&mut self, seeds: &[u64]) {
        let runtimes = Runtimes::new();
        alarm::take_unwanted();
        let start = |seed: &u64| Run::start(generate(*seed), &runtimes, LOOKS_MANY);
        let runs: Vec<_> = seeds.iter().map(start).collect();
        let mut failed = Vec::new();
        let mut hangs = false;
        for (seed, run) in seeds.iter().zip(runs) {
            let world = run.world.clone();
            let (broken, hung) = run.end();
            hangs |= hung;
            self.tally.count(&world.program);
            self.tally.messages += world.mails.lock().len();
            let heard = |entry: &&Entry| matches!(entry, Entry::Heard { .. });
            self.tally.events += world.log.lock().iter().filter(heard).count();
            // The first is nearest to the cause.
            failed.extend(broken.into_iter().next().map(|broken| (*seed, broken)));
        }
        if hangs {
            std::mem::forget(runtimes);
        }
        let mut panics = alarm::take_unwanted();
        if failed.is_empty() && !panics.is_empty() {
            let details = panics.join("; ");
            failed.push((seeds[0], Violation { promise: "no panic but ours", details }));
        }
        for (seed, broken) in failed {
            self.fail(seed, broken, &std::mem::take(&mut panics));
        }
    }

    fn fail(&mut self, seed: u64, broken: Violation, panics: &[String]) {
        if self.failures.contains_key(broken.promise) {
            return;
        }
        let promise = broken.promise;
        println!("torture: seed {seed} broke: {promise}: {}", broken.details);
        let program = generate(seed);
        let shrinks = number("TORTURE_SHRINK").unwrap_or(1) == 1;
        let (program, broken) =
            if shrinks { shrink::shrink(&program, &broken) } else { (program, broken) };
        let text = report::describe(&program, &broken, panics);
        println!("{text}");
        self.failures.insert(promise, text);
    }
}
