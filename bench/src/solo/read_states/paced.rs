//! `read-states-paced`: 200,000 operations a second for `--seconds`, 300 for figures that are kept,
//! with the log on and changed rows on their way to SQLite within 30 s.
//!
//! One thread makes all operations and looks at the clock until the next one is due, 5 µs after the
//! one before. The time of an operation runs from that moment, so those that wait behind a stall
//! count their wait. The peers do the same in processes of their own, with neither log nor store.
//! A run of a minute or more draws the longest time of each second into the README's plot.

use super::histogram::Histogram;
use super::mix::{Zipf, first_row, load_all, operate};
use super::{TIMED, peer, plot};
use crate::build::{bench_directory, build_directory};
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use folkmoot_read_states::{Answer, Options, ReadStates, Row, RowStore, SqliteRows};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const RATE: u64 = 200_000;
const EVERY_NS: u64 = 1_000_000_000 / RATE;
/// The first message that is acknowledged; the next ones are above it, so that each is a change.
const MESSAGE_FIRST: u64 = 1 << 20;
/// Of a run that is drawn.
const DRAWN_MIN: u64 = 60;

/// Users begin with the rows of the mix; what changes goes to SQLite.
pub(super) struct Stored {
    rows: SqliteRows,
    saved: Arc<AtomicU64>,
}

impl Stored {
    pub(super) fn open(directory: &std::path::Path) -> Result<(Self, Arc<AtomicU64>)> {
        let saved = Arc::new(AtomicU64::new(0));
        let rows = SqliteRows::open(&directory.join("rows.sqlite"))?;
        Ok((Self { rows, saved: saved.clone() }, saved))
    }
}

impl RowStore for Stored {
    fn load(&self, user: u64) -> Answer<Option<Row>> {
        let row = first_row(user);
        Box::pin(async move { Ok(Some(row)) })
    }

    fn save(&self, rows: Vec<Row>) -> Answer<()> {
        let (count, saved) = (rows.len() as u64, self.saved.clone());
        let saving = self.rows.save(rows);
        Box::pin(async move {
            saving.await?;
            saved.fetch_add(count, Ordering::Relaxed);
            Ok(())
        })
    }

    fn take_over(&self, version: u64) -> Answer<u64> {
        self.rows.take_over(version)
    }
}

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>> {
    let seconds = budget.seconds.ceil().max(1.0) as u64;
    let program = peer::build()?;
    let (ours, saved) = measure(seconds)?;
    let mut all = Histogram::new();
    ours.iter().for_each(|second| all.add_all(second));
    let mut samples = vec![
        Sample::new("p50", "ns", all.quantile(0.5) as f64),
        Sample::new("p99.9", "ns", all.quantile(0.999) as f64),
        Sample::new("longest", "ms", all.longest() as f64 / 1e6),
        Sample::new("rows-stored", "1/s", saved as f64 / seconds as f64),
    ];
    let longest = ours.iter().map(|second| second.longest() as f64);
    let mut lines = vec![("Althing", longest.collect::<Vec<_>>())];
    for (name, caption) in [("lru", "golang-lru"), ("slab", "slab in Go")] {
        let arguments = [name, "paced", &seconds.to_string()].map(str::to_owned);
        let measured = peer::run(&program, &arguments)?;
        let value = |metric: &str| {
            let found = measured.iter().find(|(other, _)| other == metric);
            found.map(|(_, value)| *value).with_context(|| format!("{name} has no {metric}"))
        };
        samples.push(Sample::new(format!("{name}-p50"), "ns", value("p50")?));
        samples.push(Sample::new(format!("{name}-p99.9"), "ns", value("p99.9")?));
        samples.push(Sample::new(format!("{name}-longest"), "ms", value("longest")? / 1e6));
        let of_second = measured.iter().filter(|(metric, _)| metric == "second");
        lines.push((caption, of_second.map(|(_, longest)| *longest).collect()));
    }
    if seconds >= DRAWN_MIN {
        let file = bench_directory().join("../docs/images/bench-read-states.svg");
        std::fs::write(file, plot::longest(&lines))?;
    }
    Ok(samples)
}

/// The times of each second, and how many rows were stored meanwhile.
fn measure(seconds: u64) -> Result<(Vec<Histogram>, u64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a real disk, where a sync costs something.
    let directory = tempfile::tempdir_in(build_directory()?)?;
    let (store, saved) = Stored::open(directory.path())?;
    let log = Some(directory.path().join("log"));
    let options = Options { bytes_max: 1 << 30, log, ..Options::default() };
    let states = runtime.block_on(ReadStates::open(Arc::new(store), options))?;
    runtime.block_on(load_all(&states)).map_err(anyhow::Error::msg)?;
    let picks = Zipf::new(77, Zipf::zeta()).picks(TIMED);
    let each = pace(seconds, |n| {
        operate(&states, &picks[n as usize % TIMED], MESSAGE_FIRST + n).map_err(anyhow::Error::msg)
    })?;
    let saved = saved.load(Ordering::Relaxed);
    ensure!(seconds < DRAWN_MIN || saved > 0, "no row was stored in {seconds} s");
    runtime.block_on(states.store_all())?;
    Ok((each, saved))
}

fn pace(seconds: u64, mut operate: impl FnMut(u64) -> Result<()>) -> Result<Vec<Histogram>> {
    let mut each = Vec::new();
    let begun = Instant::now();
    let passed = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    for second in 0..seconds {
        let mut times = Histogram::new();
        for n in second * RATE..(second + 1) * RATE {
            let due = n * EVERY_NS;
            while passed() < due {
                std::hint::spin_loop();
            }
            operate(n)?;
            times.add(passed() - due);
        }
        each.push(times);
        ensure!(
            begun.elapsed() < Duration::from_secs(2 * second + 10),
            "{RATE} operations a second are too many for this machine"
        );
    }
    Ok(each)
}
