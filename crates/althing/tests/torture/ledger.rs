//! An actor whose turns are held: one on each node, which tells, publishes and replies. What it lets
//! out is seen once its commit and those before it are written, and never otherwise.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::task::Poll;

use althing::{
    Actor, ActorError, ActorRef, AskError, Commit, Context, Epoch, Handler, Node, Turns,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::message::{Event, Message};
use crate::perform::{awaiting, calling};
use crate::program::{Then, TurnPlan};
use crate::records::{ACCEPTED, Known, Mail};
use crate::runtimes::DEADLINE_TICKS;
use crate::scope::Scope;
use crate::world::{Draft, World};

/// The name of each node's ledger.
pub(crate) const NAME: &str = "ledger";

/// One turn of some ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(u32);

impl TurnId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of all ledgers and their turns.
pub(crate) struct Books {
    nodes: Vec<Book>,
    turns: Mutex<Vec<Turn>>,
    /// Topics with events of turns, whose numbers nobody writes down.
    pub(crate) unlogged: Mutex<BTreeSet<usize>>,
}

#[derive(Default)]
struct Book {
    lives: AtomicU32,
    /// Whether somebody ends its lives, or some commit fails.
    has_trouble: AtomicBool,
}

struct Turn {
    node: usize,
    /// In which life it ran, and as which turn of it.
    ran: Option<(u32, u32)>,
    is_written: bool,
    /// What it told somebody.
    told: Option<Arc<Mail>>,
}

impl Books {
    pub(crate) fn new(nodes: usize) -> Self {
        let nodes = (0..nodes).map(|_| Book::default()).collect();
        Self { nodes, turns: Mutex::default(), unlogged: Mutex::default() }
    }

    fn begin(&self, node: usize) -> TurnId {
        let mut turns = self.turns.lock();
        turns.push(Turn { node, ran: None, is_written: false, told: None });
        TurnId(u32::try_from(turns.len() - 1).expect("few turns"))
    }
}

/// Something that a turn let out is seen.
pub(crate) fn check_out(world: &World, turn: TurnId, what: &str) {
    let turns = world.books.turns.lock();
    let seen = &turns[turn.index()];
    let is_before = |other: &Turn| match (other.ran, seen.ran) {
        (Some((life, place)), Some((own, own_place))) => {
            other.node == seen.node && life == own && place <= own_place
        }
        _ => false,
    };
    let is_whole =
        seen.is_written && turns.iter().all(|other| !is_before(other) || other.is_written);
    drop(turns);
    if !is_whole {
        world.broken("what a turn lets out waits for its commit", format!("{what} of {turn:?}"));
    }
}

pub(crate) struct Ledger {
    world: Arc<World>,
    life: u32,
    turns: u32,
    change: Option<(TurnId, u16, bool)>,
}

impl Ledger {
    pub(crate) fn new(world: Arc<World>, node: usize) -> Self {
        let life = world.books.nodes[node].lives.fetch_add(1, SeqCst);
        Self { world, life, turns: 0, change: None }
    }

    fn tell(&self, to: usize, turn: TurnId) {
        let Some(actor) = self.world.actor(to) else { return };
        let mail = self.world.mail(Draft::loose(to));
        let known = Arc::new(Known::nothing(self.world.slots.len()));
        let mut message = Message::new(&self.world, mail.clone(), known, Arc::new([]));
        message.turn = Some(turn);
        match actor.send(message).try_tell() {
            Ok(()) => self.world.books.turns.lock()[turn.index()].told = Some(mail),
            refused => _ = self.world.settle_tell(&mail, refused),
        }
    }
}

impl Actor for Ledger {
    const NAME: &'static str = "torture.ledger";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, ctx: &mut Context<Self>) -> Commit {
        let Some((turn, ticks, fails)) = self.change.take() else { return Commit::unchanged() };
        let (world, node) = (self.world.clone(), ctx.node());
        Commit::when(async move {
            node.sleep(world.tick * u32::from(ticks)).await;
            if fails {
                return Err(ActorError::new("on purpose"));
            }
            world.books.turns.lock()[turn.index()].is_written = true;
            Ok(())
        })
    }
}

