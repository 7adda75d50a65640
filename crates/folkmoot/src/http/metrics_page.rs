//! The page that a Prometheus server reads.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::server::Server;
use crate::storage::AppendTimes;
use crate::storage::contract::{Administration, ChangeFeed};

/// The page, in the Prometheus text format.
pub(crate) fn page(server: &Server) -> String {
    let metrics = &server.metrics;
    let stats = server.changes().stats();
    let mut page = String::new();
    let mut line = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    };
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    line("folkmoot_connections", "gauge", "Open sockets.", *server.connections().borrow() as u64);
    line(
        "folkmoot_connections_total",
        "counter",
        "Sockets opened since the start.",
        load(&metrics.connections_total),
    );
    line(
        "folkmoot_commands_total",
        "counter",
        "Commands received over sockets.",
        load(&metrics.commands_total),
    );
    line(
        "folkmoot_messages_total",
        "counter",
        "Messages sent since the start.",
        metrics.messages_total(),
    );
    line(
        "folkmoot_store_durable_lsn",
        "counter",
        "Last record of the log that is on disk.",
        stats.durable_lsn.0,
    );
    line(
        "folkmoot_store_applied_lsn",
        "counter",
        "Last record of the log that is in the database.",
        stats.applied_lsn.0,
    );
    line(
        "folkmoot_store_lag_bytes",
        "gauge",
        "Bytes of log that are not in the database yet.",
        stats.lag_bytes,
    );
    line(
        "folkmoot_store_read_statements_total",
        "counter",
        "Statements that reads have asked the database.",
        stats.statements_read,
    );
    line("folkmoot_store_segments", "gauge", "Segments of the log on disk.", stats.segments as u64);
    if let Some(search) = &server.search {
        let behind = stats.durable_lsn.0.saturating_sub(search.index.mark().0);
        line(
            "folkmoot_search_behind_records",
            "gauge",
            "Records of the log that the search index has not looked at yet.",
            behind,
        );
    }
    append_times(&mut page, &server.administration().append_times());
    page.push_str("# HELP folkmoot_disconnects_total Sockets closed, by code.\n");
    page.push_str("# TYPE folkmoot_disconnects_total counter\n");
    for (code, count) in &*metrics.disconnects.lock() {
        let _ = writeln!(page, "folkmoot_disconnects_total{{code=\"{code}\"}} {count}");
    }
    page.push_str(&server.node().metrics().prometheus_text());
    page
}

/// The histogram of append times.
fn append_times(page: &mut String, times: &AppendTimes) {
    const NAME: &str = "folkmoot_store_append_seconds";
    let _ = writeln!(page, "# HELP {NAME} From the call of an append until it was on disk.");
    let _ = writeln!(page, "# TYPE {NAME} histogram");
    for (end, below) in times.doublings() {
        let _ = writeln!(page, "{NAME}_bucket{{le=\"{}\"}} {below}", end.as_secs_f64());
    }
    let count = times.count();
    let _ = writeln!(page, "{NAME}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(page, "{NAME}_sum {}\n{NAME}_count {count}", times.sum().as_secs_f64());
}
