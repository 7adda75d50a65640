//! One node of the simulation: what the drivers and the runtime do, in few lines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::checks::Sent;
use crate::lease::{Lease, Timing};
use crate::link::{Incoming, Outgoing};
use crate::record::Record;
use crate::router::{Effect, Load, Router, Standing};

/// What crosses a link.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Load(u16, Load<Sent>),
    Flushed { bucket: u16, token: u64, epoch: u64 },
}

/// A node's own clock: where it began and how fast it runs.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) offset_ms: u64,
    /// Thousandths.
    pub(super) rate: u64,
}

impl Clock {
    pub(super) fn read(self, now_ms: u64) -> Duration {
        Duration::from_millis(self.offset_ms + now_ms * self.rate / 1_000)
    }
}

/// An actor's place: its mailbox, and whether senders of this node push into it.
#[derive(Default)]
pub(super) struct Place {
    pub(super) mailbox: VecDeque<Sent>,
    is_away: bool,
    /// The epoch of the life in memory.
    pub(super) life: Option<u64>,
}

pub(super) struct Node {
    pub(super) me: u64,
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) lease: Lease,
    pub(super) router: Router<Sent>,
    pub(super) out: BTreeMap<u64, Outgoing>,
    pub(super) into: BTreeMap<u64, Incoming>,
    pub(super) places: BTreeMap<u16, Place>,
    pub(super) released: BTreeMap<u16, u64>,
    pub(super) sent: BTreeMap<u16, u64>,
    pub(super) paused_until: u64,
    pub(super) leaves: bool,
    /// Buckets whose actors are to stop.
    pub(super) departing: Vec<Vec<(u16, u64)>>,
    /// Frames that were queued, by the number of the item in the world's table.
    pub(super) items: Vec<(u64, Item)>,
    numbers: BTreeMap<(u64, u64), u64>,
}

impl Node {
    pub(super) fn new(me: u64, name: String, clock: Clock, timing: Timing) -> Self {
        Self {
            me,
            name,
            clock,
            lease: Lease::new(timing),
            router: Router::new(me),
            out: BTreeMap::new(),
            into: BTreeMap::new(),
            places: BTreeMap::new(),
            released: BTreeMap::new(),
            sent: BTreeMap::new(),
            paused_until: 0,
            leaves: false,
            departing: Vec::new(),
            items: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    pub(super) fn is_serving(&self, now_ms: u64) -> bool {
        self.clock.read(now_ms) < self.lease.until()
    }

    pub(super) fn follow(&mut self, record: Record) {
        if record.view <= self.router.record().view {
            return;
        }
        for member in &record.members {
            if member.incarnation != self.me {
                self.out.entry(member.incarnation).or_default();
            }
        }
        let record = Arc::new(record);
        let effects = self.router.follow(record.clone());
        self.obey(effects);
        self.out.retain(|who, _| record.member(*who).is_some());
        self.into.retain(|who, _| record.member(*who).is_some());
        self.relocate();
    }

    /// An actor of this node sends to one of that bucket.
    pub(super) fn send(&mut self, sent: Sent) {
        let standing = self.router.standing(sent.bucket);
        let place = self.places.entry(sent.bucket).or_insert_with(|| Place {
            is_away: !matches!(standing, Standing::Here(_)),
            ..Place::default()
        });
        if place.is_away {
            let effect = self.router.send(sent.bucket, sent);
            self.obey(effect.into_iter().collect());
        } else {
            place.mailbox.push_back(sent);
        }
    }

    pub(super) fn handle(&mut self, from: u64, item: Item) {
        let effects = match item {
            Item::Load(bucket, load) => self.router.receive(bucket, load),
            Item::Flushed { bucket, token, epoch } => {
                self.router.flushed(from, bucket, token, epoch)
            }
        };
        self.obey(effects);
    }

    fn obey(&mut self, effects: Vec<Effect<Sent>>) {
        for effect in effects {
            match effect {
                Effect::Transmit { to, bucket, load } => self.push(to, Item::Load(bucket, load)),
                Effect::Flushed { to, bucket, token, epoch } => {
                    self.push(to, Item::Flushed { bucket, token, epoch });
                }
                Effect::Deliver { parcel } => self.deliver(parcel),
                Effect::Depart { buckets } => self.departing.push(buckets),
                Effect::Settle { buckets } => {
                    for bucket in buckets {
                        loop {
                            let effects = self.router.settle(bucket);
                            if effects.is_empty() {
                                break;
                            }
                            self.obey(effects);
                        }
                    }
                    self.relocate();
                }
                Effect::Gone { node } => {
                    self.out.remove(&node);
                    self.into.remove(&node);
                }
            }
        }
    }

    fn push(&mut self, to: u64, item: Item) {
        let Some(out) = self.out.get_mut(&to) else { return };
        let at = self.items.len() as u64;
        self.items.push((self.router.record().view, item));
        self.numbers.insert((to, at), out.number());
        out.push(Arc::from(at.to_be_bytes()));
    }

    /// As the runtime does: a mailbox takes it, or says that the actor lives elsewhere.
    fn deliver(&mut self, sent: Sent) {
        match self.router.standing(sent.bucket) {
            Standing::Elsewhere if self.life(sent.bucket).is_none() => {
                let effects = self.router.receive(sent.bucket, Load::Parcel(sent));
                self.obey(effects);
            }
            standing => {
                let place = self.places.entry(sent.bucket).or_insert_with(|| Place {
                    is_away: !matches!(standing, Standing::Here(_)),
                    ..Place::default()
                });
                place.mailbox.push_back(sent);
            }
        }
    }

    /// Which number an item has on the link to a node.
    pub(super) fn number_of(&self, to: u64, at: u64) -> Option<u64> {
        self.numbers.get(&(to, at)).copied()
    }

    fn life(&self, bucket: u16) -> Option<u64> {
        self.places.get(&bucket).and_then(|place| place.life)
    }

    fn relocate(&mut self) {
        for (bucket, place) in &mut self.places {
            match self.router.standing(*bucket) {
                Standing::Here(_) => place.is_away = false,
                Standing::Arriving(_) | Standing::Elsewhere
                    if place.life.is_none() && place.mailbox.is_empty() =>
                {
                    place.is_away = true;
                }
                _ => {}
            }
        }
    }

    /// The next message of each mailbox runs; returns what ran and in which epoch.
    pub(super) fn run(&mut self) -> Vec<(Sent, u64)> {
        let mut ran = Vec::new();
        for (bucket, place) in &mut self.places {
            let epoch = match (place.life, self.router.standing(*bucket)) {
                (Some(epoch), _) => epoch,
                (None, Standing::Here(epoch) | Standing::Arriving(epoch)) => epoch,
                (None, Standing::Elsewhere) => continue,
            };
            if let Some(sent) = place.mailbox.pop_front() {
                place.life = Some(epoch);
                ran.push((sent, epoch));
            }
        }
        ran
    }

    /// The actors of these buckets have stopped: what waited goes after them.
    pub(super) fn departed(&mut self, buckets: &[(u16, u64)]) {
        for (bucket, epoch) in buckets {
            let is_away = self.router.standing(*bucket) == Standing::Elsewhere;
            if let Some(place) = self.places.get_mut(bucket) {
                place.life = None;
                if is_away {
                    place.is_away = true;
                    for sent in std::mem::take(&mut place.mailbox) {
                        let effect = self.router.send(*bucket, sent);
                        self.obey(effect.into_iter().collect());
                    }
                }
            }
            self.released.insert(*bucket, *epoch);
        }
    }
}
