//! A snapshot as Prometheus reads it: text exposition format 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Every series carries the label `actor`, so its number is bounded by the program's actor types.

use std::fmt::Write as _;

use super::snapshot::{KindSnapshot, Snapshot};

/// Buckets written out, as powers of two in ns: 64 ns to 17 s. What lies outside is in the first of
/// them, or in `+Inf` only.
const WRITTEN_BUCKETS: std::ops::RangeInclusive<u32> = 6..=34;

/// One simple metric of each actor type.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&KindSnapshot) -> u64,
}

const FAMILIES: [Family; 14] = [
    counter("messages_handled", "Messages and events that reached an actor.", |k| k.handled),
    counter("messages_rejected", "Messages that a guard refused.", |k| k.rejected),
    counter("panics", "Handlers and hooks that panicked.", |k| k.panicked),
    counter("events_missed", "Events that found a full mailbox.", |k| k.missed),
    counter("restarts", "Restarts by supervision.", |k| k.restarted),
    counter("lives_started", "Lives begun, by restarts too.", |k| k.started),
    counter("lives_stopped", "Lives ended, by restarts too.", |k| k.stopped),
    counter("asks_timed_out", "Asks whose deadline passed before the reply came.", |k| k.timed_out),
    counter("refused", "Accepted messages dropped because their actor stopped first.", |k| {
        k.refused
    }),
    counter("changes_lost", "Writes of acknowledged changes that were given up.", |k| k.lost),
    counter("overloaded", "Messages that found no room in a mailbox in time.", |k| k.overloaded),
    gauge("actors_live", "Actors that have their state in memory.", KindSnapshot::live),
    gauge("mailbox_depth", "Messages that wait.", |k| k.depth),
    gauge("mailbox_depth_max", "Messages that wait in the deepest mailbox.", |k| k.depth_max),
];

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&KindSnapshot) -> u64,
) -> Family {
    Family { name, kind: "counter", help, value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&KindSnapshot) -> u64) -> Family {
    Family { name, kind: "gauge", help, value }
}

impl Snapshot {
    /// The snapshot in Prometheus' text format, to be served as `text/plain; version=0.0.4`.
    pub fn prometheus_text(&self) -> String {
        let mut page = Page(String::new());
        for family in &FAMILIES {
            let suffix = if family.kind == "counter" { "_total" } else { "" };
            let name = format!("althing_{}{suffix}", family.name);
            page.head(&name, family.kind, family.help);
            for kind in &self.kinds {
                page.line(&name, &[("actor", kind.name.as_str())], (family.value)(kind));
            }
        }
        self.write_oldest(&mut page);
        self.write_handling(&mut page);
        self.write_messages(&mut page);
        page.0
    }

    fn write_oldest(&self, page: &mut Page) {
        let name = "althing_mailbox_oldest_seconds";
        page.head(name, "gauge", "Age of the oldest message that waits, as far as known.");
        for kind in &self.kinds {
            page.line(name, &[("actor", kind.name.as_str())], kind.oldest.as_secs());
        }
    }

    fn write_handling(&self, page: &mut Page) {
        let name = "althing_handling_seconds";
        page.head(name, "histogram", "Handling times of one in 512 messages, waits included.");
        let bucket = format!("{name}_bucket");
        for kind in &self.kinds {
            let actor = ("actor", kind.name.as_str());
            for (at_most, below) in kind.handling.cumulative() {
                if WRITTEN_BUCKETS.contains(&at_most.as_nanos().ilog2()) {
                    let bound = at_most.as_secs_f64().to_string();
                    page.line(&bucket, &[actor, ("le", &bound)], below);
                }
            }
            let count = kind.handling.count();
            page.line(&bucket, &[actor, ("le", "+Inf")], count);
            page.line(&format!("{name}_sum"), &[actor], kind.handling.sum().as_secs_f64());
            page.line(&format!("{name}_count"), &[actor], count);
        }
    }

    fn write_messages(&self, page: &mut Page) {
        let name = "althing_message_handling_seconds";
        page.head(name, "summary", "Handling times of one in 512 messages by message type.");
        for kind in &self.kinds {
            for message in &kind.messages {
                let labels = [("actor", kind.name.as_str()), ("message", message.name.as_str())];
                page.line(&format!("{name}_sum"), &labels, message.sum.as_secs_f64());
                page.line(&format!("{name}_count"), &labels, message.sampled);
            }
        }
    }
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            self.0.push(if i == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            text.chars().for_each(|c| self.push_escaped(c));
            self.0.push('"');
        }
        let _ = writeln!(self.0, "}} {value}");
    }

    fn push_escaped(&mut self, c: char) {
        match c {
            '\\' => self.0.push_str("\\\\"),
            '"' => self.0.push_str("\\\""),
            '\n' => self.0.push_str("\\n"),
            c => self.0.push(c),
        }
    }
}
