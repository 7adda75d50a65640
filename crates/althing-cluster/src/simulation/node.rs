//! One node of the simulation: what the drivers and the runtime do, in few lines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use althing::ActorId;

use super::checks::Sent;
use crate::bucket::bucket_of;
use crate::farewell::Farewell;
use crate::label::Labels;
use crate::lease::{Lease, Timing};
use crate::link::{Incoming, Outgoing};
use crate::member::seeds::Seeds;
use crate::placement::{self, Placement};
use crate::record::Record;
use crate::router::{Effect, Hop, Load, Router, Standing, Waited};

/// Messages in a mailbox; few, so that it is full now and then.
const MAILBOX_MAX: usize = 3;

/// How long actors take to stop, at most.
const STOPS_MS: u64 = 300;

/// Candidates for being the authority.
pub(super) const SEATS: usize = 3;

/// The node that takes part as a guest.
pub(super) const GUEST: &str = "guest";

/// What some buckets that are sent to ask for.
const LABEL: &str = "disk=ssd";

/// What crosses a link.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Load(u32, Load<Sent>),
    Flushed { bucket: u32, token: u64 },
    Closing,
    Closed,
}

/// An item on its way: its number on the link, and its sender's view.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) number: u64,
    pub(super) view: u64,
    pub(super) item: Item,
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
    mailbox: VecDeque<Sent>,
    /// What waits for room in the mailbox.
    beside: VecDeque<Sent>,
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
    pub(super) places: BTreeMap<u32, Place>,
    pub(super) released: BTreeMap<u32, u64>,
    /// Buckets that somebody wants on a certain node.
    pub(super) pinned: BTreeMap<u32, u64>,
    sent: BTreeMap<u32, u64>,
    pub(super) paused_until: u64,
    pub(super) leaves: bool,
    /// It gives all away and stays.
    pub(super) is_drained: bool,
    /// How long its actors take to stop, at most.
    pub(super) stops_ms: u64,
    /// The view with which it became a member.
    pub(super) since: u64,
    /// The latest view that it names when it asks to join.
    pub(super) known: u64,
    pub(super) seeds: Seeds,
    /// The candidate that it asks, and when that was heard of last.
    pub(super) asks: usize,
    pub(super) heard: u64,
    farewell: Farewell,
    pub(super) says_goodbye: bool,
    /// Buckets whose actors are to stop.
    pub(super) departing: Vec<Vec<(u32, u64)>>,
    /// What was refused because no node had its labels.
    pub(super) refused: Vec<Sent>,
    /// What was queued on any link; a link's frame is an index here.
    frames: Vec<Frame>,
}

