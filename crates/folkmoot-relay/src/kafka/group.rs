//! This relay as a member of its consumer group: which partitions it has, and what the client
//! library calls back about.
//!
//! A partition that is taken away has finished what it was publishing, and its place is committed,
//! before anybody else gets it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::base_consumer::BaseConsumer;
use rdkafka::consumer::{CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::FutureProducer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use super::partition::Partition;
use super::progress::Progress;
use super::statistics::Statistics;
use super::trouble::{Trouble, Why};
use super::{Kafka, failed};
use crate::metrics::ConsumerMetrics;
use crate::server::Server;
use crate::settings::KafkaSettings;

/// How long a partition may take to finish what it is publishing before it is given away all the
/// same. The group waits for as long; it waits five minutes for a member.
const FINISH_TIMEOUT: Duration = Duration::from_secs(30);

/// A partition by topic and number.
type Name = (Arc<str>, i32);

pub(super) struct Group {
    kafka: Arc<Kafka>,
    pub(super) server: Arc<Server>,
    pub(super) metrics: Arc<ConsumerMetrics>,
    /// Writes records that cannot be published, if there is a topic for them.
    pub(super) failed: Option<FutureProducer>,
    runtime: Handle,
    /// The consumer whose callbacks these are.
    consumer: OnceLock<Weak<BaseConsumer<Group>>>,
    running: Mutex<HashMap<Name, Running>>,
    /// Of all partitions that this process has had: what it published may come again.
    progress: Arc<Progresses>,
    trouble: Arc<Mutex<Option<Trouble>>>,
    /// No partition is begun any more.
    ends: AtomicBool,
}

/// Outlives the consumer, as that may be made anew.
#[derive(Debug, Default)]
pub(super) struct Progresses(Mutex<HashMap<Name, Arc<Mutex<Progress>>>>);

/// The task of a partition.
#[derive(Debug)]
struct Running {
    progress: Arc<Mutex<Progress>>,
    ending: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What all consumers of one reader share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) kafka: Arc<Kafka>,
    pub(super) server: Arc<Server>,
    pub(super) runtime: Handle,
    pub(super) progress: Arc<Progresses>,
    pub(super) trouble: Arc<Mutex<Option<Trouble>>>,
}

