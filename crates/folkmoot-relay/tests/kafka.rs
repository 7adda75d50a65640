//! What a backend writes to a real Kafka is published.

mod kafka_guarded;
mod kafka_support;
mod support;

use std::collections::HashSet;
use std::sync::LazyLock;

use althing_testkit::servers::KafkaServer;
use folkmoot_relay::{Relay, Settings, start};
use kafka_support::{Backend, PATIENCE, publishes, reads};
use serde_json::{Value, json};
use support::{Listener, get, post};
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep, timeout};

/// It ends with this process.
static SERVER: LazyLock<KafkaServer> =
    LazyLock::new(|| KafkaServer::start_guarded(kafka_guarded::guard()));

async fn host() -> String {
    let host = || SERVER.host();
    tokio::task::spawn_blocking(host).await.expect("it starts")
}

/// Of a relay that reads a topic, with further settings of the consumer.
async fn settings(topic: &str, more: &Value) -> Value {
    let mut kafka = json!({
        "brokers": [host().await], "topics": [topic], "consumer_group": format!("of-{topic}"),
    });
    let fields = more.as_object().expect("settings").clone();
    kafka.as_object_mut().expect("settings").extend(fields);
    json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": { "history_max_publication_limit": 1_000_000, "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true,
            "allow_history_for_anonymous": true, "history_size": 1_000_000, "history_ttl": "1h",
        }] },
        "consumers": [{ "name": "records", "type": "kafka", "kafka": kafka }],
    })
}

