//! What the router decides, done: items go on links, parcels to actors, news to whoever waits.
//!
//! The order of items on a link is decided under the lock of `Core`, and so are they queued. What
//! runs foreign code, a reply or a delivery, is done after the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::Waker;

use althing::remote::{Cargo, Control, Parcel, Reply};
use althing::{ActorId, AskError, Incarnation, StopReason};

use super::pack::{Owed, pack, unpack};
use super::short::Routes;
use super::topics::News;
use super::{Shared, moves};
use crate::bucket::{bucket_of, is_bucket};
use crate::label;
use crate::link::accept::Ticket;
use crate::link::dial::{self, Link, Written};
use crate::protocol::{self, Item, Outcome, Packed};
use crate::record::{Member, Record};
use crate::relay::Relay;
use crate::roster::{Key, Roster};
use crate::router::{Effect, Hop, Load, Router};
use crate::waiters::Waiters;

/// A parcel on its way; if another node has sent it, with the room that it takes on that node's
/// link. So what waits here is bounded, however long it does.
pub(super) type Carried = (Parcel, Option<Ticket>);

/// The part of a member that is behind one lock.
pub(super) struct Core {
    pub(super) router: Router<Carried>,
    /// A few: to compare numbers is cheaper than to hash one.
    pub(super) links: BTreeMap<u64, Arc<Link>>,
    asks: HashMap<u64, Asked>,
    next_ask: u64,
    /// Actors of other nodes that actors of this one watch.
    watched: HashMap<ActorId, Watched>,
    /// Senders that wait for room.
    pub(super) waiting: Waiters,
    pub(super) relay: Relay,
    pub(super) roster: Roster,
    pub(super) short: Routes,
}

/// An ask that was sent to another node.
struct Asked {
    of: u64,
    id: ActorId,
    reply: Reply,
}

/// An actor of another node that is watched.
struct Watched {
    at: u64,
    /// Of the last watch.
    number: u64,
}

/// What is to be done after the lock.
#[derive(Default)]
pub(super) struct Later {
    deliveries: Vec<Carried>,
    own_deliveries: Vec<Parcel>,
    failures: Vec<(Reply, AskError)>,
    departing: Vec<(u32, u64)>,
    settling: Vec<u32>,
    wakers: Vec<Waker>,
    /// A link that got something to write.
    link: Option<Arc<Link>>,
    /// What topics of this node are to hear, in order.
    pub(super) news: Vec<News>,
    /// Members of groups that may have come or gone.
    grouped: Vec<(Key, ActorId)>,
}

impl Core {
    pub(super) fn new(me: u64, frame_len_max: usize) -> Self {
        Self {
            router: Router::new(me),
            links: BTreeMap::new(),
            asks: HashMap::new(),
            next_ask: 1,
            watched: HashMap::new(),
            waiting: Waiters::default(),
            relay: Relay::new(frame_len_max),
            roster: Roster::default(),
            short: Routes::default(),
        }
    }

    fn view(&self) -> u64 {
        self.router.record().view
    }

    /// Does what the router decided, as far as that must be done under the lock.
    fn obey(&mut self, effects: Vec<Effect<Carried>>, len_max: usize, later: &mut Later) {
        for effect in effects {
            match effect {
                Effect::Transmit { to, load: Load::Parcel(epoch, (parcel, _)), .. } => {
                    self.transmit(to, parcel, epoch, len_max, later);
                }
                Effect::Transmit { to, bucket, load: Load::Marker { origin, token, epoch } } => {
                    self.push(to, Item::Marker { bucket, origin, token, epoch }, len_max);
                }
                Effect::Flushed { to, bucket, token } => {
                    self.push(to, Item::Flushed { bucket, token }, len_max);
                }
                Effect::Deliver { parcel } => later.deliveries.push(parcel),
                Effect::Lose { parcel: (parcel, _) } => {
                    let why = AskError::NodeLost(parcel.to.clone());
                    later.fail(parcel, why);
                }
                Effect::Refuse { parcel: (parcel, _) } => {
                    later.refuse(parcel, self.router.record())
                }
                Effect::Depart { buckets } => later.departing.extend(buckets),
                Effect::Settle { buckets } => later.settling.extend(buckets),
                Effect::Closed { to } => self.push(to, Item::Closed, len_max),
                Effect::Gone { node } => self.lose(node, later),
            }
        }
    }

