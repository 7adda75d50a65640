//! What the process uses of the machine, from procfs and the runtime.

use serde::{Deserialize, Serialize};

/// Clock ticks of procfs per second; fixed by the kernel's interface.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU and memory so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Seconds of CPU, all threads.
    pub cpu_s: f64,
    /// Resident memory, bytes; 0 where procfs is missing.
    pub resident_bytes: u64,
    /// Seconds that each worker of the runtime was busy.
    pub workers_busy_s: Vec<f64>,
}

/// What this process uses; inside a runtime.
pub fn usage() -> ProcessUse {
    let metrics = tokio::runtime::Handle::current().metrics();
    let workers = 0..metrics.num_workers();
    ProcessUse {
        cpu_s: cpu_s("self").unwrap_or_default(),
        resident_bytes: resident_bytes().unwrap_or_default(),
        workers_busy_s: workers
            .map(|worker| metrics.worker_total_busy_duration(worker).as_secs_f64())
            .collect(),
    }
}

/// Seconds of CPU of a process.
pub fn cpu_s(process: &str) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |index: usize| fields.split_whitespace().nth(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1_024)
}
