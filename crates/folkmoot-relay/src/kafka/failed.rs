//! Records that cannot be published: the log and the metrics tell of each, and a topic has them with
//! the reason, if the operator named one. They stay where they were, too, for as long as Kafka keeps
//! them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use folkmoot_protocol::rpc::RpcError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::sync::watch;
use tokio::time::timeout;

use super::client;
use super::group::Group;
use crate::settings::KafkaSettings;

/// How long the brokers may take for one record before it is tried again.
const TIMEOUT_MS: u32 = 10_000;
/// How long a record may be for the library, which takes no more: what is read has come so far, and
/// with the headers that are added it may be longer than what it lets pass by default.
const RECORD_BYTES_MAX: u32 = 1_000_000_000;
/// Between two attempts to write one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A producer for the topic, if there is one. Without it, records would go nowhere that were to be
/// kept.
pub(super) fn producer(settings: &KafkaSettings) -> Result<Option<FutureProducer>, KafkaError> {
    if settings.failed_topic.is_empty() {
        return Ok(None);
    }
    let mut config = client::common(settings);
    config
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", TIMEOUT_MS.to_string())
        .set("message.max.bytes", RECORD_BYTES_MAX.to_string());
    config.create().map(Some)
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
        let mut part = Part::All;
        while let Err(failed) = write(group, producer, record, reason, part).await {
            if part == Part::All && is_too_large(&failed) {
                // It would be refused for ever, and all behind it would wait for that.
                part = Part::WithoutValue;
                continue;
            }
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

/// What of a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    /// The topic takes none so long: it says where the record was, and how long its value is.
    WithoutValue,
}

fn is_too_large(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge)
}

async fn write(
    group: &Group,
    producer: &FutureProducer,
    record: &BorrowedMessage<'_>,
    reason: &str,
    part: Part,
) -> Result<(), KafkaError> {
    let (partition, offset) = (record.partition().to_string(), record.offset().to_string());
    let value_bytes = record.payload_len().to_string();
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
    if part == Part::WithoutValue {
        let left_out = Header { key: "folkmoot-value-bytes", value: Some(&value_bytes) };
        headers = headers.insert(left_out);
    }
    let mut copy = FutureRecord::to(&group.settings().failed_topic).headers(headers);
    copy.key = record.key();
    copy.payload = record.payload().filter(|_| part == Part::All);
    producer.send(copy, Duration::ZERO).await.map(drop).map_err(|(error, _)| error)
}
