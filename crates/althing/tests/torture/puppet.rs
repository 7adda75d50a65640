//! The actor that does what it is told, and notices when it is run as no actor should be.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{self, Poll};

use althing::{
    Actor, ActorError, Admission, Context, Delayed, DelayedHandler, EventHandler, Handler,
    Published, Read, ReadHandler, Receives, ReplyTo, StopReason, Terminated, TimerId,
};
use tokio::time::Instant;

use crate::message::{Deferring, Event, Message, Reading, Reply, Tick, run_drops};
use crate::perform::{calling, perform};
use crate::program::{Birth, DropOp, ReplyPlan};
use crate::records::{
    ACCEPTED, ENDED, Entry, HANDED_ON, HANDLED, IDLED, Known, Mail, PANICKED, PASSIVATED, Purpose,
    REPLIED, REPLY_WITHHELD, TIED,
};
use crate::scope::{Access, Scope};
use crate::world::{ANYONE, Draft, Task, World};
use crate::{events, holds, ledger};

/// A timer that a puppet has set.
pub(crate) enum Alarm {
    Once(TimerId, Arc<Mail>),
    Periodic { id: TimerId, is_cancelled: Arc<AtomicBool> },
}

pub(crate) struct Puppet {
    pub(crate) world: Arc<World>,
    pub(crate) slot: usize,
    pub(crate) life: u32,
    has_started: bool,
    /// Whether it has got beyond its `started` hook.
    pub(crate) serves: bool,
    pub(crate) stops: bool,
    /// Whether the life that ends takes its subscriptions along.
    ends_subscriptions: bool,
    pub(crate) gate_is_shut: bool,
    pub(crate) replies: Vec<(Arc<Mail>, ReplyTo<Reply>)>,
    pub(crate) alarms: Vec<Alarm>,
    dropped: Vec<DropOp>,
}

impl Puppet {
    pub(crate) fn new(world: &Arc<World>, slot: usize) -> Self {
        world.alive.states.fetch_add(1, SeqCst);
        let life = world.slots[slot].lives.fetch_add(1, SeqCst);
        // Of the first life only: a state that panics at each drop would never come to rest.
        let plan = &world.program.actors[slot];
        let dropped = if life == 0 { plan.dropped.clone() } else { Vec::new() };
        Self {
            world: world.clone(),
            slot,
            life,
            has_started: false,
            serves: false,
            stops: false,
            ends_subscriptions: false,
            gate_is_shut: false,
            replies: Vec::new(),
            alarms: Vec::new(),
            dropped,
        }
    }

    /// A guard is asked: the message has arrived.
    fn admit(&self, message: &Message, access: Access) -> Admission {
        let world = &self.world;
        if ![self.slot, ANYONE].contains(&message.mail.target) {
            let details = format!("{:?} reached actor {}", message.mail, self.slot);
            world.broken("a message reaches its own target", details);
        }
        let busy = world.slots[self.slot].busy.load(SeqCst);
        if busy < 0 || (access == Access::Exclusive && busy != 0) {
            world.broken("handlers do not overlap", format!("a guard of {}: {busy}", self.slot));
        }
        let stamp = world.stamp();
        message.mail.arrived.compare_exchange(0, stamp, SeqCst, SeqCst).ok();
        if message.gated && self.gate_is_shut { Admission::Stash } else { Admission::Run }
    }

    /// A handler begins with a message.
    fn take(&self, message: &Message) {
        let (world, mail) = (&self.world, &message.mail);
        if let Some(turn) = message.turn {
            ledger::check_out(world, turn, "a tell");
        }
        if mail.set(HANDLED) {
            world.broken("a message is handled once", format!("{mail:?}"));
        }
        let Some((due, life)) = mail.due else { return };
        let is_timer = matches!(mail.purpose, Purpose::After | Purpose::Wake);
        if is_timer && Instant::now() < due {
            world.broken("a timer never fires early", format!("{mail:?}"));
        }
        let outlives =
            mail.purpose == Purpose::Wake && world.causes(self.slot) & (PASSIVATED | IDLED) != 0;
        if life != self.life && !outlives {
            let details = format!("{mail:?} of life {life} in life {}", self.life);
            world.broken("what belongs to one life does not reach another", details);
        }
    }

