//! Tells and asks, and what their outcomes must be.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use althing::{ActorRef, AskError, Priority, SendError};
use futures_util::future::join;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use crate::message::{Deferring, Message, Reading, Reply};
use crate::perform::{Own, awaiting, awaiting_with, calling, calling_with};
use crate::probes::Poke;
use crate::program::{Lane, Op, Patience, Send, Way};
use crate::puppet::Puppet;
use crate::records::{
    ACCEPTED, ASK_OVER, DID_NOT_RUN, DROPPED, ENDED, Entry, HANDED_ON, HANDLED, Mail, NOT_STARTED,
    PANICKED, Purpose, REPLIED, REPLY_WITHHELD, RETURNED, Wait,
};
use crate::runtimes::DEADLINE_TICKS;
use crate::scope::{Place, Scope};
use crate::stalls;
use crate::world::{ANYONE, Draft, World};

/// How much later than its deadline an ask may end on a busy machine.
const SLACK: Duration = Duration::from_secs(6);

/// More asks than a task makes before tokio has it yield.
const ASKS_IN_LOOP_MAX: usize = 10_000;

type Asked = Result<Reply, AskError>;
type Ask = Pin<Box<dyn Future<Output = Asked> + std::marker::Send>>;

pub(crate) async fn perform(scope: &mut Scope<'_>, op: &Op) {
    match op {
        Op::Tell(send, patience, times) => {
            for _ in 0..*times {
                tell(scope, send, *patience).await;
            }
        }
        Op::Ask(send, timeout) => ask(scope, send, *timeout).await,
        Op::AskBoth(left, right) => ask_both(scope, left, right).await,
        Op::PollAsk(send, polls) => poll_ask(scope, send, *polls),
        Op::MoveAsk(send) => move_ask(scope, send).await,
        Op::AskInLoop(to) => ask_in_loop(scope, *to).await,
        Op::Broadcast { node } => broadcast(scope, *node),
        _ => {}
    }
}

fn message(
    scope: &Scope<'_>,
    send: &Send,
    purpose: Purpose,
) -> Option<(ActorRef<Puppet>, Message)> {
    let world = &scope.world;
    let actor = world.actor(send.to)?;
    let (number, before) = match send.lane {
        Lane::Normal => {
            let (number, before) = scope.count(send.to);
            (number, Some(before))
        }
        Lane::High | Lane::Low => (None, None),
    };
    let mail = world.mail(Draft { target: send.to, purpose, number, before, due: None });
    let mut message = Message::new(world, mail, Arc::new(scope.known()), send.ops.clone().into());
    message.gated = send.gated;
    message.reply = send.reply;
    message.dropped.clone_from(&send.dropped);
    Some((actor, message))
}

fn priority(lane: Lane) -> Priority {
    match lane {
        Lane::Normal => Priority::Normal,
        Lane::High => Priority::High,
        Lane::Low => Priority::Low,
    }
}

impl World {
    /// Takes note of what became of a tell; returns whether it was taken.
    pub(crate) fn settle_tell(&self, mail: &Mail, told: Result<(), SendError<Message>>) -> bool {
        match told {
            Ok(()) => {
                mail.set(ACCEPTED);
                true
            }
            Err(refused) => {
                if mail.has(HANDLED | DROPPED) {
                    self.broken("a message that is handed back did not run", format!("{mail:?}"));
                }
                mail.set(RETURNED);
                refused.into_message().disarm();
                false
            }
        }
    }

    pub(crate) fn begin_wait(&self, from: usize, to: usize) -> usize {
        let mut waits = self.waits.lock();
        waits.push(Wait { from, to, began: Instant::now(), is_alone: false, ended: None });
        waits.len() - 1
    }

    /// Says that the handler of a wait does nothing else until that ends, and nobody else in its
    /// actor does anything.
    fn wait_alone(&self, wait: usize) {
        self.waits.lock()[wait].is_alone = true;
    }

