//! A batch of commands that run one after the other, of which neighbours share a sync of the disk.

use std::net::SocketAddr;

use crate::support::post;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};

async fn relay(directory: &std::path::Path) -> Relay {
    let settings = json!({
        "http_api": { "key": "key" },
        "channel": { "history_directory": directory, "history_max_publication_limit": 1_000, "namespaces": [
            { "name": "kept", "durable_history": true, "history_size": 1_000, "history_ttl": "1h" },
            { "name": "news", "history_size": 1_000, "history_ttl": "1h" },
        ] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

async fn call(relay: &Relay, method: &str, params: &Value) -> Value {
    let answer = post(relay, method, params).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("JSON")
}

fn publish(channel: &str, data: u64) -> Value {
    json!({ "publish": { "channel": channel, "data": data } })
}

fn keyed(channel: &str, data: u64, key: &str) -> Value {
    json!({ "publish": { "channel": channel, "data": data, "idempotency_key": key } })
}

#[tokio::test]
async fn commands_of_a_batch_take_effect_in_their_order_wherever_their_channels_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let relay = relay(directory.path()).await;
    let history = |channel: &str| json!({ "history": { "channel": channel, "limit": -1 } });
    let commands = [
        publish("kept:a", 1),
        publish("news:b", 2),
        publish("kept:a", 3),
        publish("nowhere:c", 4),
        keyed("kept:a", 5, "once"),
        keyed("kept:a", 6, "once"),
        keyed("news:b", 7, "once"),
        keyed("news:b", 8, "once"),
        history("kept:a"),
        json!({ "history_remove": { "channel": "kept:a" } }),
        publish("kept:a", 9),
        history("kept:a"),
        history("news:b"),
    ];
    let answer = call(&relay, "batch", &json!({ "commands": commands })).await;
    let replies = answer["replies"].as_array().expect("replies").clone();
    let offsets: Vec<_> = replies.iter().map(|reply| reply["publish"]["offset"].as_u64()).collect();
    assert_eq!(offsets[..4], [Some(1), Some(1), Some(2), None], "{answer}");
    assert_eq!(replies[3]["error"]["code"], 102);
    assert_eq!(offsets[4..8], [Some(3), Some(3), Some(2), Some(2)], "{answer}");
    let data = |reply: &Value, method: &str| -> Vec<u64> {
        let page = reply[method]["publications"].as_array().expect("publications");
        page.iter().map(|one| one["data"].as_u64().expect("a number")).collect()
    };
    assert_eq!(data(&replies[8], "history"), [1, 3, 5]);
    assert_eq!(data(&replies[11], "history"), [9]);
    assert_eq!(data(&replies[12], "history"), [2, 7]);
    relay.stop().await;
}

#[tokio::test]
async fn a_long_batch_for_one_channel_keeps_its_order_and_answers_each_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let relay = relay(directory.path()).await;
    let commands: Vec<_> = (1..=1_000).map(|number| publish("kept:a", number)).collect();
    let answer = call(&relay, "batch", &json!({ "commands": commands })).await;
    for (place, reply) in answer["replies"].as_array().expect("replies").iter().enumerate() {
        assert_eq!(reply["publish"]["offset"], place + 1);
    }
    let asked = json!({ "channel": "kept:a", "limit": -1 });
    let page = call(&relay, "history", &asked).await["result"]["publications"].clone();
    let data: Vec<_> =
        page.as_array().expect("some").iter().map(|one| one["data"].as_u64()).collect();
    assert_eq!(data, (1..=1_000).map(Some).collect::<Vec<_>>());
    relay.stop().await;
}