    /// An actor that keeps replies is not unloaded for being idle.
    fn check_debts(&self) {
        let world = &self.world;
        let is_named = world.birth(self.slot) == Birth::Named;
        // Of a tell, or of an ask that is over, nobody waits for it.
        let is_owed = |(mail, reply): &(Arc<Mail>, ReplyTo<Reply>)| {
            mail.purpose == Purpose::Ask && !reply.is_abandoned()
        };
        if is_named
            && self.replies.iter().any(is_owed)
            && !world.settles.load(SeqCst)
            && world.causes(self.slot) == IDLED
            && !world.drop_panicked.load(SeqCst)
        {
            world.broken("who owes a reply is not unloaded", format!("actor {}", self.slot));
        }
    }

    pub(crate) fn check_stage(&self, what: &str) {
        holds::check_free(&self.world, self.slot, what);
        if !self.has_started || self.stops {
            let details = format!(
                "{what} of {}: started {}, stops {}",
                self.slot, self.has_started, self.stops
            );
            self.world.broken("handlers run between started and stopping", details);
        }
    }

    /// Answers a delayed message, or does not, as the message wants.
    fn settle(
        &mut self,
        (mail, plan): (Arc<Mail>, ReplyPlan),
        reply: ReplyTo<Reply>,
        ctx: &mut Context<Self>,
    ) {
        let world = self.world.clone();
        match plan {
            ReplyPlan::Now => answer(&world, self.slot, &mail, reply),
            ReplyPlan::Keep => {
                mail.set(REPLY_WITHHELD);
                self.replies.push((mail, reply));
            }
            ReplyPlan::Detach(ticks) => {
                mail.set(REPLY_WITHHELD);
                let slot = self.slot;
                let task = world.task();
                // What is known now: later the actor may be about to send what it has counted
                // already.
                let known = world.slots[slot].known.lock().clone();
                ctx.detach(async move {
                    let node = world.node(world.program.actors[slot].node);
                    if let Some(node) = node {
                        node.sleep(world.tick * u32::from(ticks)).await;
                    }
                    answer_with(&world, known, &mail, reply);
                    drop(task);
                });
            }
            ReplyPlan::Drop => {
                mail.set(REPLY_WITHHELD);
                drop(reply);
            }
            ReplyPlan::HandOn(to) => self.hand_on(&mail, to, reply),
        }
    }

    /// Has another actor reply.
    fn hand_on(&self, mail: &Arc<Mail>, to: usize, reply: ReplyTo<Reply>) {
        let world = &self.world;
        mail.set(REPLY_WITHHELD);
        let Some(actor) = world.actor(to) else { return };
        world.hands_on.store(true, SeqCst);
        let (before, number, known) = {
            let mut known = world.slots[self.slot].known.lock();
            let before = Some(known.sent_to(to));
            let number = Some((self.slot, known.count(to, self.slot)));
            (before, number, Arc::new(known.clone()))
        };
        let purpose = mail.purpose;
        let next = world.mail(Draft { target: to, purpose, number, before, due: None });
        next.set(HANDED_ON);
        let is_bounded = world.program.nodes[world.program.actors[to].node].mailbox.is_some();
        if purpose == Purpose::Tell && !is_bounded {
            // Nobody can have taken it back.
            next.set(ACCEPTED);
        }
        mail.next.set(next.clone()).expect("it is handed on once");
        let message = Message::new(world, next, known, Arc::new([]));
        calling(world, "reply_to", || actor.send(message).reply_to(reply));
    }
}

/// Sends a reply with all that the actor knows.
pub(crate) fn answer(world: &Arc<World>, slot: usize, mail: &Mail, reply: ReplyTo<Reply>) {
    let known = world.slots[slot].known.lock().clone();
    answer_with(world, known, mail, reply);
}

fn answer_with(world: &Arc<World>, known: Known, mail: &Mail, reply: ReplyTo<Reply>) {
    if reply.send(Reply::new(world, mail, known)) {
        mail.set(REPLIED);
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        // What its drop does is waited for.
        let _under_way = self.world.task();
        let slot = &self.world.slots[self.slot];
        let busy = slot.busy.load(SeqCst);
        if self.has_started {
            slot.active.fetch_sub(1, SeqCst);
            if busy != 0 {
                let details = format!("state of {} dropped: {busy} inside", self.slot);
                self.world.broken("handlers do not overlap", details);
            }
        }
        self.world.alive.states.fetch_sub(1, SeqCst);
        *slot.known_at_end.lock() = Some(slot.known.lock().clone());
        if self.ends_subscriptions {
            events::end_with_life(&self.world, self.slot);
        }
        self.check_debts();
        run_drops(&self.world, &self.dropped, Some(self.slot));
    }
}

