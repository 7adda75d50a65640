//! A durable counter that keeps who added, in a journal under the fence of its epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use althing::{ActorError, Start, Wire, actor};
use althing_store::{Fold, Journaled, RequestId, Retention, State, Store};

use crate::diary::Diary;

/// How many counters there are; enough that each node has some.
pub(crate) const COUNTERS: u64 = 12;

pub(crate) const KIND: &str = "chaos.counter";

pub(crate) fn name(number: u64) -> String {
    format!("counter-{number}")
}

/// One addition, as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) struct Entry {
    pub(crate) sender: String,
    /// The sender's number, which rises for each counter; for a request, which one it is.
    pub(crate) number: u64,
    /// Empty without one.
    pub(crate) request: String,
    pub(crate) epoch: u64,
    /// The life of the node that wrote it.
    pub(crate) life: String,
}

/// How many entries there are.
#[derive(Default, Wire)]
pub(crate) struct Count {
    value: u64,
}

impl State for Count {
    // More than one counter gets in that time, so that a request that comes late is known.
    const REPLIES: Retention = Retention { within: Duration::from_secs(600), replies_max: 5_000 };
}

impl Fold for Count {
    type Event = Entry;

    fn apply(&mut self, _: Entry) {
        self.value += 1;
    }
}

pub(crate) struct Counter {
    journal: Journaled<Count>,
    name: String,
    epoch: u64,
    /// Tells the activations of one life apart.
    serial: u64,
    diary: Arc<Diary>,
}

impl Counter {
    /// Loads the counter for the activation that begins.
    ///
    /// # Errors
    /// The store refuses or fails.
    pub(crate) async fn load(
        start: Start<Self>,
        store: Arc<dyn Store>,
        diary: Arc<Diary>,
    ) -> Result<Self, ActorError> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let journal = Journaled::load(store, &start).await?;
        let (name, epoch) = (start.key().to_owned(), start.activation().epoch.0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        diary.opened(&name, epoch, serial);
        Ok(Self { journal, name, epoch, serial, diary })
    }

    fn count(&mut self, sender: String, number: u64, request: String) -> (u64, u64) {
        let (epoch, life) = (self.epoch, self.diary.life().to_owned());
        self.journal.record(Entry { sender, number, request, epoch, life });
        (self.journal.value, epoch)
    }
}

#[actor(name = "chaos.counter", wire, durable = journal)]
impl Counter {
    /// Adds one; returns the value and the epoch in which it was added. With a request it does so
    /// once.
    pub(crate) async fn add(&mut self, sender: String, number: u64, request: String) -> (u64, u64) {
        self.diary.ran(&self.name, self.epoch, self.serial);
        if request.is_empty() {
            return self.count(sender, number, request);
        }
        let id = RequestId::new(request.clone());
        if let Some(reply) = self.journal.post().replied(&id) {
            return reply;
        }
        let reply = self.count(sender, number, request);
        self.journal.post().reply(&id, &reply);
        reply
    }

    /// Returns the value and the epoch.
    pub(crate) async fn look(&self) -> (u64, u64) {
        self.diary.ran(&self.name, self.epoch, self.serial);
        (self.journal.value, self.epoch)
    }
}
