//! A process that commits is killed amid its commits: nothing that it had acknowledged is lost,
//! and nothing is torn.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use althing::{ActorId, Epoch};
use althing_store::{Embedded, Store};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Rounds of one test, unless KILLS says otherwise; each adds to the same file.
const KILLS_DEFAULT: usize = 20;

fn kills() -> usize {
    let kills = std::env::var("KILLS").ok();
    kills.map_or(KILLS_DEFAULT, |kills| kills.parse().expect("KILLS is a number"))
}

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let build =
        tests.parent().and_then(Path::parent).expect("tests are two levels below the build");
    build.join("examples").join(name)
}

/// Runs the committer until it is killed after so many acknowledged lines; returns the last version
/// acknowledged for each actor.
async fn run_and_kill(directory: &Path, lines_before: usize) -> HashMap<u64, u64> {
    let mut process = Command::new(example("committer"))
        .arg(directory)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("cargo has built the example");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut acknowledged = HashMap::new();
    let mut count = 0;
    // What it printed before it was killed is still in the pipe.
    while let Some(line) = lines.next_line().await.expect("a pipe can be read") {
        let mut numbers = line.split(' ').map(|number| number.parse::<u64>());
        if let (Some(Ok(actor)), Some(Ok(version))) = (numbers.next(), numbers.next()) {
            acknowledged.insert(actor, version);
        }
        count += 1;
        if count == lines_before {
            process.start_kill().expect("it runs");
        }
    }
    assert!(count >= lines_before, "it ended by itself after {count} lines");
    process.wait().await.expect("it has ended");
    acknowledged
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut commits = 0;
    for round in 0..kills() {
        // Amid the first batch, between batches, and after many.
        let lines_before = 1 + round * 37 % 300;
        let acknowledged = run_and_kill(directory.path(), lines_before).await;
        let store = Embedded::open(directory.path()).expect("the file is whole");
        for (actor, acknowledged) in acknowledged {
            let id = ActorId::named("committer", actor.to_string());
            let kept = store.open(&id, Epoch(1)).await.expect("it opens");
            assert!(
                kept.version >= acknowledged,
                "{id}: {} kept, {acknowledged} acknowledged",
                kept.version
            );
            let snapshot = kept.snapshot.expect("it was committed");
            let expected = format!("state {} ", kept.version).repeat(20);
            assert_eq!(snapshot.bytes, expected.as_bytes(), "a turn is there as a whole");
            assert_eq!(kept.last_event, kept.version);
            let events = store.events(&id, 0, usize::MAX).await.expect("it reads");
            let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
            assert_eq!(
                numbers,
                (1..=kept.version).collect::<Vec<_>>(),
                "no event is missing or doubled"
            );
            commits = commits.max(kept.version);
        }
    }
    assert!(commits > kills() as u64, "the committer got somewhere between the kills");
}

/// Runs transfers from `first` on until killed after so many acknowledged lines; returns the first
/// one that was not acknowledged.
async fn transfer_and_kill(directory: &Path, first: u64, lines_before: usize) -> u64 {
    let mut process = transfers(directory, first, u64::MAX);
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut acknowledged = BTreeSet::new();
    while let Some(line) = lines.next_line().await.expect("a pipe can be read") {
        acknowledged.extend(line.parse::<u64>());
        if acknowledged.len() == lines_before {
            process.start_kill().expect("it runs");
        }
    }
    assert!(acknowledged.len() >= lines_before, "it ended by itself");
    process.wait().await.expect("it has ended");
    (first..).find(|number| !acknowledged.contains(number)).expect("there are more numbers")
}

fn transfers(directory: &Path, first: u64, last: u64) -> Child {
    Command::new(example("transfers"))
        .arg(directory)
        .args([first.to_string(), last.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("cargo has built the example")
}

#[tokio::test]
async fn letters_of_a_killed_process_have_their_effect_once_and_so_do_requests_that_come_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = 1;
    for round in 0..kills() {
        // Whoever asks does not know of the others whether they were done, and asks again.
        first = transfer_and_kill(directory.path(), first, 1 + round * 13 % 60).await;
    }
    let last = first + 20;
    let done = transfers(directory.path(), first, last).wait_with_output().await;
    let said = String::from_utf8(done.expect("it runs").stdout).expect("it prints text");
    let (count, sum) = (last, last * (last + 1) / 2);
    let all = said.lines().last().expect("it says what came of it");
    assert_eq!(all, format!("all {count} {sum} {count} {sum}"), "none lost, none twice");
}