impl Actor for Puppet {
    const NAME: &'static str = "torture.puppet";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        let world = self.world.clone();
        let slot = &world.slots[self.slot];
        if self.has_started {
            world.broken("a life starts once", format!("actor {}", self.slot));
        }
        self.has_started = true;
        if !world.is_over.load(SeqCst) {
            world.log(Entry::Started { who: self.slot });
        }
        let others = slot.active.fetch_add(1, SeqCst);
        if others != 0 {
            let details = format!("actor {}: {others} other states", self.slot);
            world.broken("a name has one activation", details);
        }
        let ops = world.program.actors[self.slot].started.clone();
        perform(&mut Scope::exclusive(self, ctx), &ops).await;
        self.serves = true;
        Ok(())
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, reason: StopReason) {
        self.check_stage("stopping");
        self.stops = true;
        let world = self.world.clone();
        if !world.is_over.load(SeqCst) {
            self.ends_subscriptions = reason == StopReason::Requested;
            world.log(Entry::Stopping { who: self.slot });
        }
        let ops = world.program.actors[self.slot].stopping.clone();
        perform(&mut Scope::exclusive(self, ctx), &ops).await;
    }

    async fn terminated(&mut self, ctx: &mut Context<Self>, other: Terminated) {
        self.check_stage("terminated");
        let world = self.world.clone();
        let mut scope = Scope::exclusive(self, ctx);
        if let Some(on) = world.slot_of(&other.id) {
            let known = world.slots[on].known_at_end.lock().clone();
            known.inspect(|known| scope.learn(known));
            world.log(Entry::Terminated { by: scope.by().expect("an actor's"), on });
        }
        let ops = world.program.actors[scope.by().expect("an actor's")].terminated.clone();
        perform(&mut scope, &ops).await;
    }
}

impl Handler<Message> for Puppet {
    type Reply = Reply;

    fn admit(&mut self, message: &Message, _: &mut Context<Self>) -> Admission {
        Puppet::admit(self, message, Access::Exclusive)
    }

    fn handle(
        &mut self,
        mut message: Message,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = Reply> + Send {
        let (last, mail) = (LastUse::of(&mut message), message.mail.clone());
        let future = Box::pin(async move {
            self.check_stage("a handler");
            self.take(&message);
            let mut scope = Scope::exclusive(self, ctx);
            scope.learn(&message.known);
            perform(&mut scope, &message.ops).await;
            let known = scope.known();
            drop(scope);
            let (world, mail) = (message.world.clone(), message.mail.clone());
            // Before the reply is made: a value that is being returned leaks if a drop panics
            // meanwhile (rust-lang/rust#47949).
            drop(message);
            Reply::new(&world, &mail, known)
        });
        Carrying { future, last, mail }
    }
}

/// What the drop of a message does, in a handler's future. Unlike a variable of the handler it is
/// still there after a panic, until the runtime drops it.
struct LastUse {
    world: Arc<World>,
    slot: usize,
    ops: Vec<DropOp>,
    _under_way: Task,
}

impl LastUse {
    /// Takes it over from the message; none if that does nothing.
    fn of(message: &mut Message) -> Option<Self> {
        let ops = std::mem::take(&mut message.dropped);
        let world = message.world.clone();
        let (slot, under_way) = (message.mail.target, world.task());
        (!ops.is_empty()).then(|| Self { world, slot, ops, _under_way: under_way })
    }
}

impl Drop for LastUse {
    fn drop(&mut self) {
        let blamed = (self.slot != ANYONE).then_some(self.slot);
        run_drops(&self.world, &self.ops, blamed);
    }
}

struct Carrying<F> {
    future: Pin<Box<F>>,
    last: Option<LastUse>,
    mail: Arc<Mail>,
}

impl<F: Future> Future for Carrying<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let poll = this.future.as_mut().poll(cx);
        if poll.is_pending() {
            return poll;
        }
        // Here, as in the message's own place.
        drop(this.last.take());
        this.mail.set(ENDED);
        poll
    }
}

