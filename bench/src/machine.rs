//! What a figure was measured on: processor, memory, kernel, commit and date.

use serde::{Deserialize, Serialize};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine and the commit, recorded beside every result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    pub(crate) commit: String,
    /// Seconds since 1970.
    pub(crate) measured_at: u64,
}

impl Machine {
    /// Reads this machine's description; what cannot be read stays "unknown".
    pub(crate) fn current() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib: u64 =
            field(&meminfo, "MemTotal").and_then(|value| first_number(&value)).unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_else(unknown),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory_gib: memory_kib.div_ceil(1024 * 1024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |release| release.trim().to_owned()),
            commit: commit(),
            measured_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }

    /// Processes that wanted to run in the last minute, on average; zero where procfs is missing.
    pub(crate) fn load() -> f64 {
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default()
    }

    /// The date of the measurement as `YYYY-MM-DD`, in UTC.
    pub(crate) fn date(&self) -> String {
        let (year, month, day) = civil_from_days(self.measured_at / 86_400);
        format!("{year:04}-{month:02}-{day:02}")
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The commit, marked when files of the work tree differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short=12", "HEAD"]) else { return unknown() };
    match git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "bench/workloads"])
    {
        Some(changes) if changes.is_empty() => hash,
        _ => format!("{hash} with local changes"),
    }
}

/// Year, month and day of a day number since 1970-01-01.
///
/// The era arithmetic of Howard Hinnant, "chrono-compatible low-level date algorithms".
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_days_are_right() {
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(11_016), (2000, 2, 29));
        assert_eq!(civil_from_days(20_454), (2026, 1, 1));
    }

    #[test]
    fn fields_of_proc_files_are_found() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nMemTotal:       24555832 kB\n";
        assert_eq!(field(text, "model name").unwrap(), "AMD EPYC");
        let memory = field(text, "MemTotal").unwrap();
        assert_eq!(first_number(&memory), Some(24_555_832));
    }
}