    /// Whether those who wait for each other have done so for so long that the runtime has seen it,
    /// if the machine let it run.
    fn is_in_cycle(&self, wait: usize) -> bool {
        let waits = self.waits.lock();
        let long = self.tick * (DEADLINE_TICKS / 3);
        let is_long =
            |wait: &Wait| wait.is_alone && wait.ended.is_none() && wait.began.elapsed() > long;
        let first = waits[wait];
        if !is_long(&first)
            || self.hands_on.load(SeqCst)
            || stalls::any_since(first.began.into_std())
        {
            return false;
        }
        let mut at = first.to;
        for _ in 0..self.slots.len() {
            if at == first.from {
                return true;
            }
            match waits.iter().find(|wait| wait.from == at && is_long(wait)) {
                Some(next) => at = next.to,
                None => return false,
            }
        }
        false
    }

    pub(crate) fn end_wait(&self, wait: usize) {
        let now = self.stamp();
        self.waits.lock()[wait].ended = Some(now);
    }
}

/// The outcome of a tell, whatever way its message goes.
fn plainly<M: Into<Message>>(told: Result<(), SendError<M>>) -> Result<(), SendError<Message>> {
    told.map_err(|refused| match refused {
        SendError::Full(message) => SendError::Full(message.into()),
        SendError::Timeout(message) => SendError::Timeout(message.into()),
        other => SendError::Stopped(other.into_message().into()),
    })
}

async fn tell(scope: &Scope<'_>, send: &Send, patience: Patience) {
    let world = scope.world.clone();
    let Some((actor, message)) = message(scope, send, Purpose::Tell) else { return };
    let mail = message.mail.clone();
    let (lane, was_stopped) = (priority(send.lane), actor.is_stopped());
    let began = Instant::now();
    let told = match (patience, send.way) {
        (Patience::Recipient, Way::Write) if send.lane == Lane::Normal => {
            calling(&world, "recipient", || actor.recipient::<Message>().try_tell(message))
        }
        (Patience::Try | Patience::Recipient, Way::Write) => {
            calling(&world, "try_tell", || actor.send(message).priority(lane).try_tell())
        }
        (Patience::Try | Patience::Recipient, Way::Read) => calling(&world, "try_tell", || {
            plainly(actor.send(Reading(message)).priority(lane).try_tell())
        }),
        (Patience::Try | Patience::Recipient, Way::Delayed) => calling(&world, "try_tell", || {
            plainly(actor.send(Deferring(message)).priority(lane).try_tell())
        }),
        (Patience::Wait, Way::Write) => {
            awaiting(&world, "tell", actor.send(message).priority(lane).tell()).await
        }
        (Patience::Wait, Way::Read) => {
            awaiting(&world, "tell", actor.send(Reading(message)).priority(lane).tell())
                .await
                .map(plainly)
        }
        (Patience::Wait, Way::Delayed) => {
            awaiting(&world, "tell", actor.send(Deferring(message)).priority(lane).tell())
                .await
                .map(plainly)
        }
    };
    let Some(told) = told else { return };
    if matches!(told, Err(SendError::Timeout(_))) && began.elapsed() < deadline(&world) {
        world.broken("a deadline is not shortened", format!("a tell: {mail:?}"));
    }
    let is_explained = match &told {
        Ok(()) => true,
        Err(SendError::Stopped(_)) => {
            world.causes(send.to) != 0 || world.drop_panicked.load(SeqCst)
        }
        Err(_) => world.program.nodes[world.program.actors[send.to].node].mailbox.is_some(),
    };
    if !is_explained {
        world.broken("a refusal has a reason", format!("{told:?}: {mail:?}"));
    }
    if world.settle_tell(&mail, told) && was_stopped {
        world.broken("a stopped actor refuses", format!("{mail:?}"));
    }
}

fn deadline(world: &World) -> Duration {
    world.tick * DEADLINE_TICKS
}

/// An ask that owns all it needs.
fn asking(
    actor: &ActorRef<Puppet>,
    message: Message,
    send: &Send,
    timeout: Option<Duration>,
) -> Ask {
    let (actor, lane, way) = (actor.clone(), priority(send.lane), send.way);
    macro_rules! ask {
        ($call:expr) => {{
            let call = $call.priority(lane);
            match timeout {
                Some(timeout) => call.timeout(timeout).await,
                None => call.await,
            }
        }};
    }
    Box::pin(async move {
        match way {
            Way::Write => ask!(actor.send(message)),
            Way::Read => ask!(actor.send(Reading(message))),
            Way::Delayed => ask!(actor.send(Deferring(message))),
        }
    })
}

