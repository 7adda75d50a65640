//! Actors whose turns are held, while they move between nodes: nothing is lost, doubled or let out
//! too early, and a name has one life at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use althing::{
    Actor, ActorId, ActorRef, Codecs, Commit, Context, Handler, Node, Remote, StopReason,
    Terminated, Turns, Wire, Write,
};
use althing_testkit::{Bridge, World, sweep};
use parking_lot::Mutex;

/// What all nodes share: the durable lines, and how many lives have their state in memory.
#[derive(Clone, Default)]
struct Disk {
    lines: Arc<Mutex<Vec<String>>>,
    lives: Arc<AtomicUsize>,
}

/// A book whose lines are on the disk, each some time after its turn.
struct Book {
    disk: Disk,
    fresh: Vec<String>,
    lines: usize,
}

#[derive(Wire)]
struct Add(String);

impl Drop for Book {
    fn drop(&mut self) {
        self.disk.lives.fetch_sub(1, SeqCst);
    }
}

impl Actor for Book {
    const NAME: &'static str = "test.book";
    const TURNS: Turns = Turns::Held;
    const CODECS: Option<fn(&mut Codecs<Self>)> = Some(Self::codecs);

    fn commit(&mut self, ctx: &mut Context<Self>) -> Commit {
        let (disk, fresh) = (self.disk.clone(), std::mem::take(&mut self.fresh));
        let written = ctx.node().sleep(Duration::from_millis(1 + ctx.random_u64() % 5));
        Commit::when(async move {
            written.await;
            disk.lines.lock().extend(fresh);
            Ok(())
        })
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        ctx.node().sleep(Duration::from_millis(ctx.random_u64() % 3)).await;
    }
}

impl Remote for Book {
    fn codecs(codecs: &mut Codecs<Self>) {
        codecs.message::<Add, Write>("add");
    }
}

impl Handler<Add> for Book {
    type Reply = u64;

    async fn handle(&mut self, Add(line): Add, ctx: &mut Context<Self>) -> u64 {
        if ctx.random_u64().is_multiple_of(3) {
            ctx.node().sleep(Duration::from_millis(1)).await;
        }
        self.fresh.push(line);
        self.lines += 1;
        self.lines as u64
    }
}

fn node(world: &World, bridge: &Bridge, name: &str, disk: &Disk) -> Node {
    let disk = disk.clone();
    let build = move |_| {
        let (disk, lines) = (disk.clone(), disk.lines.lock().len());
        async move {
            assert_eq!(disk.lives.fetch_add(1, SeqCst), 0, "a name has one life at a time");
            Ok(Book { disk, fresh: Vec::new(), lines })
        }
    };
    world.node(name).cluster(bridge.end()).actor(build).build()
}

#[test]
fn a_move_waits_for_turns_on_their_way_and_loses_none() {
    sweep(0..30, async |world| {
        let (bridge, disk) = (Bridge::new(), Disk::default());
        let nodes = ["one", "two", "three"].map(|name| node(&world, &bridge, name, &disk));
        let mut senders = Vec::new();
        for (who, node) in nodes.iter().enumerate() {
            let (book, node, disk) = (node.get::<Book>("a"), node.clone(), disk.clone());
            senders.push(world.spawn(async move {
                for n in 0..40 {
                    let line = format!("{who} {n}");
                    if n % 3 == 0 {
                        book.send(Add(line)).tell().await.expect("accepted");
                        continue;
                    }
                    let lines = book.send(Add(line.clone())).await.expect("it is committed");
                    assert_eq!(disk.lines.lock()[lines as usize - 1], line, "and durable");
                    node.sleep(Duration::from_millis(n % 4)).await;
                }
            }));
        }
        let id = ActorId::named("test.book", "a");
        for to in [1, 2, 0, 1, 0, 2] {
            world.sleep(Duration::from_millis(7)).await;
            bridge.carry(&id, &nodes[to]).await;
        }
        for sender in senders {
            sender.await;
        }
        world.sleep(Duration::from_secs(1)).await;
        let lines = disk.lines.lock().clone();
        for who in 0..3 {
            let heard: Vec<_> =
                lines.iter().filter(|line| line.starts_with(&format!("{who} "))).cloned().collect();
            let sent: Vec<_> = (0..40).map(|n| format!("{who} {n}")).collect();
            assert_eq!(heard, sent);
        }
        assert!(nodes[2].get::<Book>("a").is_active(), "where it went last");
    });
}

