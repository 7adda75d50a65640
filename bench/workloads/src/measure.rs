//! How long a workload is repeated, and the line it prints.
//!
//! One process runs one workload: first the warm-up, then batches until the time is over, and
//! prints the median batch. Rounds, medians of rounds and ratios are the harness's business.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How many messages a batch has and how long batches are repeated.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Messages per batch, or actors where actors are what is counted.
    pub messages: u64,
    /// Time of measured batches; at least one is run.
    pub seconds: f64,
    /// Time of batches before the measured ones.
    pub warm_up_seconds: f64,
}

/// One measured value: a line of output.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What was measured, for example `rate` or `p99`.
    pub metric: Cow<'static, str>,
    /// Its unit: `M/s`, `ns`, `bytes`, `allocs/msg`.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
    /// A remark that belongs beside the figure, or nothing.
    pub note: &'static str,
}

impl Sample {
    /// A value without a remark.
    #[must_use]
    pub fn new(metric: impl Into<Cow<'static, str>>, unit: &'static str, value: f64) -> Self {
        Self { metric: metric.into(), unit, value, note: "" }
    }

    /// Messages per second, in millions.
    #[must_use]
    pub fn rate(messages: u64, elapsed_ns: f64) -> Self {
        Self::new("rate", "M/s", messages as f64 * 1_000.0 / elapsed_ns)
    }

    /// The line that the harness reads; names are plain identifiers, so nothing needs escaping.
    #[must_use]
    pub fn json(&self, system: &str, workload: &str) -> String {
        let mut line = format!(
            "{{\"system\":\"{system}\",\"workload\":\"{workload}\",\"metric\":\"{}\",\
             \"unit\":\"{}\",\"value\":{}",
            self.metric, self.unit, self.value
        );
        if !self.note.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(line, ",\"note\":\"{}\"", self.note);
        }
        line.push('}');
        line
    }
}

impl Budget {
    /// Repeats `batch`, first to warm up, then measured, and returns the measured durations.
    ///
    /// # Errors
    /// The first error of a batch.
    pub fn run<E>(
        &self,
        mut batch: impl FnMut() -> Result<Duration, E>,
    ) -> Result<Vec<Duration>, E> {
        let warm_up = Duration::from_secs_f64(self.warm_up_seconds);
        let begun = Instant::now();
        while begun.elapsed() < warm_up {
            batch()?;
        }
        let seconds = Duration::from_secs_f64(self.seconds);
        let begun = Instant::now();
        let mut measured = Vec::new();
        while measured.is_empty() || begun.elapsed() < seconds {
            measured.push(batch()?);
        }
        Ok(measured)
    }
}

/// Median of the durations in nanoseconds; zero of none.
#[must_use]
pub fn median_ns(durations: &mut [Duration]) -> f64 {
    durations.sort_unstable();
    durations.get(durations.len() / 2).map_or(0.0, |median| median.as_nanos() as f64)
}

/// The value below which `share` (0 to 1) of the sorted nanoseconds lie.
#[must_use]
pub fn percentile_ns(sorted: &[u32], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share) as usize;
    sorted.get(rank.min(sorted.len().saturating_sub(1))).map_or(0.0, |value| f64::from(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_system_workload_metric_and_value() {
        let line = Sample::rate(1_000, 500.0).json("kameo", "tell-8to1");
        assert_eq!(
            line,
            r#"{"system":"kameo","workload":"tell-8to1","metric":"rate","unit":"M/s","value":2000}"#
        );
    }

    #[test]
    fn percentiles_of_a_hundred_values_are_the_values() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile_ns(&sorted, 0.5), 51.0);
        assert_eq!(percentile_ns(&sorted, 0.99), 100.0);
        assert_eq!(percentile_ns(&sorted, 1.0), 100.0);
        assert_eq!(percentile_ns(&[], 0.5), 0.0);
    }
}
