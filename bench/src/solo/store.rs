//! `store-append` and `store-history`: Folkmoot's stores without its server, fsync on.
//!
//! The loops are examples of the package `folkmoot`, programs of their own: with the server linked
//! in, this one would take minutes more to build. Each prints one `name unit value` a line.

use super::folkmoot::{example, filled};
use crate::build::build_directory;
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use tokio::process::Command;

const SENDERS: u64 = 64;
/// Of the messages of `store-history`.
const ROOMS: u64 = 1_000;

/// Where messages are appended: `embedded`, or `postgres` or `cassandra`, which are started for it.
pub(crate) fn run_append(store: &str, budget: Budget) -> Result<Vec<Sample>> {
    blocking(async {
        let directory = tempfile::tempdir_in(build_directory()?)?;
        let seconds = budget.seconds.ceil().max(1.0).to_string();
        let senders = SENDERS.to_string();
        let data = directory.path().join("data");
        let arguments =
            [OsStr::new(&senders), OsStr::new(&seconds), data.as_os_str(), OsStr::new(store)];
        measured("append_load", &arguments).await
    })
}

pub(crate) fn run_history(budget: Budget) -> Result<Vec<Sample>> {
    blocking(async {
        let each = budget.messages / ROOMS;
        ensure!(each >= 100, "--messages {} are fewer than 100 in each room", budget.messages);
        let seed = ["--users", "100", "--room", &format!("10x{ROOMS}:{each}")].map(str::to_owned);
        let directory = filled(&seed).await?;
        let data = directory.join("data");
        let samples = measured("history_load", &[data.as_os_str()]).await;
        std::fs::remove_dir_all(&directory)?;
        samples
    })
}

fn blocking(measure: impl Future<Output = Result<Vec<Sample>>>) -> Result<Vec<Sample>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure)
}

/// What an example has measured.
async fn measured(name: &str, arguments: &[&OsStr]) -> Result<Vec<Sample>> {
    let output = Command::new(example(name)?).args(arguments).output().await?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| sample(line).with_context(|| format!("{name} says {line}"))).collect()
}

fn sample(line: &str) -> Result<Sample> {
    let mut words = line.split_whitespace();
    let (name, unit, value) = (words.next(), words.next(), words.next());
    let unit = match unit.context("no unit")? {
        "1/s" => "1/s",
        "MiB" => "MiB",
        "ms" => "ms",
        "us" => "us",
        other => anyhow::bail!("no such unit: {other}"),
    };
    Ok(Sample::new(name.context("no name")?.to_owned(), unit, value.context("no value")?.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_a_strange_one_named() {
        let read = sample("ack-p50 ms 0.36").unwrap();
        assert_eq!((read.metric.as_ref(), read.unit, read.value), ("ack-p50", "ms", 0.36));
        assert_eq!(sample("ack-p50 miles 1").unwrap_err().to_string(), "no such unit: miles");
        assert!(sample("ack-p50").is_err() && sample("").is_err());
    }
}
