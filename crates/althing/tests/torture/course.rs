//! The course of one run: build, let the clients work, wait until all is quiet, see that everybody
//! is well, shut down, and see that nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use althing::{
    ActorOptions, ChildStrategy, Group, MailboxKind, Metrics, Node, RestartPolicy, Start,
    Supervision, TopicOptions,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::events;
use crate::health::{self, Witness};
use crate::ledger::Ledger;
use crate::life::{self, spawn_in_slot};
use crate::perform::{awaiting, calling, perform};
use crate::probes::Check;
use crate::program::{AfterPanic, Birth, ClientPlace, NodePlan, Siblings};
use crate::puppet::Puppet;
use crate::records::{Known, SHUT_DOWN};
use crate::runtimes::DEADLINE_TICKS;
use crate::scope::Scope;
use crate::world::World;
use crate::{checks, stalls, streams, wakings};

/// How long clients and actors may take before they are given nothing more to do.
const PATIENCE_TICKS: u32 = 5_000;
/// How much longer than without progress anything is waited for: what goes on for ever is none.
const EXTENSIONS_MAX: u32 = 20;
/// More serial numbers than a program uses on one node.
const SERIALS: usize = 200;

pub(crate) async fn course(world: Arc<World>, handles: Vec<Handle>) {
    build(&world, &handles);
    world.enter_stage("clients");
    run_clients(&world, &handles).await;
    world.enter_stage("activations");
    wakings::check_activations(&world).await;
    wakings::check_sleepers(&world);
    world.enter_stage("settling");
    world.settles.store(true, SeqCst);
    settle(&world).await;
    world.is_over.store(true, SeqCst);
    // A drop may have begun at that moment.
    until(&world, || world.alive.tasks.load(SeqCst) == 0).await;
    health::check(&world).await;
    world.enter_stage("shutdown");
    shut_down(&world).await;
    streams::read_to_the_end(&world);
    world.enter_stage("clearing");
    clear(&world).await;
    checks::judge(&world);
    world.enter_stage("over");
}

/// Waits until `is_so`, as long as anything gets on and for a few seconds of the machine's time
/// after that; returns whether it came to be. On a busy machine, what waits takes its time.
pub(crate) async fn until(world: &World, is_so: impl Fn() -> bool) -> bool {
    until_at_most(world, EXTENSIONS_MAX, is_so).await
}

/// As `until`, for so many times as long as without progress.
async fn until_at_most(world: &World, times: u32, is_so: impl Fn() -> bool) -> bool {
    let (mut idle_looks, mut seen) = (0, world.pulse());
    for look in 0..world.looks_max * times {
        if is_so() {
            return true;
        }
        if idle_looks == world.looks_max {
            return false;
        }
        let pause = if look < 20 { world.tick / 5 } else { world.tick * 10 };
        tokio::time::sleep(pause).await;
        let now = world.pulse();
        idle_looks = if std::mem::replace(&mut seen, now) == now { idle_looks + 1 } else { 0 };
    }
    is_so()
}

