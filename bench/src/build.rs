//! How the peers under `bench/peers` are built from their registries, and what starts each; and how
//! the programs of this workspace are that are measured as processes of their own.
//!
//! Every step either succeeds or gives one line that says what is missing or went wrong.

use althing_bench_workloads::MAILBOX;
use anyhow::Context;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The BEAM's default limit of processes is below the million of `publish-1m`; where two nodes talk,
/// they find each other without a daemon.
const BEAM_FLAGS: &str =
    "+P 2000000 -start_epmd false -erl_epmd_port 4870 -kernel inet_dist_use_interface {127,0,0,1}";

/// How to start one run; the workload's arguments follow.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// What `MAILBOX` says to the program.
    pub(crate) mailbox: &'static str,
}

impl Launch {
    /// A command that gets the workload's arguments next.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.directory).env(MAILBOX, self.mailbox);
        command
    }
}

/// Toolchain of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Toolchain {
    Rust,
    Go,
    /// The message queue setting of its processes.
    Elixir(&'static str),
    Maven,
}

/// The folder `bench/` of this checkout.
pub(crate) fn bench_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where this program lies, with others of its profile: on a real disk, which `/tmp` may not be.
pub(crate) fn build_directory() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(Path::to_owned).context("the program lies in a directory")
}

/// Brings a program of this workspace up to date, the package's own or what flags name beside it,
/// in the profile and directory of this one, which is `release`. It says so first, and cargo what
/// it does: what was built together with other packages has other features, and cargo builds it
/// anew, for minutes.
pub(crate) fn up_to_date(package: &str, what: &[&str], release: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(release.ends_with("release"), "measure a release build: cargo run --release");
    let target = release.parent().context("a release build lies in a target directory")?;
    eprintln!("cargo brings {package} up to date");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--package", package, "--target-dir"]).arg(target).args(what);
    let status = cargo.current_dir(bench_directory()).status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "{package} does not build");
    Ok(())
}

/// Builds the program of that name and says how to start it.
pub(crate) fn build(
    toolchain: Toolchain,
    name: &str,
    mailbox: &'static str,
) -> Result<Launch, String> {
    let peers = bench_directory().join("peers");
    let (program, arguments, directory) = match toolchain {
        Toolchain::Rust => rust(peers.join("rust"), name)?,
        Toolchain::Go => go(peers.join("go"), name)?,
        Toolchain::Elixir(queue) => elixir(peers.join("elixir"), queue)?,
        Toolchain::Maven => maven(peers.join("pekko"))?,
    };
    Ok(Launch { program, arguments, directory, mailbox })
}

type Parts = (OsString, Vec<OsString>, PathBuf);

fn rust(directory: PathBuf, name: &str) -> Result<Parts, String> {
    let target = directory.join("target");
    let package = format!("peer-{name}");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--package", &package]);
    cargo.arg("--target-dir").arg(&target).current_dir(&directory);
    succeed("cargo", cargo)?;
    Ok((target.join("release").join(package).into(), Vec::new(), directory))
}

fn go(directory: PathBuf, name: &str) -> Result<Parts, String> {
    let program = go_program(&directory, &format!("./cmd/{name}"), name)?;
    Ok((program.into(), Vec::new(), directory))
}

/// Builds the package at `path` of the module in `directory`; returns the program.
pub(crate) fn go_program(directory: &Path, path: &str, name: &str) -> Result<PathBuf, String> {
    let program = directory.join("target").join(name);
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(path).current_dir(directory);
    succeed("go (1.26 or newer)", go)?;
    Ok(program)
}

fn elixir(directory: PathBuf, queue: &str) -> Result<Parts, String> {
    let mut version = Command::new("elixir");
    version.arg("--version");
    succeed("elixir (on OTP 25 or newer)", version)?;
    let arguments = ["--erl", BEAM_FLAGS, "peer.exs", queue].map(OsString::from);
    Ok(("elixir".into(), arguments.into(), directory))
}

fn maven(directory: PathBuf) -> Result<Parts, String> {
    let mut java = Command::new("java");
    java.arg("-version");
    succeed("java (a JDK, 17 or newer)", java)?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "package"]).current_dir(&directory);
    succeed("mvn", maven)?;
    let arguments = [
        "-XX:+UseParallelGC",
        "-XX:InitialRAMPercentage=25",
        "-XX:MaxRAMPercentage=50",
        "-cp",
        "target/pekko-1.jar:target/lib/*",
        "peer.Main",
    ];
    Ok(("java".into(), arguments.map(OsString::from).into(), directory))
}

/// Runs a build step; the error is one line that says what to do or what went wrong.
fn succeed(tool: &str, mut command: Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{tool} is not installed"),
        _ => format!("{tool}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    let telling = text.lines().find(|line| line.to_lowercase().contains("error"));
    let line = telling.or_else(|| text.lines().next()).unwrap_or("no message");
    Err(format!("{tool}: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named() {
        let reason = succeed("a tool (1 or newer)", Command::new("no-such-tool-7c1f")).unwrap_err();
        assert_eq!(reason, "a tool (1 or newer) is not installed");
    }

    #[test]
    fn a_failed_build_tells_its_error_line() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo warming; echo 'error: it broke' >&2; exit 1"]);
        assert_eq!(succeed("sh", command).unwrap_err(), "sh: error: it broke");
    }
}