async fn ask(scope: &Scope<'_>, send: &Send, timeout: Option<u16>) {
    let world = scope.world.clone();
    let Some((actor, message)) = message(scope, send, Purpose::Ask) else { return };
    let mail = message.mail.clone();
    let timeout = timeout.map(|ticks| world.tick * u32::from(ticks));
    let wait = scope.by().map(|by| world.begin_wait(by, send.to));
    // Whoever waits may be killed meanwhile.
    let _ends = wait.map(|wait| EndOfWait { world: world.clone(), wait });
    if matches!(scope.place, Place::Exclusive(..)) {
        wait.inspect(|wait| world.wait_alone(*wait));
    }
    let asked =
        Asking { mail, limit: timeout.unwrap_or(deadline(&world)), began: Begin::now(&world) };
    let outcome = awaiting_with(
        &world,
        "ask",
        Own::of(&send.dropped),
        asking(&actor, message, send, timeout),
    )
    .await;
    let waits = matches!(outcome, Some(Err(AskError::Timeout(_) | AskError::Overloaded(_))));
    if waits && wait.is_some_and(|wait| world.is_in_cycle(wait)) {
        world.broken("a cycle of asks fails before its deadlines", format!("{:?}", asked.mail));
    }
    if waits && scope.is_in(&actor.id()) {
        world.broken("an ask of oneself does not wait", format!("{:?}", asked.mail));
    }
    asked.judge(scope, outcome);
}

/// Ends a wait when it is dropped.
struct EndOfWait {
    world: Arc<World>,
    wait: usize,
}

impl Drop for EndOfWait {
    fn drop(&mut self) {
        self.world.end_wait(self.wait);
    }
}

struct Begin {
    at: Instant,
    stamp: u64,
}

impl Begin {
    fn now(world: &World) -> Self {
        Self { at: Instant::now(), stamp: world.stamp() }
    }
}

/// An ask under way.
struct Asking {
    mail: Arc<Mail>,
    limit: Duration,
    began: Begin,
}

impl Asking {
    fn judge(self, scope: &Scope<'_>, outcome: Option<Asked>) {
        let world = &scope.world;
        let Some(outcome) = outcome else { return };
        let took = self.began.at.elapsed();
        if took > self.limit + SLACK {
            let details = format!("{took:?} for {:?}: {:?}", self.limit, self.mail);
            world.broken("an ask ends by its deadline", details);
        }
        if self.mail.set(ASK_OVER) {
            world.broken("an ask ends once", format!("{:?}", self.mail));
        }
        match outcome {
            Ok(reply) => {
                let mail = self.mail.last();
                if reply.to != mail.id || !mail.has(HANDLED) {
                    let details = format!("reply to {}: {mail:?}", reply.to);
                    world.broken("a reply reaches its own ask", details);
                }
                scope.learn(&reply.known);
            }
            Err(error) => self.judge_error(world, &error, took),
        }
    }

    fn judge_error(&self, world: &World, error: &AskError, took: Duration) {
        let mail = &self.mail.last();
        let causes = world.causes(mail.target);
        let may_be_any = world.drop_panicked.load(SeqCst);
        let in_time = took >= self.limit;
        let is_explained = match error {
            AskError::Timeout(_) => in_time,
            AskError::Overloaded(_) => {
                let plan = &world.program.actors[mail.target];
                let is_bounded = world.program.nodes[plan.node].mailbox.is_some();
                // A full stash refuses at once, and so does a full mailbox what is handed on.
                let at_once = mail.arrived.load(SeqCst) != 0 || mail.has(HANDED_ON);
                is_bounded && (in_time || at_once)
            }
            AskError::Stopped(_) => causes != 0 || may_be_any,
            AskError::NotStarted(..) => causes & (NOT_STARTED | PANICKED) != 0 || may_be_any,
            AskError::HandlerPanicked(_) => causes & PANICKED != 0 || may_be_any,
            AskError::NoReply(_) => causes != 0 || mail.has(REPLY_WITHHELD) || may_be_any,
            AskError::Cycle(path) => self.is_real(world, path),
            _ => false,
        };
        if !is_explained {
            let promise = match error {
                AskError::Cycle(_) => "a cycle that is reported is one",
                _ => "an ask's error has its reason",
            };
            let details = format!("{error:?} after {took:?}: {mail:?}, causes {causes:b}");
            world.broken(promise, details);
        }
        if matches!(error, AskError::NoReply(_)) && mail.has(REPLIED) {
            world.broken("a reply that was taken arrives", format!("{mail:?}"));
        }
        // Who panics after handing an ask on may have failed it before the next handler ended.
        let may_have_failed = may_be_any && mail.has(HANDED_ON);
        if !matches!(error, AskError::Timeout(_)) && mail.has(ENDED) && !may_have_failed {
            let details = format!("{error:?}: {mail:?}");
            world.broken("a handler that has ended replies", details);
        }
        if !matches!(
            error,
            AskError::Timeout(_) | AskError::NoReply(_) | AskError::HandlerPanicked(_)
        ) {
            mail.set(DID_NOT_RUN);
        }
    }

