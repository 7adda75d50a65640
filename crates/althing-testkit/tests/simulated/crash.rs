//! A node that crashes: nothing of it runs on, and a node after it begins with what survived
//! outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use althing::{Actor, ActorError, ActorRef, AskError, Context, Handler, Node, StopReason};
use althing_testkit::{Probe, World, sweep};
use parking_lot::Mutex;

/// What outlives a process: here a list, in real life a disk.
type Disk = Arc<Mutex<Vec<u32>>>;

struct Account {
    disk: Disk,
    /// Written down only when the account is asked to.
    in_memory: u32,
    stopped: Arc<AtomicU32>,
    dropped: Arc<AtomicU32>,
}

struct Deposit(u32);
struct Balance;
struct Linger;

impl Actor for Account {
    const NAME: &'static str = "test.account";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        self.stopped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Handler<Deposit> for Account {
    type Reply = ();

    async fn handle(&mut self, Deposit(sum): Deposit, ctx: &mut Context<Self>) {
        self.in_memory += sum;
        ctx.node().sleep(Duration::from_millis(5)).await;
        self.disk.lock().push(sum);
    }
}

impl Handler<Balance> for Account {
    type Reply = u32;

    async fn handle(&mut self, _: Balance, _: &mut Context<Self>) -> u32 {
        self.in_memory
    }
}

impl Handler<Linger> for Account {
    type Reply = ();

    async fn handle(&mut self, _: Linger, ctx: &mut Context<Self>) {
        ctx.node().sleep(Duration::from_secs(3)).await;
    }
}

#[derive(Default)]
struct Bank {
    disk: Disk,
    stopped: Arc<AtomicU32>,
    dropped: Arc<AtomicU32>,
}

impl Bank {
    fn open(&self, world: &World) -> Node {
        let (disk, stopped, dropped) =
            (self.disk.clone(), self.stopped.clone(), self.dropped.clone());
        world
            .node("bank")
            .actor(move |_| {
                let (disk, stopped, dropped) = (disk.clone(), stopped.clone(), dropped.clone());
                let in_memory = disk.lock().iter().sum();
                async move { Ok::<_, ActorError>(Account { disk, in_memory, stopped, dropped }) }
            })
            .build()
    }
}

#[test]
fn a_crash_runs_no_hook_and_drops_all_state() {
    let world = World::new(1);
    let bank = Bank::default();
    let node = bank.open(&world);
    world.run(async {
        // One is idle, one is in a handler, one has been sent something that it has not seen.
        let [idle, busy, fresh] = ["idle", "busy", "fresh"].map(|name| node.get::<Account>(name));
        idle.send(Balance).await.expect("it runs");
        let lingering = busy.clone();
        let asked = world.spawn(async move { lingering.send(Linger).await });
        world.sleep(Duration::from_secs(1)).await;
        fresh.send(Deposit(1)).tell().await.expect("room");
        world.crash(&node);
        assert_eq!(bank.stopped.load(Ordering::Relaxed), 0);
        assert_eq!(bank.dropped.load(Ordering::Relaxed), 2);
        assert!(asked.await.is_err());
        assert_eq!(world.elapsed(), Duration::from_secs(1), "it failed at once");
        for account in [idle, busy, fresh] {
            assert_eq!(account.send(Balance).await, Err(AskError::Stopped(account.id())));
            assert!(account.is_stopped());
        }
        world.sleep(Duration::from_secs(60)).await;
        assert!(bank.disk.lock().is_empty(), "nothing of it runs on");
    });
}

#[test]
fn a_node_after_a_crash_begins_with_what_survived() {
    let world = World::new(1);
    let bank = Bank::default();
    let before = bank.open(&world);
    world.run(async {
        let account = before.get::<Account>("ada");
        account.send(Deposit(5)).await.expect("it runs");
        account.send(Deposit(7)).tell().await.expect("room");
        // In memory, not yet on disk.
        world.sleep(Duration::from_millis(1)).await;
        world.crash(&before);
        let after = bank.open(&world);
        assert_ne!(before, after);
        assert_eq!(after.name(), before.name());
        assert_eq!(after.get::<Account>("ada").send(Balance).await, Ok(5));
        assert_eq!(account.send(Balance).await, Err(AskError::Stopped(account.id())));
    });
}

#[test]
fn an_address_taken_after_the_crash_refuses_too() {
    let world = World::new(1);
    let bank = Bank::default();
    let node = bank.open(&world);
    world.crash(&node);
    world.run(async {
        let account = node.get::<Account>("ada");
        assert_eq!(account.send(Balance).await, Err(AskError::Stopped(account.id())));
        assert_eq!(bank.dropped.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn other_nodes_and_the_test_go_on() {
    let world = World::new(1);
    let bank = Bank::default();
    let (node, other) = (bank.open(&world), world.node("other").build());
    world.run(async {
        let (probe, mut heard) = Probe::spawn(&other);
        node.get::<Account>("ada").send(Balance).await.expect("it runs");
        world.crash(&node);
        probe.send("still here").tell().await.expect("it runs");
        assert_eq!(heard.next().await, "still here");
        other.sleep(Duration::from_secs(1)).await;
    });
}

struct Arsonist {
    world: World,
    node: Node,
}

struct Light;

impl Actor for Arsonist {
    const NAME: &'static str = "test.arsonist";
}

impl Handler<Light> for Arsonist {
    type Reply = ();

    async fn handle(&mut self, _: Light, ctx: &mut Context<Self>) {
        self.world.crash(&self.node);
        ctx.node().sleep(Duration::from_secs(1)).await;
        unreachable!("its node has crashed");
    }
}

#[test]
fn an_actor_that_crashes_its_own_node_ends_where_it_next_waits() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let arsonist: ActorRef<Arsonist> =
            node.spawn(Arsonist { world: world.clone(), node: node.clone() });
        assert!(arsonist.send(Light).await.is_err());
        assert!(arsonist.is_stopped());
        world.sleep(Duration::from_secs(10)).await;
    });
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_any_moment() {
    sweep(0..200, async |world: World| {
        let bank = Bank::default();
        let node = bank.open(&world);
        let account = node.get::<Account>("ada");
        let client = world.spawn(async move {
            let mut acknowledged = 0;
            while account.send(Deposit(1)).await.is_ok() {
                acknowledged += 1;
            }
            acknowledged
        });
        world.sleep(Duration::from_millis(world.random_u64() % 100)).await;
        world.crash(&node);
        let acknowledged = client.await;
        let node = bank.open(&world);
        let balance = node.get::<Account>("ada").send(Balance).await.expect("it runs");
        assert!(balance >= acknowledged && balance <= acknowledged + 1);
    });
}

#[test]
fn a_world_ends_its_nodes_with_its_last_handle() {
    let world = World::new(1);
    let bank = Bank::default();
    let node = bank.open(&world);
    let weak = node.downgrade();
    world.run(async {
        node.get::<Account>("idle").send(Balance).await.expect("it runs");
        node.get::<Account>("busy").send(Linger).tell().await.expect("room");
        world.sleep(Duration::from_secs(1)).await;
    });
    drop(node);
    assert!(weak.upgrade().is_some(), "a node lives on until it is ended");
    let other = world.clone();
    drop(world);
    assert_eq!(bank.dropped.load(Ordering::Relaxed), 0);
    drop(other);
    assert_eq!(bank.dropped.load(Ordering::Relaxed), 2);
    assert_eq!(bank.stopped.load(Ordering::Relaxed), 0);
    assert!(weak.upgrade().is_none(), "nothing keeps its memory");
}