    pub(super) fn push(&self, to: u64, item: Item, len_max: usize) {
        if let Some(link) = self.links.get(&to) {
            // These are short.
            _ = link.push(self.view(), item, len_max);
            link.wake();
        }
    }

    /// Sends a parcel to a node.
    fn transmit(&mut self, to: u64, parcel: Parcel, epoch: u64, len_max: usize, later: &mut Later) {
        let id = parcel.to.clone();
        let Some(link) = self.links.get(&to).cloned() else {
            return later.fail(parcel, AskError::NodeLost(id));
        };
        match &parcel.cargo {
            Cargo::Control(Control::Watch { number, .. }) => self.watch(&id, to, *number),
            Cargo::Control(Control::Unwatch { number, .. }) => self.watch_no_more(&id, *number),
            _ => {}
        }
        let (mut packed, reply) = pack(parcel, epoch);
        let ask = reply.is_some().then_some(self.next_ask);
        self.next_ask += 1;
        packed.ask = ask;
        match link.push(self.view(), Item::Parcel(packed), len_max) {
            Ok(written) => {
                if written == Written::BySender
                    && let Some(other) = later.link.replace(link)
                {
                    other.wake();
                }
                if let (Some(ask), Some(reply)) = (ask, reply) {
                    self.asks.insert(ask, Asked { of: to, id, reply });
                }
            }
            Err(len) => {
                let why = format!("a message of {len} bytes is longer than a frame may be");
                tracing::warn!(actor = %id, len, "a message for another node is too long");
                if let Some(reply) = reply {
                    later.failures.push((reply, AskError::NotUnderstood(id, why)));
                }
            }
        }
    }

    fn watch(&mut self, id: &ActorId, at: u64, number: u64) {
        let last = self.watched.get(id).map_or(0, |watched| watched.number);
        self.watched.insert(id.clone(), Watched { at, number: number.max(last) });
    }

    /// The watches up to that number are over.
    fn watch_no_more(&mut self, id: &ActorId, until: u64) {
        if self.watched.get(id).is_some_and(|watched| watched.number <= until) {
            self.watched.remove(id);
        }
    }

    /// A node is no member any more.
    fn lose(&mut self, node: u64, later: &mut Later) {
        if let Some(link) = self.links.remove(&node) {
            link.close();
        }
        for (_, Asked { id, reply, .. }) in self.asks.extract_if(|_, asked| asked.of == node) {
            later.failures.push((reply, AskError::NodeLost(id)));
        }
        for (to, Watched { number, .. }) in self.watched.extract_if(|_, it| it.at == node) {
            let cargo = Cargo::Control(Control::Ended { reason: StopReason::NodeLost, number });
            later.deliveries.push((Parcel { to, node: None, cargo }, None));
        }
    }

    /// Everybody is lost, because this node is.
    pub(super) fn lose_all(&mut self) -> Later {
        let mut later = Later::default();
        let nodes: Vec<_> = self.links.keys().copied().collect();
        for node in nodes {
            self.lose(node, &mut later);
        }
        later.deliveries.clear();
        let effects = self.relay.follow(BTreeMap::new());
        self.obey_relay(effects, 0, &mut later);
        let effects = self.roster.follow(&BTreeSet::new());
        later.grouped = self.obey_roster(effects, 0);
        later
    }
}

impl Later {
    fn fail(&mut self, parcel: Parcel, why: AskError) {
        if let Cargo::Message(message) = parcel.cargo
            && let Some(reply) = message.reply
        {
            self.failures.push((reply, why));
        }
    }

    /// No node may have the actor, for the labels that its kind asks for.
    fn refuse(&mut self, parcel: Parcel, record: &Record) {
        let id = parcel.to.clone();
        match &parcel.cargo {
            Cargo::Control(Control::Watch { number, .. }) => {
                let (reason, number) = (StopReason::NodeLost, *number);
                let cargo = Cargo::Control(Control::Ended { reason, number });
                self.deliveries.push((Parcel { to: id, node: None, cargo }, None));
            }
            Cargo::Message(message) if message.reply.is_none() => {
                let why = label::nobody_has(id.clone(), record);
                tracing::warn!(actor = %id, "a tell is lost: {why}");
            }
            _ => self.fail(parcel, label::nobody_has(id, record)),
        }
    }
}

