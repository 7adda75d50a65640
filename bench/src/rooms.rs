//! `althing-bench rooms`: the workloads of rooms at scale in one go, recorded in
//! `bench/results/rooms.json`, told in `rooms.md`, and drawn: what a room costs by its members.

use crate::build::bench_directory;
use crate::machine::Machine;
use crate::results::write;
use crate::row::Row;
use crate::{Amount, catalogue, measure, report, systems};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// In the order of the table.
const WORKLOADS: [&str; 6] = [
    "room-members",
    "room-online",
    "rooms-small",
    "idle-connections",
    "reconnect-storm",
    "room-create",
];
/// Of the plot: members as metrics name them.
const SIZES: [&str; 4] = ["100", "1k", "10k", "100k"];
/// Lines of the plot: what a metric of `room-members` begins with, its caption and colour, readable
/// on light and dark pages alike.
const LINES: [(&str, &str, &str); 4] = [
    ("delivery-p50", "send to delivery, p50", "#d9480f"),
    ("load-p50", "first look at a room, p50", "#1c7ed6"),
    ("history-p50", "50 newest messages, p50", "#2f9e44"),
    ("recovery-p50", "100 missed events, p50", "#9c36b5"),
];
const TEXT: &str = "#6c757d";
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
/// Of the area of the lines.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 280.0;

#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    machine: Machine,
    rows: Vec<Row>,
}

/// Measures the workloads, unless only the documents are to be written again.
pub(crate) fn run(amount: Amount, is_report_only: bool) -> Result<()> {
    let file = results("rooms.json");
    let recorded = if is_report_only {
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("unreadable {}", file.display()))?
    } else {
        let workloads: Vec<_> = WORKLOADS.into_iter().filter_map(catalogue::find).collect();
        ensure!(workloads.len() == WORKLOADS.len(), "a workload is not in the catalogue");
        let mut recorded = Recorded { machine: Machine::current(), rows: Vec::new() };
        for workload in workloads {
            recorded.rows.extend(measure(&[workload], &[systems::ours()?], amount)?);
            // What was measured stays if it is stopped.
            write(&file, &format!("{}\n", serde_json::to_string_pretty(&recorded)?))?;
        }
        recorded
    };
    write(&results("rooms.md"), &markdown(&recorded))?;
    write(&bench_directory().join("../docs/images/bench-rooms.svg"), &plot(&recorded.rows))
}

fn results(name: &str) -> PathBuf {
    bench_directory().join("results").join(name)
}

fn markdown(recorded: &Recorded) -> String {
    let Machine { cpu, cores, memory_gib, kernel, commit, .. } = &recorded.machine;
    let mut text = format!(
        "# Rooms at scale\n\n\
         Written by `cargo run --release -p althing-bench -- rooms`; do not edit. {cpu} ({cores} cores, \
         {memory_gib} GiB),\nLinux {kernel}, commit {commit}, {}. The release build of the server on a \
         disk with fsync, its clients on the\nsame machine. What each workload does, `bench/README.md` \
         says.\n\n| workload | metric | median | least | greatest | unit | runs |\n\
         |---|---|---|---|---|---|---|\n",
        recorded.machine.date()
    );
    for Row { workload, metric, unit, median, min, max, runs, .. } in &recorded.rows {
        let [median, min, max] = [median, min, max].map(|value| report::round(*value));
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "| {workload} | {metric} | {median} | {min} | {max} | {unit} | {runs} |"
        );
    }
    text
}

/// Milliseconds over members, a line for each cost; what was not measured is not drawn.
fn plot(rows: &[Row]) -> String {
    let of = |line: &str, size: &str| {
        let metric = format!("{line}-{size}");
        rows.iter().find(|row| row.workload == "room-members" && row.metric == metric)
    };
    let all = LINES.iter().flat_map(|(line, ..)| SIZES.iter().filter_map(|size| of(line, size)));
    let greatest = all.map(|row| row.median).fold(f64::MIN_POSITIVE, f64::max) * 1.1;
    let x = |place: usize| LEFT + (RIGHT - LEFT) * place as f64 / (SIZES.len() - 1) as f64;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / greatest;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"Milliseconds by members of a room\">\n\
         <text x=\"8\" y=\"22\" font-size=\"16\" font-weight=\"600\" fill=\"{TEXT}\">\
         What a room costs, by its members (ms)</text>\n"
    );
    for part in [0.0, 0.5, 1.0] {
        let (value, at) = (greatest * part, y(greatest * part));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"{TEXT}\" stroke-opacity=\"0.3\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{TEXT}\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            report::round(value),
        );
    }
    for (place, size) in SIZES.iter().enumerate() {
        let (at, below) = (x(place), BOTTOM + 22.0);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\" fill=\"{TEXT}\">{size}</text>"
        );
    }
    for (place, (line, caption, colour)) in LINES.iter().enumerate() {
        let points: Vec<String> = SIZES
            .iter()
            .enumerate()
            .filter_map(|(place, size)| Some((x(place), y(of(line, size)?.median))))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        if points.is_empty() {
            continue;
        }
        let key = TOP + 22.0 * place as f64;
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <circle cx=\"{}\" cy=\"{key}\" r=\"5\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{TEXT}\">{caption}</text>",
            points.join(" "),
            RIGHT + 24.0,
            RIGHT + 36.0,
            key + 4.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(metric: &str, median: f64) -> Row {
        let mut row = Row::missing("room-members", "althing", "");
        (row.metric, row.median, row.runs) = (metric.to_owned(), median, 3);
        row
    }

    #[test]
    fn every_cost_that_was_measured_is_a_line_over_the_members() {
        let rows = [
            row("delivery-p50-100", 1.0),
            row("delivery-p50-100k", 2.0),
            row("load-p50-1k", 0.5),
            row("kept-100k", 900.0),
        ];
        let svg = plot(&rows);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">2.20</text>"), "the scale ends above the greatest: {svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(plot(&[]).matches("<polyline").count(), 0);
    }

    #[test]
    fn the_table_has_a_line_for_each_figure() {
        let rows = vec![row("delivery-p50-100", 1.25), row("kept-100", 12.0)];
        let text = markdown(&Recorded { machine: Machine::default(), rows });
        assert!(text.contains("| room-members | delivery-p50-100 | 1.25 |"), "{text}");
        assert_eq!(text.matches("\n| room-members").count(), 2);
    }

    #[test]
    fn all_workloads_are_in_the_catalogue() {
        assert!(WORKLOADS.into_iter().all(|name| catalogue::find(name).is_some()));
    }
}
