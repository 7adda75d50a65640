//! Everything that the actors and clients of one running program share.
//!
//! The only strong addresses of actors are in the slots here, so that an actor's memory can be seen
//! to go once its slot is emptied. Causes are written down before they act: whoever sees the effect
//! finds the cause.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use althing::{ActorError, ActorId, ActorRef, Group, Node, Sequence, Subscription, Topic, WeakRef};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::ledger::Books;
use crate::message::Event;
use crate::program::{Birth, Flavour, Program};
use crate::puppet::Puppet;
use crate::records::{
    DROPPED, Entry, IDLED, Known, Mail, NOT_STARTED, Purpose, RETURNED, SENDERS_MAX, Violation,
    Wait,
};
use crate::sending::CountWakes;
use crate::streams::KeptStream;

/// The target of a message that a group hands to whom it likes.
pub(crate) const ANYONE: usize = usize::MAX;
/// Instructions that one run performs at most: programs whose messages multiply end.
const FUEL: i64 = 600;

/// One place for an actor.
pub(crate) struct Slot {
    pub(crate) actor: Mutex<Option<ActorRef<Puppet>>>,
    pub(crate) weak: Mutex<Option<WeakRef<Puppet>>>,
    pub(crate) ids: Mutex<Vec<ActorId>>,
    pub(crate) is_taken: AtomicBool,
    pub(crate) known: Arc<Mutex<Known>>,
    /// What its last life knew at its end. By then all that it had counted was sent, or never will
    /// be; a life that goes on may have counted what still waits for room.
    pub(crate) known_at_end: Mutex<Option<Known>>,
    /// Handlers inside: -1 with exclusive access, else how many reads.
    pub(crate) busy: AtomicI32,
    pub(crate) causes: AtomicU32,
    /// States that were made.
    pub(crate) lives: AtomicU32,
    /// States that have started and are not dropped.
    pub(crate) active: AtomicI32,
    pub(crate) subscriptions: Vec<SubscriptionPlace>,
    /// How many hold it between two messages.
    pub(crate) holds: AtomicU32,
}

/// One actor's subscription to one topic; whoever finds it busy leaves it alone.
#[derive(Default)]
pub(crate) struct SubscriptionPlace {
    pub(crate) is_busy: AtomicBool,
    pub(crate) held: Mutex<Option<Subscription>>,
}

/// Things of ours that are alive, to see that none stays.
#[derive(Default)]
pub(crate) struct Alive {
    pub(crate) states: AtomicI64,
    pub(crate) messages: AtomicI64,
    pub(crate) events: AtomicI64,
    pub(crate) replies: AtomicI64,
    pub(crate) ticks: AtomicI64,
    pub(crate) tasks: AtomicI64,
    /// Streams that are attached to actors.
    pub(crate) streams: AtomicI64,
}

pub(crate) struct World {
    pub(crate) program: Arc<Program>,
    pub(crate) nodes: Mutex<Vec<Node>>,
    pub(crate) groups: Mutex<Vec<Group<Puppet>>>,
    pub(crate) topics: Mutex<Vec<Topic<Event>>>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) tick: Duration,
    pub(crate) alive: Alive,
    pub(crate) mails: Mutex<Vec<Arc<Mail>>>,
    pub(crate) waits: Mutex<Vec<Wait>>,
    pub(crate) log: Mutex<Vec<Entry>>,
    pub(crate) violations: Mutex<Vec<Violation>>,
    /// The wakers that asks were polled with and that nobody must keep in the end.
    pub(crate) wakers: Mutex<Vec<Arc<CountWakes>>>,
    /// By topic, the event that was published when all was quiet and every mailbox had room.
    pub(crate) quiet_events: Mutex<HashMap<usize, Sequence>>,
    /// Whether some drop has panicked on purpose; who suffers from it is not followed.
    pub(crate) drop_panicked: AtomicBool,
    pub(crate) stage: Mutex<&'static str>,
    /// Streams that are read in the end.
    pub(crate) kept_streams: Mutex<Vec<KeptStream>>,
    /// Epochs of topics' owners.
    pub(crate) epochs: AtomicU64,
    /// Whether an ask was handed on: who waits for whom is not followed then.
    pub(crate) hands_on: AtomicBool,
    /// Nodes that somebody has frozen, and will let go on.
    pub(crate) freezes: Vec<AtomicBool>,
    pub(crate) books: Books,
    /// Nodes that were shut down by an instruction.
    pub(crate) shut: Mutex<Vec<usize>>,
    /// Actors that had ended for good when all was quiet.
    pub(crate) ended: Mutex<Vec<usize>>,
    /// From now on gates stay open, so that all comes to rest.
    pub(crate) settles: AtomicBool,
    pub(crate) is_over: AtomicBool,
    /// How often the end of something is looked for before it is missed.
    pub(crate) looks_max: u32,
    stamp: AtomicU64,
    fuel: AtomicI64,
    next_sender: AtomicUsize,
}

