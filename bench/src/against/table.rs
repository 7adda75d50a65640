//! A comparison as a table for the terminal, as Markdown, and as JSON lines.

use super::{Comparison, Line, WORSE_BELOW};
use crate::report::{aligned, round};
use crate::row::Row;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;

const HEAD: [&str; 11] = [
    "workload",
    "metric",
    "unit",
    "ours",
    "theirs",
    "ratio",
    "95 % interval",
    "slowest round",
    "cores",
    "stolen, %",
    "remark",
];

/// Aligned text.
pub(crate) fn terminal(comparison: &Comparison) -> String {
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(comparison.lines.iter().map(|line| cells(line, comparison.machine.cores)));
    format!("{}\n\n{}", about(comparison), aligned(&lines))
}

/// A document for `bench/results`.
pub(crate) fn markdown(comparison: &Comparison) -> String {
    let commit = &comparison.machine.commit;
    let mut text = format!("# {commit} against {}\n\n", comparison.against);
    text.push_str("Written by `althing-bench ... --against`; do not edit.\n\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "{}\n", about(comparison));
    let _ = writeln!(text, "| {} |\n|{}", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    for line in &comparison.lines {
        let cells = cells(line, comparison.machine.cores);
        // A reason may hold what separates columns.
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "/")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// The machine, the commits, and what the columns mean.
fn about(comparison: &Comparison) -> String {
    let machine = &comparison.machine;
    format!(
        "{} ({} cores, {} GiB), Linux {}, {}. Ours: commit {}; theirs: {}. {} rounds of {} s,\n\
         each side a process of its own, in turn. Load before: {:.2}; stolen by other guests of the \
         host: {:.1} %\nof the processors' time. Figures are medians of rounds. A ratio above 1 means \
         that ours is better; it is the\nmedian of the ratios within rounds, its interval is taken \
         from their order statistics, and \"slowest round\"\nis our slowest against their slowest. \
         Worse: the interval ends below {WORSE_BELOW}.",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.date(),
        machine.commit,
        comparison.against,
        comparison.rounds,
        comparison.seconds,
        comparison.load_before,
        comparison.stolen_percent,
    )
}

fn cells(line: &Line, cores: usize) -> Vec<String> {
    let none = || "–".to_owned();
    let median = |row: &Option<Row>| row.as_ref().map_or_else(none, |row| round(row.median));
    let ratio = line.ratio.as_ref();
    let remark = match (line.is_worse, line.remark.as_str()) {
        (true, "") => "worse",
        (_, remark) => remark,
    };
    vec![
        line.workload.to_owned(),
        line.metric.clone(),
        line.unit.clone(),
        median(&line.ours),
        median(&line.theirs),
        ratio.map_or_else(none, |ratio| format!("{:.2}", ratio.median)),
        ratio.map_or_else(none, |ratio| format!("{:.2} to {:.2}", ratio.from, ratio.to)),
        ratio.map_or_else(none, |ratio| format!("{:.2}", ratio.slowest)),
        cores.to_string(),
        format!("{:.1}", line.stolen_percent),
        remark.to_owned(),
    ]
}

/// Why a line counts as worse.
pub(crate) fn why(line: &Line) -> String {
    match &line.ratio {
        Some(ratio) if line.remark.is_empty() => {
            format!("ratio {:.2} to {:.2}", ratio.from, ratio.to)
        }
        _ => line.remark.clone(),
    }
}

/// A row of one side, or of the ratio between both.
#[derive(Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    row: &'a Row,
    cores: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowest: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_worse: Option<bool>,
}

/// A row for either side and one for the ratio, per metric; the machine and the commits come last.
pub(crate) fn json(comparison: &Comparison) -> Result<String> {
    let cores = comparison.machine.cores;
    let mut text = String::new();
    for line in &comparison.lines {
        let theirs =
            line.theirs.clone().map(|row| Row { system: comparison.against.clone(), ..row });
        for row in [&line.ours, &theirs].into_iter().flatten() {
            let plain = JsonLine { row, cores, interval: None, slowest: None, is_worse: None };
            let _ = writeln!(text, "{}", serde_json::to_string(&plain)?);
        }
        let missing = Row::missing(line.workload, &format!("ratio to {}", comparison.against), "");
        let ratio = line.ratio.as_ref();
        let row = Row {
            metric: line.metric.clone(),
            unit: "×".to_owned(),
            median: ratio.map_or(0.0, |ratio| ratio.median),
            min: ratio.map_or(0.0, |ratio| ratio.min),
            max: ratio.map_or(0.0, |ratio| ratio.max),
            runs: ratio.and(line.ours.as_ref()).map_or(0, |row| row.runs),
            note: line.remark.clone(),
            ..missing
        };
        let ratio = JsonLine {
            row: &row,
            cores,
            interval: ratio.map(|ratio| [ratio.from, ratio.to]),
            slowest: ratio.map(|ratio| ratio.slowest),
            is_worse: Some(line.is_worse),
        };
        let _ = writeln!(text, "{}", serde_json::to_string(&ratio)?);
    }
    let end = serde_json::json!({
        "machine": comparison.machine,
        "against": comparison.against,
        "load_before": comparison.load_before,
        "stolen_percent": comparison.stolen_percent,
    });
    let _ = writeln!(text, "{end}");
    Ok(text)
}
