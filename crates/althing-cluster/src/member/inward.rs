//! Tells that have come in a bundle: a run of them goes into its actor's mailbox at once.
//!
//! What is not simple, because the actor is not here, its mailbox is full or a message cannot be
//! read, is taken apart into parcels, each of which goes its own way.

use std::sync::Arc;

use althing::ActorId;
use althing::remote::Inlet;

use super::Shared;
use super::short::ROUTES_MAX;
use crate::bucket::bucket_of;
use crate::link::accept::{Peer, Ticket};
use crate::link::bundle::Tells;
use crate::protocol::{Broken, Packed};
use crate::router::Hop;

/// Inlets that are remembered within one turn; to look through more takes longer than to find one.
const INLETS_MAX: usize = 16;

/// What the numbers of routes mean that one other node has told.
#[derive(Default)]
pub(crate) struct Routes(Vec<Option<Arc<Route>>>);

/// Tells of one name for one actor.
pub(crate) struct Route {
    number: u32,
    to: ActorId,
    name: String,
    epoch: u64,
    bucket: Option<u32>,
}

/// Tells of one route, one behind the other.
pub(crate) struct Run<'a> {
    pub(crate) route: &'a Route,
    pub(crate) tells: Tells<'a>,
    pub(crate) count: u64,
}

/// Where tells went in this turn.
#[derive(Default)]
pub(crate) struct Inlets(Vec<(u32, Option<Inlet>)>);

impl Routes {
    /// # Errors
    /// No node has so many routes.
    pub(crate) fn set(
        &mut self,
        number: u32,
        to: ActorId,
        name: String,
        epoch: u64,
    ) -> Result<(), Broken> {
        if number >= ROUTES_MAX {
            let why = format!("the route {number} is above the limit of {ROUTES_MAX}");
            return Err(Broken::Refused(why));
        }
        let place = number as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        let bucket = bucket_of(&to);
        self.0[place] = Some(Arc::new(Route { number, to, name, epoch, bucket }));
        Ok(())
    }

    /// # Errors
    /// It was never told.
    pub(crate) fn get(&self, number: u32) -> Result<Arc<Route>, Broken> {
        let route = self.0.get(number as usize).cloned().flatten();
        route.ok_or_else(|| Broken::Refused(format!("the route {number} was never told")))
    }
}

impl Inlets {
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    fn of(&mut self, route: &Route, find: impl FnOnce() -> Option<Inlet>) -> Option<&Inlet> {
        let known = self.0.iter().position(|(number, _)| *number == route.number);
        let place = known.unwrap_or_else(|| {
            if self.0.len() == INLETS_MAX {
                self.0.clear();
            }
            self.0.push((route.number, find()));
            self.0.len() - 1
        });
        self.0[place].1.as_ref()
    }
}

impl Shared {
    /// Takes a run that the node `from` has sent. The caller has the turn.
    pub(crate) fn take_run(
        self: &Arc<Self>,
        from: Hop,
        peer: &Arc<Peer>,
        inlets: &mut Inlets,
        run: &Run<'_>,
    ) {
        let route = run.route;
        let count = usize::try_from(run.count).unwrap_or(usize::MAX);
        let mut taken = 0;
        if self.is_simple(route) {
            let find = || self.node()?.inlet(&route.to, &route.name);
            let inlet = inlets.of(route, find);
            taken = inlet.map_or(0, |inlet| inlet.tell(run.tells.clone().take(count)));
        }
        if taken > 0 {
            peer.took(taken as u64);
        }
        for body in run.tells.clone().take(count).skip(taken) {
            let packed = Packed {
                epoch: route.epoch,
                to: route.to.clone(),
                node: None,
                name: route.name.clone(),
                body: body.to_vec(),
                priority: 0,
                chain: Vec::new(),
                ask: None,
                control: None,
            };
            self.take(from, packed, Ticket(peer.clone()));
        }
    }

    /// Whether tells may go straight into the mailbox: its bucket is here, and nothing waits beside
    /// it.
    fn is_simple(&self, route: &Route) -> bool {
        let is_here = |bucket| self.core.lock().router.is_for_here(bucket, route.epoch);
        if !route.bucket.is_none_or(is_here) {
            return false;
        }
        let parked = self.parked.lock();
        parked.is_empty() || !parked.contains_key(&route.to)
    }
}
