//! The plot of the README: the longest operation of each second, ours beside the peers', as an SVG
//! without dependencies.

use std::fmt::Write as _;

const TEXT: &str = "#6c757d";
/// Readable on light and dark pages alike, in the order of the lines.
const COLOURS: [&str; 3] = ["#d9480f", "#1c7ed6", "#2f9e44"];
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 260.0;
/// Of the scale, in nanoseconds.
const LEAST: f64 = 1e3;
const GREATEST: f64 = 1e9;

/// Lines with a caption each, in nanoseconds a second.
pub(super) fn longest(lines: &[(&str, Vec<f64>)]) -> String {
    let seconds = lines.iter().map(|(_, times)| times.len()).max().unwrap_or(0).max(2);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"The longest of 200,000 operations on read states in each second\">\n\
         <text x=\"8\" y=\"22\" font-size=\"16\" font-weight=\"600\" fill=\"{TEXT}\">\
         Read states: the longest of 200,000 operations in each second</text>\n"
    );
    for (at, caption) in [(1e3, "1 µs"), (1e5, "100 µs"), (1e7, "10 ms"), (1e9, "1 s")] {
        let y = height(at);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{TEXT}\" \
             stroke-opacity=\"0.3\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" \
             fill=\"{TEXT}\">{caption}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (n, (caption, times)) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let mut points = String::new();
        for (second, time) in times.iter().enumerate() {
            let x = LEFT + (RIGHT - LEFT) * second as f64 / (seconds - 1) as f64;
            let _ = write!(points, "{x:.1},{:.1} ", height(*time));
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{caption}</text>",
            points.trim_end(),
            RIGHT + 10.0,
            TOP + 20.0 * n as f64 + 10.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{TEXT}\">{seconds} s</text>",
        BOTTOM + 20.0
    );
    svg.push_str("</svg>\n");
    svg
}

fn height(ns: f64) -> f64 {
    let share = (ns.clamp(LEAST, GREATEST) / LEAST).log10() / (GREATEST / LEAST).log10();
    BOTTOM - (BOTTOM - TOP) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_point_for_each_second_within_the_scale() {
        let svg = longest(&[("ours", vec![2e3, 5e6, 1e12]), ("peer", vec![1.0, 3e7, 1e8])]);
        let lines: Vec<_> = svg
            .lines()
            .filter_map(|line| line.split("points=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            let heights: Vec<f64> = line
                .split(' ')
                .map(|point| point.split_once(',').unwrap().1.parse().unwrap())
                .collect();
            assert_eq!(heights.len(), 3);
            assert!(heights.iter().all(|y| (TOP..=BOTTOM).contains(y)));
            assert!(heights[1] < heights[0], "longer is higher");
        }
    }
}
