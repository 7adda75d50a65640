//! Drops that use the runtime: whatever is dropped, wherever, may tell, stop, kill, spawn, publish,
//! subscribe or look, and the node goes on or ends in time.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{AtDrop, On, alone, settle, soon, watched, within};
use althing::{
    Actor, ActorRef, Context, EventHandler, Handler, Node, Published, Subscription, Topic,
    TopicOptions,
};
use tokio::runtime::Builder;

/// What a drop does, once.
type Deed = fn(&Node, &ActorRef<Porter>);

const DEEDS: [(&str, Deed); 11] = [
    ("tells", |_, porter| {
        for _ in 0..3 {
            porter.send(Hand(Bag(None))).try_tell().ok();
        }
    }),
    ("stops", |_, porter| drop(porter.stop())),
    ("kills", |_, porter| porter.kill()),
    ("kills the node", |node, _| node.kill()),
    ("spawns", |node, _| {
        node.spawn(Porter::default()).send(Hand(Bag(None))).try_tell().ok();
    }),
    ("spawns by name", |node, _| drop(node.spawn_named("a", Porter::default()))),
    ("publishes", |node, _| drop(topic(node).publish(Bag(None)))),
    ("wakes another", |node, _| {
        node.get::<Porter>("b").send(Hand(Bag(None))).try_tell().ok();
    }),
    ("activates", |_, porter| porter.activate()),
    ("subscribes", |node, porter| drop(topic(node).subscribe(porter))),
    ("looks", |node, porter| {
        let depth = porter.mailbox_depth();
        drop((porter.is_active(), porter.is_stopped(), depth, node.metrics()));
        drop(porter.downgrade().upgrade());
    }),
];

/// Where it is dropped.
#[derive(Clone, Copy, Debug)]
enum Place {
    Handler,
    State,
    StateAfterAPanic,
    HandlerThatIsKilled,
    QueueThatIsKilled,
    Timer,
    Reply,
    AbandonedAsk,
    Event,
}

const PLACES: [Place; 9] = [
    Place::Handler,
    Place::State,
    Place::StateAfterAPanic,
    Place::HandlerThatIsKilled,
    Place::QueueThatIsKilled,
    Place::Timer,
    Place::Reply,
    Place::AbandonedAsk,
    Place::Event,
];

type Drops = AtDrop<Box<dyn FnMut() + Send + Sync>>;

