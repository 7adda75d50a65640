//! How many times better Althing is than the best peer: the first table of `RESULTS.md`.
//!
//! A mailbox without bound is the easier work: nobody ever waits, memory pays. So where senders can
//! fill a mailbox, like is compared with like, a line for each kind of mailbox, and beside it
//! stands the best peer of all, whatever its mailbox.

use crate::catalogue::{self, Better, CATALOGUE, Workload};
use crate::report::figure;
use crate::results::Recorded;
use crate::rounds::PEAK;
use crate::row::Row;
use althing_bench_workloads::Mailbox;
use std::fmt::Write as _;

const HEAD: &str = "| workload | mailbox | metric | Althing | best peer with such a mailbox | ratio \
                    | best peer of all | ratio |\n|---|---|---|---|---|---|---|---|\n";
const LEGEND: &str = "\nA ratio above 1 means that Althing is better. Every system is taken in its \
                      best way of sending: from threads\noutside the runtime or from tasks inside it. \
                      Bounded: 1,024 messages wait, and senders wait for room.\n\n";

/// One line per group of workloads and kind of mailbox.
pub(crate) fn table(text: &mut String, recorded: &Recorded) {
    text.push_str(HEAD);
    let groups =
        CATALOGUE.iter().filter(|workload| workload.name == workload.group && workload.shared);
    for group in groups {
        for metric in recorded.metrics_of_group(group.group) {
            if metric == PEAK {
                continue;
            }
            let contest = Contest { recorded, group, metric: &metric };
            if group.fills_mailboxes() {
                contest.line(text, Some(Mailbox::Bounded));
                contest.line(text, Some(Mailbox::Unbounded));
            } else {
                contest.line(text, None);
            }
        }
    }
    text.push_str(LEGEND);
}

/// One metric of one group of workloads.
struct Contest<'a> {
    recorded: &'a Recorded,
    group: &'a Workload,
    metric: &'a str,
}

impl Contest<'_> {
    /// Writes the line of one kind of mailbox, or of all where it does not matter.
    fn line(&self, text: &mut String, mailbox: Option<Mailbox>) {
        let alike = |row: &Row| mailbox.is_none_or(|it| self.recorded.mailbox(row) == it.name());
        let Some(ours) = self.best(|row| self.recorded.is_ours(row) && alike(row)) else { return };
        let peer = |row: &Row| !self.recorded.is_ours(row);
        let (like, like_ratio) = match mailbox {
            Some(_) => self.against(ours, self.best(|row| peer(row) && alike(row))),
            None => ("".to_owned(), "".to_owned()),
        };
        let (any, any_ratio) = self.against(ours, self.best(peer));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {like} | {like_ratio} | {any} | {any_ratio} |",
            self.group.group,
            mailbox.map_or("", Mailbox::name),
            self.metric,
            figure(ours),
        );
    }

    fn against(&self, ours: &Row, theirs: Option<&Row>) -> (String, String) {
        theirs.map_or(("–".to_owned(), "–".to_owned()), |theirs| {
            let ratio = times_better(self.better(ours), ours.median, theirs.median);
            (format!("{} ({})", figure(theirs), theirs.system), format!("**{ratio:.1}×**"))
        })
    }

    fn best(&self, side: impl Fn(&Row) -> bool) -> Option<&Row> {
        let in_group = |row: &&Row| {
            row.is_measured()
                && row.metric == self.metric
                && side(row)
                && catalogue::find(&row.workload)
                    .is_some_and(|found| found.group == self.group.group)
        };
        let rows = self.recorded.rows.iter().filter(in_group);
        rows.reduce(|best, row| {
            let ratio = times_better(self.better(row), row.median, best.median);
            if ratio > 1.0 { row } else { best }
        })
    }

    /// Metrics of one workload may point both ways.
    fn better(&self, row: &Row) -> Better {
        Better::of(&row.metric, &row.unit).unwrap_or(self.group.better)
    }
}

/// How many times better `ours` is than `theirs`.
fn times_better(better: Better, ours: f64, theirs: f64) -> f64 {
    match better {
        Better::Higher => ours / theirs,
        Better::Lower => theirs / ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::System;
    use crate::row::Sample;

    #[test]
    fn a_ratio_above_one_means_ours_is_better() {
        assert_eq!(times_better(Better::Higher, 50.0, 10.0), 5.0);
        assert_eq!(times_better(Better::Lower, 50.0, 10.0), 0.2);
    }

    #[test]
    fn each_mailbox_is_compared_with_its_like_and_with_the_best_of_all() {
        let mut recorded = Recorded::default();
        for (name, mailbox, is_ours, rate) in [
            ("althing", "bounded", true, 80.0),
            ("althing-unbounded", "unbounded", true, 120.0),
            ("kameo", "bounded", false, 8.0),
            ("pekko", "unbounded", false, 40.0),
        ] {
            let settings = String::new();
            let (name, mailbox) = (name.to_owned(), mailbox.to_owned());
            let sample = Sample::new("rate", "M/s", rate);
            recorded.rows.extend(Row::summarize("tell-8to8", &name, &[sample]));
            recorded.systems.push(System { name, settings, mailbox, is_ours });
        }
        let mut text = String::new();
        table(&mut text, &recorded);
        assert!(text.contains("| bounded | rate | 80.0 M/s | 8.00 M/s (kameo) | **10.0×** | 40.0"));
        assert!(text.contains("(pekko) | **2.0×** |"), "{text}");
        assert!(text.contains("| 120 M/s | 40.0 M/s (pekko) | **3.0×** |"), "{text}");
    }
}
