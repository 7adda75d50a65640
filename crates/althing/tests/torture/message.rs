//! What puppets receive: messages, ticks, events, and the replies they give. Each counts its life,
//! and may do something at its drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use althing::{ActorRef, Sequence};

use crate::alarm::panic_on_purpose;
use crate::ledger::TurnId;
use crate::perform::calling;
use crate::program::{DropOp, Op, ReplyPlan};
use crate::puppet::Puppet;
use crate::records::{DROPPED, Entry, HANDLED, KILLED, Known, Mail, PANICKED, STOPPED};
use crate::world::{ANYONE, Draft, World};
use crate::{events, life};

/// Carries instructions to a puppet.
pub(crate) struct Message {
    pub(crate) world: Arc<World>,
    pub(crate) mail: Arc<Mail>,
    pub(crate) ops: Arc<[Op]>,
    pub(crate) known: Arc<Known>,
    pub(crate) gated: bool,
    pub(crate) reply: ReplyPlan,
    pub(crate) dropped: Vec<DropOp>,
    /// The turn that let it out, if that was held.
    pub(crate) turn: Option<TurnId>,
}

/// A message that is read: handlers of this one may overlap.
pub(crate) struct Reading(pub(crate) Message);

/// A message whose reply may come later.
pub(crate) struct Deferring(pub(crate) Message);

impl From<Reading> for Message {
    fn from(Reading(message): Reading) -> Self {
        message
    }
}

impl From<Deferring> for Message {
    fn from(Deferring(message): Deferring) -> Self {
        message
    }
}

impl Message {
    /// A message without instructions, of no order.
    pub(crate) fn loose(world: &Arc<World>, target: usize) -> Self {
        let mail = world.mail(Draft::loose(target));
        let known = Arc::new(Known::nothing(world.slots.len()));
        Self::new(world, mail, known, Arc::new([]))
    }

    pub(crate) fn new(
        world: &Arc<World>,
        mail: Arc<Mail>,
        known: Arc<Known>,
        ops: Arc<[Op]>,
    ) -> Self {
        world.alive.messages.fetch_add(1, SeqCst);
        let (world, dropped) = (world.clone(), Vec::new());
        Self { world, mail, ops, known, gated: false, reply: ReplyPlan::Now, dropped, turn: None }
    }

    /// Has the drop do nothing more.
    pub(crate) fn disarm(mut self) {
        self.dropped.clear();
    }
}

/// As a group needs for a broadcast: a message of its own, with the same instructions.
impl Clone for Message {
    fn clone(&self) -> Self {
        let mail = self.world.mail(Draft::loose(self.mail.target));
        Self::new(&self.world, mail, self.known.clone(), self.ops.clone())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // Before it is seen to be dropped: what its drop does is waited for.
        let _under_way = self.world.task();
        self.world.alive.messages.fetch_sub(1, SeqCst);
        if self.mail.set(DROPPED) {
            self.world.broken("a message is dropped once", format!("{:?}", self.mail));
        }
        let target = self.mail.target;
        let blamed = (self.mail.has(HANDLED) && target != ANYONE).then_some(target);
        run_drops(&self.world, &self.dropped, blamed);
    }
}

/// What a periodic timer sends.
pub(crate) struct Tick {
    pub(crate) world: Arc<World>,
    pub(crate) life: u32,
    pub(crate) clone_panics: bool,
    pub(crate) is_cancelled: Arc<AtomicBool>,
}

impl Tick {
    pub(crate) fn new(world: &Arc<World>, life: u32, clone_panics: bool) -> Self {
        world.alive.ticks.fetch_add(1, SeqCst);
        Self { world: world.clone(), life, clone_panics, is_cancelled: Arc::default() }
    }
}

impl Clone for Tick {
    fn clone(&self) -> Self {
        if self.clone_panics {
            self.world.drop_panicked.store(true, SeqCst);
            panic_on_purpose();
        }
        let mut copy = Self::new(&self.world, self.life, false);
        copy.is_cancelled = self.is_cancelled.clone();
        copy
    }
}

impl Drop for Tick {
    fn drop(&mut self) {
        self.world.alive.ticks.fetch_sub(1, SeqCst);
    }
}

/// The mark of an event that has not been dropped; nothing that else lies in memory is likely to be
/// this.
const ALIVE: u64 = 0xA11F_E0F0_0E7E_9151;

