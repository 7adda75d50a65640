//! When a cron expression comes true, in UTC.

use std::str::FromStr;

use althing::Timestamp;
use chrono::{DateTime, Utc};
use croner::Cron;

/// The first time after `after` at which it comes true.
///
/// # Errors
/// Why there is none: it cannot be read, or never comes true.
pub(crate) fn next_after(expression: &str, after: Timestamp) -> Result<Timestamp, String> {
    let cron = Cron::from_str(expression).map_err(|error| error.to_string())?;
    let after_ms = i64::try_from(after.0).unwrap_or(i64::MAX);
    let after = DateTime::<Utc>::from_timestamp_millis(after_ms).ok_or("no date is so late")?;
    let next = cron.find_next_occurrence(&after, false).map_err(|error| error.to_string())?;
    let next_ms = u64::try_from(next.timestamp_millis());
    next_ms.map(Timestamp).map_err(|_| "it lies before 1970".to_owned())
}