impl Group {
    /// # Errors
    /// There is a topic for records that cannot be published, and nothing can be written to it.
    pub(super) fn new(shared: Shared) -> KafkaResult<Self> {
        let Shared { kafka, server, runtime, progress, trouble } = shared;
        let metrics = server.metrics.consumer(&kafka.name);
        let failed = failed::producer(&kafka.settings)?;
        let (running, ends) = (Mutex::default(), AtomicBool::new(false));
        let consumer = OnceLock::new();
        Ok(Self {
            kafka,
            server,
            metrics,
            failed,
            runtime,
            consumer,
            running,
            progress,
            trouble,
            ends,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.kafka.name
    }

    pub(super) fn settings(&self) -> &KafkaSettings {
        &self.kafka.settings
    }

    /// Before the consumer is subscribed: partitions are reached through it.
    pub(super) fn is_of(&self, consumer: &Arc<BaseConsumer<Self>>) {
        let _ = self.consumer.set(Arc::downgrade(consumer));
    }

    /// Records come: what was wrong with the topics is mended. Some may have been fetched before the
    /// brokers went away.
    pub(super) fn hears(&self) {
        if self.trouble.lock().take_if(|it| it.ends_with_records()).is_some() {
            tracing::info!(consumer = self.name(), "Kafka is read again");
        }
    }

    /// Whether a broker answers.
    fn sees(&self, is_answering: bool) {
        let mut trouble = self.trouble.lock();
        if is_answering && trouble.take_if(|it| it.ends_with_an_answer()).is_some() {
            tracing::info!(consumer = self.name(), "Kafka is read again");
        }
        self.metrics.is_up.store(is_answering && trouble.is_none(), Ordering::Relaxed);
    }

    /// Nothing can be read. It is said once, not at each attempt.
    fn is_down(&self, why: Why, error: &str) {
        self.metrics.is_up.store(false, Ordering::Relaxed);
        let mut trouble = self.trouble.lock();
        if Trouble::note(&mut trouble, why, error) {
            tracing::error!(error, consumer = self.name(), "Kafka cannot be read");
        }
    }

    /// Commits places that have moved, of all partitions or of these.
    pub(super) fn commit(
        &self,
        consumer: &BaseConsumer<Self>,
        of: impl Iterator<Item = (Name, Arc<Mutex<Progress>>)>,
        mode: CommitMode,
    ) {
        let mut places = TopicPartitionList::new();
        for ((topic, number), progress) in of {
            let place = match mode {
                CommitMode::Async => progress.lock().ask_commit(),
                // Also one that was asked for: what came of that is not known, and nobody asks again.
                CommitMode::Sync => progress.lock().not_known_committed(),
            };
            if let Some(place) = place {
                let added = places.add_partition_offset(&topic, number, Offset::Offset(place));
                added.expect("a place is no name of one");
            }
        }
        if places.count() == 0 {
            return;
        }
        let committed = consumer.commit(&places, mode);
        // What came of one that nobody waits for is told to `commit_callback`.
        if matches!(mode, CommitMode::Sync) || committed.is_err() {
            self.settle(&committed, &places);
        }
    }

    /// Commits what has moved, without waiting for it.
    pub(super) fn commit_all(&self, consumer: &BaseConsumer<Self>) {
        let of = self.running.lock();
        let of: Vec<_> =
            of.iter().map(|(name, one)| (name.clone(), one.progress.clone())).collect();
        self.commit(consumer, of.into_iter(), CommitMode::Async);
    }

    /// Gives all partitions away, once they have finished.
    pub(super) fn end(&self, consumer: &BaseConsumer<Self>) {
        self.ends.store(true, Ordering::Relaxed);
        let all = std::mem::take(&mut *self.running.lock());
        self.give_away(consumer, all);
    }

    fn give_away(&self, consumer: &BaseConsumer<Self>, partitions: HashMap<Name, Running>) {
        for running in partitions.values() {
            running.ending.send_replace(true);
        }
        let mut finished = Vec::with_capacity(partitions.len());
        // One end for all of them: however many there are, the group does not wait for longer.
        let until = tokio::time::Instant::now() + FINISH_TIMEOUT;
        for (name, Running { progress, task, .. }) in partitions {
            let ended = self.runtime.block_on(async { timeout_at(until, task).await });
            if ended.is_err() {
                let (topic, partition) = &name;
                tracing::warn!(%topic, partition, "a partition is given away while it publishes");
            }
            finished.push((name, progress));
        }
        // Nobody would answer. Whatever else is wrong, with another topic perhaps, is no reason.
        let is_away = self.trouble.lock().as_ref().is_some_and(Trouble::is_away);
        if !is_away {
            self.commit(consumer, finished.iter().cloned(), CommitMode::Sync);
        }
        for ((topic, number), progress) in finished {
            progress.lock().end();
            self.metrics.lag_records.lock().remove(&(topic, number));
        }
    }

    /// Begins with a partition. Its queue is its own before anything is fetched into it.
    fn begin(&self, topic: &str, number: i32) {
        let consumer = self.consumer.get().and_then(Weak::upgrade);
        let Some(consumer) = consumer.filter(|_| !self.ends.load(Ordering::Relaxed)) else {
            return;
        };
        let Some(mut queue) = consumer.split_partition_queue(topic, number) else { return };
        let (told, name) = (Arc::new(Notify::new()), (Arc::<str>::from(topic), number));
        let telling = told.clone();
        queue.set_nonempty_callback(move || telling.notify_one());
        let progress = self.progress.0.lock().entry(name.clone()).or_default().clone();
        progress.lock().begin();
        let (ending, ends) = watch::channel(false);
        let partition = Partition {
            group: consumer.context().clone(),
            source: self.kafka.source(topic, number),
            queue,
            told,
            progress: progress.clone(),
            ending: ends,
        };
        let task = self.runtime.spawn(partition.run());
        self.running.lock().insert(name, Running { progress, ending, task });
    }

    /// What came of a commit.
    fn settle(&self, committed: &KafkaResult<()>, places: &TopicPartitionList) {
        if let Err(error) = committed {
            tracing::debug!(%error, consumer = self.name(), "places were not committed");
        }
        for place in places.elements() {
            let name = (Arc::<str>::from(place.topic()), place.partition());
            let Some(progress) = self.progress.0.lock().get(&name).cloned() else { continue };
            let is_committed = committed.is_ok() && place.error().is_ok();
            let Offset::Offset(offset) = place.offset() else { continue };
            if !is_committed {
                progress.lock().not_committed();
                continue;
            }
            progress.lock().committed(offset);
            if let Some(ledger) = &self.server.ledger {
                let source = self.kafka.source(place.topic(), place.partition());
                ledger.advance(&source, offset.cast_unsigned());
            }
        }
    }
}

impl ConsumerContext for Group {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => {
                for one in partitions.elements() {
                    self.begin(one.topic(), one.partition());
                }
                tracing::info!(
                    consumer = self.name(),
                    partitions = partitions.count(),
                    "reads partitions of Kafka"
                );
            }
            Rebalance::Revoke(partitions) => {
                let mut running = self.running.lock();
                let name = |topic: &str, number| (Arc::<str>::from(topic), number);
                let taken = partitions.elements();
                let taken = taken
                    .iter()
                    .filter_map(|one| running.remove_entry(&name(one.topic(), one.partition())));
                let taken: HashMap<_, _> = taken.collect();
                drop(running);
                self.give_away(consumer, taken);
            }
            Rebalance::Error(error) => self.is_down(Why::Other, &error.to_string()),
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, places: &TopicPartitionList) {
        self.settle(&result, places);
    }
}

impl ClientContext for Group {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, text: &str) {
        tracing::debug!(consumer = self.name(), facility, "{text}");
    }

    fn stats_raw(&self, json: &[u8]) {
        let Some(statistics) = Statistics::read(json) else { return };
        self.sees(statistics.is_up());
        let mut lag = self.metrics.lag_records.lock();
        for ((topic, number), running) in &*self.running.lock() {
            let Some(extent) = statistics.extent(topic, *number) else { continue };
            let next = running.progress.lock().next().or(extent.committed);
            // A partition of which nothing was committed may begin anywhere.
            let Some(next) = next else { continue };
            let behind = extent.end.saturating_sub(next).max(0).cast_unsigned();
            lag.insert((topic.clone(), *number), behind);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            // One connection; when none is left, that is told too.
            Some(RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve) => {
                tracing::debug!(%error, reason, consumer = self.name(), "a broker is away");
            }
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                self.is_down(Why::Away, "no broker can be reached");
            }
            Some(RDKafkaErrorCode::SSL) => {
                self.metrics.refused_tls.fetch_add(1, Ordering::Relaxed);
                self.is_down(Why::Refused, &format!("TLS: {reason}"));
            }
            Some(RDKafkaErrorCode::Authentication) => {
                self.metrics.refused_sasl.fetch_add(1, Ordering::Relaxed);
                self.is_down(Why::Refused, &format!("SASL: {reason}"));
            }
            _ => self.is_down(Why::Other, &format!("{error}: {reason}")),
        }
    }
}