/// What a topic carries.
pub(crate) struct Event {
    pub(crate) world: Arc<World>,
    pub(crate) topic: usize,
    pub(crate) ops: Arc<[Op]>,
    pub(crate) known: Arc<Known>,
    pub(crate) dropped: Vec<DropOp>,
    /// As that of a message.
    pub(crate) turn: Option<TurnId>,
    mark: AtomicU64,
}

impl Event {
    pub(crate) fn new(world: &Arc<World>, topic: usize, known: Arc<Known>, ops: Arc<[Op]>) -> Self {
        world.alive.events.fetch_add(1, SeqCst);
        let (world, mark) = (world.clone(), AtomicU64::new(ALIVE));
        Self { world, topic, ops, known, dropped: Vec::new(), turn: None, mark }
    }

    /// Whether it has not been dropped. Asked of an event that is gone, it reads memory that was
    /// freed: a runtime that lets it come to that is broken.
    pub(crate) fn is_alive(&self) -> bool {
        self.mark.load(SeqCst) == ALIVE
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _under_way = self.world.task();
        self.mark.store(0, SeqCst);
        self.world.alive.events.fetch_sub(1, SeqCst);
        run_drops(&self.world, &self.dropped, None);
    }
}

/// What an ask gets.
pub(crate) struct Reply {
    pub(crate) world: Arc<World>,
    /// The message that it answers.
    pub(crate) to: u32,
    pub(crate) known: Arc<Known>,
}

impl Reply {
    pub(crate) fn new(world: &Arc<World>, mail: &Mail, known: Known) -> Self {
        world.alive.replies.fetch_add(1, SeqCst);
        Self { world: world.clone(), to: mail.id, known: Arc::new(known) }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.world.alive.replies.fetch_sub(1, SeqCst);
    }
}

/// Does what a drop is told to do; `blamed` is the actor whose handler it happens in, if that is
/// known.
pub(crate) fn run_drops(world: &Arc<World>, ops: &[DropOp], blamed: Option<usize>) {
    for op in ops {
        // A panic during a panic would end the process, by the language's rule.
        if std::thread::panicking() || !world.burn() {
            return;
        }
        match *op {
            DropOp::Tell(to) => {
                for _ in 0..2 {
                    let Some(actor) = world.actor(to) else { break };
                    let message = Message::loose(world, to);
                    let mail = message.mail.clone();
                    world.settle_tell(&mail, actor.send(message).try_tell());
                }
            }
            DropOp::Publish(topic) => drop(publish_plainly(world, topic)),
            DropOp::AskTopic(topic) => {
                if let Some(topic) = world.topic(topic) {
                    topic.last();
                    topic.replay_since(Sequence(0)).ok();
                }
            }
            DropOp::Spawn(slot) => life::spawn_in_slot(world, slot, None),
            DropOp::Stop(slot) => end_in_drop(world, slot, STOPPED, |actor| drop(actor.stop())),
            DropOp::Kill(slot) => end_in_drop(world, slot, KILLED, ActorRef::kill),
            DropOp::Unsubscribe { who, topic } => events::subscribe(world, who, topic, false),
            DropOp::Panic => {
                world.drop_panicked.store(true, SeqCst);
                if let Some(slot) = blamed {
                    world.cause(slot, PANICKED);
                }
                panic_on_purpose();
            }
        }
    }
}

fn end_in_drop(world: &World, slot: usize, cause: u32, end: impl FnOnce(&ActorRef<Puppet>)) {
    let Some(actor) = world.actor(slot) else { return };
    world.cause(slot, cause);
    if cause == STOPPED {
        let before = Known::nothing(world.slots.len()).sent_to(slot);
        world.log(Entry::StopRequested { on: slot, before });
    }
    calling(world, "the end of an actor in a drop", || end(&actor));
}

/// Publishes an event that tells its subscribers nothing; returns its number.
pub(crate) fn publish_plainly(world: &Arc<World>, index: usize) -> Option<Sequence> {
    let topic = world.topic(index)?;
    let known = Arc::new(Known::nothing(world.slots.len()));
    let sequence = topic.publish(Event::new(world, index, known, Arc::new([]))).ok()?;
    world.log(Entry::Published { topic: index, sequence });
    Some(sequence)
}
