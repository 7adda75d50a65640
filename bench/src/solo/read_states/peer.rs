//! The same in Go, as a process of its own: `bench/peers/go-read-states`.

use crate::build::{bench_directory, go_program};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the peers; returns their program.
pub(super) fn build() -> Result<PathBuf> {
    let directory = bench_directory().join("peers/go-read-states");
    go_program(&directory, ".", "go-read-states").map_err(anyhow::Error::msg)
}

/// Runs one of them, `lru` or `slab` and what else it takes; returns what it measured, by name.
pub(super) fn run(program: &Path, arguments: &[String]) -> Result<Vec<(String, f64)>> {
    let output = Command::new(program).args(arguments).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    let measured = lines.lines().map(|line| {
        let (name, value) = line.split_once(' ').context("a name and a value")?;
        Ok((name.to_owned(), value.parse()?))
    });
    measured.collect()
}
