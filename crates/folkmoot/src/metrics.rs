//! Counters of the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections_total: AtomicU64,
    pub(crate) commands_total: AtomicU64,
    messages_total: AtomicU64,
    /// By code.
    pub(crate) disconnects: Mutex<BTreeMap<u32, u64>>,
}

impl Metrics {
    pub(crate) fn connection_opened(&self) {
        self.connections_total.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_closed(&self, code: u16) {
        *self.disconnects.lock().entry(u32::from(code)).or_default() += 1;
    }

    /// A message became durable and was published.
    pub(crate) fn message(&self) {
        self.messages_total.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn messages_total(&self) -> u64 {
        self.messages_total.load(Ordering::Relaxed)
    }

    pub(crate) fn command(&self) {
        self.commands_total.fetch_add(1, Ordering::Relaxed);
    }
}
