//! What `folkmoot load --json` says of a run.

use althing_bench_workloads::Sample;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Of a run in which nothing was lost, doubled or out of order: others end with an error.
#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Report {
    /// Memory of the server's own for each connection.
    pub(in crate::solo) bytes_per_socket: Option<u64>,
    said: Option<Said>,
    storm: Option<Storm>,
    resumed: Option<Resumed>,
    pub(in crate::solo) troubles: Troubles,
}

/// What was said, and how long it took to be heard.
#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Said {
    acknowledged: u64,
    pub(in crate::solo) refused: u64,
    pub(in crate::solo) delivered: u64,
    /// Milliseconds until the last delivery.
    pub(in crate::solo) took: f64,
    pub(in crate::solo) to_acknowledgement: Times,
    pub(in crate::solo) to_delivery: Times,
    pub(in crate::solo) to_last: Times,
}

/// A return of all at once.
#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Storm {
    /// Events that came with the recoveries.
    pub(in crate::solo) missed: u64,
    pub(in crate::solo) retried: u64,
    /// Milliseconds until the last was back.
    pub(in crate::solo) took: f64,
    pub(in crate::solo) to_return: Times,
}

/// Connections that ended and went on at another node.
#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Resumed {
    pub(in crate::solo) connections: u64,
    pub(in crate::solo) retried: u64,
    /// From the end of one until the next has all that was said meanwhile.
    pub(in crate::solo) pause: Times,
}

#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Troubles {
    pub(in crate::solo) doubled: u64,
    /// Events that a later one came instead of.
    pub(in crate::solo) skipped: u64,
    pub(in crate::solo) unrecovered: u64,
}

/// Milliseconds that half of all, 99 %, 99.9 % and all took at most.
#[derive(Debug, Deserialize)]
pub(in crate::solo) struct Times([Option<f64>; 4]);

impl Report {
    /// What `folkmoot load` has said.
    ///
    /// # Errors
    /// It has failed: anything was lost, doubled or out of order, or a connection broke.
    pub(super) fn of(output: &std::process::Output) -> Result<Self> {
        let said = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "folkmoot load: {} {}", why.trim(), said.trim());
        serde_json::from_str(&said).with_context(|| format!("folkmoot load said {said}"))
    }

    pub(in crate::solo) fn said(&self) -> Result<&Said> {
        self.said.as_ref().context("nothing was said in this run")
    }

    pub(in crate::solo) fn resumed(&self) -> Result<&Resumed> {
        self.resumed.as_ref().context("connections were not to go on elsewhere")
    }

    pub(in crate::solo) fn storm(&self) -> Result<&Storm> {
        self.storm.as_ref().context("nobody left in this run")
    }
}

impl Said {
    pub(in crate::solo) fn acknowledged_per_second(&self) -> f64 {
        self.acknowledged as f64 * 1_000.0 / self.took
    }

    pub(in crate::solo) fn deliveries_per_second(&self) -> f64 {
        self.delivered as f64 * 1_000.0 / self.took
    }
}

impl Times {
    /// A sample of each of the first `names.len()` times.
    pub(in crate::solo) fn samples(&self, names: &[&str]) -> Result<Vec<Sample>> {
        let named = names.iter().zip(self.0);
        let sample = |(name, time): (&&str, Option<f64>)| {
            let time = time.with_context(|| format!("{name}: nothing was timed"))?;
            Ok(Sample::new((*name).to_owned(), "ms", time))
        };
        named.map(sample).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"sockets":50,"entered_after":9.5,"bytes_per_socket":null,
        "said":{"sent":2,"acknowledged":2,"refused":0,"delivered":100,"took":500.0,
        "to_acknowledgement":[1.0,2.0,3.0,4.0],"to_delivery":[1.5,2.5,3.5,4.5],
        "to_last":[null,null,null,null]},"storm":null,"troubles":{"lost":0,"doubled":0,
        "skipped":0,"unanswered":0,"broken":0,"unrecovered":0,"first":null}}"#;

    #[test]
    fn a_report_is_read_and_what_was_not_timed_is_named() {
        let report: Report = serde_json::from_str(LINE).unwrap();
        let said = report.said().unwrap();
        assert_eq!(said.deliveries_per_second(), 200.0);
        let samples = said.to_delivery.samples(&["p50", "p99"]).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples[1].json("", "").contains("2.5"));
        let error = said.to_last.samples(&["last"]).unwrap_err();
        assert_eq!(error.to_string(), "last: nothing was timed");
        assert!(report.storm().is_err());
    }
}
