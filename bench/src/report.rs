//! Tables: aligned columns for a terminal, Markdown for `RESULTS.md`.

use crate::catalogue::CATALOGUE;
use crate::ratios;
use crate::results::Recorded;
use crate::row::Row;
use std::fmt::Write as _;

/// Rows as aligned text.
pub(crate) fn terminal_table(rows: &[Row], cores: usize) -> String {
    let head = ["workload", "system", "metric", "median", "min", "max", "unit", "cores", "runs"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let figure = |value: f64| if row.is_measured() { round(value) } else { "–".to_owned() };
        let remark = if row.is_measured() { row.runs.to_string() } else { row.note.clone() };
        lines.push(vec![
            row.workload.clone(),
            row.system.clone(),
            row.metric.clone(),
            figure(row.median),
            figure(row.min),
            figure(row.max),
            row.unit.clone(),
            cores.to_string(),
            remark,
        ]);
    }
    aligned(&lines)
}

/// Lines of equally many cells, each column as wide as its widest cell.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Everything recorded, as a Markdown document.
pub(crate) fn markdown(recorded: &Recorded) -> String {
    let mut text = String::new();
    heading(&mut text, recorded);
    ratios::table(&mut text, recorded);
    figures(&mut text, recorded);
    settings(&mut text, recorded);
    text
}

fn heading(text: &mut String, recorded: &Recorded) {
    let machine = &recorded.machine;
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "# Althing beside its peers\n\n\
         Written by `cargo run --release -p althing-bench -- peers` (`make bench-peers`); do not edit.\n\n\
         {} ({} cores, {} GiB), Linux {}, commit {}, {}. Message: one u64; handler: add; the clock\n\
         stops when the last message is handled, and every run checks the sum. Medians of {} rounds or\n\
         more; each round runs every system once, in turn, in a process of its own.\n",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.commit,
        machine.date(),
        recorded.rows.iter().filter(|row| row.is_measured()).map(|row| row.runs).min().unwrap_or(0),
    );
}

/// Every figure: a line per workload and metric, a column per system.
fn figures(text: &mut String, recorded: &Recorded) {
    let names: Vec<&str> = recorded.systems.iter().map(|system| system.name.as_str()).collect();
    let _ = writeln!(text, "| workload | unit | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(names.len()));
    for workload in CATALOGUE {
        for metric in recorded.metrics_of(workload.name) {
            let find = |system: &str| {
                recorded.rows.iter().find(|row| {
                    row.workload == workload.name
                        && row.system == system
                        && (row.metric == metric || !row.is_measured())
                })
            };
            let cells: Vec<String> = names
                .iter()
                .map(|name| find(name).filter(|row| row.is_measured()))
                .map(|row| row.map_or("–".to_owned(), |row| round(row.median)))
                .collect();
            let unit = names.iter().find_map(|name| find(name).filter(|row| row.is_measured()));
            let unit = unit.map_or("", |row| row.unit.as_str());
            let label = match recorded.metrics_of(workload.name).len() {
                1 => workload.name.to_owned(),
                _ => format!("{} {metric}", workload.name),
            };
            let _ = writeln!(text, "| {label} | {unit} | {} |", cells.join(" | "));
        }
    }
    text.push('\n');
}

/// Versions and settings, then what is missing and why.
fn settings(text: &mut String, recorded: &Recorded) {
    for system in &recorded.systems {
        let _ = writeln!(text, "- {}: {}", system.name, system.settings);
    }
    let mut notes: Vec<String> = recorded
        .rows
        .iter()
        .filter(|row| !row.note.is_empty() && row.note != "no such workload")
        .map(|row| format!("- {} {}: {}", row.system, row.workload, row.note))
        .collect();
    notes.dedup();
    if !notes.is_empty() {
        let _ = writeln!(text, "\nNotes:\n{}", notes.join("\n"));
    }
}

pub(crate) fn figure(row: &Row) -> String {
    format!("{} {}", round(row.median), row.unit)
}

/// Three significant digits: the noise of a shared machine is far above the fourth.
pub(crate) fn round(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_about_three_digits() {
        let shown: Vec<String> = [0.0, 0.00051, 0.25, 2.345, 45.67, 1234.5].map(round).into();
        assert_eq!(shown, ["0", "0.0005", "0.25", "2.35", "45.7", "1234"]);
    }

    #[test]
    fn a_terminal_table_shows_why_a_figure_is_missing() {
        let table = terminal_table(&[Row::missing("spawn", "goakt", "not built: no go")], 2);
        assert!(table.lines().nth(1).is_some_and(|line| line.contains("not built: no go")));
    }
}
