//! What a relay counts, and the page of it that a Prometheus server reads.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use folkmoot_protocol::rpc::RpcError;
use parking_lot::Mutex;

use crate::server::{Server, now_ms};

/// Counters of a server. Whatever can be looked up when it is asked for is not here.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections_total: AtomicU64,
    pub(crate) commands_total: AtomicU64,
    /// By their codes.
    pub(crate) disconnects: Mutex<BTreeMap<u16, u64>>,
    pub(crate) by_api: Published,
    pub(crate) by_clients: Published,
    /// By their names.
    consumers: Mutex<BTreeMap<Arc<str>, Arc<ConsumerMetrics>>>,
}

/// What became of publications of one source.
#[derive(Debug, Default)]
pub(crate) struct Published {
    published: AtomicU64,
    refused: AtomicU64,
    /// To be tried again.
    delayed: AtomicU64,
}

impl Published {
    pub(crate) fn count<T>(&self, outcome: &Result<T, RpcError>) {
        match outcome {
            Ok(_) => &self.published,
            Err(error) if error.code.is_temporary() => &self.delayed,
            Err(_) => &self.refused,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

/// How a consumer is getting on.
#[derive(Debug, Default)]
pub(crate) struct ConsumerMetrics {
    pub(crate) rows: Published,
    /// Whether its database or one of its brokers answers.
    pub(crate) is_up: AtomicBool,
    /// Rows that wait in an outbox, and those that were set aside, as of the last look.
    pub(crate) backlog_rows: AtomicU64,
    pub(crate) set_aside_rows: AtomicU64,
    /// Rows in partitions that the relay does not read.
    pub(crate) stranded_rows: AtomicU64,
    /// How much of a log of changes is not published.
    pub(crate) lag_bytes: AtomicU64,
    /// Records of each partition of a topic that are not published, as of the last look.
    pub(crate) lag_records: Mutex<BTreeMap<(Arc<str>, i32), u64>>,
    /// Brokers that were not believed, or did not believe this relay, by their certificates; and those
    /// that took no password. Each attempt counts.
    pub(crate) refused_tls: AtomicU64,
    pub(crate) refused_sasl: AtomicU64,
    /// When the transaction that is being published was committed; 0: there is none.
    pub(crate) committed_ms: AtomicI64,
}

impl Metrics {
    /// The counters of a consumer.
    pub(crate) fn consumer(&self, name: &Arc<str>) -> Arc<ConsumerMetrics> {
        self.consumers.lock().entry(name.clone()).or_default().clone()
    }

    pub(crate) fn count_disconnect(&self, code: u16) {
        *self.disconnects.lock().entry(code).or_default() += 1;
    }
}

/// A page in the Prometheus text format.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let escaped =
            |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escaped(text)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.line(name, &[], value);
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The page.
pub(crate) async fn page(server: &Server) -> String {
    let (metrics, mut page) = (&server.metrics, Page::default());
    let (connections, users) = server.people.count();
    page.single("folkmoot_relay_connections", "gauge", "Open connections.", connections as u64);
    page.single("folkmoot_relay_users", "gauge", "Users with a connection.", users as u64);
    // Owners that do not answer leave their lines out.
    if let Ok(count) = server.hub.count().await {
        let (known, heard) = (count.channels as u64, count.with_subscribers as u64);
        page.single("folkmoot_relay_channels_known", "gauge", "Channels in memory.", known);
        page.single("folkmoot_relay_channels", "gauge", "Channels with subscribers.", heard);
        let subscriptions = count.subscriptions as u64;
        page.single("folkmoot_relay_subscriptions", "gauge", "Subscriptions.", subscriptions);
    }
    let total = load(&metrics.connections_total);
    page.single("folkmoot_relay_connections_total", "counter", "Connections opened.", total);
    let commands = load(&metrics.commands_total);
    page.single("folkmoot_relay_commands_total", "counter", "Commands of clients.", commands);
    page.family("folkmoot_relay_disconnects_total", "counter", "Connections closed, by code.");
    for (code, count) in &*metrics.disconnects.lock() {
        let code = code.to_string();
        page.line("folkmoot_relay_disconnects_total", &[("code", &code)], count);
    }
    let consumers: Vec<_> =
        metrics.consumers.lock().iter().map(|(name, one)| (name.clone(), one.clone())).collect();
    publications(&mut page, metrics, &consumers);
    consuming(&mut page, &consumers);
    page.family("folkmoot_relay_proxy_errors_total", "counter", "Proxies without an answer.");
    for (event, failed) in server.proxies.failures() {
        page.line("folkmoot_relay_proxy_errors_total", &[("event", event)], failed);
    }
    page.0 + &server.node.metrics().prometheus_text()
}

fn publications(
    page: &mut Page,
    metrics: &Metrics,
    consumers: &[(Arc<str>, Arc<ConsumerMetrics>)],
) {
    const NAME: &str = "folkmoot_relay_publications_total";
    page.family(NAME, "counter", "Requests and rows to publish, by source and outcome.");
    let named = consumers.iter().map(|(name, one)| (&**name, &one.rows));
    let sources = [("api", &metrics.by_api), ("client", &metrics.by_clients)];
    for (source, published) in sources.into_iter().chain(named) {
        for (outcome, counter) in [
            ("published", &published.published),
            ("refused", &published.refused),
            ("delayed", &published.delayed),
        ] {
            page.line(NAME, &[("source", source), ("outcome", outcome)], load(counter));
        }
    }
}

fn consuming(page: &mut Page, consumers: &[(Arc<str>, Arc<ConsumerMetrics>)]) {
    type Read = fn(&ConsumerMetrics) -> f64;
    let gauges: [(&str, &str, Read); 6] = [
        ("up", "Whether the database or a broker answers.", |one| {
            f64::from(u8::from(one.is_up.load(Ordering::Relaxed)))
        }),
        ("backlog_rows", "Rows in the outbox.", |one| load(&one.backlog_rows) as f64),
        ("set_aside_rows", "Rows that were set aside.", |one| load(&one.set_aside_rows) as f64),
        ("stranded_rows", "Rows in partitions that are not read.", |one| {
            load(&one.stranded_rows) as f64
        }),
        ("lag_bytes", "Bytes of the log of changes not published.", |one| {
            load(&one.lag_bytes) as f64
        }),
        ("lag_seconds", "Since the commit of what is being published.", |one| {
            let committed = one.committed_ms.load(Ordering::Relaxed);
            let late = now_ms().saturating_sub(committed).max(0);
            if committed == 0 { 0.0 } else { late as f64 / 1_000.0 }
        }),
    ];
    for (name, help, read) in gauges {
        let name = format!("folkmoot_relay_consumer_{name}");
        page.family(&name, "gauge", help);
        for (consumer, one) in consumers {
            page.line(&name, &[("consumer", consumer)], read(one));
        }
    }
    const LAG: &str = "folkmoot_relay_consumer_lag_records";
    page.family(LAG, "gauge", "Records of a partition of a topic not published.");
    for (consumer, one) in consumers {
        for ((topic, partition), behind) in &*one.lag_records.lock() {
            let partition = partition.to_string();
            let labels = [("consumer", &**consumer), ("topic", topic), ("partition", &partition)];
            page.line(LAG, &labels, behind);
        }
    }
    const REFUSED: &str = "folkmoot_relay_consumer_refused_total";
    page.family(REFUSED, "counter", "Connections that a broker or its certificate ended.");
    for (consumer, one) in consumers {
        for (by, count) in [("tls", &one.refused_tls), ("sasl", &one.refused_sasl)] {
            page.line(REFUSED, &[("consumer", consumer), ("by", by)], load(count));
        }
    }
}