/// Hears of ends.
struct Watcher(Arc<Mutex<Vec<String>>>);

struct Watch(ActorRef<Book>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.lock().push(format!("{:?}", other.reason));
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(book): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&book);
    }
}

#[test]
fn watchers_on_every_node_hear_of_the_one_end_wherever_it_is() {
    sweep(0..30, async |world| {
        let (bridge, disk) = (Bridge::new(), Disk::default());
        // Of one name, all three: nodes are told apart by their incarnations.
        let nodes = ["one", "one", "one"].map(|name| node(&world, &bridge, name, &disk));
        nodes[0].get::<Book>("a").send(Add("1".into())).await.expect("it runs");
        let heard = Arc::new(Mutex::new(Vec::new()));
        for node in &nodes {
            let watcher = node.spawn(Watcher(heard.clone()));
            watcher.send(Watch(node.get("a"))).await.expect("it runs");
        }
        let id = ActorId::named("test.book", "a");
        for to in [1, 0, 2, 1] {
            bridge.carry(&id, &nodes[to]).await;
            nodes[2].get::<Book>("a").send(Add("2".into())).await.expect("it runs");
        }
        world.sleep(Duration::from_secs(1)).await;
        assert_eq!(*heard.lock(), [] as [&str; 0], "it lives on");
        nodes[0].get::<Book>("a").stop().await;
        world.sleep(Duration::from_secs(1)).await;
        assert_eq!(*heard.lock(), ["Requested"; 3]);
    });
}

/// Sleeps, and wants to be woken.
struct Sleeper {
    node: String,
    rung: Arc<Mutex<Vec<String>>>,
}

#[derive(Wire)]
struct Nap;
struct Ring;

impl Actor for Sleeper {
    const NAME: &'static str = "test.sleeper";
    const CODECS: Option<fn(&mut Codecs<Self>)> = Some(Self::codecs);
}

impl Remote for Sleeper {
    fn codecs(codecs: &mut Codecs<Self>) {
        codecs.message::<Nap, Write>("nap");
    }
}

impl Handler<Nap> for Sleeper {
    type Reply = ();

    async fn handle(&mut self, _: Nap, ctx: &mut Context<Self>) {
        ctx.wake_after(Duration::from_secs(10), Ring);
        ctx.passivate();
    }
}

impl Handler<Ring> for Sleeper {
    type Reply = ();

    async fn handle(&mut self, _: Ring, _: &mut Context<Self>) {
        self.rung.lock().push(self.node.clone());
    }
}

#[test]
fn a_timer_that_was_to_wake_an_actor_stays_behind_when_it_moves_and_wakes_nobody() {
    sweep(0..20, async |world| {
        let (bridge, rung) = (Bridge::new(), Arc::new(Mutex::new(Vec::new())));
        let build = |name: &str| {
            let (node, rung) = (name.to_owned(), rung.clone());
            let sleeper = move |_| {
                let (node, rung) = (node.clone(), rung.clone());
                async move { Ok(Sleeper { node, rung }) }
            };
            world.node(name).cluster(bridge.end()).actor(sleeper).build()
        };
        let nodes = [build("one"), build("two")];
        let id = ActorId::named("test.sleeper", "a");
        bridge.settle(&id, &nodes[0]);
        nodes[0].get::<Sleeper>("a").send(Nap).await.expect("it runs");
        world.sleep(Duration::from_secs(1)).await;
        bridge.carry(&id, &nodes[1]).await;
        world.sleep(Duration::from_secs(30)).await;
        assert_eq!(*rung.lock(), [] as [&str; 0], "what it has set stays behind");
        assert!(!nodes.iter().any(|node| node.get::<Sleeper>("a").is_active()));
        // On the way back nothing of before comes up again.
        bridge.carry(&id, &nodes[0]).await;
        nodes[1].get::<Sleeper>("a").send(Nap).await.expect("it runs");
        world.sleep(Duration::from_secs(30)).await;
        assert_eq!(*rung.lock(), ["one"]);
    });
}
