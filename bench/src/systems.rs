//! Who is measured: Althing, and the peers under `bench/peers`, with how each is built and started.
//!
//! A peer whose toolchain is missing or whose build fails stays a candidate with the reason, and
//! becomes a row that says so.

use crate::metrics_cost;
use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How to start one run; the workload's arguments follow.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
}

/// A system to be measured, or the reason why it cannot be.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) is_ours: bool,
    /// Version and settings, for the tables.
    pub(crate) settings: &'static str,
    pub(crate) launch: Result<Launch, String>,
}

impl Candidate {
    #[cfg(test)]
    pub(crate) fn absent(name: &str, reason: &str) -> Self {
        let launch = Err(reason.to_owned());
        Self { name: name.to_owned(), is_ours: false, settings: "", launch }
    }
}

/// Toolchain of a peer: how it is built and what starts it.
enum Kind {
    Rust,
    Go,
    /// The message queue setting of its processes.
    Elixir(&'static str),
    Pekko,
}

struct Peer {
    name: &'static str,
    kind: Kind,
    settings: &'static str,
}

const PEERS: &[Peer] = &[
    Peer { name: "kameo", kind: Kind::Rust, settings: "0.22.2; mailbox bounded 1,024, no tracing" },
    Peer {
        name: "ractor",
        kind: Kind::Rust,
        settings: "0.16.5; unbounded (its only mailbox), no span propagation",
    },
    Peer {
        name: "actix",
        kind: Kind::Rust,
        settings: "0.13.5; one arbiter per core, do_send (ignores the bound)",
    },
    Peer {
        name: "coerce",
        kind: Kind::Rust,
        settings: "0.8.11; anonymous actors, unbounded (its only mailbox)",
    },
    Peer { name: "hollywood", kind: Kind::Go, settings: "1.0.5; inbox 1,024 growing, GOGC 400" },
    Peer {
        name: "protoactor",
        kind: Kind::Go,
        settings: "20240822; unbounded mailbox (faster than its bounded one), GOGC 400",
    },
    Peer {
        name: "goakt",
        kind: Kind::Go,
        settings: "3.2.0; long-lived actors, no logging, GOGC 400",
    },
    Peer {
        name: "elixir",
        kind: Kind::Elixir("on_heap"),
        settings: "BEAM with JIT; plain processes, default message queue",
    },
    Peer {
        name: "elixir-off-heap",
        kind: Kind::Elixir("off_heap"),
        settings: "BEAM with JIT; plain processes, message_queue_data off_heap",
    },
    Peer {
        name: "pekko",
        kind: Kind::Pekko,
        settings: "1.3.0; classic API, throughput 1,024, single-consumer mailbox, parallel GC",
    },
];

/// Processes of the BEAM; its default limit is below the million of `publish-1m`.
const BEAM_FLAGS: &str = "+P 2000000";

/// Althing itself: this very program, one run per process.
pub(crate) fn ours() -> Result<Candidate> {
    let program = env::current_exe().context("cannot find the running program")?.into();
    let launch = Launch { program, arguments: vec!["once".into()], directory: bench_directory() };
    Ok(Candidate {
        name: "althing".to_owned(),
        is_ours: true,
        settings: "mailbox bounded 1,024, metrics on",
        launch: Ok(launch),
    })
}

/// The same with metrics off.
pub(crate) fn ours_without_metrics() -> Result<Candidate> {
    let mut candidate = ours()?;
    candidate.name = "althing-without-metrics".to_owned();
    candidate.settings = "mailbox bounded 1,024, metrics off";
    if let Ok(launch) = &mut candidate.launch {
        launch.arguments = vec![metrics_cost::ONCE.into()];
    }
    Ok(candidate)
}

/// Althing and its peers, built. `only` names the peers wanted; none means all.
pub(crate) fn with_peers(only: &[String]) -> Result<Vec<Candidate>> {
    let unknown = only.iter().find(|name| {
        name.as_str() != "althing" && PEERS.iter().all(|peer| peer.name != name.as_str())
    });
    if let Some(name) = unknown {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        bail!("no peer {name}; there are {}", names.join(", "));
    }
    let mut candidates = vec![ours()?];
    for peer in PEERS {
        if !only.is_empty() && only.iter().all(|name| name != peer.name) {
            continue;
        }
        eprintln!("building {}", peer.name);
        let launch = build(peer);
        if let Err(reason) = &launch {
            eprintln!("  not built: {reason}");
        }
        candidates.push(Candidate {
            name: peer.name.to_owned(),
            is_ours: false,
            settings: peer.settings,
            launch,
        });
    }
    Ok(candidates)
}

/// The folder `bench/` of this checkout.
pub(crate) fn bench_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn build(peer: &Peer) -> Result<Launch, String> {
    let peers = bench_directory().join("peers");
    match peer.kind {
        Kind::Rust => build_rust(&peers.join("rust"), peer.name),
        Kind::Go => build_go(&peers.join("go"), peer.name),
        Kind::Elixir(queue) => prepare_elixir(&peers.join("elixir"), queue),
        Kind::Pekko => build_pekko(&peers.join("pekko")),
    }
}

fn build_rust(directory: &Path, name: &str) -> Result<Launch, String> {
    let target = directory.join("target");
    let package = format!("peer-{name}");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--package", &package]);
    cargo.arg("--target-dir").arg(&target).current_dir(directory);
    succeed("cargo", cargo)?;
    Ok(Launch {
        program: target.join("release").join(package).into(),
        arguments: Vec::new(),
        directory: directory.to_owned(),
    })
}

fn build_go(directory: &Path, name: &str) -> Result<Launch, String> {
    let program = directory.join("target").join(name);
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(format!("./cmd/{name}")).current_dir(directory);
    succeed("go", go)?;
    Ok(Launch { program: program.into(), arguments: Vec::new(), directory: directory.to_owned() })
}

fn prepare_elixir(directory: &Path, queue: &str) -> Result<Launch, String> {
    let mut version = Command::new("elixir");
    version.arg("--version");
    succeed("elixir", version)?;
    Ok(Launch {
        program: "elixir".into(),
        arguments: ["--erl", BEAM_FLAGS, "peer.exs", queue].map(OsString::from).into(),
        directory: directory.to_owned(),
    })
}

fn build_pekko(directory: &Path) -> Result<Launch, String> {
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "package"]).current_dir(directory);
    succeed("mvn", maven)?;
    let arguments = [
        "-XX:+UseParallelGC",
        "-XX:InitialRAMPercentage=25",
        "-XX:MaxRAMPercentage=50",
        "-cp",
        "target/pekko-1.jar:target/lib/*",
        "peer.Main",
    ];
    Ok(Launch {
        program: "java".into(),
        arguments: arguments.map(OsString::from).into(),
        directory: directory.to_owned(),
    })
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
        let reason = succeed("no-such-tool", Command::new("no-such-tool-7c1f")).unwrap_err();
        assert_eq!(reason, "no-such-tool is not installed");
    }

    #[test]
    fn a_failed_build_tells_its_error_line() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo warming; echo 'error: it broke' >&2; exit 1"]);
        assert_eq!(succeed("sh", command).unwrap_err(), "sh: error: it broke");
    }

    #[test]
    fn an_unknown_peer_is_refused() {
        let error = with_peers(&["akka".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("no peer akka"));
    }
}
