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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let at = DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis();
        Timestamp(u64::try_from(at).unwrap())
    }

    #[test]
    fn a_date_may_be_far_away_and_of_those_that_never_come_is_said_so() {
        for (expression, after, next) in [
            ("0 0 1 1 *", "2100-06-01T00:00:00Z", "2101-01-01T00:00:00Z"),
            // 2100 is no leap year.
            ("0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"),
        ] {
            assert_eq!(next_after(expression, at(after)), Ok(at(next)), "{expression}");
        }
        for (expression, after) in
            [("0 0 30 2 *", at("2026-01-01T00:00:00Z")), ("* * * * *", Timestamp(u64::MAX))]
        {
            assert!(next_after(expression, after).is_err(), "{expression}");
        }
    }

    /// Summer time is of places, and reminders have none.
    #[test]
    fn each_hour_comes_once_also_where_clocks_are_put_forward_or_back() {
        for night in ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z", "2100-03-28T00:00:00Z"] {
            let mut last = at(night);
            for _ in 0..6 {
                let next = next_after("30 * * * *", last).unwrap();
                assert_eq!(next.0 % 3_600_000, 1_800_000);
                assert!(next.0 - last.0 <= 3_600_000, "{night}");
                last = next;
            }
        }
    }
}