fn build(world: &Arc<World>, handles: &[Handle]) {
    let program = &world.program;
    for (index, plan) in program.nodes.iter().enumerate() {
        let _entered = handles[index].enter();
        let mut builder = Node::builder(format!("torture-{index}"))
            .options::<Puppet>(options(world, plan))
            .metrics(if plan.counts { Metrics::On } else { Metrics::Off });
        let weak = Arc::downgrade(world);
        builder = builder.actor(move |_: Start<Ledger>| {
            let world = weak.upgrade().ok_or_else(|| althing::ActorError::new("it is over"));
            std::future::ready(world.map(|world| Ledger::new(world, index)))
        });
        if plan.has_factory {
            let weak = Arc::downgrade(world);
            builder = builder.actor(move |start: Start<Puppet>| {
                let world = weak.upgrade();
                let slot = start.key().parse::<usize>();
                async move {
                    let slot = slot?;
                    let world = world.ok_or_else(|| althing::ActorError::new("it is over"))?;
                    world.build(slot)
                }
            });
        }
        let node = builder.build();
        // Serial numbers are a node's own; here they tell actors of different nodes apart.
        (0..index * SERIALS).for_each(|serial| drop(node.get::<Witness>(serial.to_string())));
        world.nodes.lock().push(node);
    }
    for (index, plan) in program.topics.iter().enumerate() {
        let Some(node) = world.node(plan.node) else { continue };
        let options = TopicOptions { replay: plan.replay };
        world.topics.lock().push(node.topic(format!("topic-{index}"), options));
    }
    for (slot, plan) in program.actors.iter().enumerate() {
        if plan.birth != Birth::Later {
            spawn_in_slot(world, slot, None);
        }
    }
    for (index, plan) in program.topics.iter().enumerate() {
        plan.subscribers.iter().for_each(|who| events::subscribe(world, *who, index, true));
    }
    let group = |node: usize| -> Group<Puppet> {
        let members = (0..world.slots.len()).filter(|slot| program.actors[*slot].node == node);
        members.filter_map(|slot| world.actor(slot)).collect()
    };
    *world.groups.lock() = (0..program.nodes.len()).map(group).collect();
}

fn options(world: &World, plan: &NodePlan) -> ActorOptions {
    let restarts = |restarts_max| {
        let backoff = Duration::from_millis(1);
        let policy = RestartPolicy { restarts_max, backoff, ..RestartPolicy::default() };
        Supervision::Restart(RestartPolicy { backoff_max: backoff, ..policy })
    };
    let supervision = match plan.after_panic {
        AfterPanic::Restart => restarts(10_000),
        AfterPanic::RestartOnce => restarts(1),
        AfterPanic::Resume => Supervision::Resume,
        AfterPanic::Stop => Supervision::Stop,
        AfterPanic::Escalate => Supervision::Escalate,
    };
    let children = match plan.siblings {
        Siblings::Alone => ChildStrategy::OneForOne,
        Siblings::All => ChildStrategy::AllForOne,
        Siblings::Rest => ChildStrategy::RestForOne,
    };
    let mailbox = plan.mailbox.map_or(MailboxKind::Unbounded, MailboxKind::Bounded);
    let options = ActorOptions::default()
        .mailbox(mailbox)
        .supervision(supervision)
        .children(children)
        .batch_budget(plan.batch_budget)
        .deadline(world.tick * DEADLINE_TICKS);
    if plan.passivates { options.passivate_after(Duration::from_secs(2)) } else { options }
}

async fn run_clients(world: &Arc<World>, handles: &[Handle]) {
    let targets = world.slots.len();
    let mut ends = Vec::new();
    for (index, plan) in world.program.clients.iter().enumerate() {
        let (end, ended) = oneshot::channel::<()>();
        let (world, ops) = (world.clone(), plan.ops.clone());
        let client = async move {
            let known = Known::nothing(targets);
            let mut scope = Scope::outside(&world, Some(targets + index), known);
            perform(&mut scope, &ops).await;
            drop(scope);
            end.send(()).ok();
        };
        match plan.place {
            ClientPlace::Task(node) => drop(handles[node].spawn(client)),
            ClientPlace::Thread(node) => {
                let handle = handles[node].clone();
                let run = move || handle.block_on(client);
                let thread = std::thread::Builder::new().name("torture-client".into()).spawn(run);
                drop(thread.expect("a thread starts"));
            }
        }
        ends.push(ended);
    }
    for mut ended in ends {
        // Whom deadline after deadline holds up goes on without further instructions.
        if timeout(world.tick * PATIENCE_TICKS, &mut ended).await.is_err() {
            world.is_over.store(true, SeqCst);
        } else {
            continue;
        }
        match timeout(life::patience(world), ended).await {
            Ok(_) => {}
            Err(_) => world.broken("clients get on", "a client hangs"),
        }
    }
}

