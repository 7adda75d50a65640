//! The seed that all nodes of a world agree on: the first one says it, and it is kept.

use std::sync::Arc;

use althing::{ActorError, Start, Wire, actor};
use althing_store::{Saved, State};

use super::realm::Realm;

/// Name of the only one.
pub(super) const WORLD: &str = "world";

#[derive(Debug, Default, Wire)]
pub(super) struct Seed {
    pub(super) seed: Option<u64>,
}

impl State for Seed {}

pub(super) struct SeedActor {
    saved: Saved<Seed>,
}

impl SeedActor {
    pub(super) async fn load(start: Start<Self>, realm: Arc<Realm>) -> Result<Self, ActorError> {
        Ok(Self { saved: Saved::load(realm.store.clone(), &start).await? })
    }
}

#[actor(name = "hunt.seed", wire, durable = saved)]
impl SeedActor {
    /// The world's seed: this one, if there was none.
    pub(super) async fn agree(&mut self, seed: u64) -> u64 {
        match self.saved.seed {
            Some(seed) => seed,
            None => {
                self.saved.seed = Some(seed);
                seed
            }
        }
    }
}
