//! The torture test: random programs over the public interface, on real runtimes, checked against
//! promises that hold for every interleaving.
//!
//! `TORTURE_SEED=n` runs one program, `TORTURE_BASE=n` begins with another first seed,
//! `TORTURE_SECONDS=n` says for how long. `TORTURE_SHRINK=0` leaves failures as they are,
//! `TORTURE_FAILURES=n` ends after so many broken promises. A failure is shrunk and printed; a seed
//! that failed belongs into `seeds.txt`.

mod alarm;
mod checks;
mod course;
mod events;
mod generate;
mod health;
mod holds;
mod ledger;
mod life;
mod message;
mod perform;
mod probes;
mod program;
mod publishing;
mod puppet;
mod random;
mod records;
mod report;
mod runtimes;
mod scope;
mod sending;
mod shrink;
mod stalls;
mod streams;
mod to_self;
mod wakings;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::generate::generate;
use crate::records::{Entry, Violation};
use crate::report::Tally;
use crate::runtimes::{LOOKS_MANY, Run, Runtimes};

/// How long a run takes unless told otherwise.
const SECONDS_DEFAULT: u64 = 6;
/// The first seed of a run of that length.
const BASE_DEFAULT: u64 = 1_000_000;
/// Programs that are at work at once.
const BUSY_MAX: usize = 24;
/// Programs at once, with those that wait for their memory to go: nodes look for it once a second.
const RUNS_MAX: usize = 500;
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
    stalls::watch();
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
        self.run((0..REPEATS).map(|_| seed));
    }

    fn explore(&mut self) {
        let asked_for = number("TORTURE_SECONDS");
        let base = number("TORTURE_BASE").unwrap_or_else(|| match asked_for {
            // Whoever asks for a long run looks for what nobody has seen yet.
            Some(_) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(now.as_millis()).unwrap_or_default() * 1_000
            }
            // The short run judges a change, and not the luck of the day.
            None => BASE_DEFAULT,
        });
        let seconds = asked_for.unwrap_or(SECONDS_DEFAULT);
        println!("torture: first seed {base}, {seconds} s");
        let until = Instant::now() + Duration::from_secs(seconds);
        self.run((base..).take_while(|_| Instant::now() < until));
    }

    /// Runs programs beside each other, and shrinks what fails in a new way.
    fn run(&mut self, mut seeds: impl Iterator<Item = u64>) {
        let failures_max = number("TORTURE_FAILURES").unwrap_or(FAILURES_MAX);
        let mut runtimes = Runtimes::new();
        let mut runs: Vec<Run> = Vec::new();
        let mut has_more = true;
        alarm::take_unwanted();
        while has_more || !runs.is_empty() {
            has_more &= (self.failures.len() as u64) < failures_max;
            let busy = runs.iter().filter(|run| run.is_busy()).count();
            if has_more && busy < BUSY_MAX && runs.len() < RUNS_MAX {
                match seeds.next() {
                    Some(seed) => runs.push(Run::start(generate(seed), &runtimes, LOOKS_MANY)),
                    None => has_more = false,
                }
                continue;
            }
            let (ended, left): (Vec<_>, Vec<_>) = runs.into_iter().partition(Run::has_ended);
            runs = left;
            if ended.is_empty() {
                std::thread::sleep(Duration::from_micros(500));
            }
            if ended.into_iter().any(|run| self.judge(run)) {
                // Somebody hangs in there.
                std::mem::forget(std::mem::replace(&mut runtimes, Runtimes::new()));
            }
        }
    }

    /// Takes the outcome of a run; returns whether it hangs.
    fn judge(&mut self, run: Run) -> bool {
        let world = run.world.clone();
        let (broken, hangs) = run.end();
        self.tally.count(&world.program);
        self.tally.messages += world.mails.lock().len();
        let heard = |entry: &&Entry| matches!(entry, Entry::Heard { .. });
        self.tally.events += world.log.lock().iter().filter(heard).count();
        let panics = alarm::take_unwanted();
        // The first is nearest to the cause.
        let mut broken = broken.into_iter().next();
        if broken.is_none() && !panics.is_empty() {
            // It may be that of a run beside this one.
            let details = panics.join("; ");
            broken = Some(Violation { promise: "no panic but ours", details });
        }
        if let Some(broken) = broken {
            self.fail(world.program.seed, broken, &panics);
        }
        hangs
    }

    fn fail(&mut self, seed: u64, broken: Violation, panics: &[String]) {
        let promise = broken.promise;
        println!("torture: seed {seed} broke: {promise}: {}", broken.details);
        if self.failures.contains_key(promise) {
            return;
        }
        let program = generate(seed);
        let shrinks = number("TORTURE_SHRINK").unwrap_or(1) == 1;
        let (program, broken) =
            if shrinks { shrink::shrink(&program, &broken) } else { (program, broken) };
        let text = report::describe(&program, &broken, panics);
        println!("{text}");
        self.failures.insert(promise, text);
    }
}