impl World {
    pub(crate) fn new(program: Program, looks_max: u32) -> Arc<Self> {
        let targets = program.actors.len();
        let tick_ms = if program.flavour == Flavour::Paused { 100 } else { 1 };
        let topics = program.topics.len();
        let slots = program.actors.iter().map(|plan| {
            let passivates = program.nodes[plan.node].passivates;
            Slot {
                actor: Mutex::new(None),
                weak: Mutex::new(None),
                ids: Mutex::default(),
                is_taken: AtomicBool::new(false),
                known: Arc::new(Mutex::new(Known::nothing(targets))),
                known_at_end: Mutex::new(None),
                busy: AtomicI32::new(0),
                causes: AtomicU32::new(if passivates { IDLED } else { 0 }),
                lives: AtomicU32::new(0),
                active: AtomicI32::new(0),
                holds: AtomicU32::new(0),
                subscriptions: (0..topics).map(|_| SubscriptionPlace::default()).collect(),
            }
        });
        let slots = slots.collect();
        Arc::new(Self {
            nodes: Mutex::default(),
            groups: Mutex::default(),
            topics: Mutex::default(),
            slots,
            tick: Duration::from_millis(tick_ms),
            alive: Alive::default(),
            mails: Mutex::default(),
            waits: Mutex::default(),
            log: Mutex::default(),
            violations: Mutex::default(),
            wakers: Mutex::default(),
            quiet_events: Mutex::default(),
            drop_panicked: AtomicBool::new(false),
            stage: Mutex::new("building"),
            kept_streams: Mutex::default(),
            epochs: AtomicU64::new(0),
            hands_on: AtomicBool::new(false),
            freezes: program.nodes.iter().map(|_| AtomicBool::new(false)).collect(),
            books: Books::new(program.nodes.len()),
            shut: Mutex::default(),
            ended: Mutex::default(),
            settles: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            looks_max,
            stamp: AtomicU64::new(1),
            fuel: AtomicI64::new(FUEL),
            next_sender: AtomicUsize::new(targets + program.clients.len()),
            program: Arc::new(program),
        })
    }

    /// Counts a task as under way until what this returns is dropped.
    pub(crate) fn task(self: &Arc<Self>) -> Task {
        self.alive.tasks.fetch_add(1, SeqCst);
        Task(self.clone())
    }

    /// Takes note of a broken promise.
    pub(crate) fn broken(&self, promise: &'static str, details: impl Into<String>) {
        self.violations.lock().push(Violation { promise, details: details.into() });
    }

    pub(crate) fn log(&self, entry: Entry) {
        self.log.lock().push(entry);
    }

    pub(crate) fn enter_stage(&self, stage: &'static str) {
        *self.stage.lock() = stage;
    }

    /// Whether there is fuel for one more instruction.
    pub(crate) fn burn(&self) -> bool {
        !self.is_over.load(SeqCst) && self.fuel.fetch_sub(1, SeqCst) > 0
    }

