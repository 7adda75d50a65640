//! The thread that serves the client library: its callbacks run here, and places are committed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::consumer::Consumer;
use rdkafka::consumer::base_consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Kafka;
use super::client;
use super::group::{Group, Progresses, Shared};
use crate::server::Server;

/// How long the library is asked for callbacks at once, and so how soon a stop is noticed.
const POLL: Duration = Duration::from_millis(50);
/// How often places are committed that have moved.
const COMMIT_EVERY: Duration = Duration::from_millis(200);
/// Between two consumers, if one had to be given up, which doubles.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

pub(super) struct Reader {
    shared: Shared,
    stopping: watch::Receiver<bool>,
}

impl Reader {
    pub(super) fn new(kafka: Kafka, server: Arc<Server>, runtime: Handle) -> Self {
        let stopping = server.stopping();
        let (progress, trouble) = (Arc::new(Progresses::default()), Arc::new(Mutex::default()));
        let shared = Shared { kafka: Arc::new(kafka), server, runtime, progress, trouble };
        Self { shared, stopping }
    }

    /// Publishes until the server stops, with as many consumers one after the other as it takes.
    pub(super) fn run(mut self) {
        let mut pause = RETRY_MIN;
        while !*self.stopping.borrow() {
            let began = Instant::now();
            let Err(error) = self.follow() else { return };
            let consumer = &self.shared.kafka.name;
            tracing::error!(%error, %consumer, "the consumer of Kafka is made anew");
            if began.elapsed() > RETRY_MAX {
                pause = RETRY_MIN;
            }
            let waited =
                async { timeout(pause, self.stopping.wait_for(|stops| *stops)).await.is_ok() };
            self.shared.runtime.clone().block_on(waited);
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Publishes with one consumer, until the server stops or the library gives the consumer up.
    fn follow(&self) -> Result<(), KafkaError> {
        let settings = &self.shared.kafka.settings;
        let group = Group::new(self.shared.clone())?;
        let consumer: Arc<BaseConsumer<Group>> =
            Arc::new(client::config(settings).create_with_context(group)?);
        let group = consumer.context().clone();
        group.is_of(&consumer);
        let topics: Vec<&str> = settings.topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics)?;
        let served = self.serve(&consumer, &group);
        group.end(&consumer);
        served
    }

    fn serve(&self, consumer: &BaseConsumer<Group>, group: &Group) -> Result<(), KafkaError> {
        let mut commit_at = Instant::now();
        while !*self.stopping.borrow() {
            match consumer.poll(POLL) {
                // Errors are told to the group.
                None | Some(Err(_)) => {}
                // Its partition has a queue of its own, so none comes this way. If one does, it comes
                // again to the next consumer, because nothing behind it was committed.
                Some(Ok(_)) => return Err(KafkaError::NoMessageReceived),
            }
            if let Some((code, _)) = consumer.client().fatal_error() {
                return Err(KafkaError::MessageConsumptionFatal(code));
            }
            if Instant::now() >= commit_at {
                group.commit_all(consumer);
                commit_at = Instant::now() + COMMIT_EVERY;
            }
        }
        Ok(())
    }
}
