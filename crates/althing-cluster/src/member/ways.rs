//! What the node asks of its cluster. It answers from memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use althing::remote::{Cluster, Location, NotMoved, Parcel, Taken, Told, TopicWay};
use althing::{ActorId, Epoch, Incarnation, Node, TopicName};

use super::pack::body_len_max;
use super::routes::Core;
use super::{MoveError, Shared, moves, topics};
use crate::bucket::bucket_of;
use crate::record::{Holding, Stage};
use crate::router::{Standing, Waited};

/// Parcels held for one bucket that changes hands from which on senders wait.
const HELD_MAX: usize = 1_024;

/// As a type of its own: parcels need the `Arc`.
pub(super) struct Way(pub(super) Arc<Shared>);

impl Cluster for Way {
    fn locate(&self, id: &ActorId) -> Location {
        let Some(bucket) = bucket_of(id) else {
            let is_mine = id.origin().is_some_and(|(node, _)| node.0 == self.0.me());
            return if is_mine { Location::Here(Epoch(0)) } else { Location::Elsewhere };
        };
        match self.0.core.lock().router.standing(bucket) {
            Standing::Here(epoch) => Location::Here(Epoch(epoch)),
            Standing::Arriving(epoch) => Location::Arriving(Epoch(epoch)),
            Standing::Elsewhere => Location::Elsewhere,
        }
    }

    fn poll_room(&self, to: &ActorId, cx: &mut Context<'_>) -> Poll<()> {
        let mut core = self.0.core.lock();
        let bucket = bucket_of(to);
        let hop = match bucket {
            Some(bucket) => core.router.next_hop(bucket),
            None => to.origin().map(|(node, _)| node.0),
        };
        let is_crowded = match hop.and_then(|hop| core.links.get(&hop)) {
            Some(link) => link.is_crowded(),
            None => bucket.is_some_and(|bucket| core.router.held(bucket) >= HELD_MAX),
        };
        if !is_crowded {
            return Poll::Ready(());
        }
        core.waiting.add(cx.waker());
        Poll::Pending
    }

    fn longest(&self, to: &ActorId) -> usize {
        let core = self.0.core.lock();
        // While a bucket moves, what is sent now comes to its next owner.
        let hops = match bucket_of(to) {
            Some(bucket) => {
                let Holding { owner, going_to, .. } = core.router.record().holding(bucket);
                [owner, going_to]
            }
            None => [to.origin().map(|(node, _)| node.0), None],
        };
        let links = hops.into_iter().flatten().filter_map(|hop| core.links.get(&hop));
        let len_max =
            links.map(|link| link.len_max()).fold(self.0.config.frame_len_max, usize::min);
        body_len_max(to, len_max)
    }

    fn longest_anywhere(&self, to: &ActorId) -> usize {
        let core = self.0.core.lock();
        let members = core.router.record().members.iter();
        let hosts = members.filter(|member| member.stage != Stage::Guest);
        let reads = hosts.map(|host| usize::try_from(host.frame_len_max).unwrap_or(usize::MAX));
        body_len_max(to, reads.fold(self.0.config.frame_len_max, usize::min))
    }

    fn tell(&self, told: &Told<'_>, cx: &mut Context<'_>) -> Taken {
        self.0.tell(told, cx)
    }

    fn send(&self, parcel: Parcel) {
        self.0.dispatch(parcel);
    }

    fn send_on(&self, parcel: Parcel) {
        let _turn = self.0.turn.lock();
        self.0.send_on(parcel, Waited::Inside);
    }

    fn topic(
        &self,
        topic: &TopicName,
        event: &'static str,
        replay: usize,
    ) -> Option<Arc<dyn TopicWay>> {
        topics::open(&self.0, topic, event, replay)
    }

    fn has(&self, node: Incarnation) -> bool {
        self.0.is_member(node.0)
    }

    fn move_to(&self, id: &ActorId, node: &str) -> Result<(), NotMoved> {
        let asked = moves::ask_for(&self.0, id, node);
        asked.map(|_| ()).map_err(|why| match why {
            MoveError::Anonymous(id) => NotMoved::Stays(id),
            MoveError::LacksLabels { id, node, labels } => {
                NotMoved::LacksLabels { id, node, labels }
            }
            MoveError::UnknownNode(_) | MoveError::Overridden | MoveError::Left => {
                NotMoved::UnknownNode(node.to_owned())
            }
        })
    }

    fn built(&self, node: &Node) {
        let me = node.incarnation().0;
        if self.0.node.set(node.downgrade()).is_ok() {
            self.0.me.store(me, Ordering::Release);
            *self.0.core.lock() = Core::new(me, self.0.config.frame_len_max);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                _ = self.0.runtime.set(runtime);
            }
        }
    }
}