/// Lets everything come to rest: gates open, replies let go, timers due.
async fn settle(world: &Arc<World>) {
    for is_last in [false, true] {
        for slot in 0..world.slots.len() {
            // Nobody need be woken for what is not there.
            if world.causes(slot) & SHUT_DOWN == 0
                && let Some(actor) = world.actor(slot)
            {
                // An ask whose time is over does not run: on a busy machine its gate stayed shut.
                let told = actor.send(Check).timeout(world.tick * 1_000).tell();
                _ = awaiting(world, "tell", told).await;
                let check = actor.send(Check).timeout(world.tick * 1_000);
                drop(awaiting(world, "ask", check).await);
            }
        }
        let is_quiet = || world.alive.tasks.load(SeqCst) == 0 && world.unsettled().is_empty();
        let times = if is_last { EXTENSIONS_MAX } else { 1 };
        if until_at_most(world, times, is_quiet).await {
            return;
        }
        // Whom deadline after deadline holds up comes to rest without further instructions.
        world.is_over.store(!is_last || world.is_over.load(SeqCst), SeqCst);
    }
    let unsettled = world.unsettled();
    if !unsettled.is_empty() {
        let first = &unsettled[0];
        let target = world.slots.get(first.target).and_then(|slot| slot.actor.lock().clone());
        let target = target.map(|actor| actor.node().inspector().actor(&actor.id()));
        let details = format!("{} of them, first {first:?}, for {target:?}", unsettled.len());
        world.broken("a message is handled or dropped", details);
    }
    let tasks = world.alive.tasks.load(SeqCst);
    if tasks != 0 {
        world.broken("tasks end", format!("{tasks} do not"));
    }
}

async fn shut_down(world: &Arc<World>) {
    let nodes = world.nodes.lock().clone();
    for (index, node) in nodes.iter().enumerate() {
        let limit = life::patience(world);
        let began = std::time::Instant::now();
        let shutdown = timeout(limit, node.shutdown(world.tick * 3_000));
        match awaiting(world, "shutdown", shutdown).await {
            Some(Ok(report)) if report.killed.is_empty() => {}
            Some(Ok(_)) if stalls::any_long_since(began) => {}
            Some(Ok(report)) => {
                let details = format!("node {index} had to kill {:?}", report.killed);
                world.broken("idle actors stop at a shutdown", details);
            }
            Some(Err(_)) => world.broken("a shutdown ends", format!("node {index}")),
            None => {}
        }
    }
    for slot in 0..world.slots.len() {
        let Some(actor) = world.actor(slot) else { continue };
        if actor.send(Check).try_tell().is_ok() {
            world.broken("after a shutdown addresses refuse", format!("actor {slot}"));
        }
    }
}

/// Lets go of everything, and sees it go.
async fn clear(world: &Arc<World>) {
    for slot in &world.slots {
        let subscriptions: Vec<_> =
            slot.subscriptions.iter().map(|place| place.held.lock().take()).collect();
        calling(world, "unsubscribe", || drop(subscriptions));
        slot.actor.lock().take();
    }
    world.groups.lock().clear();
    let (topics, nodes) =
        (std::mem::take(&mut *world.topics.lock()), std::mem::take(&mut *world.nodes.lock()));
    calling(world, "drop", || drop((topics, nodes)));
    let alive = &world.alive;
    let counts: [(&str, &AtomicI64); 6] = [
        ("states", &alive.states),
        ("messages", &alive.messages),
        ("events", &alive.events),
        ("replies", &alive.replies),
        ("ticks", &alive.ticks),
        ("attached streams", &alive.streams),
    ];
    let cells = || {
        let is_there = |slot: &&crate::world::Slot| {
            slot.weak.lock().as_ref().is_some_and(|weak| weak.upgrade().is_some())
        };
        world.slots.iter().filter(is_there).count()
    };
    until(world, || cells() == 0 && counts.iter().all(|count| count.1.load(SeqCst) == 0)).await;
    for (what, count) in counts {
        let left = count.load(SeqCst);
        if left != 0 {
            world.broken("nothing stays behind", format!("{left} {what}"));
        }
    }
    if cells() != 0 {
        world.broken("nothing stays behind", format!("{} cells", cells()));
    }
}
