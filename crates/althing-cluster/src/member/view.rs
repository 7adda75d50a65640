//! What a node knows of its cluster, for people.

use althing::Incarnation;

use super::{Role, Shared};
use crate::record::{Holding, Member, Stage};

/// What a node knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Rises with each change.
    pub number: u64,
    /// All members, this node among them.
    pub members: Vec<Neighbour>,
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// This life of it.
    pub incarnation: Incarnation,
    /// Where it is reached.
    pub address: String,
    /// Whether actors live on it.
    pub role: Role,
    /// What it says of itself: `MemberConfig::labels`, sorted.
    pub labels: Vec<String>,
    /// Whether it gives its buckets away.
    pub is_leaving: bool,
    /// How many buckets it owns, of the 4,096 and of those for kinds that ask for labels.
    pub buckets: usize,
    /// How many are on their way to it.
    pub arriving: usize,
    /// How many of those that it owns are on their way to others.
    pub departing: usize,
}

impl Shared {
    /// What the node knows of the cluster.
    pub(super) fn sight(&self) -> View {
        let record = self.core.lock().router.record().clone();
        let neighbour = |member: &Member| {
            let who = member.incarnation;
            let count = |is: &dyn Fn(&Holding) -> bool| {
                record.holdings().filter(|(_, holding)| is(holding)).count()
            };
            Neighbour {
                name: member.name.clone(),
                incarnation: Incarnation(who),
                address: member.address.clone(),
                role: if member.stage == Stage::Guest { Role::Guest } else { Role::Host },
                labels: member.labels.own.clone(),
                is_leaving: member.stage == Stage::Leaving,
                buckets: record.owned_by(who),
                arriving: count(&|holding| holding.going_to == Some(who)),
                departing: count(&|holding| {
                    holding.owner == Some(who) && holding.going_to.is_some()
                }),
            }
        };
        View { number: record.view, members: record.members.iter().map(neighbour).collect() }
    }
}
