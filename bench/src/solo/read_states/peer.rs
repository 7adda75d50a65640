//! The same in Go, as a process of its own: `bench/peers/go-read-states`.

use anyhow::{Context, Result, ensure};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Builds the peers; returns their program.
pub(super) fn build() -> Result<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/go-read-states");
    let own = env::current_exe()?;
    let program = own.parent().context("the program lies in a directory")?.join("go-read-states");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(directory)
        .status()
        .context("read-states compares with Go peers: install Go 1.26")?;
    ensure!(status.success(), "bench/peers/go-read-states does not build");
    Ok(program)
}

/// Runs one of them, `lru` or `slab`; returns what it measured, by name.
pub(super) fn run(
    program: &PathBuf,
    peer: &str,
    seconds: f64,
    timed: usize,
) -> Result<Vec<(String, f64)>> {
    let arguments = [peer.to_owned(), seconds.to_string(), timed.to_string()];
    let output = Command::new(program).args(arguments).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    let measured = lines.lines().map(|line| {
        let (name, value) = line.split_once(' ').context("a name and a value")?;
        Ok((name.to_owned(), value.parse()?))
    });
    measured.collect()
}