impl Shared {
    /// Takes a newer record.
    pub(super) fn follow(self: &Arc<Self>, record: Record) {
        let mut later = Later::default();
        let mut core = self.core.lock();
        if record.view <= core.view() {
            return;
        }
        let me = self.me();
        for member in &record.members {
            let who = member.incarnation;
            if who != me && !core.links.contains_key(&who) {
                let link = Arc::new(Link::new(member));
                core.links.insert(who, link.clone());
                self.handle.spawn(dial::run(self.clone(), link));
            }
        }
        let old = core.router.record().clone();
        // An actor is watched where it has lived last, though the word of that may not be there
        // yet; one that came here since is watched elsewhere no more.
        core.watched.retain(|id, Watched { at, .. }| {
            let Some(bucket) = bucket_of(id) else { return true };
            let owner = old.holding(bucket).owner.filter(|owner| *owner != me);
            *at = owner.unwrap_or(*at);
            owner.is_some()
        });
        let record = Arc::new(record);
        let others = record.members.iter().filter(|member| member.incarnation != me);
        let frame = |member: &Member| usize::try_from(member.frame_len_max).unwrap_or(usize::MAX);
        let others: BTreeMap<_, _> =
            others.map(|member| (member.incarnation, frame(member))).collect();
        let effects = core.roster.follow(&others.keys().copied().collect());
        later.grouped = core.obey_roster(effects, self.config.frame_len_max);
        let effects = core.relay.follow(others);
        core.obey_relay(effects, self.config.frame_len_max, &mut later);
        let effects = core.router.follow(record.clone());
        core.obey(effects, self.config.frame_len_max, &mut later);
        later.wakers.append(&mut core.waiting.take());
        drop(core);
        self.peers.lock().retain(|who, _| record.member(*who).is_some());
        self.view.send_replace(record.view);
        if let Some(node) = self.node() {
            let misplaced = node.relocate();
            tracing::debug!(view = record.view, misplaced = misplaced.len(), "a new record");
        }
        self.finish(later);
    }

    /// Sends what an actor of this node sends.
    pub(super) fn dispatch(self: &Arc<Self>, parcel: Parcel) {
        let mut later = Later::default();
        let mut core = self.core.lock();
        let len_max = self.config.frame_len_max;
        match (parcel.node, bucket_of(&parcel.to)) {
            (Some(Incarnation(node)), _) => self.send_to(&mut core, node, parcel, &mut later),
            (None, Some(bucket)) => match core.router.send(bucket, (parcel, None)) {
                Some(Effect::Deliver { parcel: (parcel, _) }) => later.own_deliveries.push(parcel),
                Some(Effect::Transmit { to, load: Load::Parcel(epoch, (parcel, _)), .. }) => {
                    core.transmit(to, parcel, epoch, len_max, &mut later);
                }
                effect => core.obey(effect.into_iter().collect(), len_max, &mut later),
            },
            (None, None) => {
                let origin = parcel.to.origin().map_or(0, |(node, _)| node.0);
                self.send_to(&mut core, origin, parcel, &mut later);
            }
        }
        drop(core);
        self.finish(later);
    }

    fn send_to(&self, core: &mut Core, node: u64, parcel: Parcel, later: &mut Later) {
        if node == self.me() {
            later.own_deliveries.push(parcel);
        } else {
            core.transmit(node, parcel, 0, self.config.frame_len_max, later);
        }
    }

    /// Handles what another node sent.
    pub(crate) fn handle(self: &Arc<Self>, from: Hop, item: Item, ticket: Ticket) {
        match item {
            Item::Parcel(packed) => self.take(from, packed, ticket),
            Item::Reply { ask, outcome } => self.answer(from.node, ask, outcome),
            Item::Marker { bucket, .. } | Item::Flushed { bucket, .. } if !is_bucket(bucket) => {}
            Item::Marker { bucket, origin, token, epoch } => {
                let marker = Load::Marker { origin, token, epoch };
                self.step(|core| core.router.receive(from, bucket, marker));
            }
            Item::Flushed { bucket, token } => {
                self.step(|core| core.router.flushed(bucket, token));
            }
            Item::Closing => self.step(|core| core.router.closing(from.node)),
            Item::Closed => self.farewell.lock().closed(from.node),
            Item::Group(entry) => self.hear_of_group(from.node, &entry),
            item => self.handle_topic(from.node, item),
        }
    }

