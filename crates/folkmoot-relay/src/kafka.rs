//! Kafka as a source: records of topics are commands of the server API, or data that headers say
//! the channels of. A backend writes them, or whatever it has that writes to Kafka already.
//!
//! Records of one partition are published in their order, partitions beside each other. A place in
//! a partition is committed once all before it are published or set aside, so nothing is lost; what
//! comes again after a lost connection or a SIGKILL is recognised, in this process by what it has
//! published since the last commit, and in durable channels by what is on disk.
//!
//! The client is librdkafka. A thread of its own (`reader`) serves it, because its calls block; each
//! partition is a task.

mod client;
mod failed;
mod group;
mod partition;
mod progress;
mod reader;
mod record;
mod statistics;
mod trouble;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::server::Server;
use crate::settings::{ConsumerSettings, KafkaSettings, SettingsError};
use reader::Reader;

/// Topics that are to be published.
#[derive(Debug)]
pub(crate) struct Kafka {
    name: Arc<str>,
    settings: KafkaSettings,
}

impl Kafka {
    pub(crate) fn new(consumer: ConsumerSettings) -> Result<Self, SettingsError> {
        let ConsumerSettings { name, kafka: settings, .. } = consumer;
        let wrong = client::wrong(&settings);
        if let Some(text) = wrong {
            return Err(SettingsError::Invalid(format!("consumer `{name}`: kafka.{text}")));
        }
        Ok(Self { name: name.into(), settings })
    }

    /// By which records of a partition are recognised on disk and by other nodes. With the consumer's
    /// name: another one may have the same group and topic on another cluster.
    fn source(&self, topic: &str, partition: i32) -> Arc<str> {
        let group = &self.settings.consumer_group;
        format!("kafka/{}/{group}/{topic}/{partition}", self.name).into()
    }

    /// Publishes until the server stops; a task among `tasks` ends with it.
    pub(crate) fn start(self, server: &Arc<Server>, tasks: &mut JoinSet<()>) {
        let (ending, ended) = oneshot::channel::<()>();
        let name = format!("kafka {}", self.name);
        let reader = Reader::new(self, server.clone(), tokio::runtime::Handle::current());
        let run = move || {
            reader.run();
            drop(ending);
        };
        let started = std::thread::Builder::new().name(name).spawn(run);
        started.expect("the system has a thread left");
        tasks.spawn(async move {
            // An error is how it ends.
            let _ = ended.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn records_of_one_group_and_topic_on_two_clusters_are_told_apart() {
        let consumer = |name: &str, broker: &str| {
            let text = format!(
                "[[consumers]]\nname = '{name}'\ntype = 'kafka'\n[consumers.kafka]\n\
                 brokers = ['{broker}']\ntopics = ['orders']\nconsumer_group = 'folkmoot'"
            );
            Kafka::new(Settings::from_toml(&text).unwrap().consumers.remove(0)).unwrap()
        };
        let sources = [("east", "10.0.0.1:9092"), ("west", "10.0.0.2:9092")]
            .map(|(name, broker)| consumer(name, broker).source("orders", 0));
        assert_ne!(sources[0], sources[1]);
    }
}
