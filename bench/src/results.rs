//! What was measured beside the peers, kept in `bench/results/peers.json` between runs.
//!
//! A run of some workloads replaces their rows and keeps the others; the commit and machine are
//! those of the latest run. Every row of ours carries on only as long as nobody measures it again.

use crate::build::bench_directory;
use crate::machine::Machine;
use crate::plot;
use crate::report;
use crate::row::Row;
use crate::systems::Candidate;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A system that was measured, as the tables name it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) settings: String,
    /// `bounded` or `unbounded`.
    #[serde(default)]
    pub(crate) mailbox: String,
    #[serde(default)]
    pub(crate) is_ours: bool,
}

/// Everything in the results file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) machine: Machine,
    pub(crate) systems: Vec<System>,
    pub(crate) rows: Vec<Row>,
}

impl Recorded {
    /// Reads the results file.
    pub(crate) fn load() -> Result<Self> {
        let path = results_file();
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("unreadable {}", path.display()))
    }

    /// Reads the results file, or starts an empty one.
    pub(crate) fn load_or_new() -> Result<Self> {
        match fs::metadata(results_file()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            _ => Self::load(),
        }
    }

    /// Puts new rows in the place of those of the same workload and system.
    pub(crate) fn merge(&mut self, rows: Vec<Row>, candidates: &[Candidate]) {
        self.machine = Machine::current();
        for candidate in candidates {
            let system = System {
                name: candidate.name.clone(),
                settings: candidate.settings.to_owned(),
                mailbox: candidate.mailbox.name().to_owned(),
                is_ours: candidate.is_ours,
            };
            match self.systems.iter_mut().find(|known| known.name == candidate.name) {
                Some(known) => *known = system,
                None => self.systems.push(system),
            }
        }
        self.rows.retain(|old| {
            !rows.iter().any(|new| new.workload == old.workload && new.system == old.system)
        });
        self.rows.extend(rows);
    }

    /// Whether the row is of Althing itself.
    pub(crate) fn is_ours(&self, row: &Row) -> bool {
        self.system(row).is_some_and(|system| system.is_ours)
    }

    /// The kind of mailbox behind a row.
    pub(crate) fn mailbox(&self, row: &Row) -> &str {
        self.system(row).map_or("", |system| &system.mailbox)
    }

    fn system(&self, row: &Row) -> Option<&System> {
        self.systems.iter().find(|system| system.name == row.system)
    }

    /// Metrics of one workload, in the order they were first printed.
    pub(crate) fn metrics_of(&self, workload: &str) -> Vec<String> {
        self.metrics(|row| row.workload == workload)
    }

    /// Metrics of a group of workloads.
    pub(crate) fn metrics_of_group(&self, group: &str) -> Vec<String> {
        self.metrics(|row| {
            crate::catalogue::find(&row.workload).is_some_and(|found| found.group == group)
        })
    }

    fn metrics(&self, wanted: impl Fn(&Row) -> bool) -> Vec<String> {
        let mut metrics = Vec::new();
        for row in self.rows.iter().filter(|row| row.is_measured() && wanted(row)) {
            if !metrics.contains(&row.metric) {
                metrics.push(row.metric.clone());
            }
        }
        metrics
    }

    /// Writes the results file, the tables and the plot.
    pub(crate) fn publish(&self) -> Result<()> {
        write(&results_file(), &format!("{}\n", serde_json::to_string_pretty(self)?))?;
        write(&bench_directory().join("results/RESULTS.md"), &report::markdown(self))?;
        write(&bench_directory().join("../docs/images/bench-tell.svg"), &plot::tells(self))
    }
}

fn results_file() -> PathBuf {
    bench_directory().join("results/peers.json")
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, system: &str, median: f64) -> Row {
        let mut row = Row::missing(workload, system, "");
        row.metric = "rate".to_owned();
        row.median = median;
        row.runs = 5;
        row
    }

    #[test]
    fn a_later_run_replaces_only_what_it_measured() {
        let mut recorded = Recorded::default();
        recorded.merge(vec![row("ask-1", "kameo", 1.0), row("spawn", "kameo", 2.0)], &[]);
        recorded.merge(vec![row("ask-1", "kameo", 3.0)], &[]);
        let medians: Vec<f64> = recorded.rows.iter().map(|row| row.median).collect();
        assert_eq!(medians, [2.0, 3.0]);
        assert_eq!(recorded.metrics_of("ask-1"), ["rate"]);
    }
}
