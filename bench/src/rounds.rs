//! Runs systems in turn: round 1 of every system, round 2 of every system, and so on.
//!
//! Each run is a process of its own, so no system inherits another's heap, threads or warm caches,
//! and slow drift of the machine falls on all alike. A system that fails is a row with the reason,
//! never a silent gap; when ours fails, the whole measurement does.

use crate::build::Launch;
use crate::catalogue::{Scope, Workload};
use crate::row::{Row, Sample};
use crate::systems::Candidate;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A run that takes longer is ended: its workload waits two minutes for a batch at most.
const RUN_MAX: Duration = Duration::from_secs(240);
/// The same where servers are built, filled with a hundred thousand people, and started.
const SERVICES_RUN_MAX: Duration = Duration::from_secs(900);
/// How often a run is looked at. Measuring happens inside the child, so this adds nothing to it.
const POLL: Duration = Duration::from_millis(10);
/// Exit status of a system that does not have the workload.
const NO_SUCH_WORKLOAD: i32 = 3;

/// Metric of a run's largest resident set: what waits in a mailbox without bound is paid in memory.
pub(crate) const PEAK: &str = "peak";

/// How one workload is measured.
pub(crate) struct Plan {
    pub(crate) workload: &'static Workload,
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) rounds: u32,
}

/// What one round of one system came to.
pub(crate) enum Outcome {
    Measured(Vec<Sample>),
    /// The system does not have the workload.
    NotOffered,
    Failed(String),
}

/// Measures one workload on every candidate, round by round.
pub(crate) fn interleave<'a>(
    plan: &Plan,
    candidates: impl IntoIterator<Item = &'a Candidate>,
) -> Result<Vec<Row>> {
    let mut tracks: Vec<Track<'_>> = candidates.into_iter().map(Track::new).collect();
    for round in 1..=plan.rounds {
        for track in &mut tracks {
            let Some(launch) = track.launch else { continue };
            eprintln!("{} {} round {round}", plan.workload.name, track.system);
            match run_once(plan, launch)? {
                Outcome::Measured(samples) => track.samples.extend(samples),
                Outcome::NotOffered => track.end("no such workload"),
                Outcome::Failed(reason) if track.is_ours => bail!("{reason}"),
                Outcome::Failed(reason) => track.end(&reason),
            }
        }
    }
    Ok(tracks.into_iter().flat_map(|track| track.rows(plan.workload.name)).collect())
}

/// What was heard from one system so far.
struct Track<'a> {
    system: &'a str,
    is_ours: bool,
    launch: Option<&'a Launch>,
    samples: Vec<Sample>,
    reason: String,
}

impl<'a> Track<'a> {
    fn new(candidate: &'a Candidate) -> Self {
        let (launch, reason) = match &candidate.launch {
            Ok(launch) => (Some(launch), String::new()),
            Err(reason) => (None, format!("not built: {reason}")),
        };
        Self {
            system: &candidate.name,
            is_ours: candidate.is_ours,
            launch,
            samples: Vec::new(),
            reason,
        }
    }

    fn end(&mut self, reason: &str) {
        eprintln!("  {}: {reason}", self.system);
        self.launch = None;
        reason.clone_into(&mut self.reason);
    }

    /// One row per metric, or one that says why there is none.
    fn rows(self, workload: &str) -> Vec<Row> {
        let mut metrics: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !metrics.contains(&sample.metric.as_str()) {
                metrics.push(&sample.metric);
            }
        }
        if metrics.is_empty() {
            return vec![Row::missing(workload, self.system, &self.reason)];
        }
        let of_metric = |metric: &str| -> Vec<Sample> {
            self.samples.iter().filter(|sample| sample.metric == metric).cloned().collect()
        };
        metrics
            .into_iter()
            .filter_map(|metric| Row::summarize(workload, self.system, &of_metric(metric)))
            .map(|row| match self.reason.as_str() {
                "" => row,
                // It broke off in a later round; the rounds before it stand.
                reason => Row { note: reason.to_owned(), ..row },
            })
            .collect()
    }
}

