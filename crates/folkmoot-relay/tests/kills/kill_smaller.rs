//! A relay that is killed while it makes the log of its histories smaller: all that was acknowledged
//! is there afterwards, whichever part of the log it is in.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::kill_support::{Process, call};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

/// What makes the log so long that it is made smaller after each start.
const LARGE: u64 = 36;
const LARGE_BYTES: usize = 1 << 20;
const LARGE_HISTORY: u64 = 2;
const SMALL: u64 = 20;
const SMALL_HISTORY: u64 = 200;
/// How many milliseconds after the log was begun anew the relay is killed, if the old part is still
/// there; owners of channels look once a second whether they are asked for what they keep. `None`:
/// once the old part is gone.
const KILLS: [Option<u64>; 6] = [Some(0), Some(300), Some(700), None, Some(40), Some(1_000)];

fn settings(directory: &Path) -> Value {
    let namespace = |name: &str, size: u64| json!({ "name": name, "durable_history": true, "history_size": size, "history_ttl": "1h" });
    json!({
        "http_api": { "key": "key" },
        "channel": {
            "history_directory": directory, "history_max_publication_limit": SMALL_HISTORY,
            "namespaces": [namespace("large", LARGE_HISTORY), namespace("small", SMALL_HISTORY)],
        },
    })
}

/// The numbers of the oldest and the newest segment.
fn segments(directory: &Path) -> (u64, u64) {
    let names = std::fs::read_dir(directory)
        .expect("it is there")
        .map(|file| file.expect("a file").file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_suffix(".histories")?.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let (first, last) = (numbers.iter().min(), numbers.iter().max());
    (*first.expect("a segment"), *last.expect("a segment"))
}

async fn history(relay: &Process, channel: &str) -> Value {
    let asked = json!({ "channel": channel, "limit": -1 });
    let answer = call(relay.address(), "history", &asked).await.expect("it answers");
    answer["result"].clone()
}

/// Publishes a number into all small channels that lack it: a broadcast that was cut off may be in
/// some of them. False: the relay was killed before it answered.
async fn broadcast(address: &str, number: u64) -> bool {
    let channels: Vec<_> = (0..SMALL).map(|channel| format!("small:{channel}")).collect();
    let key = number.to_string();
    let params = json!({ "channels": channels, "data": number, "idempotency_key": key });
    let Ok(answer) = call(address, "broadcast", &params).await else { return false };
    for response in answer["result"]["responses"].as_array().expect("responses") {
        assert_eq!(response["result"]["offset"], number, "{response}");
    }
    true
}

/// All that was acknowledged is in the histories, in its order, and of what was not the next one at
/// most.
async fn check(relay: &Process, acknowledged: u64) {
    for channel in 0..SMALL {
        let history = history(relay, &format!("small:{channel}")).await;
        let seen = history["publications"].as_array().expect("publications");
        let seen: Vec<_> = seen.iter().map(|one| one["data"].as_u64().expect("a number")).collect();
        let last = seen.last().copied().unwrap_or(0);
        assert!([acknowledged, acknowledged + 1].contains(&last), "{last} of {acknowledged}");
        let wanted: Vec<_> = (last.saturating_sub(SMALL_HISTORY) + 1..=last).collect();
        assert_eq!(seen, wanted, "of small:{channel}");
    }
    for channel in 0..LARGE {
        let history = history(relay, &format!("large:{channel}")).await;
        let publications = history["publications"].as_array().expect("publications");
        assert_eq!(publications.len() as u64, LARGE_HISTORY, "of large:{channel}");
        for (number, one) in publications.iter().enumerate() {
            let text = one["data"].as_str().expect("a text");
            assert_eq!(text.len(), LARGE_BYTES);
            assert!(text.starts_with(&format!("{channel}-{number}-")), "of large:{channel}");
        }
    }
}

/// Kills the relay so long after its log is begun anew, or once the old part of it is gone; true: it
/// is.
fn kill_amid(
    relay: &mut Process,
    directory: &Path,
    (oldest, newest): (u64, u64),
    after: Option<Duration>,
) -> bool {
    let mut begun = None;
    loop {
        let now = segments(directory);
        let since = (now.1 > newest).then(|| begun.get_or_insert_with(Instant::now).elapsed());
        let is_done = now.0 > oldest;
        let is_time = after.zip(since).is_some_and(|(after, since)| since >= after);
        if is_done || is_time {
            relay.kill();
            return is_done;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_was_acknowledged_is_there_after_a_kill_while_the_log_is_made_smaller() {
    let directory = tempfile::tempdir().expect("it is made");
    let kept = directory.path().join("histories");
    let mut relay = Process::start(directory.path(), &settings(&kept));
    for number in 0..LARGE_HISTORY {
        for channel in 0..LARGE {
            let text = format!("{channel}-{number}-");
            let text = text.clone() + &"x".repeat(LARGE_BYTES - text.len());
            let params = json!({ "channel": format!("large:{channel}"), "data": text });
            let answer = call(relay.address(), "publish", &params).await.expect("it answers");
            assert_eq!(answer["result"]["offset"], number + 1, "{answer}");
        }
    }
    let (mut last, mut amid, mut done) = (0, 0, 0);
    for after in KILLS {
        let kept = kept.clone();
        relay.kill();
        // It begins its log anew as it starts, if that is too long.
        let before = segments(&kept);
        relay.start_again();
        let address = relay.address().to_owned();
        let killing = spawn_blocking(move || {
            let is_done = kill_amid(&mut relay, &kept, before, after.map(Duration::from_millis));
            (relay, is_done)
        });
        while broadcast(&address, last + 1).await {
            last += 1;
        }
        let (killed, is_done) = killing.await.expect("no panic");
        relay = killed;
        (amid, done) = (amid + u64::from(!is_done), done + u64::from(is_done));
        relay.start_again();
        check(&relay, last).await;
    }
    assert!(amid >= 2 && done >= 1, "killed {amid} times amid it, {done} times after it");
}