    /// Changes whenever an instruction is performed or a message arrives.
    pub(crate) fn pulse(&self) -> (i64, u64) {
        (self.fuel.load(SeqCst), self.stamp.load(SeqCst))
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.fetch_add(1, SeqCst)
    }

    /// A number for a sender of its own, if there is one left.
    pub(crate) fn fresh_sender(&self) -> Option<usize> {
        let sender = self.next_sender.fetch_add(1, SeqCst);
        (sender < SENDERS_MAX).then_some(sender)
    }

    pub(crate) fn actor(&self, slot: usize) -> Option<ActorRef<Puppet>> {
        self.slots[slot].actor.lock().clone()
    }

    pub(crate) fn node(&self, index: usize) -> Option<Node> {
        self.nodes.lock().get(index).cloned()
    }

    pub(crate) fn topic(&self, index: usize) -> Option<Topic<Event>> {
        self.topics.lock().get(index).cloned()
    }

    pub(crate) fn cause(&self, slot: usize, cause: u32) {
        self.slots[slot].causes.fetch_or(cause, SeqCst);
    }

    pub(crate) fn causes(&self, slot: usize) -> u32 {
        self.slots[slot].causes.load(SeqCst)
    }

    pub(crate) fn birth(&self, slot: usize) -> Birth {
        self.program.actors[slot].birth
    }

    /// Whether the slot's actor has one life only, after which its address refuses.
    pub(crate) fn is_anonymous(&self, slot: usize) -> bool {
        !matches!(self.birth(slot), Birth::Named | Birth::SpawnedByName)
    }

    /// Puts an actor into its slot.
    pub(crate) fn settle_in(&self, slot: usize, actor: ActorRef<Puppet>) {
        let place = &self.slots[slot];
        place.ids.lock().push(actor.id());
        *place.weak.lock() = Some(actor.downgrade());
        *place.actor.lock() = Some(actor);
    }

    pub(crate) fn slot_of(&self, id: &ActorId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.ids.lock().contains(id))
    }

    /// A new state for a slot, as factories make it.
    pub(crate) fn build(self: &Arc<Self>, slot: usize) -> Result<Puppet, ActorError> {
        let is_first = self.slots[slot].lives.load(SeqCst) == 0;
        if is_first && self.program.actors[slot].fails_once {
            self.cause(slot, NOT_STARTED);
            self.slots[slot].lives.fetch_add(1, SeqCst);
            return Err(ActorError::new("on purpose"));
        }
        Ok(Puppet::new(self, slot))
    }

    /// Writes down a message to be made.
    pub(crate) fn mail(&self, mail: Draft) -> Arc<Mail> {
        let mut mails = self.mails.lock();
        let id = u32::try_from(mails.len()).expect("few messages");
        let Draft { target, purpose, number, before, due } = mail;
        let (flags, arrived) = (AtomicU32::new(0), AtomicU64::new(0));
        let next = OnceLock::new();
        let mail =
            Arc::new(Mail { id, target, purpose, number, before, flags, arrived, due, next });
        mails.push(mail.clone());
        mail
    }

    /// Messages that are neither dropped nor handed back.
    pub(crate) fn unsettled(&self) -> Vec<Arc<Mail>> {
        let mails = self.mails.lock();
        mails.iter().filter(|mail| !mail.has(DROPPED | RETURNED)).cloned().collect()
    }
}

/// A task under way.
pub(crate) struct Task(Arc<World>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.alive.tasks.fetch_sub(1, SeqCst);
    }
}

/// A message before it has a number of its own.
pub(crate) struct Draft {
    pub(crate) target: usize,
    pub(crate) purpose: Purpose,
    pub(crate) number: Option<(usize, u16)>,
    pub(crate) before: Option<Box<[u16]>>,
    pub(crate) due: Option<(Instant, u32)>,
}

impl Draft {
    /// Without any order to keep.
    pub(crate) fn loose(target: usize) -> Self {
        Self { target, purpose: Purpose::Loose, number: None, before: None, due: None }
    }
}
