//! Counts what waits in an outbox and what was set aside, for the metrics; a long backlog is told in
//! the log, too, and so are rows that no partition reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::Client;

use super::{Outbox, OutboxError, STATEMENT_TIMEOUT};
use crate::metrics::ConsumerMetrics;
use crate::server::Server;

/// Between two looks: counting a million rows takes the database a tenth of a second.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// From so many rows on, progress is told in the log: fewer are gone before somebody reads it.
const TOLD_ROWS_MIN: u64 = 10_000;

/// What was counted.
struct Counted {
    waiting: u64,
    stranded: u64,
    set_aside: u64,
}

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
    let mut before = Counted { waiting: 0, stranded: 0, set_aside: 0 };
    loop {
        let counted = look(outbox, &client).await?;
        metrics.backlog_rows.store(counted.waiting, Ordering::Relaxed);
        metrics.stranded_rows.store(counted.stranded, Ordering::Relaxed);
        metrics.set_aside_rows.store(counted.set_aside, Ordering::Relaxed);
        metrics.is_up.store(true, Ordering::Relaxed);
        tell(outbox, &before, &counted);
        before = counted;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(outbox: &Outbox, client: &Client) -> Result<Counted, OutboxError> {
    let count = outbox.table.count();
    let partitions = i32::try_from(outbox.settings.num_partitions).unwrap_or(i32::MAX);
    let counted = async { client.query_one(&count, &[&partitions]).await };
    let counted = tokio::time::timeout(STATEMENT_TIMEOUT, counted).await;
    let row = counted.map_err(|_| OutboxError::Timeout)??;
    let number = |column| row.get::<_, i64>(column).unsigned_abs();
    Ok(Counted { waiting: number(0), stranded: number(1), set_aside: number(2) })
}

/// Says in the log what an operator should know.
fn tell(outbox: &Outbox, before: &Counted, now: &Counted) {
    let (name, waiting) = (&outbox.name, now.waiting);
    if waiting >= TOLD_ROWS_MIN {
        tracing::info!(outbox = %name, waiting, "rows wait in the outbox");
    } else if before.waiting >= TOLD_ROWS_MIN {
        tracing::info!(outbox = %name, waiting, "the backlog of the outbox is published");
    }
    if now.stranded > 0 && before.stranded == 0 {
        let (rows, num_partitions) = (now.stranded, outbox.settings.num_partitions);
        let text = "rows have a partition that is not below num_partitions; nobody reads them";
        tracing::warn!(outbox = %name, rows, num_partitions, "{text}");
    }
}
