//! Records that cannot be published: the log and the metrics tell of each, and a topic has them with
//! the reason, if the operator named one. They stay where they were, too, for as long as Kafka keeps
//! them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use folkmoot_protocol::rpc::RpcError;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::sync::watch;
use tokio::time::timeout;

use super::client;
use super::group::Group;
use crate::settings::KafkaSettings;

/// How long the brokers may take for one record before it is tried again.
const TIMEOUT_MS: u32 = 10_000;
/// Between two attempts to write one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A producer for the topic, if there is one.
pub(super) fn producer(settings: &KafkaSettings) -> Option<FutureProducer> {
    if settings.failed_topic.is_empty() {
        return None;
    }
    let mut config = client::common(settings);
    config.set("enable.idempotence", "true").set("message.timeout.ms", TIMEOUT_MS.to_string());
    let made = config.create();
    made.inspect_err(|error| tracing::error!(%error, "nothing can be written to failed_topic")).ok()
}

/// Keeps a record where people find it; those behind it wait, and must not come again. Returns
/// whether that was done before the partition ended.
pub(super) async fn set_aside(
    group: &Group,
    record: &BorrowedMessage<'_>,
    error: &RpcError,
    ending: &mut watch::Receiver<bool>,
) -> bool {
    let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
    let consumer = group.name();
    if let Some(producer) = &group.failed {
        let reason = error.message.as_str();
        while let Err(failed) = write(group, producer, record, reason).await {
            let text = "a record could not be set aside yet";
            tracing::warn!(error = %failed, %consumer, topic, partition, offset, "{text}");
            let _ = timeout(RETRY_AFTER, ending.wait_for(|ends| *ends)).await;
            if *ending.borrow() {
                return false;
            }
        }
    }
    tracing::warn!(%error, %consumer, topic, partition, offset, "a record was set aside");
    group.metrics.set_aside_rows.fetch_add(1, Ordering::Relaxed);
    true
}

async fn write(
    group: &Group,
    producer: &FutureProducer,
    record: &BorrowedMessage<'_>,
    reason: &str,
) -> Result<(), rdkafka::error::KafkaError> {
    let (partition, offset) = (record.partition().to_string(), record.offset().to_string());
    let own = [
        ("folkmoot-error", reason),
        ("folkmoot-topic", record.topic()),
        ("folkmoot-partition", &partition),
        ("folkmoot-offset", &offset),
    ];
    let mut headers = OwnedHeaders::new();
    for header in record.headers().into_iter().flat_map(Headers::iter) {
        headers = headers.insert(header);
    }
    for (key, value) in own {
        headers = headers.insert(Header { key, value: Some(value) });
    }
    let mut copy = FutureRecord::to(&group.settings().failed_topic).headers(headers);
    copy.key = record.key();
    copy.payload = record.payload();
    producer.send(copy, Duration::ZERO).await.map(drop).map_err(|(error, _)| error)
}