/// A bucket that asks for the label.
pub(super) fn labelled_bucket(key: &str) -> u32 {
    bucket_of(&ActorId::named(&format!("simulated@{LABEL}"), key)).expect("it has a name")
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
            pinned: BTreeMap::new(),
            sent: BTreeMap::new(),
            paused_until: 0,
            leaves: false,
            is_drained: false,
            stops_ms: STOPS_MS,
            since: 0,
            known: 0,
            seeds: Seeds::new((0..SEATS).map(|seat| seat.to_string()).collect()),
            asks: 0,
            heard: 0,
            farewell: Farewell::default(),
            says_goodbye: false,
            departing: Vec::new(),
            refused: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Nothing lives on it. Every life of a node has its name, and so its role.
    pub(super) fn is_guest(&self) -> bool {
        self.name == GUEST
    }

    /// What it says of labels. Half of the nodes have the one that some buckets ask for, also in their
    /// next lives.
    pub(super) fn labels(&self) -> Labels {
        let has_it = !self.is_guest() && self.name.bytes().last().is_some_and(|last| last % 2 == 0);
        let own = if has_it { vec![LABEL.to_owned()] } else { Vec::new() };
        Labels { own, asked: vec![LABEL.to_owned()] }
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

    /// An actor of this node sends to one of that bucket; `None` if there are none any more.
    pub(super) fn send_next(&mut self, bucket: u32) -> Option<Sent> {
        if self.router.record().member(self.me).is_none() || self.says_goodbye {
            return None;
        }
        let number = self.sent.entry(bucket).or_default();
        *number += 1;
        let sent = Sent { from: self.me, bucket, number: *number };
        self.send(sent);
        Some(sent)
    }

    fn send(&mut self, sent: Sent) {
        let place = self.place(sent.bucket);
        if !place.is_away {
            place.mailbox.push_back(sent);
            return;
        }
        match self.router.send(sent.bucket, sent) {
            Some(Effect::Deliver { parcel }) => {
                // It has waited for room already.
                _ = self.try_deliver(parcel, usize::MAX);
            }
            effect => self.obey(effect.into_iter().collect()),
        }
    }

    fn place(&mut self, bucket: u32) -> &mut Place {
        let is_away = !matches!(self.router.standing(bucket), Standing::Here(_));
        self.places.entry(bucket).or_insert_with(|| Place { is_away, ..Place::default() })
    }

    pub(super) fn handle(&mut self, from: Hop, item: Item) {
        let effects = match item {
            Item::Load(bucket, load) => self.router.receive(from, bucket, load),
            Item::Flushed { bucket, token } => self.router.flushed(bucket, token),
            Item::Closing => self.router.closing(from.node),
            Item::Closed => return self.farewell.closed(from.node),
        };
        self.obey(effects);
    }

    fn obey(&mut self, effects: Vec<Effect<Sent>>) {
        for effect in effects {
            match effect {
                Effect::Transmit { to, bucket, load } => self.push(to, Item::Load(bucket, load)),
                Effect::Flushed { to, bucket, token } => {
                    self.push(to, Item::Flushed { bucket, token });
                }
                Effect::Deliver { parcel } => self.deliver(parcel),
                Effect::Depart { buckets } => self.departing.push(buckets),
                Effect::Settle { buckets } => {
                    buckets.into_iter().for_each(|bucket| self.settle(bucket));
                    self.relocate();
                }
                // Its sender is told so.
                Effect::Lose { .. } => {}
                Effect::Refuse { parcel } => {
                    let candidates = Placement::new(&self.router.record().members);
                    let winner = candidates.candidates(parcel.bucket).winner(parcel.bucket);
                    assert_eq!(winner, None, "{} refuses what another node may run", self.me);
                    self.refused.push(parcel);
                }
                Effect::Closed { to } => self.push(to, Item::Closed),
                Effect::Gone { node } => {
                    self.out.remove(&node);
                    self.into.remove(&node);
                }
            }
        }
    }

    fn push(&mut self, to: u64, item: Item) {
        let Some(out) = self.out.get_mut(&to) else { return };
        let at = self.frames.len() as u64;
        let (frames, view) = (&mut self.frames, self.router.record().view);
        let pushed = out.push(8, |number, bytes| {
            frames.push(Frame { number, view, item });
            bytes.extend(at.to_be_bytes());
        });
        pushed.expect("each is eight bytes long");
    }

    /// The next frames to write on the connection to a node.
    pub(super) fn take(&mut self, to: u64) -> Option<Vec<Frame>> {
        let out = self.out.get_mut(&to)?;
        let part = out.part()?;
        out.wrote(&part, part.bytes().len());
        let at = |bytes: &[u8; 8]| usize::try_from(u64::from_be_bytes(*bytes)).expect("small");
        let (frames, _) = part.bytes().as_chunks::<8>();
        Some(frames.iter().map(|bytes| self.frames[at(bytes)].clone()).collect())
    }

    /// From another node: into the mailbox, or beside it while that is full.
    fn deliver(&mut self, sent: Sent) {
        if !self.place(sent.bucket).beside.is_empty() {
            self.place(sent.bucket).beside.push_back(sent);
        } else if let Some(sent) = self.try_deliver(sent, MAILBOX_MAX) {
            self.place(sent.bucket).beside.push_back(sent);
        }
    }

    /// As the runtime does: a mailbox takes it, is full, or says that the actor lives elsewhere.
    fn try_deliver(&mut self, sent: Sent, len_max: usize) -> Option<Sent> {
        let standing = self.router.standing(sent.bucket);
        let place = self.place(sent.bucket);
        if place.is_away && standing == Standing::Elsewhere {
            let effect = self.router.send_on(sent.bucket, sent, Waited::Beside);
            self.obey(effect.into_iter().collect());
            return None;
        }
        if place.mailbox.len() >= len_max {
            return Some(sent);
        }
        place.mailbox.push_back(sent);
        None
    }

    /// Delivers what waits beside full mailboxes.
    fn unpark(&mut self) {
        let buckets: Vec<u32> =
            self.places.keys().copied().filter(|bucket| self.is_parked(*bucket)).collect();
        for bucket in buckets {
            while let Some(sent) = self.place(bucket).beside.pop_front() {
                if let Some(sent) = self.try_deliver(sent, MAILBOX_MAX) {
                    self.place(bucket).beside.push_front(sent);
                    break;
                }
            }
            self.settle(bucket);
            self.relocate();
        }
    }

    fn is_parked(&self, bucket: u32) -> bool {
        self.places.get(&bucket).is_some_and(|place| !place.beside.is_empty())
    }

    fn settle(&mut self, bucket: u32) {
        while !self.is_parked(bucket) {
            let effects = self.router.settle(bucket);
            if effects.is_empty() {
                break;
            }
            self.obey(effects);
        }
    }

    /// What a node that leaves does once it owns nothing.
    pub(super) fn leave(&mut self) {
        let record = self.router.record().clone();
        if !self.leaves || !placement::has_given_all(&record, self.me) {
            return;
        }
        for other in self.farewell.begin(self.me, &record) {
            self.push(other, Item::Closing);
        }
        let has_sent_all = self.out.values().all(Outgoing::is_empty);
        // Who has said it does not take it back.
        self.says_goodbye |=
            self.farewell.is_over(&record) && self.router.is_idle() && has_sent_all;
    }

    pub(super) fn life(&self, bucket: u32) -> Option<u64> {
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
        self.unpark();
        ran
    }

    /// An actor that has nothing to do goes from memory.
    pub(super) fn unload(&mut self, bucket: u32) {
        let place = self.place(bucket);
        if place.mailbox.is_empty() {
            place.life = None;
            self.relocate();
        }
    }

    /// The actors of these buckets have stopped: what waited goes after them.
    pub(super) fn departed(&mut self, buckets: &[(u32, u64)]) {
        for (bucket, epoch) in buckets {
            if let Some(place) = self.places.get_mut(bucket) {
                place.life = None;
                place.is_away = true;
                for sent in std::mem::take(&mut place.mailbox) {
                    let effect = self.router.send_on(*bucket, sent, Waited::Inside);
                    self.obey(effect.into_iter().collect());
                }
            }
            self.released.insert(*bucket, *epoch);
        }
        self.unpark();
        let effects = self.router.departed(buckets);
        self.obey(effects);
    }
}
