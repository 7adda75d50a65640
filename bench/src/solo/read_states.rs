//! `read-states`: 8 million read states of 200,000 users in memory, changed and read by a thread for
//! each core.
//!
//! Which entry is next follows Zipf's law with an exponent of 0.99, as in YCSB, with the ranks
//! scattered over users and rooms; four of five operations change the entry, the fifth reads it.
//! `rate` is all threads together, `p50` and `p99.9` one operation of a closed loop (both hold the 25
//! ns of reading the clock), `ready` all 40 entries of a user, `memory` what an entry adds to the
//! process's resident set. Neither log nor store is at work. The peers, golang-lru in shards and a
//! slab without pointers, do the same in processes of their own.

pub(crate) mod durable;
mod histogram;
mod mix;
pub(crate) mod paced;
mod peer;
mod plot;

use althing_bench_workloads::{Budget, Sample, percentile_ns};
use folkmoot_read_states::{Options, ReadStates};
use mix::{ENTRIES, Filled, ROOMS, Zipf, load_all, operate};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Operations between two looks at whether the time is over.
const STRETCH: u64 = 1_000;
/// Timed operations, and users read whole.
const TIMED: usize = 1_000_000;

const LRU: [&str; 4] = ["lru", "lru-p99.9", "lru-memory", "ratio-lru"];
const SLAB: [&str; 4] = ["slab", "slab-p99.9", "slab-memory", "ratio-slab"];

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    let program = peer::build().map_err(|error| format!("{error:#}"))?;
    let mut samples = ours(budget)?;
    let rate = samples[0].value;
    for (peer, names) in [("lru", LRU), ("slab", SLAB)] {
        let arguments = [peer.to_owned(), budget.seconds.to_string(), TIMED.to_string()];
        let measured = peer::run(&program, &arguments);
        let measured = measured.map_err(|error| format!("{error:#}"))?;
        let value = |name: &str| {
            let found = measured.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| *value).ok_or(format!("{peer} has not measured {name}"))
        };
        let [of_rate, of_tail, of_memory, ratio] = names;
        samples.push(Sample::new(of_rate, "M/s", value("rate")?));
        samples.push(Sample::new(of_tail, "ns", value("p99.9")?));
        samples.push(Sample::new(of_memory, "bytes", value("memory")?));
        samples.push(Sample::new(ratio, "", rate / value("rate")?));
    }
    Ok(samples)
}

fn ours(budget: Budget) -> Result<Vec<Sample>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let before = resident_bytes()?;
    let options = Options {
        bytes_max: 1 << 30,
        store_after: Duration::from_secs(3_600),
        ..Options::default()
    };
    let opened = ReadStates::open(Arc::new(Filled), options);
    let states = runtime.block_on(opened).map_err(|error| error.to_string())?;
    runtime.block_on(load_all(&states))?;
    let memory = resident_bytes()?.saturating_sub(before) as f64 / ENTRIES as f64;
    let zeta = Zipf::zeta();
    let rate = rate(&states, zeta, Duration::from_secs_f64(budget.seconds))?;
    let (mut times, mut ready) = (Vec::with_capacity(TIMED), Vec::with_capacity(TIMED));
    let picks = Zipf::new(77, zeta).picks(TIMED);
    for (pick, message) in picks.iter().zip(1 << 40..) {
        let begun = Instant::now();
        operate(&states, pick, message)?;
        times.push(nanoseconds(begun));
    }
    runtime.block_on(async {
        for pick in &picks[..TIMED / 10] {
            let begun = Instant::now();
            let all = states.all(pick.user).await.map_err(|error| error.to_string())?;
            ready.push(nanoseconds(begun));
            if all.len() as u64 != ROOMS {
                return Err(format!("user {} has {} read states", pick.user, all.len()));
            }
        }
        Ok(())
    })?;
    times.sort_unstable();
    ready.sort_unstable();
    Ok(vec![
        Sample::new("rate", "M/s", rate / 1e6),
        Sample::new("p50", "ns", percentile_ns(&times, 0.5)),
        Sample::new("p99.9", "ns", percentile_ns(&times, 0.999)),
        Sample::new("ready-p50", "ns", percentile_ns(&ready, 0.5)),
        Sample::new("memory", "bytes", memory),
    ])
}

/// Operations per second of a thread for each core.
fn rate(states: &ReadStates, zeta: f64, time: Duration) -> Result<f64, String> {
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    thread::scope(|scope| {
        let work = |seed: u64| {
            let picks = Zipf::new(seed * 2 + 1, zeta).picks(TIMED);
            let (is_over, done) = (&is_over, &done);
            move || {
                let mut message = 1 << 20;
                for stretch in picks.chunks(STRETCH as usize).cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    for pick in stretch {
                        message += 1;
                        operate(states, pick, message)?;
                    }
                    done.fetch_add(stretch.len() as u64, Ordering::Relaxed);
                }
                Ok::<_, String>(())
            }
        };
        let work: Vec<_> = (0..threads).map(work).collect();
        let running: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        // Everybody is at work, and the caches are as warm as they get.
        thread::sleep(time / 4);
        let (from, begun) = (done.load(Ordering::Relaxed), Instant::now());
        thread::sleep(time);
        let (to, took) = (done.load(Ordering::Relaxed), begun.elapsed());
        is_over.store(true, Ordering::Relaxed);
        for thread in running {
            thread.join().map_err(|_| "a thread has panicked")??;
        }
        Ok((to - from) as f64 / took.as_secs_f64())
    })
}

fn nanoseconds(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

fn resident_bytes() -> Result<u64, String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * 4096).ok_or_else(|| format!("unreadable statm: {statm}"))
}