struct Enter {
    turn: TurnId,
    plan: TurnPlan,
}

impl Handler<Enter> for Ledger {
    type Reply = TurnId;

    async fn handle(&mut self, Enter { turn, plan }: Enter, ctx: &mut Context<Self>) -> TurnId {
        let world = self.world.clone();
        world.books.turns.lock()[turn.index()].ran = Some((self.life, self.turns));
        self.turns += 1;
        self.change = Some((turn, plan.commits, plan.fails));
        if let Some(to) = plan.tells {
            self.tell(to, turn);
        }
        if plan.waits > 0 {
            ctx.node().sleep(world.tick * u32::from(plan.waits)).await;
        }
        if let Some((index, topic)) = plan.publishes.and_then(|it| Some((it, world.topic(it)?))) {
            world.books.unlogged.lock().insert(index);
            let known = Arc::new(Known::nothing(world.slots.len()));
            let mut event = Event::new(&world, index, known, Arc::new([]));
            event.turn = Some(turn);
            calling(&world, "ctx.publish", || ctx.publish(&topic, event));
        }
        let task = world.task();
        ctx.detach(async move {
            check_out(&world, turn, "a task");
            drop(task);
        });
        turn
    }
}

/// Asks a ledger for a turn, and does to it what the plan says.
pub(crate) async fn turn(scope: &Scope<'_>, plan: &TurnPlan) {
    let world = &scope.world;
    let Some(node) = world.node(plan.node) else { return };
    let book = &world.books.nodes[plan.node];
    if plan.fails || plan.then != Then::Nothing {
        book.has_trouble.store(true, SeqCst);
    }
    let turn = world.books.begin(plan.node);
    let (ledger, limit) = (node.get::<Ledger>(NAME), world.tick * DEADLINE_TICKS);
    let began = Instant::now();
    let asks = ledger.clone();
    let enter = Enter { turn, plan: plan.clone() };
    let mut ask = Box::pin(async move { asks.send(enter).timeout(limit).await });
    if plan.then != Then::Nothing {
        let first = poll_fn(|cx| Poll::Ready(calling(world, "ask", || ask.as_mut().poll(cx))));
        if let Some(Poll::Ready(outcome)) = first.await {
            return judge(world, plan, turn, outcome);
        }
        node.sleep(world.tick).await;
        end(world, &node, &ledger, plan.then);
    }
    let Some(outcome) = awaiting(world, "ask", ask).await else { return };
    let is_late = began.elapsed() >= limit;
    if !(is_late && matches!(outcome, Err(AskError::Timeout(_)))) {
        judge(world, plan, turn, outcome);
    }
}

fn end(world: &World, node: &Node, ledger: &ActorRef<Ledger>, then: Then) {
    calling(world, "the end of a ledger", || match then {
        Then::Nothing => {}
        Then::Fence => node.fence(&ledger.id(), Epoch(1)),
        Then::Stop => drop(ledger.stop()),
        Then::Kill => ledger.kill(),
    });
}

fn judge(world: &World, plan: &TurnPlan, turn: TurnId, outcome: Result<TurnId, AskError>) {
    match outcome {
        Ok(reply) => {
            if reply != turn {
                world.broken("a reply reaches its own ask", format!("{reply:?} to {turn:?}"));
            }
            check_out(world, turn, "a reply");
            // It left before the reply.
            let told = world.books.turns.lock()[turn.index()].told.take();
            told.inspect(|mail| _ = mail.set(ACCEPTED));
        }
        Err(error) => {
            let is_explained = world.books.nodes[plan.node].has_trouble.load(SeqCst)
                || world.shut.lock().contains(&plan.node);
            if !is_explained {
                world.broken("a turn fails for a reason", format!("{turn:?}: {error:?}"));
            }
        }
    }
}
