//! One partition: takes records as they come, publishes them, and says how far that is.

use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::rpc::RpcError;
use parking_lot::Mutex;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::message::{BorrowedMessage, Message};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::group::Group;
use super::progress::Progress;
use super::{failed, record};
use crate::api::publish::Asked;
use crate::durable::RowKey;
use crate::feed;

/// Values that are published together; the record with which they exceed it is among them.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Between two attempts to publish what cannot be published just now, which doubles.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How often the queue is looked at without being told.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Partition {
    pub(super) group: Arc<Group>,
    /// By which its records are recognised on disk.
    pub(super) source: Arc<str>,
    pub(super) queue: PartitionQueue<Group>,
    /// Told when the queue has something.
    pub(super) told: Arc<Notify>,
    pub(super) progress: Arc<Mutex<Progress>>,
    /// Turns true when the partition is given away, or the server stops.
    pub(super) ending: watch::Receiver<bool>,
}

/// A record with what it is recognised by.
struct Taken<'queue> {
    record: BorrowedMessage<'queue>,
    key: RowKey,
}

impl Partition {
    /// Publishes until it is told to end. What is being published then is finished.
    pub(super) async fn run(self) {
        let mut ending = self.ending.clone();
        while !*ending.borrow() {
            let taken = self.take();
            if taken.is_empty() {
                tokio::select! {
                    _ = timeout(LOOK_EVERY, self.told.notified()) => {}
                    _ = ending.wait_for(|ends| *ends) => {}
                }
                continue;
            }
            self.group.hears();
            self.publish(&taken, &mut ending).await;
        }
    }

    /// What is there, as far as it is published together.
    fn take(&self) -> Vec<Taken<'_>> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        let len_max = self.group.settings().max_poll_records;
        while taken.len() < len_max && bytes < HELD_BYTES_MAX {
            let Some(polled) = self.queue.poll(Duration::ZERO) else { break };
            // An error was told where all errors are.
            let Ok(record) = polled else { continue };
            bytes += record.payload_len();
            let (id, part) = (record.offset().cast_unsigned(), record::hash(&record));
            let key = RowKey { source: self.source.clone(), id, part };
            taken.push(Taken { record, key });
        }
        taken
    }

    /// Publishes records, as often as it takes, unless the partition ends in between.
    async fn publish(&self, mut taken: &[Taken<'_>], ending: &mut watch::Receiver<bool>) {
        let mut pause = RETRY_MIN;
        while !taken.is_empty() && !*ending.borrow() {
            let done = self.publish_once(taken, ending).await;
            taken = &taken[done..];
            if taken.is_empty() {
                return;
            }
            if done > 0 {
                pause = RETRY_MIN;
            }
            let _ = timeout(pause, ending.wait_for(|ends| *ends)).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Publishes up to the first record that must be tried again; returns how many have passed.
    async fn publish_once(&self, taken: &[Taken<'_>], ending: &mut watch::Receiver<bool>) -> usize {
        let asked = taken.iter().map(|one| self.read(one)).collect();
        let server = &self.group.server;
        // Without a limit of time: what is given up here in the middle would be published again.
        let outcomes = feed::publish_asked(server, &self.group.metrics, asked).await;
        self.note(taken, &outcomes);
        for (passed, (one, outcome)) in taken.iter().zip(outcomes).enumerate() {
            match outcome {
                Ok(()) => {}
                // Nothing of this partition may overtake it.
                Err(error) if error.code.is_temporary() => return passed,
                Err(error) => {
                    if !failed::set_aside(&self.group, &one.record, &error, ending).await {
                        return passed;
                    }
                }
            }
            self.progress.lock().pass(one.record.offset());
        }
        taken.len()
    }

    /// Notes what is published before anything of it is set aside, which may be cut off: it must not
    /// be published again then, nor must what was published with it.
    fn note(&self, taken: &[Taken<'_>], outcomes: &[Result<(), RpcError>]) {
        let mut progress = self.progress.lock();
        for (one, outcome) in taken.iter().zip(outcomes) {
            if outcome.as_ref().is_err_and(|error| error.code.is_temporary()) {
                return;
            }
            progress.is_out(one.record.offset(), one.key.part, outcome);
        }
    }

    /// What a record asks for. Of one that was published before, nothing is left, or it is refused as
    /// it was then.
    fn read(&self, one: &Taken<'_>) -> Result<Asked, RpcError> {
        let outcome = self.progress.lock().outcome(one.record.offset(), one.key.part);
        if let Some(outcome) = outcome {
            return outcome.map(|()| Asked::nothing());
        }
        let server = &self.group.server;
        let mut asked = record::read(server, self.group.settings(), &one.record, &one.key)?;
        if server.hub.nodes().is_some() {
            // By its content, too: a topic that was made anew has the same places again.
            asked.name_by(&one.key);
        }
        Ok(asked)
    }
}
