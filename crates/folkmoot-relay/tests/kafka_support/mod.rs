//! Topics of a real Kafka, and a backend that writes to them.

#![allow(dead_code)] // Not every test uses all of it.

use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

/// Only turns a promise that is never kept into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request without an answer is made again after this.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A backend.
pub(crate) struct Backend {
    producer: FutureProducer,
    admin: AdminClient<DefaultClientContext>,
}

impl Backend {
    pub(crate) fn new(host: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", host);
        let admin = config.create().expect("a client");
        // A record without an answer is written again, and is there once.
        config.set("enable.idempotence", "true").set("message.timeout.ms", "60000");
        config.set("reconnect.backoff.max.ms", "500").set("linger.ms", "1");
        Self { producer: config.create().expect("a client"), admin }
    }

    pub(crate) async fn makes(&self, topic: &str, partitions: i32) {
        self.makes_of(NewTopic::new(topic, partitions, TopicReplication::Fixed(1))).await;
    }

    /// Makes a topic with one partition that takes no longer records.
    pub(crate) async fn makes_narrow(&self, topic: &str, record_bytes_max: &str) {
        let topic = NewTopic::new(topic, 1, TopicReplication::Fixed(1));
        self.makes_of(topic.set("max.message.bytes", record_bytes_max)).await;
    }

    async fn makes_of(&self, topic: NewTopic<'_>) {
        // A server that has just begun may lose a request that it should pass on to itself.
        let options = AdminOptions::new().request_timeout(Some(ANSWER_MAX));
        let began = Instant::now();
        loop {
            let made = self.admin.create_topics([&topic], &options).await;
            let made = made.map(|mut made| made.pop().expect("one was asked for"));
            match made {
                Ok(Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => return,
                _ => assert!(began.elapsed() < PATIENCE, "no topic: {made:?}"),
            }
        }
    }

    /// Writes a record; returns once it is there.
    pub(crate) async fn writes(&self, topic: &str, partition: i32, value: &str) {
        self.writes_with(topic, partition, value, &[]).await;
    }

    /// Writes a record with headers.
    pub(crate) async fn writes_with(
        &self,
        topic: &str,
        partition: i32,
        value: &str,
        headers: &[(&str, &str)],
    ) {
        let mut all = OwnedHeaders::new();
        for &(key, value) in headers {
            all = all.insert(Header { key, value: Some(value) });
        }
        let record = FutureRecord::<(), _>::to(topic).partition(partition).payload(value);
        let written = self.producer.send(record.headers(all), PATIENCE).await;
        written.expect("Kafka takes it");
    }

    /// Begins to write a record, behind all that were begun before.
    pub(crate) fn begins(&self, topic: &str, partition: i32, value: &str) -> DeliveryFuture {
        let mut record = FutureRecord::<(), _>::to(topic).partition(partition).payload(value);
        loop {
            match self.producer.send_result(record) {
                Ok(written) => return written,
                // The queue is full.
                Err((_, again)) => record = again,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A record that publishes a number.
pub(crate) fn publishes(channel: &str, number: u64) -> String {
    format!(r#"{{"method": "publish", "payload": {{"channel": "{channel}", "data": {number}}}}}"#)
}

/// Records of a topic with one partition, from its beginning: their values and headers.
pub(crate) fn reads(host: &str, topic: &str, len: usize) -> Vec<(String, Vec<(String, String)>)> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", host)
        .set("group.id", "reads")
        .set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().expect("a client");
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(topic, 0, Offset::Beginning).expect("a place");
    consumer.assign(&places).expect("it is assigned");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let until = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while records.len() < len {
        assert!(Instant::now() < until, "of {len} records only {} are there", records.len());
        let Some(Ok(record)) = consumer.poll(Duration::from_millis(100)) else { continue };
        let headers = record.headers().into_iter().flat_map(Headers::iter);
        let headers = headers.map(|one| (one.key.to_owned(), text(one.value.unwrap_or_default())));
        records.push((text(record.payload().unwrap_or_default()), headers.collect()));
    }
    records
}
