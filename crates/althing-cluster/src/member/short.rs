//! The short way of a tell: from the sender's thread straight into the bytes of a link.
//!
//! A route is a number that stands for an actor, a message and an epoch on the way to one node. It
//! is told to that node by an item of its own, which goes before the first tell that uses it; what
//! it meant before is forgotten there. So both sides agree on its meaning as long as items arrive
//! once and in order, which links promise.
//!
//! Only what is told again and again gets a route. A tell to an actor that was not told a moment ago
//! goes as a parcel.

use std::task::Context;

use althing::ActorId;
use althing::remote::{Taken, Told};
use althing::stable_hash::mix;

use super::Shared;
use super::routes::Core;
use crate::bucket::bucket_of;
use crate::link::dial::Written;
use crate::protocol::Item;

/// Routes at one time; a number below it takes two bytes at most.
pub(crate) const ROUTES_MAX: u32 = 1_024;

/// Routes of this node, on all its links; one of them is on one link only. Empty until the first.
#[derive(Default)]
pub(super) struct Routes(Vec<Option<Route>>);

struct Route {
    address: u64,
    message: &'static str,
    to: ActorId,
    bucket: Option<u32>,
    /// The node and the epoch for which it was told.
    told: Option<(u64, u64)>,
}

impl Routes {
    /// The route of a tell and its number; none if the last tell that fell on it was another one.
    fn find(&mut self, told: &Told<'_>) -> Option<(u32, &mut Route)> {
        if self.0.is_empty() {
            self.0.resize_with(ROUTES_MAX as usize, || None);
        }
        // Addresses have consecutive numbers: those of one message do not meet.
        let spot = told.address().wrapping_add(mix(told.message.as_ptr() as u64));
        let number = u32::try_from(spot % u64::from(ROUTES_MAX)).ok()?;
        let slot = &mut self.0[number as usize];
        let is_it = |route: &Route| {
            route.address == told.address() && std::ptr::eq(route.message, told.message)
        };
        if !slot.as_ref().is_some_and(is_it) {
            let to = told.to();
            let (bucket, told_to) = (bucket_of(&to), None);
            let (address, message) = (told.address(), told.message);
            *slot = Some(Route { address, message, to, bucket, told: told_to });
            return None;
        }
        slot.as_mut().map(|route| (number, route))
    }
}

impl Shared {
    /// Does what `poll_room` and `send` do, for a tell of which that is known to be simple.
    pub(super) fn tell(&self, told: &Told<'_>, cx: &mut Context<'_>) -> Taken {
        let len_max = self.config.frame_len_max;
        let mut core = self.core.lock();
        let Core { router, links, waiting, short, .. } = &mut *core;
        let Some((number, route)) = short.find(told) else { return Taken::AsParcelOnly };
        let way = match route.bucket {
            Some(bucket) => router.hop(bucket),
            None => route.to.origin().map(|(node, _)| (node.0, 0)),
        };
        let Some((to, epoch)) = way else { return Taken::AsParcelOnly };
        let Some(link) = links.get(&to) else { return Taken::AsParcelOnly };
        if link.is_crowded() {
            waiting.add(cx.waker());
            return Taken::NoRoom;
        }
        if !link.takes(told.body.len(), len_max) {
            return Taken::AsParcelOnly;
        }
        let view = router.record().view;
        if route.told != Some((to, epoch)) {
            let (to, name) = (route.to.clone(), told.message.to_owned());
            if link.push(view, Item::Route { route: number, to, name, epoch }, len_max).is_err() {
                return Taken::AsParcelOnly;
            }
            route.told = Some((link.to, epoch));
        }
        if link.push_tell(view, number, told.body) == Written::BySender {
            let link = link.clone();
            drop(core);
            link.flush(|| self.is_serving());
        }
        Taken::Sent
    }
}