/// Holds what acts when it is dropped.
struct Bag(#[allow(dead_code, reason = "held for its drop")] Option<Drops>);

/// Takes bags, and hears of them.
#[derive(Default)]
struct Porter {
    kept: Vec<Box<dyn Any + Send + Sync>>,
    ears: Vec<Subscription>,
}

struct Hand(#[allow(dead_code, reason = "held for its drop")] Bag);
struct Keep(Bag);
struct Stall(#[allow(dead_code, reason = "held for its drop")] Bag);
struct Later(Bag);
struct GiveBack(Bag);
struct Panic;

fn topic(node: &Node) -> Topic<Bag> {
    node.topic("bags", TopicOptions { replay: 1 })
}

impl Actor for Porter {
    const NAME: &'static str = "test.porter";
}

impl Handler<Hand> for Porter {
    type Reply = ();

    async fn handle(&mut self, _: Hand, _: &mut Context<Self>) {}
}

impl Handler<Keep> for Porter {
    type Reply = ();

    async fn handle(&mut self, Keep(bag): Keep, ctx: &mut Context<Self>) {
        self.kept.push(Box::new(bag));
        self.ears.push(topic(&ctx.node()).subscribe(&ctx.address()));
    }
}

impl Handler<Stall> for Porter {
    type Reply = ();

    async fn handle(&mut self, _held: Stall, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

impl Handler<Later> for Porter {
    type Reply = ();

    async fn handle(&mut self, Later(bag): Later, ctx: &mut Context<Self>) {
        ctx.after(Duration::from_secs(100), Hand(bag));
    }
}

impl Handler<GiveBack> for Porter {
    type Reply = Bag;

    async fn handle(&mut self, GiveBack(bag): GiveBack, _: &mut Context<Self>) -> Bag {
        bag
    }
}

impl Handler<Panic> for Porter {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("on purpose")
    }
}

impl EventHandler<Bag> for Porter {
    async fn event(&mut self, _: &Published<Bag>, _: &mut Context<Self>) {}
}

/// A bag whose drop does `deed`, once, and whether it has.
fn bag(node: &Node, porter: &ActorRef<Porter>, deed: Deed) -> (Bag, Arc<AtomicBool>) {
    let done = Arc::new(AtomicBool::new(false));
    let (node, porter, first) = (node.clone(), porter.clone(), done.clone());
    let act = move || {
        if !first.swap(true, SeqCst) {
            deed(&node, &porter);
        }
    };
    (Bag(Some(AtDrop(Box::new(act)))), done)
}

async fn drop_in(place: Place, node: &Node, porter: &ActorRef<Porter>, bag: Bag) {
    match place {
        Place::Handler => _ = porter.send(Hand(bag)).await,
        Place::State => {
            porter.send(Keep(bag)).await.ok();
            porter.stop().await;
        }
        Place::StateAfterAPanic => {
            porter.send(Keep(bag)).await.ok();
            porter.send(Panic).await.ok();
        }
        Place::HandlerThatIsKilled => {
            porter.send(Stall(bag)).try_tell().ok();
            settle().await;
            porter.kill();
        }
        Place::QueueThatIsKilled => {
            porter.send(Stall(Bag(None))).try_tell().ok();
            settle().await;
            porter.send(Hand(bag)).try_tell().ok();
            porter.kill();
        }
        Place::Timer => {
            porter.send(Later(bag)).await.ok();
            porter.stop().await;
        }
        Place::Reply => _ = porter.send(GiveBack(bag)).await,
        Place::AbandonedAsk => {
            porter.send(Stall(Bag(None))).try_tell().ok();
            settle().await;
            porter.send(GiveBack(bag)).timeout(Duration::from_millis(2)).await.err();
            porter.kill();
        }
        Place::Event => {
            porter.send(Keep(Bag(None))).await.ok();
            for event in [bag, Bag(None), Bag(None)] {
                topic(node).publish(event).ok();
            }
        }
    }
}

fn everywhere(on: On) {
    for (name, deed) in DEEDS {
        for place in PLACES {
            for is_named in [true, false] {
                within(on, async move {
                    let builder = Node::builder("test").actor(async |_| Ok(Porter::default()));
                    let node = builder.build();
                    let porter =
                        if is_named { node.get("a") } else { node.spawn(Porter::default()) };
                    let (bag, done) = bag(&node, &porter, deed);
                    let what = format!("a drop in {place:?} {name}, named: {is_named}");
                    soon(&what, async {
                        drop_in(place, &node, &porter, bag).await;
                        settle().await;
                        node.shutdown(Duration::from_millis(300)).await;
                    })
                    .await;
                    assert!(done.load(SeqCst), "{what}: it was not dropped");
                });
            }
        }
    }
}

#[test]
fn hold_nothing_up_on_one_thread() {
    everywhere(On::OneThread);
}

#[test]
fn hold_nothing_up_on_several_threads() {
    everywhere(On::Workers(2));
}

#[test]
fn hold_up_no_end_of_a_runtime() {
    for (name, deed) in DEEDS {
        for place in [Place::State, Place::HandlerThatIsKilled, Place::Timer] {
            watched(move || {
                let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
                let runtime = runtime.expect("the system has threads");
                let (node, done) = runtime.block_on(async move {
                    let builder = Node::builder("test").actor(async |_| Ok(Porter::default()));
                    let node = builder.build();
                    let porter = node.get("a");
                    let (bag, done) = bag(&node, &porter, deed);
                    match place {
                        Place::Timer => porter.send(Later(bag)).await.unwrap(),
                        Place::State => porter.send(Keep(bag)).await.unwrap(),
                        _ => porter.send(Stall(bag)).try_tell().unwrap(),
                    }
                    porter.send(Stall(Bag(None))).try_tell().unwrap();
                    settle().await;
                    (node, done)
                });
                runtime.shutdown_timeout(Duration::from_secs(5));
                assert!(done.load(SeqCst), "a drop in {place:?} {name}: it was not dropped");
                drop(node);
            });
        }
    }
}

/// Ends the next one when it is dropped.
struct Domino {
    next: Option<ActorRef<Domino>>,
    how: fn(&ActorRef<Domino>),
}

struct Fall;

impl Actor for Domino {
    const NAME: &'static str = "test.domino";
}

impl Handler<Fall> for Domino {
    type Reply = ();

    async fn handle(&mut self, _: Fall, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Drop for Domino {
    fn drop(&mut self) {
        if let Some(next) = &self.next {
            (self.how)(next);
        }
    }
}

/// Many thousands in each other would use up the stack.
#[test]
fn end_the_next_one_after_the_other_also_when_their_runtime_has_ended() {
    let hows: [fn(&ActorRef<Domino>); 3] =
        [|next| drop(next.stop()), |next| next.kill(), |next| drop(next.send(Fall).try_tell())];
    let name = "drops_that_act::end_the_next_one_after_the_other_also_when_their_runtime_has_ended";
    alone(name, || {
        for how in hows {
            watched(move || {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let (node, first) = runtime.block_on(async {
                    let node = Node::builder("test").build();
                    let mut next = None;
                    for _ in 0..20_000 {
                        next = Some(node.spawn(Domino { next, how }));
                    }
                    (node, next.expect("there are some"))
                });
                drop(runtime);
                how(&first);
                assert!(first.is_stopped());
                node.kill();
            });
        }
    });
}
