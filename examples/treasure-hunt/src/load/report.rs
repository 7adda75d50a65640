//! What a run came to: figures, and a verdict on whether anything acknowledged is missing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::bot::{Bot, Tally};
use super::{Options, Usage};
use crate::gateway::Recounted;

/// A run in figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Players.
    pub players: u32,
    /// Sockets they shared.
    pub sockets: u32,
    /// Seconds of play.
    pub seconds: f64,
    /// Acts answered with an event.
    pub done: usize,
    /// Of those, in a second.
    pub done_per_second: f64,
    /// Acts that the rules refused (into the water, …).
    pub refused: u64,
    /// Acts answered with an error, broken sockets, acts without an answer.
    pub errors: u64,
    /// The commonest of them.
    pub errors_told: Vec<String>,
    /// Milliseconds from an act being due to its event: median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Frames of views received.
    pub views: u64,
    /// Turns left out by bots that were behind.
    pub skipped: u64,
    /// Microseconds of CPU, user and system, that the server spent per event.
    pub server_us_per_event: f64,
    /// The same of the load generator.
    pub load_us_per_event: f64,
    /// Cores the server used.
    pub server_cores: f64,
    /// Cores the load generator used.
    pub load_cores: f64,
    /// The server's resident memory at the end, MiB.
    pub server_mib: f64,
    /// What joining added to it, per player that has not moved yet, bytes; the ground was there
    /// before. Only of a fresh server.
    pub resident_bytes_per_player: f64,
    /// Busiest worker of the server above the mean, percent.
    pub busiest_worker_above_mean_percent: f64,
    /// Actors killed meanwhile.
    pub killed: u64,
    /// Questions asked again because of it.
    pub retries: u64,
    /// Whether the log agrees.
    pub verdict: Verdict,
}

/// What the log says to what clients were told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Players with an acknowledged event that is not in the log, or is another there.
    pub lost: usize,
    /// Players with an event in the log that they were not told of, though none of their acts is
    /// open.
    pub unannounced: usize,
    /// What does not follow from the rules in the log.
    pub violations: u64,
    /// Regions whose points differ from the log's, and other differences.
    pub differences: Vec<String>,
    /// Points by the log.
    pub log_score: u64,
    /// Events in the log.
    pub log_events: u64,
}

impl Verdict {
    /// Whether nothing is lost and all sums agree.
    pub fn is_good(&self) -> bool {
        self.lost == 0
            && self.unannounced == 0
            && self.violations == 0
            && self.differences.is_empty()
    }

    fn new(bots: &[Bot], recounted: &Recounted) -> Self {
        let (mut lost, mut unannounced) = (0, 0);
        for bot in bots {
            let logged = recounted.log.players.get(&bot.player.0).copied().unwrap_or_default();
            if logged.seq == bot.count.seq {
                lost += usize::from(logged != bot.count);
            } else if logged.seq < bot.count.seq {
                lost += 1;
            } else {
                unannounced += usize::from(bot.waits_since.is_none());
            }
        }
        let mut differences = recounted.regions_wrong.clone();
        differences.extend(recounted.log.violations_told.iter().cloned());
        Self {
            lost,
            unannounced,
            violations: recounted.log.violations,
            differences,
            log_score: recounted.log.score,
            log_events: recounted.log.events,
        }
    }
}

