//! A broadcast that is acknowledged is in the durable history of every channel that it went to,
//! though the relay is killed at once: whatever was before it goes on.

use crate::kill_support::{Process, call};
use serde_json::{Value, json};

const CHANNELS: u64 = 1_000;
const KILLS: u64 = 3;
const HISTORY_SIZE: u64 = 4;

fn names() -> Vec<String> {
    (0..CHANNELS).map(|number| format!("personal:user-{number}")).collect()
}

fn settings(directory: &std::path::Path) -> Value {
    json!({
        "http_api": { "key": "key" },
        "channel": {
            "history_directory": directory,
            "namespaces": [{
                "name": "personal", "durable_history": true,
                "history_size": HISTORY_SIZE, "history_ttl": "1h",
            }],
        },
    })
}

/// Broadcasts a number; the offset and epoch that each channel answers with.
async fn broadcast(relay: &Process, number: u64) -> Vec<(u64, String)> {
    let params = json!({ "channels": names(), "data": { "number": number } });
    let answer = call(relay.address(), "broadcast", &params).await.expect("it answers");
    let responses = answer["result"]["responses"].as_array().expect("responses");
    let place = |response: &Value| {
        let result = &response["result"];
        let epoch = result["epoch"].as_str().expect("an epoch").to_owned();
        (result["offset"].as_u64().expect("an offset"), epoch)
    };
    responses.iter().map(place).collect()
}

/// All histories as the relay has them.
async fn histories(relay: &Process) -> Vec<Value> {
    let history = |channel: String| json!({ "history": { "channel": channel, "limit": 100 } });
    let batch = json!({ "commands": names().into_iter().map(history).collect::<Vec<_>>() });
    let answer = call(relay.address(), "batch", &batch).await.expect("it answers");
    let replies = answer["replies"].as_array().expect("replies");
    replies.iter().map(|reply| reply["history"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_broadcast_is_in_every_channel_after_a_kill_and_goes_on_there() {
    let directory = tempfile::tempdir().expect("it is made");
    let kept = directory.path().join("histories");
    let mut relay = Process::start(directory.path(), &settings(&kept));
    let mut epochs: Option<Vec<String>> = None;
    for number in 1..=2 * KILLS {
        let places = broadcast(&relay, number).await;
        assert_eq!(places.len() as u64, CHANNELS);
        assert!(places.iter().all(|(offset, _)| *offset == number), "offsets go on by one");
        let now: Vec<String> = places.into_iter().map(|(_, epoch)| epoch).collect();
        assert_eq!(*epochs.get_or_insert_with(|| now.clone()), now, "an epoch is another one");
        if number % 2 == 1 {
            continue;
        }
        // It has answered, and gets no time for anything else.
        let killed = move || {
            relay.kill();
            relay.start_again();
            relay
        };
        relay = tokio::task::spawn_blocking(killed).await.expect("it starts again");
        let wanted: Vec<u64> = (number.saturating_sub(HISTORY_SIZE) + 1..=number).collect();
        for (history, epoch) in histories(&relay).await.iter().zip(&now) {
            let publications = history["publications"].as_array().expect("publications");
            let seen = publications.iter().map(|one| {
                assert_eq!(one["data"]["number"], one["offset"]);
                one["offset"].as_u64().expect("an offset")
            });
            assert_eq!(seen.collect::<Vec<_>>(), wanted, "{history}");
            assert_eq!(history["offset"], number);
            assert_eq!(history["epoch"], **epoch);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_was_removed_is_gone_after_a_kill() {
    let directory = tempfile::tempdir().expect("it is made");
    let mut relay =
        Process::start(directory.path(), &settings(&directory.path().join("histories")));
    broadcast(&relay, 1).await;
    let removals =
        names().into_iter().map(|channel| json!({ "history_remove": { "channel": channel } }));
    let batch = json!({ "commands": removals.collect::<Vec<_>>(), "parallel": true });
    let answer = call(relay.address(), "batch", &batch).await.expect("it answers");
    assert!(!answer.to_string().contains("error"), "{answer}");
    let killed = move || {
        relay.kill();
        relay.start_again();
        relay
    };
    let relay = tokio::task::spawn_blocking(killed).await.expect("it starts again");
    for history in histories(&relay).await {
        let publications = history["publications"].as_array().map_or(0, Vec::len);
        assert_eq!((publications, &history["offset"]), (0, &json!(1)), "{history}");
    }
}