impl Receives<Reading> for Puppet {
    type Reply = Reply;
    type Way = Read;
}

impl ReadHandler<Reading> for Puppet {
    type Reply = Reply;

    fn admit(&self, message: &Reading, _: &Context<Self>) -> Admission {
        Puppet::admit(self, &message.0, Access::Shared)
    }

    async fn read(&self, Reading(message): Reading, ctx: &Context<Self>) -> Reply {
        self.check_stage("a read");
        self.take(&message);
        let mut scope = Scope::shared(self, ctx);
        scope.learn(&message.known);
        perform(&mut scope, &message.ops).await;
        let known = scope.known();
        drop(scope);
        let (world, mail) = (message.world.clone(), message.mail.clone());
        // Before the reply is made: a value that is being returned leaks if a drop panics meanwhile
        // (rust-lang/rust#47949).
        drop(message);
        mail.set(ENDED);
        Reply::new(&world, &mail, known)
    }
}

impl Receives<Deferring> for Puppet {
    type Reply = Reply;
    type Way = Delayed;
}

impl DelayedHandler<Deferring> for Puppet {
    type Reply = Reply;

    fn admit(&mut self, message: &Deferring, _: &mut Context<Self>) -> Admission {
        Puppet::admit(self, &message.0, Access::Exclusive)
    }

    async fn handle(
        &mut self,
        Deferring(message): Deferring,
        reply: ReplyTo<Reply>,
        ctx: &mut Context<Self>,
    ) {
        self.check_stage("a delayed handler");
        self.take(&message);
        let mut scope = Scope::exclusive(self, ctx);
        scope.learn(&message.known);
        perform(&mut scope, &message.ops).await;
        drop(scope);
        self.settle((message.mail.clone(), message.reply), reply, ctx);
    }
}

impl Handler<Tick> for Puppet {
    type Reply = ();

    async fn handle(&mut self, tick: Tick, ctx: &mut Context<Self>) {
        self.check_stage("a tick");
        let scope = Scope::exclusive(self, ctx);
        let life = scope.life();
        if tick.life != life {
            let details = format!("a tick of life {} in life {life}", tick.life);
            tick.world.broken("what belongs to one life does not reach another", details);
        }
        if tick.is_cancelled.load(SeqCst) {
            tick.world.broken("a cancelled timer is silent", format!("{:?}", scope.by()));
        }
    }
}

impl EventHandler<Event> for Puppet {
    fn event(
        &mut self,
        event: &Published<Event>,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = ()> + Send {
        let world = event.payload.world.clone();
        let future = Box::pin(self.hear(event, ctx));
        Borrowing { event: &event.payload, world, future }
    }
}

/// An event handler's future. Unlike a variable of the handler it is still there after a panic,
/// until the runtime drops it, and up to then it may use the event.
struct Borrowing<'a, F> {
    event: &'a Event,
    world: Arc<World>,
    future: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Borrowing<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<()> {
        self.get_mut().future.as_mut().poll(cx)
    }
}

impl<F> Drop for Borrowing<'_, F> {
    fn drop(&mut self) {
        if !self.event.is_alive() {
            self.world.broken("an event outlives the handler that borrows it", "");
        }
    }
}

impl Puppet {
    async fn hear(&mut self, event: &Published<Event>, ctx: &mut Context<Self>) {
        self.check_stage("an event");
        let mut scope = Scope::exclusive(self, ctx);
        let payload = &event.payload;
        let who = scope.by().expect("an actor's");
        if let Some(turn) = payload.turn {
            ledger::check_out(&payload.world, turn, "an event");
        }
        payload.world.log(Entry::Heard {
            who,
            topic: payload.topic,
            sequence: event.sequence,
            previous: event.previous,
            stamp: payload.world.stamp(),
            before: payload.known.sent_to(who),
        });
        scope.learn(&payload.known);
        perform(&mut scope, &payload.ops).await;
    }
}

/// Causes that a panic on purpose may have for this actor and those tied to it.
pub(crate) fn blame_panic(world: &World, slot: usize) {
    world.cause(slot, PANICKED);
    // Escalation, links and siblings are followed loosely: whoever is tied to anybody may be meant.
    for other in 0..world.slots.len() {
        if world.causes(other) & TIED != 0 {
            world.cause(other, PANICKED);
        }
    }
}
