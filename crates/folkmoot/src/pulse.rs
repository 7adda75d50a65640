//! The last minute, second by second: connections, messages, append times. Read by the page of the
//! administrators; kept whether or not anybody looks, because it costs one reading a second.

use std::collections::VecDeque;
use std::time::Duration;

use folkmoot_protocol::chat::LiveSecond;
use parking_lot::Mutex;

use crate::storage::{AppendTimes, UnixMillis};
use crate::wire;

/// How far back it goes.
const SECONDS: usize = 60;
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// Counters as they stand at one moment; all but `connections` only rise.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) at: UnixMillis,
    pub(crate) connections: usize,
    pub(crate) messages: u64,
    pub(crate) appends: AppendTimes,
}

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// One more than the seconds between them.
    readings: Mutex<VecDeque<Reading>>,
}

impl Pulse {
    pub(crate) fn push(&self, reading: Reading) {
        let mut readings = self.readings.lock();
        readings.push_back(reading);
        if readings.len() > SECONDS + 1 {
            readings.pop_front();
        }
    }

    /// The seconds kept, oldest first.
    pub(crate) fn seconds(&self) -> Vec<LiveSecond> {
        let readings = self.readings.lock();
        let pairs = readings.iter().zip(readings.iter().skip(1));
        pairs.map(|(before, after)| second(before, after)).collect()
    }

    /// The append times of the seconds kept.
    pub(crate) fn appends(&self) -> AppendTimes {
        let readings = self.readings.lock();
        match (readings.front(), readings.back()) {
            (Some(first), Some(last)) => last.appends.since(&first.appends),
            _ => AppendTimes::default(),
        }
    }
}

fn second(before: &Reading, after: &Reading) -> LiveSecond {
    let appends = after.appends.since(&before.appends);
    LiveSecond {
        at: after.at,
        connections: wire::count(after.connections),
        messages: wire::count(after.messages.saturating_sub(before.messages)),
        appends: wire::count(appends.count()),
        append_p50_us: quantile_us(&appends, 0.5),
        append_p99_us: quantile_us(&appends, 0.99),
    }
}

pub(crate) fn quantile_us(times: &AppendTimes, q: f64) -> Option<u32> {
    times.quantile(q).map(|took| wire::count(took.as_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(second: u64, messages: u64) -> Reading {
        Reading {
            at: UnixMillis::from_u64(second * 1_000),
            connections: 3,
            messages,
            appends: AppendTimes::default(),
        }
    }

    #[test]
    fn a_second_is_the_difference_of_two_readings() {
        let pulse = Pulse::default();
        assert_eq!(pulse.seconds(), []);
        for (second, messages) in [(1, 5), (2, 5), (3, 9)] {
            pulse.push(reading(second, messages));
        }
        let seconds = pulse.seconds();
        let messages: Vec<_> = seconds.iter().map(|second| second.messages).collect();
        assert_eq!(messages, [0, 4]);
        assert_eq!((seconds[1].at.as_u64(), seconds[1].connections), (3_000, 3));
        assert_eq!(seconds[1].append_p50_us, None);
    }

    #[test]
    fn no_more_than_a_minute_is_kept() {
        let pulse = Pulse::default();
        (0..200).for_each(|second| pulse.push(reading(second, second)));
        let seconds = pulse.seconds();
        assert_eq!((seconds.len(), seconds[0].at.as_u64()), (SECONDS, 140_000));
    }
}