    /// Whether each step of a path was an ask of a handler at some moment of this one.
    fn is_real(&self, world: &World, path: &[althing::ActorId]) -> bool {
        if world.hands_on.load(SeqCst) {
            return true;
        }
        let waits = world.waits.lock();
        let slots: Vec<_> = path.iter().map(|id| world.slot_of(id)).collect();
        slots.windows(2).all(|step| {
            let [Some(from), Some(to)] = *step else { return true };
            waits.iter().any(|wait| {
                let lasted = wait.ended.is_none_or(|ended| ended > self.began.stamp);
                wait.from == from && wait.to == to && lasted
            })
        })
    }
}

async fn ask_both(scope: &Scope<'_>, left: &Send, right: &Send) {
    let world = &scope.world;
    let one = |send: &Send| {
        let (sender, known) = scope.fork();
        let fork = Scope::outside(world, sender, known);
        let (actor, message) = message(&fork, send, Purpose::Ask)?;
        let mail = message.mail.clone();
        let wait = scope.by().map(|by| world.begin_wait(by, send.to));
        let asked = Asking { mail, limit: deadline(world), began: Begin::now(world) };
        let ask = asking(&actor, message, send, None);
        Some((awaiting_with(world, "ask", Own::of(&send.dropped), ask), asked, wait))
    };
    let (Some(left), Some(right)) = (one(left), one(right)) else { return };
    let both = join(left.0, right.0).await;
    for (outcome, asked, wait) in [(both.0, left.1, left.2), (both.1, right.1, right.2)] {
        asked.judge(scope, outcome);
        if let Some(wait) = wait {
            world.end_wait(wait);
        }
    }
}

/// A waker that does nothing and is counted.
pub(crate) struct CountWakes;

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {}
}

/// How long another thread may take to wake somebody.
const WAKING_MS_MAX: u32 = 500;

/// When the wakers of a future that was polled and dropped must be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// But for the moment in which another thread, that tells of an end, has one in its hands.
    AtOnce,
    /// When all is quiet: handlers that run inside each other on their asker's task keep its waker,
    /// two for each that waits for another, until their own tasks have polled them; and tokio keeps
    /// that of a task whose budget is spent until its next turn.
    InTheEnd,
}

/// Polls a future a number of times and drops it; none of its wakers stays.
pub(crate) fn poll_and_drop<T>(
    world: &World,
    what: &'static str,
    mut future: Pin<Box<dyn Future<Output = T> + std::marker::Send>>,
    polls: u8,
    (own, gone): (Own, Gone),
) -> Option<T> {
    let wakes = Arc::new(CountWakes);
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    let mut outcome = None;
    for _ in 0..polls {
        match calling_with(world, what, own, || future.as_mut().poll(&mut cx)) {
            Some(Poll::Pending) => {}
            Some(Poll::Ready(ready)) => {
                outcome = Some(ready);
                break;
            }
            None => break,
        }
    }
    calling_with(world, what, own, || drop(future));
    drop(waker);
    let kept = || Arc::strong_count(&wakes) - 1;
    match gone {
        Gone::AtOnce => {
            let is_gone = (0..WAKING_MS_MAX).any(|_| {
                let is_gone = kept() == 0;
                if !is_gone {
                    std::thread::sleep(Duration::from_millis(1));
                }
                is_gone
            });
            if !is_gone {
                let details = format!("{what}: {} of {polls} polls", kept());
                world.broken("no waker stays behind", details);
            }
        }
        Gone::InTheEnd => world.wakers.lock().push(wakes),
    }
    outcome
}