impl Report {
    pub(super) fn new(
        options: &Options,
        bots: &[Bot],
        mut tally: Tally,
        recounted: &Recounted,
        [empty, before, after]: [&Usage; 3],
    ) -> Self {
        tally.latencies_us.sort_unstable();
        let quantile = |share: f64| {
            let last = tally.latencies_us.len().saturating_sub(1);
            let index = (last as f64 * share).round() as usize;
            tally.latencies_us.get(index).map_or(0.0, |us| f64::from(*us) / 1_000.0)
        };
        let seconds = options.duration.as_secs_f64();
        let unanswered = bots.iter().filter(|bot| bot.waits_since.is_some()).count();
        let mut told: BTreeMap<&str, u64> = BTreeMap::new();
        for error in &tally.errors {
            *told.entry(error).or_default() += 1;
        }
        if unanswered > 0 {
            told.insert("no answer", unanswered as u64);
        }
        let mut errors_told: Vec<_> = told.iter().collect();
        errors_told.sort_unstable_by_key(|(_, count)| u64::MAX - **count);
        let (start, end) = (&before.server.process, &after.server.process);
        let per_event = |cpu_s: f64| cpu_s * 1e6 / tally.done.max(1) as f64;
        let busy = |index: usize| {
            let began = start.workers_busy_s.get(index).copied().unwrap_or_default();
            end.workers_busy_s[index] - began
        };
        let busy: Vec<_> = (0..end.workers_busy_s.len()).map(busy).collect();
        Self {
            players: options.players,
            sockets: options.players.div_ceil(options.players_per_socket),
            seconds,
            done: tally.done,
            done_per_second: tally.done as f64 / seconds,
            refused: tally.refused,
            errors: (tally.errors.len() + unanswered) as u64,
            errors_told: errors_told
                .iter()
                .take(5)
                .map(|(text, count)| format!("{count} × {text}"))
                .collect(),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: quantile(1.0),
            views: tally.views,
            skipped: tally.skipped,
            server_us_per_event: per_event(end.cpu_s - start.cpu_s),
            load_us_per_event: per_event(after.own_cpu_s - before.own_cpu_s),
            server_cores: (end.cpu_s - start.cpu_s) / seconds,
            load_cores: (after.own_cpu_s - before.own_cpu_s) / seconds,
            resident_bytes_per_player: start
                .resident_bytes
                .saturating_sub(empty.server.process.resident_bytes)
                as f64
                / f64::from(options.players),
            server_mib: end.resident_bytes as f64 / f64::from(1 << 20),
            busiest_worker_above_mean_percent: spread_percent(&busy),
            killed: after.server.acts.killed - before.server.acts.killed,
            retries: after.server.acts.retries - before.server.acts.retries,
            verdict: Verdict::new(bots, recounted),
        }
    }
}

/// How far the largest is above the mean.
fn spread_percent(busy: &[f64]) -> f64 {
    let mean = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
    let most = busy.iter().copied().fold(0.0, f64::max);
    if mean > 0.0 { (most / mean - 1.0) * 100.0 } else { 0.0 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { players, sockets, seconds, .. } = self;
        writeln!(f, "players            {players} on {sockets} sockets, {seconds} s")?;
        writeln!(f, "events             {} ({:.0}/s)", self.done, self.done_per_second)?;
        writeln!(f, "refused by rules   {}", self.refused)?;
        writeln!(
            f,
            "move to event      p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
            self.p50_ms, self.p99_ms, self.p999_ms, self.max_ms
        )?;
        writeln!(f, "views received     {}", self.views)?;
        writeln!(f, "turns left out     {}", self.skipped)?;
        writeln!(
            f,
            "cores used         server {:.2}, load {:.2}",
            self.server_cores, self.load_cores
        )?;
        writeln!(
            f,
            "CPU per event      server {:.1} µs, load {:.1} µs",
            self.server_us_per_event, self.load_us_per_event
        )?;
        writeln!(
            f,
            "busiest worker     {:.1} % above the mean",
            self.busiest_worker_above_mean_percent
        )?;
        writeln!(
            f,
            "server memory      {:.0} MiB, {:.0} bytes per idle player",
            self.server_mib, self.resident_bytes_per_player
        )?;
        writeln!(f, "chaos              {} killed, {} asked again", self.killed, self.retries)?;
        writeln!(f, "errors             {}", self.errors)?;
        for error in &self.errors_told {
            writeln!(f, "  {error}")?;
        }
        let verdict = &self.verdict;
        writeln!(
            f,
            "log                {} events, {} points",
            verdict.log_events, verdict.log_score
        )?;
        writeln!(f, "lost               {}", verdict.lost)?;
        writeln!(f, "unannounced        {}", verdict.unannounced)?;
        writeln!(f, "violations         {}", verdict.violations)?;
        for difference in &verdict.differences {
            writeln!(f, "  {difference}")?;
        }
        let word = if verdict.is_good() { "good: nothing lost, all sums agree" } else { "BAD" };
        write!(f, "recount            {word}")
    }
}