    pub(super) fn take(self: &Arc<Self>, from: Hop, packed: Packed, ticket: Ticket) {
        let (shared, epoch) = (self.clone(), packed.epoch);
        let parcel = unpack(packed, |ask| {
            let owed = Owed::new(&self.owed);
            Box::new(move |outcome| {
                shared.reply(from.node, ask, outcome);
                drop(owed);
            })
        });
        let is_for_this_node = parcel.node.is_some();
        if let Cargo::Control(Control::Ended { reason, number }) = &parcel.cargo {
            // What is merely unloaded is watched on.
            let is_unloaded = *reason == StopReason::Passivated && parcel.to.key().is_some();
            let watches = || self.node().is_some_and(|node| node.watches(&parcel.to));
            if !(is_unloaded && watches()) {
                // All are meant by a node that knows no numbers.
                let until = if *number == 0 { u64::MAX } else { *number };
                self.core.lock().watch_no_more(&parcel.to, until);
            }
        }
        match bucket_of(&parcel.to) {
            Some(bucket) if !is_for_this_node => {
                let mut core = self.core.lock();
                if core.router.is_for_here(bucket, epoch) {
                    drop(core);
                    return self.deliver(parcel, Some(ticket));
                }
                let load = Load::Parcel(epoch, (parcel, Some(ticket)));
                let effects = core.router.receive(from, bucket, load);
                drop(core);
                let mut rest = Vec::new();
                for effect in effects {
                    match effect {
                        Effect::Deliver { parcel: (parcel, ticket) } => {
                            self.deliver(parcel, ticket);
                        }
                        other => rest.push(other),
                    }
                }
                self.step(|_| rest);
            }
            _ => self.deliver(parcel, Some(ticket)),
        }
    }

    pub(super) fn step(self: &Arc<Self>, step: impl FnOnce(&mut Core) -> Vec<Effect<Carried>>) {
        let mut later = Later::default();
        let mut core = self.core.lock();
        let effects = step(&mut core);
        if effects.is_empty() {
            return;
        }
        core.obey(effects, self.config.frame_len_max, &mut later);
        later.wakers.append(&mut core.waiting.take());
        drop(core);
        self.finish(later);
    }

    /// Does what was put off until the lock was free.
    pub(super) fn finish(self: &Arc<Self>, later: Later) {
        let Later { deliveries, own_deliveries, failures, departing, settling, .. } = later;
        let Later { wakers, link, news, grouped, .. } = later;
        if let Some(link) = link {
            link.flush(|| self.is_serving());
        }
        wakers.into_iter().for_each(Waker::wake);
        for (reply, why) in failures {
            reply(Err(why));
        }
        own_deliveries.into_iter().for_each(|parcel| self.deliver_own(parcel));
        for (parcel, ticket) in deliveries {
            self.deliver(parcel, ticket);
        }
        news.into_iter().for_each(|news| self.tell_topic(news));
        self.show_all(&grouped);
        if !settling.is_empty() {
            self.settle(&settling);
        }
        if !departing.is_empty() {
            self.handle.spawn(moves::depart(self.clone(), departing));
        }
    }

    /// Sends the reply of an ask that came from another node.
    fn reply(&self, to: u64, ask: u64, outcome: Result<Vec<u8>, AskError>) {
        let outcome = match outcome {
            Ok(reply) => Outcome::Replied(reply),
            Err(AskError::ReplyTooLong(_, why)) => Outcome::Failed(protocol::reply_too_long(why)),
            Err(why) => Outcome::Failed(why),
        };
        let core = self.core.lock();
        let Some(link) = core.links.get(&to).cloned() else { return };
        let len_max = self.config.frame_len_max;
        if let Err(len) = link.push(core.view(), Item::Reply { ask, outcome }, len_max) {
            let why = format!("a reply of {len} bytes is longer than a frame may be");
            let outcome = Outcome::Failed(protocol::reply_too_long(why));
            _ = link.push(core.view(), Item::Reply { ask, outcome }, len_max);
        }
        drop(core);
        link.flush(|| self.is_serving());
    }

    /// Takes the reply of an ask that was sent to another node.
    fn answer(&self, from: u64, ask: u64, outcome: Outcome) {
        let asked = {
            let mut core = self.core.lock();
            // Only who was asked may answer.
            match core.asks.get(&ask) {
                Some(asked) if asked.of == from => core.asks.remove(&ask),
                _ => None,
            }
        };
        let Some(asked) = asked else { return };
        (asked.reply)(match outcome {
            Outcome::Replied(reply) => Ok(reply),
            Outcome::Failed(why) => Err(protocol::heard(why, asked.id)),
        });
    }

    /// Has senders that wait for room look again.
    pub(crate) fn wake_senders(&self) {
        let waiting = self.core.lock().waiting.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}
