//! A relay that is killed while it makes the log of its histories smaller: all that was acknowledged
//! is there afterwards, whichever part of the log it is in.

mod kill_support;

use std::path::Path;
use std::time::Duration;

use kill_support::{Process, call};
use serde_json::{Value, json};
use tokio::time::sleep;

/// What makes the log so long that it is made smaller after each start.
const LARGE: u64 = 36;
const LARGE_BYTES: usize = 1 << 20;
const LARGE_HISTORY: u64 = 2;
const SMALL: u64 = 20;
const SMALL_HISTORY: u64 = 200;
/// How long after the log was begun anew the relay is killed; owners of channels look once a second
/// whether they are asked for what they keep. `None`: once the old part is gone.
const KILLS: [Option<u64>; 6] = [Some(0), Some(300), Some(700), None, Some(500), Some(1_000)];

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

/// Publishes a number into all small channels.
async fn broadcast(relay: &Process, number: u64) {
    let channels: Vec<_> = (0..SMALL).map(|channel| format!("small:{channel}")).collect();
    let params = json!({ "channels": channels, "data": number });
    let answer = call(relay.address(), "broadcast", &params).await.expect("it answers");
    for response in answer["result"]["responses"].as_array().expect("responses") {
        assert_eq!(response["result"]["offset"], number, "{response}");
    }
}

/// All that was acknowledged is in the histories, in its order.
async fn check(relay: &Process, last: u64) {
    for channel in 0..SMALL {
        let history = history(relay, &format!("small:{channel}")).await;
        let seen = history["publications"].as_array().expect("publications");
        let seen: Vec<_> = seen.iter().map(|one| one["data"].as_u64().expect("a number")).collect();
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
        let again = move || {
            relay.kill();
            relay.start_again();
            relay
        };
        relay = tokio::task::spawn_blocking(again).await.expect("it starts again");
        let (oldest, newest) = segments(&kept);
        // The first that is written has it begun.
        let mut begun = None;
        loop {
            last += 1;
            broadcast(&relay, last).await;
            let now = segments(&kept);
            let is_begun = now.1 > newest;
            let is_done = now.0 > oldest;
            let since = is_begun.then(|| *begun.get_or_insert_with(std::time::Instant::now));
            let is_time = match (after, since) {
                (Some(after), Some(since)) => since.elapsed() >= Duration::from_millis(after),
                _ => false,
            };
            if is_done || is_time {
                (amid, done) = (amid + u64::from(!is_done), done + u64::from(is_done));
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        let killed = move || {
            relay.kill();
            relay.start_again();
            relay
        };
        relay = tokio::task::spawn_blocking(killed).await.expect("it starts again");
        check(&relay, last).await;
    }
    assert!(amid >= 3 && done >= 1, "killed {amid} times amid it, {done} times after it");
}
