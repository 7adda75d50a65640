//! A short run of the example `chaos`: real nodes, a real etcd and a real PostgreSQL under faults.
//! `make chaos SECONDS=600` is a long one.

#![allow(dead_code, reason = "the program of the example, of which the pure parts are tested here")]

#[path = "../examples/chaos/arguments.rs"]
mod arguments;
#[path = "../examples/chaos/callers.rs"]
mod callers;
#[path = "../examples/chaos/checks/mod.rs"]
mod checks;
#[path = "../examples/chaos/clock.rs"]
mod clock;
#[path = "../examples/chaos/cluster.rs"]
mod cluster;
#[path = "../examples/chaos/counter.rs"]
mod counter;
#[path = "../examples/chaos/diary.rs"]
mod diary;
#[path = "../examples/chaos/faults.rs"]
mod faults;
#[path = "../examples/chaos/history.rs"]
mod history;
#[path = "../examples/chaos/links.rs"]
mod links;
#[path = "../examples/chaos/node.rs"]
mod node;
#[path = "../examples/chaos/plan.rs"]
mod plan;
#[path = "../examples/chaos/process.rs"]
mod process;
#[path = "../examples/chaos/random.rs"]
mod random;
#[path = "../examples/chaos/report.rs"]
mod report;
#[path = "../examples/chaos/whose.rs"]
mod whose;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use althing_testkit::servers::PostgresServer;

fn example() -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let build =
        tests.parent().and_then(Path::parent).expect("tests are two levels below the build");
    build.join("examples/chaos")
}

/// The number that stands behind that word in the report.
fn number(report: &str, word: &str) -> u64 {
    let line = report.lines().find_map(|line| line.strip_prefix(word));
    let line = line.unwrap_or_else(|| panic!("no `{word}` in {report}"));
    let number = line.trim_start().split([' ', ',']).next().and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number behind `{word}` in {report}"))
}

#[test]
fn no_promise_is_broken_while_nodes_are_killed_stopped_and_cut_off() {
    let faults = ["isolated", "kill -9", "SIGSTOP", "link cut", "link trickling", "etcd killed"];
    let has_all = |seed: &u64| {
        let plan = plan::draw(*seed, Duration::from_secs(12), Duration::from_secs(3));
        let kinds: Vec<_> = plan.iter().map(|planned| planned.fault.kind()).collect();
        faults.iter().all(|fault| kinds.contains(fault))
    };
    let seed = (0..).find(has_all).expect("there is one").to_string();
    let mut command = Command::new(example());
    command.args(["--seconds", "12", "--seed", &seed, "--lease-ms", "3000"]);
    let run = command.output().expect("cargo has built the example");
    let report = String::from_utf8_lossy(&run.stdout);
    println!("{report}");
    assert!(run.status.success(), "{report}{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(number(&report, "violations"), 0);
    for fault in faults.map(|fault| format!("fault {fault}")) {
        assert!(number(&report, &fault) > 0, "{fault}");
    }
    assert!(number(&report, "requests answered") > 5, "{report}");
    assert!(number(&report, "tells accepted") > 20, "{report}");
}

#[test]
fn a_node_that_cannot_join_in_its_time_says_so_by_how_it_ends() {
    let postgres = PostgresServer::start();
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let directory = directory.path().display().to_string();
    // Nobody listens there.
    let nowhere = "127.0.0.1:1";
    let arguments = [
        ["--name", "one"],
        ["--life", "one.1"],
        ["--directory", &directory],
        ["--etcd", nowhere],
        ["--postgres", &postgres.url()],
        ["--lease-ms", "1000"],
        ["--join-ms", "1000"],
        ["--advertised", nowhere],
        ["--authority", nowhere],
        ["--authorities", nowhere],
    ];
    let mut command = Command::new(example());
    command.arg("node").args(arguments.as_flattened());
    let run = command.output().expect("cargo has built the example");
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(i32::from(node::NOT_JOINED)), "{complaint}");
    assert!(complaint.contains("no authority answers"), "{complaint}");
}
