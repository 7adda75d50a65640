//! A process that commits is killed at random moments: nothing that it had acknowledged is lost,
//! and nothing is torn.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use althing::{ActorId, Epoch};
use althing_store::{Embedded, Store};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Rounds of one test; each adds to the same file.
const KILLS: u32 = 20;

fn committer() -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let build =
        tests.parent().and_then(Path::parent).expect("tests are two levels below the build");
    build.join("examples/committer")
}

/// Runs the committer until it is killed after `delay`; returns the last version acknowledged for
/// each actor.
async fn run_and_kill(directory: &Path, delay: Duration) -> HashMap<u64, u64> {
    let mut process = Command::new(committer())
        .arg(directory)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("cargo has built the example");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut acknowledged = HashMap::new();
    let kill = tokio::time::sleep(delay);
    tokio::pin!(kill);
    let mut is_killed = false;
    loop {
        tokio::select! {
            () = &mut kill, if !is_killed => {
                process.start_kill().expect("it runs");
                is_killed = true;
            }
            line = lines.next_line() => {
                // What it printed before it was killed is still in the pipe.
                let Some(line) = line.expect("a pipe can be read") else { break };
                let mut numbers = line.split(' ').map(|number| number.parse::<u64>());
                if let (Some(Ok(actor)), Some(Ok(version))) = (numbers.next(), numbers.next()) {
                    acknowledged.insert(actor, version);
                }
            }
        }
    }
    process.wait().await.expect("it has ended");
    acknowledged
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut commits = 0;
    for round in 0..KILLS {
        let delay = Duration::from_millis(20 + u64::from(round * 37 % 150));
        let acknowledged = run_and_kill(directory.path(), delay).await;
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
    assert!(commits > u64::from(KILLS), "the committer got somewhere between the kills");
}
