//! Wall-clock time as text: the format's `tst` and back. Actors ask their context for time; this is
//! for those outside.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// `2026-01-01T12:00:00.000Z`.
pub fn format_timestamp(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of days since 1970 (H. Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hfp::parse_timestamp_ms;

    proptest! {
        #[test]
        fn every_time_is_read_back_as_it_was_written(ms in 0..253_402_300_799_999_u64) {
            prop_assert_eq!(parse_timestamp_ms(&format_timestamp(ms)), Some(ms));
        }
    }
}
