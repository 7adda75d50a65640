//! One row of a result: the median, least and greatest value over the rounds.

use serde::{Deserialize, Serialize};

/// A line that a system under test prints for one metric of one round.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sample {
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
    #[serde(default)]
    pub(crate) note: String,
}

impl Sample {
    /// A sample without a remark.
    pub(crate) fn new(metric: &str, unit: &str, value: f64) -> Self {
        Self { metric: metric.to_owned(), unit: unit.to_owned(), value, note: String::new() }
    }
}

/// The summary of one metric of one system in one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) system: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) runs: usize,
    /// How the system does it, where systems differ; or why there is no figure (`runs` is 0 then).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
}

impl Row {
    /// Sums up one sample per round; `None` of none.
    pub(crate) fn summarize(workload: &str, system: &str, samples: &[Sample]) -> Option<Self> {
        let first = samples.first()?;
        let mut values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(Self {
            workload: workload.to_owned(),
            system: system.to_owned(),
            metric: first.metric.clone(),
            unit: first.unit.clone(),
            median: median(&values),
            min: values[0],
            max: values[values.len() - 1],
            runs: values.len(),
            note: first.note.clone(),
        })
    }

    /// A row that says why a system has no figure.
    pub(crate) fn missing(workload: &str, system: &str, reason: &str) -> Self {
        Self {
            workload: workload.to_owned(),
            system: system.to_owned(),
            metric: String::new(),
            unit: String::new(),
            median: 0.0,
            min: 0.0,
            max: 0.0,
            runs: 0,
            note: reason.to_owned(),
        }
    }

    /// Whether the row has a figure.
    pub(crate) fn is_measured(&self) -> bool {
        self.runs > 0
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Vec<Sample> {
        let sample = |value: &f64| Sample {
            metric: "rate".to_owned(),
            unit: "M/s".to_owned(),
            value: *value,
            note: String::new(),
        };
        values.iter().map(sample).collect()
    }

    #[test]
    fn summary_keeps_median_and_extremes_in_any_order() {
        let row = Row::summarize("w", "s", &samples(&[3.0, 1.0, 2.0])).unwrap();
        assert_eq!((row.min, row.median, row.max, row.runs), (1.0, 2.0, 3.0, 3));
        let row = Row::summarize("w", "s", &samples(&[4.0, 1.0, 2.0, 3.0])).unwrap();
        assert_eq!(row.median, 2.5);
        assert!(Row::summarize("w", "s", &[]).is_none());
    }
}
