//! `relay-histories`: a relay with many durable histories starts, and makes their log smaller while
//! somebody publishes.
//!
//! `--messages` says how many channels there are, each with ten publications of its own of half a
//! kilobyte. Figures: `start`, until a relay listens that finds such a log, in a process of its own,
//! whose memory is `start-peak` at most and `start-held` then; `log` before and `left` afterwards;
//! `smaller`, how long that took; and the time of one publication, synced, while the log
//! is made smaller (`busy-…`) and as long afterwards (`quiet-…`), one at a time over a real socket.

use std::fmt::Write as _;
use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};

use super::{ask, memory_kib, serve};
use crate::build::build_directory;

/// The first argument of a process that only starts a relay.
pub(crate) const OPEN: &str = "relay-open";
const HISTORY: u64 = 10;
const TEXT_BYTES: usize = 500;
/// Commands in one request while the channels are filled.
const BATCH: u64 = 2_000;
/// Between two publications that are measured.
const PAUSE: Duration = Duration::from_millis(2);
/// What has not been made smaller by then never is.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>, String> {
    measure(budget.messages).map_err(|error| format!("{error:#}"))
}

fn measure(channels: u64) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Beside the program: `/tmp` may be no disk.
    let directory = tempfile::tempdir_in(build_directory()?)?;
    let relay = runtime.block_on(serve(directory.path()))?;
    fill(relay.address(), channels)?;
    runtime.block_on(relay.stop());
    let before = segments(directory.path())?;
    let started = started_alone(directory.path())?;
    let relay = runtime.block_on(serve(directory.path()))?;
    // What a start finds is due to be made smaller, once something is written.
    let begun = Instant::now();
    let newest = before.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let mut busy = publish_while(relay.address(), || {
        ensure!(begun.elapsed() < PATIENCE, "the log is not made smaller");
        Ok(segments(directory.path())?.iter().any(|(number, _)| *number <= newest))
    })?;
    let took = begun.elapsed();
    let left = segments(directory.path())?;
    let begun = Instant::now();
    let mut quiet = publish_while(relay.address(), || Ok(begun.elapsed() < took))?;
    runtime.block_on(relay.stop());
    let mib = |segments: &[(u64, u64)]| {
        segments.iter().map(|(_, bytes)| *bytes).sum::<u64>() as f64 / f64::from(1 << 20)
    };
    let [start, peak, held] = started;
    let mut samples = vec![
        Sample::new("start", "ms", start),
        Sample::new("start-peak", "MiB", peak / 1_024.0),
        Sample::new("start-held", "MiB", held / 1_024.0),
        Sample::new("log", "MiB", mib(&before)),
        Sample::new("left", "MiB", mib(&left)),
        Sample::new("smaller", "ms", took.as_secs_f64() * 1e3),
    ];
    for (times, names) in [
        (&mut busy, ["busy-p50", "busy-p99", "busy-max"]),
        (&mut quiet, ["quiet-p50", "quiet-p99", "quiet-max"]),
    ] {
        times.sort_unstable();
        for (name, share) in names.into_iter().zip([0.5, 0.99, 1.0]) {
            let place = (times.len() as f64 * share) as usize;
            let time = times[place.min(times.len() - 1)];
            samples.push(Sample::new(name, "ms", time.as_secs_f64() * 1e3));
        }
    }
    Ok(samples)
}

/// Starts a relay in a process of its own; milliseconds until it listens, and KiB at most and then.
fn started_alone(directory: &Path) -> Result<[f64; 3]> {
    let program = std::env::current_exe()?;
    let said = Command::new(program).arg(OPEN).arg(directory).output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8(said.stdout)?;
    let figures: Vec<f64> =
        said.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("no figures")?;
    figures.try_into().ok().with_context(|| format!("no three figures: {said}"))
}

/// What such a process does.
pub(crate) fn open(directory: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let begun = Instant::now();
    let relay = runtime.block_on(serve(Path::new(directory)))?;
    let start = begun.elapsed().as_secs_f64() * 1e3;
    println!("{start} {} {}", memory_kib("VmHWM")?, memory_kib("RssAnon")?);
    runtime.block_on(relay.stop());
    Ok(())
}

/// Publishes into each channel as much as it keeps.
fn fill(at: SocketAddr, channels: u64) -> Result<()> {
    let mut backend = BufReader::new(TcpStream::connect(at)?);
    let text = "x".repeat(TEXT_BYTES);
    let mut left = (0..HISTORY).flat_map(|number| (0..channels).map(move |it| (number, it)));
    loop {
        let mut commands = String::new();
        for (number, channel) in left.by_ref().take(BATCH as usize) {
            let separator = if commands.is_empty() { "" } else { "," };
            write!(
                commands,
                r#"{separator}{{"publish":{{"channel":"stored:{channel:09}","data":"{number} {channel} {text}"}}}}"#
            )?;
        }
        if commands.is_empty() {
            return Ok(());
        }
        let body = format!(r#"{{"parallel":true,"commands":[{commands}]}}"#);
        let answer = ask(&mut backend, "batch", &body)?;
        ensure!(!answer.contains(r#""error""#), "a publication was refused");
    }
}

/// Publishes one after the other as long as it is wanted; how long each took.
fn publish_while(at: SocketAddr, goes_on: impl Fn() -> Result<bool>) -> Result<Vec<Duration>> {
    let mut backend = BufReader::new(TcpStream::connect(at)?);
    backend.get_ref().set_nodelay(true)?;
    let mut times = Vec::new();
    while goes_on()? {
        let body = format!(r#"{{"channel":"stored:probe-{}","data":1}}"#, times.len() % 64);
        let begun = Instant::now();
        let answer = ask(&mut backend, "publish", &body)?;
        times.push(begun.elapsed());
        ensure!(!answer.contains(r#""error""#), "{answer}");
        std::thread::sleep(PAUSE);
    }
    ensure!(!times.is_empty(), "nothing was published");
    Ok(times)
}

/// The segments of the log, by their numbers, and their bytes.
fn segments(directory: &Path) -> Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(directory)? {
        let file = file?;
        let name = file.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".histories"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            // One may go between the two.
            found.extend(file.metadata().map(|data| (number, data.len())).ok());
        }
    }
    Ok(found)
}