/// Runs one round in a process of its own.
pub(crate) fn run_once(plan: &Plan, launch: &Launch) -> Result<Outcome> {
    let mut command = launch.command();
    command
        .arg(plan.workload.name)
        .args(["--messages", &plan.messages.to_string()])
        .args(["--seconds", &plan.seconds.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", launch.program.to_string_lossy()))?;
    let run_max = match plan.workload.scope {
        Scope::OneProcess => RUN_MAX,
        Scope::Services => SERVICES_RUN_MAX,
    };
    let finished = wait(child, run_max)?;
    Ok(match finished.status {
        None => Outcome::Failed(format!("ended after {} s", run_max.as_secs())),
        Some(0) => match parse(&finished.stdout) {
            Ok(mut samples) => {
                let peak = finished.peak_mib.filter(|_| plan.workload.fills_mailboxes());
                samples.extend(peak.map(|value| Sample::new(PEAK, "MiB", value)));
                Outcome::Measured(samples)
            }
            Err(error) => Outcome::Failed(format!("{error:#}")),
        },
        Some(NO_SUCH_WORKLOAD) => Outcome::NotOffered,
        Some(status) => {
            let last = finished.stderr.lines().rev().find(|line| !line.trim().is_empty());
            Outcome::Failed(format!("exit status {status}: {}", last.unwrap_or("no message")))
        }
    })
}

struct Finished {
    /// `None` when the run was ended for taking too long.
    status: Option<i32>,
    stdout: String,
    stderr: String,
    peak_mib: Option<f64>,
}

fn wait(mut child: Child, run_max: Duration) -> Result<Finished> {
    let stdout = child.stdout.take().map(read_to_end);
    let stderr = child.stderr.take().map(read_to_end);
    let deadline = Instant::now() + run_max;
    let mut peak_mib = None;
    let status = loop {
        peak_mib = resident_peak_mib(child.id()).or(peak_mib);
        if let Some(status) = child.try_wait()? {
            // A signal has no code; any failing number will do for it.
            break Some(status.code().unwrap_or(-1));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(POLL);
    };
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    Ok(Finished { status, stdout: text(stdout), stderr: text(stderr), peak_mib })
}

/// The largest resident set of a running process so far; `None` once it has ended.
fn resident_peak_mib(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn read_to_end(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks ends the text; the exit status tells whether that matters.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Reads the JSON lines of a run; other lines (a runtime's greeting) are passed over.
fn parse(stdout: &str) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for line in stdout.lines().filter(|line| line.trim_start().starts_with('{')) {
        let sample: Sample =
            serde_json::from_str(line).with_context(|| format!("unreadable line {line}"))?;
        if !sample.value.is_finite() || sample.value < 0.0 {
            bail!("no such value: {line}");
        }
        samples.push(sample);
    }
    if samples.is_empty() {
        bail!("printed no sample");
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_between_other_lines() {
        let text = "warming up\n{\"metric\":\"p50\",\"unit\":\"ns\",\"value\":70.5}\n";
        let samples = parse(text).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].value, 70.5);
    }

    #[test]
    fn a_run_without_samples_or_with_a_negative_value_is_refused() {
        assert!(parse("hello\n").is_err());
        assert!(parse("{\"metric\":\"p50\",\"unit\":\"ns\",\"value\":-1}").is_err());
        assert!(parse("{\"metric\":\"p50\"}").is_err());
    }

    #[test]
    fn a_running_process_has_a_resident_peak() {
        assert!(resident_peak_mib(std::process::id()).is_some_and(|peak| peak > 0.1));
        assert!(resident_peak_mib(u32::MAX).is_none());
    }

    #[test]
    fn a_candidate_that_was_not_built_is_listed_with_its_reason() {
        let candidate = Candidate::absent("hollywood", "go is not installed");
        let plan = Plan {
            workload: &crate::catalogue::CATALOGUE[0],
            messages: 1,
            seconds: 0.0,
            rounds: 1,
        };
        let rows = interleave(&plan, [&candidate]).unwrap();
        assert_eq!(rows.len(), 1);
        assert!(!rows[0].is_measured());
        assert_eq!(rows[0].note, "not built: go is not installed");
    }
}
