//! The bar plot of the README: tells per second of every system, as an SVG without dependencies.

use crate::report;
use crate::results::Recorded;
use crate::rounds::PEAK;
use crate::row::Row;
use std::fmt::Write as _;

/// Panels of the plot: a group of workloads and its caption.
const PANELS: [(&str, &str); 3] = [
    ("tell-8to1", "8 senders → 1 actor"),
    ("tell-8to1-actors", "8 actors → 1 actor, from handlers"),
    ("tell-8to8", "8 senders → 8 actors"),
];
const WIDTH: usize = 760;
const LABEL_WIDTH: usize = 150;
const BAR_WIDTH_MAX: f64 = 520.0;
const BAR_HEIGHT: usize = 16;
const LINE_HEIGHT: usize = 22;
const PANEL_GAP: usize = 52;
const TOP: usize = 44;
/// Readable on light and dark pages alike.
const OURS: &str = "#d9480f";
const PEER: &str = "#868e96";
const TEXT: &str = "#6c757d";

/// Draws the tell workloads in millions of messages per second, each panel on its own scale.
pub(crate) fn tells(recorded: &Recorded) -> String {
    let panels: Vec<(&str, Vec<&Row>)> =
        PANELS.iter().map(|(group, caption)| (*caption, bars(recorded, group))).collect();
    let lines: usize = panels.iter().map(|(_, rows)| rows.len()).sum();
    let height = TOP + lines * LINE_HEIGHT + panels.len() * PANEL_GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"Local tells in millions of messages per second\">\n\
         <text x=\"8\" y=\"22\" font-size=\"16\" font-weight=\"600\" fill=\"{TEXT}\">\
         Local tells, million messages per second</text>\n"
    );
    let mut y = TOP;
    for (caption, rows) in panels {
        y = panel(&mut svg, y, caption, &rows, recorded);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The best row of each system in a group, fastest first.
fn bars<'a>(recorded: &'a Recorded, group: &str) -> Vec<&'a Row> {
    let mut best: Vec<&Row> = Vec::new();
    for row in recorded.rows.iter().filter(|row| row.is_measured() && row.metric != PEAK) {
        if crate::catalogue::find(&row.workload).is_none_or(|found| found.group != group) {
            continue;
        }
        match best.iter_mut().find(|other| other.system == row.system) {
            Some(other) if other.median < row.median => *other = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best.sort_by(|a, b| b.median.total_cmp(&a.median));
    best
}

/// Draws one panel from `y` downwards and returns where the next begins.
fn panel(svg: &mut String, y: usize, caption: &str, rows: &[&Row], recorded: &Recorded) -> usize {
    let greatest = rows.first().map_or(1.0, |row| row.median);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"{}\" font-weight=\"600\" fill=\"{TEXT}\">{caption}</text>",
        y + 16
    );
    let mut y = y + 26;
    for row in rows {
        let width = row.median / greatest * BAR_WIDTH_MAX;
        let colour = if recorded.is_ours(row) { OURS } else { PEER };
        let middle = y + BAR_HEIGHT - 3;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" fill=\"{TEXT}\">{}</text>\
             <rect x=\"{LABEL_WIDTH}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" \
             rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{middle}\" fill=\"{TEXT}\">{}</text>",
            LABEL_WIDTH - 8,
            row.system,
            LABEL_WIDTH as f64 + width + 6.0,
            report::round(row.median),
        );
        y += LINE_HEIGHT;
    }
    y + PANEL_GAP - 26
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_way_of_each_system_is_one_bar() {
        let row = |workload: &str, system: &str, median| {
            let mut row = Row::missing(workload, system, "");
            row.runs = 1;
            row.median = median;
            row
        };
        let recorded = Recorded {
            rows: vec![
                row("tell-8to1", "kameo", 0.5),
                row("tell-8to1-tasks", "kameo", 2.0),
                row("tell-8to1", "althing", 20.0),
            ],
            ..Recorded::default()
        };
        let svg = tells(&recorded);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains(">20.0</text>"));
        assert!(svg.contains(">2.00</text>"));
    }
}
