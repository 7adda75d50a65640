//! How much of the processors' time the host of a virtual machine took away meanwhile.
//!
//! Beside every tail: a latency during stolen time says something about the neighbours only.

use std::fs;

/// Ticks of all processors since the machine started.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// The ticks so far; zero where procfs is missing.
    pub(crate) fn now() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::of(&text))
    }

    /// The share that was stolen since, in percent.
    pub(crate) fn stolen_percent(self) -> f64 {
        let now = Self::now();
        let all = now.all.saturating_sub(self.all).max(1);
        now.stolen.saturating_sub(self.stolen) as f64 * 100.0 / all as f64
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal …`; what follows is
    /// counted in `user` already.
    fn of(text: &str) -> Self {
        let numbers = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let ticks = Ticks::of("cpu  10 0 20 60 0 0 5 5 7 0\ncpu0 1 0 2 6 0 0 0 9 0 0\n");
        assert_eq!((ticks.all, ticks.stolen), (100, 5));
        let none = Ticks::of("");
        assert_eq!((none.all, none.stolen), (0, 0));
    }
}
