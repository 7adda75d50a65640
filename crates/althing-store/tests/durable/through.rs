//! A store that passes everything on to one in memory, but for the calls in which a test has it
//! differ.

use std::ops::Deref;
use std::sync::Arc;

use althing::{ActorId, Epoch, Timestamp};
use althing_store::{Answer, Delivery, Event, Kept, Mark, Memory, Settled, Store, Turn};

/// What is done otherwise.
pub(crate) trait Differs: Send + Sync + 'static {
    fn commit(&self, memory: &Memory, turn: Turn) -> Answer<()> {
        memory.commit(turn)
    }

    fn left_before(
        &self,
        memory: &Memory,
        names: Vec<(ActorId, String)>,
        limit: usize,
    ) -> Answer<Vec<Delivery>> {
        memory.left_before(names, limit)
    }

    fn settle(&self, memory: &Memory, settled: Vec<Settled>) -> Answer<()> {
        memory.settle(settled)
    }
}

/// See the module. It is used like what differs.
#[derive(Default)]
pub(crate) struct Through<D> {
    pub(crate) memory: Arc<Memory>,
    differs: D,
}

impl<D: Default> Through<D> {
    pub(crate) fn before(memory: Arc<Memory>) -> Self {
        Self { memory, differs: D::default() }
    }
}

impl<D> Deref for Through<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.differs
    }
}

impl<D: Differs> Store for Through<D> {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.memory.open(id, epoch)
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        self.differs.commit(&self.memory, turn)
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.memory.events(id, after, limit)
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        self.memory.due(until, after, limit)
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        self.differs.left_before(&self.memory, names, limit)
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        self.differs.settle(&self.memory, settled)
    }
}
