//! Counts what waits in an outbox and what was set aside, for the metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::Client;

use super::{Outbox, OutboxError, STATEMENT_TIMEOUT};
use crate::metrics::ConsumerMetrics;
use crate::server::Server;

/// Between two looks: counting a million rows takes the database a tenth of a second.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Counts until the server stops.
pub(super) async fn watch(outbox: Arc<Outbox>, server: Arc<Server>) {
    let metrics = server.metrics.consumer(&outbox.name);
    let mut stopping = server.stopping();
    let counting = async {
        loop {
            let counted = count(&outbox, &metrics).await;
            metrics.is_up.store(false, Ordering::Relaxed);
            // Partitions say it in the log.
            tracing::debug!(error = ?counted.err(), "the outbox cannot be counted");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = counting => {}
        _ = stopping.wait_for(|stops| *stops) => {}
    }
}

/// Counts as long as one connection lasts.
async fn count(outbox: &Outbox, metrics: &ConsumerMetrics) -> Result<(), OutboxError> {
    let (client, _told) = outbox.connect().await?;
    outbox.table.prepare(&client).await?;
    loop {
        let (waiting, set_aside) = look(outbox, &client).await?;
        metrics.backlog_rows.store(waiting, Ordering::Relaxed);
        metrics.set_aside_rows.store(set_aside, Ordering::Relaxed);
        metrics.is_up.store(true, Ordering::Relaxed);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(outbox: &Outbox, client: &Client) -> Result<(u64, u64), OutboxError> {
    let count = outbox.table.count();
    let counted = tokio::time::timeout(STATEMENT_TIMEOUT, client.query_one(&count, &[])).await;
    let row = counted.map_err(|_| OutboxError::Timeout)??;
    let number = |column| row.get::<_, i64>(column).unsigned_abs();
    Ok((number(0), number(1)))
}