fn poll_ask(scope: &Scope<'_>, send: &Send, polls: u8) {
    let world = scope.world.clone();
    let Some((actor, message)) = message(scope, send, Purpose::Ask) else { return };
    let mail = message.mail.clone();
    let wait = scope.by().map(|by| world.begin_wait(by, send.to));
    let began = Begin::now(&world);
    let ask = asking(&actor, message, send, None);
    let outcome =
        poll_and_drop(&world, "ask", ask, polls, (Own::of(&send.dropped), Gone::InTheEnd));
    match outcome {
        Some(outcome) => {
            Asking { mail, limit: deadline(&world), began }.judge(scope, Some(outcome))
        }
        None => {
            mail.set(ASK_OVER);
        }
    }
    if let Some(wait) = wait {
        world.end_wait(wait);
    }
}

async fn move_ask(scope: &mut Scope<'_>, send: &Send) {
    let world = scope.world.clone();
    let (sender, known) = scope.fork();
    let task = Scope::outside(&world, sender, known);
    let Some((actor, message)) = message(&task, send, Purpose::Ask) else { return };
    let mail = message.mail.clone();
    let wait = scope.by().map(|by| world.begin_wait(by, send.to));
    scope.moved.extend(wait);
    let asked = Asking { mail, limit: deadline(&world), began: Begin::now(&world) };
    let mut ask = asking(&actor, message, send, None);
    let own = Own::of(&send.dropped);
    let poll = |cx: &mut Context<'_>| {
        Poll::Ready(calling_with(&world, "ask", own, || ask.as_mut().poll(cx)))
    };
    let first = poll_fn(poll).await;
    match first {
        None => {}
        Some(Poll::Ready(outcome)) => asked.judge(scope, Some(outcome)),
        Some(Poll::Pending) => {
            let under_way = world.task();
            let future = async move {
                let outcome = awaiting_with(&task.world, "ask", own, ask).await;
                asked.judge(&task, outcome);
                drop(under_way);
            };
            match &mut scope.place {
                Place::Exclusive(_, ctx) => ctx.detach(future),
                _ => drop(tokio::spawn(future)),
            }
        }
    }
}

/// Asks until another task of the same thread has got its turn. Whoever starts or stops an actor of
/// another runtime runs its hooks on a thread of one and spawns tasks into the other.
async fn ask_in_loop(scope: &Scope<'_>, to: usize) {
    let world = scope.world.clone();
    let Some(actor) = world.actor(to) else { return };
    let thread = std::thread::current();
    let is_one_thread = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let is_it = ["torture-current", "torture-paused"].contains(&thread.name().unwrap_or_default());
    if !is_one_thread || !is_it {
        return;
    }
    world.log(Entry::Poked { who: to });
    let had_its_turn = Arc::new(AtomicBool::new(false));
    let turn = had_its_turn.clone();
    drop(tokio::spawn(async move { turn.store(true, SeqCst) }));
    let wait = scope.by().map(|by| world.begin_wait(by, to));
    let lets_others_run = asks_until(&world, &actor, &had_its_turn).await;
    if let Some(wait) = wait {
        world.end_wait(wait);
    }
    if !lets_others_run {
        let details = format!("{ASKS_IN_LOOP_MAX} asks of {to}");
        world.broken("who asks in a loop lets others run", details);
    }
}

async fn asks_until(world: &World, actor: &ActorRef<Puppet>, had_its_turn: &AtomicBool) -> bool {
    for _ in 0..ASKS_IN_LOOP_MAX {
        let asked = awaiting(world, "ask", actor.send(Poke)).await;
        if !matches!(asked, Some(Ok(()))) || had_its_turn.load(SeqCst) {
            return true;
        }
    }
    false
}

fn broadcast(scope: &Scope<'_>, node: usize) {
    let world = &scope.world;
    let Some(group) = world.groups.lock().get(node).cloned() else { return };
    let prototype = Message::loose(world, ANYONE);
    prototype.mail.set(RETURNED);
    calling(world, "broadcast", || group.broadcast(&prototype));
    calling(world, "least_loaded", || group.least_loaded().map(|actor| actor.is_active()));
}
