//! Rows that could not be published, in the table of those that failed.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use crate::changes::PATIENCE;

/// Waits until so many rows are set aside; of each the text that is selected, in the order of their
/// ids.
pub(crate) async fn set_aside(client: &Client, selected: &str, count: usize) -> Vec<String> {
    let failed = format!("SELECT {selected} FROM centrifugo_outbox_failed ORDER BY id, failed_at");
    let looking = async {
        loop {
            // While the table is made anew there is none.
            let rows = client.query(&failed, &[]).await.unwrap_or_default();
            if rows.len() >= count {
                return rows.iter().map(|row| row.get(0)).collect();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("too few are set aside")
}