async fn started(settings: &Value) -> Relay {
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

async fn relay(topic: &str, more: &Value) -> Relay {
    started(&settings(topic, more).await).await
}

#[tokio::test]
async fn a_record_is_published_to_who_is_subscribed() {
    let backend = Backend::new(&host().await);
    backend.makes("plain", 1).await;
    let relay = relay("plain", &json!({})).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    for number in 1..=10 {
        backend.writes("plain", 0, &publishes("news:x", number)).await;
        assert_eq!(listener.publication().await, ("news:x".to_owned(), json!(number)));
    }
    relay.stop().await;
}

/// Waits until a metric of the consumer is as wanted.
async fn shows(relay: &Relay, line: &str) {
    let looking = async {
        while !get(relay, "/metrics", "").await.lines().any(|one| one == line) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let shown = timeout(PATIENCE, looking).await;
    shown.unwrap_or_else(|_| panic!("`{line}` never comes"));
}

#[tokio::test]
async fn a_record_that_cannot_be_published_is_set_aside_with_its_reason_and_holds_nobody_up() {
    let backend = Backend::new(&host().await);
    backend.makes("poisoned", 1).await;
    backend.makes("poisoned-failed", 1).await;
    let relay = relay("poisoned", &json!({ "failed_topic": "poisoned-failed" })).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let wrong = [
        ("no JSON", "the record is no command"),
        (r#"{"method": "erase", "payload": {}}"#, "`erase`"),
        (r#"{"method": "publish", "payload": {"channel": "nowhere:x", "data": 1}}"#, "nowhere"),
        (r#"{"method": "publish", "payload": {"channel": "news:x"}}"#, "data is required"),
        (r#"{"method": "publish"}"#, ""),
    ];
    for (value, _) in wrong {
        backend.writes_with("poisoned", 0, value, &[("trace", "7")]).await;
    }
    backend.writes("poisoned", 0, &publishes("news:x", 1)).await;
    assert_eq!(listener.publication().await.1, 1);
    let metric = |name: &str, value: usize| {
        format!("folkmoot_relay_consumer_{name}{{consumer=\"records\"}} {value}")
    };
    shows(&relay, &metric("set_aside_rows", wrong.len())).await;
    shows(&relay, &metric("up", 1)).await;
    let lag = "folkmoot_relay_consumer_lag_records";
    shows(&relay, &format!("{lag}{{consumer=\"records\",topic=\"poisoned\",partition=\"0\"}} 0"))
        .await;
    let reading = || reads(&SERVER.host(), "poisoned-failed", 5);
    let failed = tokio::task::spawn_blocking(reading).await.expect("it reads");
    for (offset, ((value, reason), (kept, headers))) in wrong.into_iter().zip(failed).enumerate() {
        assert_eq!(kept, value);
        let header = |name: &str| {
            let found = headers.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        assert!(header("folkmoot-error").contains(reason), "{headers:?}");
        assert_eq!(header("folkmoot-topic"), "poisoned");
        assert_eq!(header("folkmoot-partition"), "0");
        assert_eq!(header("folkmoot-offset"), offset.to_string());
        assert_eq!(header("trace"), "7");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_record_that_is_too_large_to_be_set_aside_is_told_there_and_holds_nobody_up() {
    let backend = Backend::new(&host().await);
    backend.makes("large", 1).await;
    backend.makes_narrow("large-failed", "10000").await;
    let relay = relay("large", &json!({ "failed_topic": "large-failed" })).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    backend.writes_with("large", 0, &"no JSON ".repeat(10_000), &[("trace", "7")]).await;
    backend.writes("large", 0, &publishes("news:x", 1)).await;
    assert_eq!(listener.publication().await.1, 1);
    let reading = || reads(&SERVER.host(), "large-failed", 1);
    let failed = tokio::task::spawn_blocking(reading).await.expect("it reads");
    let (value, headers) = &failed[0];
    assert_eq!(value, "");
    let has = |name: &str, value: &str| {
        headers.iter().any(|(key, text)| key == name && text.contains(value))
    };
    assert!(has("folkmoot-error", "the record is no command"), "{headers:?}");
    assert!(has("folkmoot-offset", "0") && has("trace", "7"), "{headers:?}");
    assert!(has("folkmoot-value-bytes", "80000"), "{headers:?}");
    relay.stop().await;
}

#[tokio::test]
async fn data_go_where_the_headers_of_their_record_say() {
    let backend = Backend::new(&host().await);
    backend.makes("data", 1).await;
    let mode = json!({ "publication_data_mode": { "enabled": true, "version_header": "v" } });
    let relay = relay("data", &mode).await;
    let mut listener = Listener::subscribe(&relay, &["news:a", "news:b"]).await;
    let channels = ("centrifugo-channels", "news:a,news:b");
    let tag = ("centrifugo-tag-kind", "order");
    let key = ("centrifugo-idempotency-key", "one");
    for (value, headers) in [
        (r#"{"n": 1}"#, vec![channels, tag, key]),
        // The same key once more.
        (r#"{"n": 0}"#, vec![channels, key]),
        // No channels, a flag that is none, and a version that is none.
        (r#"{"n": 0}"#, vec![tag]),
        (r#"{"n": 0}"#, vec![channels, ("centrifugo-delta", "maybe")]),
        (r#"{"n": 0}"#, vec![channels, ("v", "new")]),
        (r#"{"n": 2}"#, vec![channels, ("v", "5"), ("centrifugo-delta", "true")]),
        // Not newer.
        (r#"{"n": 0}"#, vec![channels, ("v", "5")]),
        (r#"{"n": 3}"#, vec![("centrifugo-channels", "news:b")]),
    ] {
        backend.writes_with("data", 0, value, &headers).await;
    }
    let mut heard = Vec::new();
    while heard.len() < 5 {
        let (channel, data) = listener.publication().await;
        heard.push(format!("{channel} {}", data["n"]));
    }
    assert_eq!(heard.pop().as_deref(), Some("news:b 3"));
    heard.sort_unstable();
    assert_eq!(heard, ["news:a 1", "news:a 2", "news:b 1", "news:b 2"]);
    let refused = "folkmoot_relay_publications_total{source=\"records\",outcome=\"refused\"} 3";
    shows(&relay, refused).await;
    let history = post(&relay, "history", &json!({ "channel": "news:a", "limit": 1 })).await;
    assert!(history.contains(r#""tags":{"kind":"order"}"#), "{history}");
    relay.stop().await;
}

#[tokio::test]
async fn a_header_may_name_the_method() {
    let backend = Backend::new(&host().await);
    backend.makes("named", 1).await;
    let relay = relay("named", &json!({})).await;
    let mut listener = Listener::subscribe(&relay, &["news:x", "news:y"]).await;
    let request = r#"{"channels": ["news:x", "news:y"], "data": 7}"#;
    backend.writes_with("named", 0, request, &[("centrifugo-method", "broadcast")]).await;
    // As some connectors write a column of JSON.
    let text = r#"{"method": "publish", "payload": "{\"channel\": \"news:x\", \"data\": 8}"}"#;
    backend.writes("named", 0, text).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        let (channel, data) = listener.publication().await;
        heard.push(format!("{channel} {data}"));
    }
    heard.sort_unstable();
    assert_eq!(heard, ["news:x 7", "news:x 8", "news:y 7"]);
    relay.stop().await;
}

const PARTITIONS: i32 = 4;
/// Numbers of one partition, which follow those of the one before.
const NUMBERS: u64 = 1_000_000;

/// What comes next of a relay's channel.
async fn next(heard: &mut mpsc::UnboundedReceiver<(String, Value)>) -> u64 {
    let one = timeout(PATIENCE, heard.recv()).await.expect("nothing came");
    one.and_then(|(_, data)| data.as_u64()).expect("a number")
}

/// Numbers that a relay has published, in their order.
async fn published(relay: &Relay) -> Vec<u64> {
    let answer = post(relay, "history", &json!({ "channel": "news:x", "limit": -1 })).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let answer: Value = serde_json::from_str(body).expect("JSON");
    let all = answer["result"]["publications"].as_array().expect("publications");
    all.iter().map(|one| one["data"].as_u64().expect("a number")).collect()
}

/// Two relays without each other's channels: what each has in its history is what it has published,
/// also while it stopped and nobody could listen any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_move_between_relays_of_one_group_and_nothing_is_lost_or_doubled() {
    let backend = Backend::new(&host().await);
    backend.makes("shared", PARTITIONS).await;
    let (ending, end) = watch::channel(false);
    let writing = tokio::spawn(async move {
        let mut last = 0;
        while !*end.borrow() {
            last += 1;
            for (partition, before) in (0..PARTITIONS).zip((0..).step_by(NUMBERS as usize)) {
                let value = publishes("news:x", before + last);
                backend.writes("shared", partition, &value).await;
            }
        }
        last
    });
    let directory = tempfile::tempdir().expect("it is made");
    let of_second = settings("shared", &json!({})).await;
    let mut of_first = of_second.clone();
    of_first["channel"]["history_directory"] = json!(directory.path());
    of_first["channel"]["namespaces"][0]["durable_history"] = json!(true);
    let first = started(&of_first).await;
    let mut by_first = Listener::recover(&first, "news:x").await.beside();
    for _ in 0..200 {
        next(&mut by_first).await;
    }
    let second = started(&of_second).await;
    let mut by_second = Listener::recover(&second, "news:x").await.beside();
    for _ in 0..200 {
        next(&mut by_second).await;
    }
    first.stop().await;
    // All partitions are the second one's now.
    let mut left: HashSet<u64> = (0..PARTITIONS.unsigned_abs().into()).collect();
    while !left.is_empty() {
        left.remove(&(next(&mut by_second).await / NUMBERS));
    }
    ending.send_replace(true);
    let last = writing.await.expect("it ends");
    let ends = |seen: &[u64]| seen.iter().filter(|number| **number % NUMBERS == last).count();
    let mut seen = published(&second).await;
    while ends(&seen) < PARTITIONS as usize {
        next(&mut by_second).await;
        seen = published(&second).await;
    }
    of_first["consumers"] = json!([]);
    let again = started(&of_first).await;
    let before = published(&again).await;
    for number in 0..PARTITIONS.unsigned_abs().into() {
        let of = |seen: &[u64]| -> Vec<u64> {
            let of_it = seen.iter().filter(|one| **one / NUMBERS == number);
            of_it.map(|one| one % NUMBERS).collect()
        };
        let all = [of(&before), of(&seen)].concat();
        assert_eq!(all, (1..=last).collect::<Vec<_>>(), "of partition {number}");
    }
    again.stop().await;
    second.stop().await;
}

/// Publishes a number in a channel that there is, and in one that there is not.
fn halved(number: u64) -> String {
    let payload = json!({ "channels": ["news:x", "nowhere:x"], "data": number });
    json!({ "method": "broadcast", "payload": payload }).to_string()
}

/// There is no topic yet for what fails, so that nothing passes such a record; meanwhile one of the
/// partitions is another relay's, and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_published_in_part_is_heard_once_though_it_cannot_be_set_aside() {
    let backend = Backend::new(&host().await);
    backend.makes("halved", 2).await;
    for (partition, first) in [(0, 1), (1, 4)] {
        backend.writes("halved", partition, &publishes("news:x", first)).await;
        backend.writes("halved", partition, &halved(first + 1)).await;
        backend.writes("halved", partition, &publishes("news:x", first + 2)).await;
    }
    let failing = json!({ "failed_topic": "halved-failed" });
    let first = relay("halved", &failing).await;
    let behind = |partition: u8, records: u8| {
        let labels = format!("consumer=\"records\",topic=\"halved\",partition=\"{partition}\"");
        format!("folkmoot_relay_consumer_lag_records{{{labels}}} {records}")
    };
    let both_are_behind = async |records: u8| {
        shows(&first, &behind(0, records)).await;
        shows(&first, &behind(1, records)).await;
    };
    both_are_behind(2).await;
    let second = relay("halved", &failing).await;
    Listener::recover(&second, "news:x").await.publication().await;
    second.stop().await;
    both_are_behind(2).await;
    backend.makes("halved-failed", 1).await;
    let reading = || reads(&SERVER.host(), "halved-failed", 2);
    for (_, headers) in tokio::task::spawn_blocking(reading).await.expect("it reads") {
        let has = |text: &str| headers.iter().any(|(_, value)| value.contains(text));
        assert!(has("1 of 2 channels are refused"), "{headers:?}");
    }
    both_are_behind(0).await;
    let mut seen = published(&first).await;
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    first.stop().await;
}

#[tokio::test]
async fn what_is_published_is_committed_while_another_topic_is_missing() {
    let backend = Backend::new(&host().await);
    backend.makes("present", 1).await;
    let both = json!({ "topics": ["present", "absent"] });
    let first = relay("present", &both).await;
    let mut listener = Listener::subscribe(&first, &["news:x"]).await;
    for number in 1..=20 {
        backend.writes("present", 0, &publishes("news:x", number)).await;
        assert_eq!(listener.publication().await.1, number);
    }
    first.stop().await;
    let second = relay("present", &both).await;
    let mut listener = Listener::recover(&second, "news:x").await;
    backend.writes("present", 0, &publishes("news:x", 21)).await;
    assert_eq!(listener.publication().await.1, 21, "it was published by the first relay");
    second.stop().await;
}
