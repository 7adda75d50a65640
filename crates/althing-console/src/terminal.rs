//! The console in a terminal: draws a view, whoever fetched it. `main` does the fetching.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Row, Table};

use crate::lines::{ActorLine, KindLine, LongLine, MessageLine};
use crate::view::View;

/// Draws the last view, and why there is no newer one if so.
pub fn draw(frame: &mut Frame<'_>, view: &View, trouble: Option<&str>) {
    let kinds = u16::try_from(view.kinds.len()).unwrap_or(u16::MAX).saturating_add(3);
    let [head, types, middle, bottom, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Max(kinds),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [hot, deep] = Layout::horizontal([Constraint::Fill(1); 2]).areas(middle);
    frame.render_widget(heading(view), head);
    draw_kinds(frame, types, &view.kinds);
    draw_actors(frame, hot, "Hot actors", &view.hot);
    draw_actors(frame, deep, "Deepest mailboxes", &view.deep);
    let [slow, stuck] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
    draw_messages(frame, slow, &view.slow);
    draw_stuck(frame, stuck, &view.stuck);
    let state = match trouble {
        Some(trouble) => Line::from(trouble).red(),
        None => Line::from("q quits").dim(),
    };
    frame.render_widget(state, foot);
}

fn heading(view: &View) -> Line<'_> {
    let View { uptime_s, visited, short_s, .. } = view;
    let rest =
        format!(", up {uptime_s} s, {visited} actors looked at, times of the last {short_s:.0} s");
    Line::from_iter(["Althing console: ".into(), view.node.as_str().bold(), rest.into()])
}

fn draw_kinds(frame: &mut Frame<'_>, area: Rect, kinds: &[KindLine]) {
    let titles = [
        "type",
        "live",
        "msg/s",
        "waiting",
        "oldest",
        "p50",
        "p99",
        "failed",
        "restarts",
        "overloaded",
    ];
    let rows = kinds.iter().map(|kind| {
        Row::new([
            Cell::from(kind.name.as_str()),
            number(kind.live.to_string()),
            number(rate(kind.rate)),
            number(kind.depth.to_string()),
            warning(kind.oldest_s, " s"),
            number(time(kind.short.p50_us)),
            number(time(kind.short.p99_us)),
            warning(kind.failed, ""),
            warning(kind.restarted, ""),
            warning(kind.overloaded, ""),
        ])
    });
    let widths = [Constraint::Fill(1)].into_iter().chain([Constraint::Length(10); 9]);
    frame.render_widget(table("Actor types", titles, 1, rows, widths), area);
}

fn draw_actors(frame: &mut Frame<'_>, area: Rect, title: &'static str, actors: &[ActorLine]) {
    let rows = actors.iter().map(|actor| {
        Row::new([
            Cell::from(actor.id.as_str()),
            number(rate(actor.rate)),
            number(actor.depth.to_string()),
            warning(actor.oldest_s, " s"),
        ])
    });
    let widths = [Constraint::Fill(1)].into_iter().chain([Constraint::Length(8); 3]);
    frame.render_widget(
        table(title, ["actor", "msg/s", "waiting", "oldest"], 1, rows, widths),
        area,
    );
}

fn draw_messages(frame: &mut Frame<'_>, area: Rect, messages: &[MessageLine]) {
    let rows = messages.iter().map(|line| {
        Row::new([
            Cell::from(line.actor.as_str()),
            Cell::from(line.message.as_str()),
            number(time(line.long.p50_us)),
            number(time(line.long.p99_us)),
            number(line.long.timed.to_string()),
        ])
    });
    let widths = [Constraint::Fill(1); 2].into_iter().chain([Constraint::Length(9); 3]);
    let titles = ["type", "message", "p50", "p99", "timed"];
    frame
        .render_widget(table("Slowest handlers of the last minute", titles, 2, rows, widths), area);
}

fn draw_stuck(frame: &mut Frame<'_>, area: Rect, stuck: &[LongLine]) {
    let rows = stuck.iter().map(|line| {
        let waits = match (line.blocks_thread, line.waits_for.first()) {
            (true, _) => "blocks its thread",
            (false, Some(other)) => other.as_str(),
            (false, None) => "waits",
        };
        Row::new([
            Cell::from(line.id.as_str()),
            Cell::from(line.activity.as_str()),
            Cell::from(waits),
            number(time(line.at_least_s * 1e6)),
        ])
    });
    let widths = [Constraint::Fill(1); 3].into_iter().chain([Constraint::Length(9)]);
    let titles = ["actor", "runs", "waits for", "since"];
    frame.render_widget(table("Handlers that do not come back", titles, 3, rows, widths), area);
}

/// A table whose first `texts` columns are left-aligned.
fn table<'a, const N: usize>(
    title: &'static str,
    titles: [&'static str; N],
    texts: usize,
    rows: impl Iterator<Item = Row<'a>>,
    widths: impl Iterator<Item = Constraint>,
) -> Table<'a> {
    let titles = titles.into_iter().enumerate().map(|(column, title)| {
        if column < texts { Cell::from(title) } else { number(title.to_owned()) }
    });
    Table::new(rows, widths)
        .header(Row::new(titles).style(Style::new().dim()))
        .block(Block::bordered().title(title))
}

fn number(text: String) -> Cell<'static> {
    Cell::from(Text::from(text).right_aligned())
}

/// A number that had better be zero, in which case it is left out.
fn warning(n: u64, unit: &str) -> Cell<'static> {
    if n == 0 {
        return Cell::default();
    }
    number(format!("{n}{unit}")).style(Color::Red)
}

fn rate(rate: f64) -> String {
    if rate >= 100.0 || rate == 0.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

/// A time in µs with the unit that suits it.
fn time(us: f64) -> String {
    match us {
        0.0 => String::new(),
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 1e3 => format!("{us:.1} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::lines::Times;

    fn screen(view: &View, trouble: Option<&str>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(140, 30)).unwrap();
        terminal.draw(|frame| draw(frame, view, trouble)).unwrap();
        let buffer = terminal.backend().buffer();
        buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    #[test]
    fn every_part_of_the_view_is_on_the_screen() {
        let view = View {
            node: "harbour".into(),
            kinds: vec![KindLine {
                name: "room".into(),
                rate: 1_234.4,
                restarted: 7,
                ..KindLine::default()
            }],
            hot: vec![ActorLine { id: "room/busy".into(), rate: 99.5, ..ActorLine::default() }],
            deep: vec![ActorLine {
                id: "room/behind".into(),
                depth: 1_024,
                oldest_s: 9,
                ..ActorLine::default()
            }],
            slow: vec![MessageLine {
                actor: "room".into(),
                message: "Load".into(),
                long: Times { p99_us: 12_500.0, ..Times::default() },
                ..MessageLine::default()
            }],
            stuck: vec![LongLine {
                id: "room/stuck".into(),
                activity: "Backup".into(),
                at_least_s: 34.0,
                waits_for: vec!["disk/1".into()],
                ..LongLine::default()
            }],
            ..View::default()
        };
        let screen = screen(&view, Some("no answer"));
        for text in [
            "harbour",
            "1234",
            "room/busy",
            "99.5",
            "room/behind",
            "1024",
            "9 s",
            "Load",
            "12.5 ms",
            "room/stuck",
            "Backup",
            "disk/1",
            "34.0 s",
            "no answer",
        ] {
            assert!(screen.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn a_view_of_nothing_can_be_drawn() {
        assert!(screen(&View::default(), None).contains("q quits"));
    }
}
