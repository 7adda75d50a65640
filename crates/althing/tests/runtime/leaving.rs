//! An actor that leaves, arrives or is held, as its node sees it: the cluster here is a word that
//! the test writes, and a list of parcels.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use althing::remote::{Cargo, Cluster, Control, Location, Message, Parcel};
use althing::{
    Actor, ActorId, ActorRef, Context, Epoch, Handler, Node, Priority, StopReason, Terminated,
    Wire, actor,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(5);
const HERE: Location = Location::Here(Epoch(1));

type Log = Arc<Mutex<Vec<String>>>;

/// Says where every actor lives, and keeps what is sent there.
struct Elsewhere {
    location: Mutex<Location>,
    sent: Mutex<Vec<Parcel>>,
}

impl Cluster for Elsewhere {
    fn locate(&self, _: &ActorId) -> Location {
        *self.location.lock()
    }

    fn poll_room(&self, _: &ActorId, _: &mut TaskContext<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn send(&self, parcel: Parcel) {
        self.sent.lock().push(parcel);
    }
}

/// Writes what it is told, and when its friend ends; `slow` lines wait for a permit.
struct Scribe {
    log: Log,
    friend: ActorRef<Watcher>,
    gate: Arc<Semaphore>,
    is_open: bool,
}

#[actor(name = "test.scribe", wire)]
impl Scribe {
    async fn write(&mut self, line: String) {
        self.log.lock().push(line);
    }

    async fn look(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(&self.friend);
    }

    async fn nap(&mut self, ctx: &mut Context<Self>) {
        ctx.passivate();
    }

    async fn terminated(&mut self, other: Terminated) {
        self.log.lock().push(format!("{:?}", other.reason));
    }

    async fn slow(&mut self, line: String) {
        self.gate.acquire().await.expect("never closed").forget();
        self.log.lock().push(line);
    }

    #[stash_unless(Self::is_open)]
    async fn once_open(&mut self, line: String) {
        self.log.lock().push(line);
    }

    #[skip]
    fn is_open(&self) -> bool {
        self.is_open
    }
}

/// Hears of ends.
struct Watcher(Log);

struct Watch(ActorRef<Scribe>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.lock().push(format!("{:?}", other.reason));
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

struct Scene {
    node: Node,
    cluster: Arc<Elsewhere>,
    log: Log,
    gate: Arc<Semaphore>,
    friend: ActorRef<Watcher>,
}

fn scene(location: Location) -> Scene {
    let cluster =
        Arc::new(Elsewhere { location: Mutex::new(location), sent: Mutex::new(Vec::new()) });
    let (log, gate) = (Log::default(), Arc::new(Semaphore::new(0)));
    let (lines, permits) = (log.clone(), gate.clone());
    let friend = Node::builder("friends").build().spawn(Watcher(Log::default()));
    let watched = friend.clone();
    let node = Node::builder("here")
        .cluster(cluster.clone())
        .actor(move |_| {
            let (log, gate, friend) = (lines.clone(), permits.clone(), watched.clone());
            async move { Ok(Scribe { log, friend, gate, is_open: false }) }
        })
        .build();
    Scene { node, cluster, log, gate, friend }
}

fn id() -> ActorId {
    ActorId::named("test.scribe", "a")
}

impl Scene {
    fn scribe(&self) -> ActorRef<Scribe> {
        self.node.get("a")
    }

    /// A line that comes from another node.
    fn arrives(&self, line: &str) {
        self.delivers("write", &scribe_messages::Write { line: line.into() });
    }

    fn delivers(&self, name: &str, message: &impl Wire) {
        let mut body = Vec::new();
        message.encode(&mut body);
        let message = Message {
            name: name.into(),
            body,
            priority: Priority::Normal,
            chain: Vec::new(),
            reply: None,
        };
        let parcel = Parcel { to: id(), node: None, cargo: Cargo::Message(message) };
        self.node.deliver(parcel).expect("it lives here");
    }

    /// Delivers an ask; whether it is refused at once.
    fn refuses(&self, to: ActorId, name: &str, body: Vec<u8>, chain: Vec<ActorId>) -> bool {
        let outcome = Arc::new(Mutex::new(None));
        let slot = outcome.clone();
        let message = Message {
            name: name.into(),
            body,
            priority: Priority::Normal,
            chain,
            reply: Some(Box::new(move |outcome| *slot.lock() = Some(outcome))),
        };
        let parcel = Parcel { to, node: None, cargo: Cargo::Message(message) };
        let is_back = self.node.deliver(parcel).is_err();
        is_back || matches!(*outcome.lock(), Some(Err(_)))
    }

    fn moves(&self, location: Location) {
        *self.cluster.location.lock() = location;
    }

    fn sent(&self) -> Vec<String> {
        let line = |parcel: &Parcel| match &parcel.cargo {
            Cargo::Message(message) if message.name == "write" => {
                scribe_messages::Write::decode(&message.body).expect("a line").line
            }
            Cargo::Message(message) => {
                scribe_messages::OnceOpen::decode(&message.body).expect("a line").line
            }
            Cargo::Control(Control::Watch { .. }) => "watch".into(),
            Cargo::Control(other) => format!("{other:?}"),
        };
        self.cluster.sent.lock().iter().map(line).collect()
    }

    async fn until_logged(&self, lines: usize) {
        let until = async {
            while self.log.lock().len() < lines {
                yield_now().await;
            }
        };
        timeout(SOON, until).await.expect("it runs");
    }

    async fn until_asleep(&self) {
        let scribe = self.scribe();
        let until = async {
            while scribe.is_active() {
                yield_now().await;
            }
        };
        timeout(SOON, until).await.expect("it ends");
    }
}

async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

/// Polls a future once; it must wait, and is given up.
async fn give_up<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let is_ready = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
    assert!(!is_ready, "it waits");
}

#[tokio::test]
async fn a_seal_that_is_given_up_holds_nobody() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scribe.slow("1".into()).tell().await.expect("there is room");
    settle().await;
    give_up(scene.node.seal(&id())).await;
    scene.gate.add_permits(1);
    let asked = timeout(SOON, scribe.write("2".into())).await.expect("it goes on");
    asked.expect("it answers");
    assert_eq!(*scene.log.lock(), ["1", "2"]);
}

#[tokio::test]
async fn a_thaw_leaves_alone_who_is_sealed() {
    let scene = scene(HERE);
    scene.node.freeze().await;
    let scribe = scene.scribe();
    // It is to start while the node is frozen.
    scribe.write("1".into()).tell().await.expect("there is room");
    settle().await;
    let sealed = timeout(SOON, scene.node.seal(&id())).await.expect("soon");
    let sealed = sealed.expect("it is about to start");
    scene.node.thaw();
    settle().await;
    assert_eq!(scene.log.lock().len(), 0, "it is sealed");
    drop(sealed);
    scene.until_logged(1).await;
}

#[tokio::test]
async fn each_freeze_waits_for_the_handlers_that_run() {
    let scene = scene(HERE);
    scene.scribe().slow("1".into()).tell().await.expect("there is room");
    settle().await;
    give_up(scene.node.freeze()).await;
    give_up(scene.node.freeze()).await;
    scene.gate.add_permits(1);
    timeout(SOON, scene.node.freeze()).await.expect("the handler has ended");
    scene.scribe().write("2".into()).tell().await.expect("there is room");
    settle().await;
    assert_eq!(*scene.log.lock(), ["1"]);
    scene.node.thaw();
    scene.until_logged(2).await;
}

#[tokio::test]
async fn an_arriving_actor_is_fenced() {
    let scene = scene(Location::Arriving(Epoch(1)));
    scene.arrives("1");
    scene.until_logged(1).await;
    scene.moves(Location::Elsewhere);
    scene.node.fence(&id(), Epoch(2));
    scene.until_asleep().await;
}

#[tokio::test]
async fn an_arriving_actor_is_frozen_with_its_node() {
    let scene = scene(Location::Arriving(Epoch(1)));
    scene.arrives("1");
    scene.until_logged(1).await;
    timeout(SOON, scene.node.freeze()).await.expect("soon");
    scene.arrives("2");
    settle().await;
    assert_eq!(*scene.log.lock(), ["1"]);
    scene.node.thaw();
    scene.until_logged(2).await;
}

#[tokio::test]
async fn an_arriving_actor_that_moves_on_is_sealed_and_departs() {
    let scene = scene(Location::Arriving(Epoch(1)));
    scene.arrives("1");
    scene.until_logged(1).await;
    scene.moves(Location::Elsewhere);
    assert_eq!(scene.node.relocate(), [id()], "it is in memory here");
    let sealed = scene.node.seal(&id()).await.expect("it is in memory");
    timeout(SOON, sealed.depart()).await.expect("it goes");
    assert!(!scene.scribe().is_active());
    assert_eq!(scene.node.relocate(), []);
}

#[tokio::test]
async fn an_arriving_actor_hears_of_the_ends_that_it_watches() {
    let scene = scene(Location::Arriving(Epoch(1)));
    scene.delivers("look", &scribe_messages::Look);
    scene.arrives("1");
    scene.until_logged(1).await;
    scene.friend.stop().await;
    scene.until_logged(2).await;
    assert_eq!(*scene.log.lock(), ["1", "Requested"]);
}

#[tokio::test]
async fn what_a_guard_put_aside_leaves_first_and_nobody_hears_of_an_end() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scribe.write("0".into()).await.expect("it runs");
    let heard = Log::default();
    let watcher = scene.node.spawn(Watcher(heard.clone()));
    watcher.send(Watch(scribe.clone())).await.expect("it runs");
    scribe.once_open("1".into()).tell().await.expect("there is room");
    settle().await;
    let sealed = scene.node.seal(&id()).await.expect("it is in memory");
    scribe.write("2".into()).tell().await.expect("there is room");
    scene.moves(Location::Elsewhere);
    timeout(SOON, sealed.depart()).await.expect("it goes");
    scribe.write("3".into()).tell().await.expect("there is room");
    settle().await;
    let lines: Vec<_> = scene.sent().into_iter().filter(|line| line != "watch").collect();
    assert_eq!(lines, ["1", "2", "3"]);
    assert_eq!(*heard.lock(), [] as [&str; 0], "it lives on");
}

#[tokio::test]
async fn a_message_to_a_sleeper_that_lives_elsewhere_by_now_ends_nobody() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    let heard = Log::default();
    let watcher = scene.node.spawn(Watcher(heard.clone()));
    watcher.send(Watch(scribe.clone())).await.expect("it runs");
    // The node has not been told to ask anew.
    scene.moves(Location::Elsewhere);
    scribe.write("1".into()).tell().await.expect("there is room");
    settle().await;
    assert_eq!(scene.sent().into_iter().filter(|line| line != "watch").collect::<Vec<_>>(), ["1"]);
    assert_eq!(*heard.lock(), [] as [&str; 0], "it lives on");
}

#[tokio::test]
async fn a_sleeper_that_is_told_to_start_and_lives_elsewhere_by_now_starts_there() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scene.moves(Location::Elsewhere);
    scribe.activate();
    settle().await;
    assert_eq!(scene.sent(), ["Start"]);
    assert!(!scribe.is_active());
}

#[tokio::test]
async fn a_departure_of_an_actor_that_was_killed_is_over_at_once() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scribe.write("1".into()).await.expect("it runs");
    let sealed = scene.node.seal(&id()).await.expect("it is in memory");
    scribe.kill();
    scene.until_asleep().await;
    scene.moves(Location::Elsewhere);
    assert_eq!(scene.node.relocate(), []);
    timeout(SOON, sealed.depart()).await.expect("its life is over");
}

/// An anonymous actor's identity as somebody may make it up: `message { string kind = 1; uint64
/// node = 3; uint64 serial = 4; uint32 slot = 5; }`.
fn made_up(kind: &str, node: u64, serial: u64, slot: u64) -> ActorId {
    let mut bytes = vec![0x0a, u8::try_from(kind.len()).expect("short")];
    bytes.extend(kind.bytes());
    for (tag, mut number) in [(0x18, node), (0x20, serial), (0x28, slot)] {
        bytes.push(tag);
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    ActorId::decode(&bytes).expect("it is an identity")
}

#[tokio::test]
async fn parcels_that_make_no_sense_are_refused_and_harm_nobody() {
    let scene = scene(HERE);
    scene.scribe().write("1".into()).await.expect("it runs");
    let me = scene.node.incarnation().0;
    let most = u64::from(u32::MAX);
    let mut ids = vec![ActorId::named("test.nobody", "a"), ActorId::named("", "")];
    for (node, serial, slot) in
        [(me, 0, 0), (me, u64::MAX, most), (me, 1, most), (0, 0, 0), (u64::MAX, u64::MAX, most)]
    {
        ids.push(made_up("test.scribe", node, serial, slot));
        ids.push(made_up("test.nobody", node, serial, slot));
    }
    let controls = [
        Control::Start,
        Control::Stop,
        Control::Kill,
        Control::Watch { node: u64::MAX, sleepers_too: true, number: u64::MAX },
        Control::Unwatch { node: 0, number: 0 },
        Control::Ended { reason: althing::StopReason::NodeLost, number: 0 },
        Control::Linked { other: id() },
    ];
    for to in &ids {
        for control in controls.clone() {
            let cargo = Cargo::Control(control);
            _ = scene.node.deliver(Parcel { to: to.clone(), node: None, cargo });
        }
        assert!(scene.refuses(to.clone(), "write", Vec::new(), Vec::new()));
    }
    // To an actor that is there: unknown names, bytes that are nothing, and more askers than there
    // can be.
    assert!(scene.refuses(id(), "forget", Vec::new(), Vec::new()));
    assert!(scene.refuses(id(), "write", vec![0xff; 64], Vec::new()));
    let mut line = Vec::new();
    scribe_messages::Write { line: "2".into() }.encode(&mut line);
    assert!(!scene.refuses(id(), "write", line, vec![id(); 200_000]));
    scene.until_logged(2).await;
    assert_eq!(*scene.log.lock(), ["1", "2"]);
}

#[tokio::test]
async fn an_arriving_actor_stops_with_its_node() {
    let scene = scene(Location::Arriving(Epoch(1)));
    scene.arrives("1");
    scene.until_logged(1).await;
    let report = timeout(SOON, scene.node.shutdown(2 * SOON)).await.expect("nobody is waited for");
    assert_eq!((report.stopped, report.killed.len()), (1, 0));
    assert_eq!(scene.sent(), [] as [&str; 0], "its stop is no other node's business");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_sends_to_where_the_actor_has_gone_at_once() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scribe.slow("1".into()).tell().await.expect("there is room");
    settle().await;
    while scribe.write("2".into()).try_tell().is_ok() {}
    let tell = |_| {
        let scribe = scribe.clone();
        tokio::spawn(async move { scribe.write("3".into()).tell().await.is_ok() })
    };
    let waiting: Vec<_> = (0..8).map(tell).collect();
    settle().await;
    scene.moves(Location::Elsewhere);
    let begun = tokio::time::Instant::now();
    scene.gate.add_permits(1);
    let sealed = scene.node.seal(&id()).await.expect("it is in memory");
    sealed.depart().await;
    for told in waiting {
        assert!(told.await.expect("it does not panic"));
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody looks for himself");
    assert_eq!(scene.sent().iter().filter(|line| *line == "3").count(), 8);
}

/// Tells a scribe lines from within one handler, with a pause after two of them.
struct Teller(ActorRef<Scribe>);

struct TellAll {
    lines: u32,
    told_two: tokio::sync::oneshot::Sender<()>,
    go_on: std::sync::mpsc::Receiver<()>,
}

impl Actor for Teller {
    const NAME: &'static str = "test.teller";
}

impl Handler<TellAll> for Teller {
    type Reply = ();

    async fn handle(&mut self, all: TellAll, ctx: &mut Context<Self>) {
        for line in 1..=2 {
            self.0.write(line.to_string()).try_tell().expect("there is room");
        }
        // tokio lets no other thread run the task that this one was the last to wake.
        ctx.detach(async {});
        all.told_two.send(()).expect("it waits");
        all.go_on.recv().expect("it is sent");
        for line in 3..=all.lines {
            self.0.write(line.to_string()).try_tell().expect("there is room");
        }
    }
}

/// What a handler tells in a row goes by a way of its own, which it has open when the actor leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_tells_an_actor_while_it_leaves_is_heard_in_order_where_it_has_gone() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scribe.write("0".into()).await.expect("it runs");
    let sealed = scene.node.seal(&id()).await.expect("it is in memory");
    let teller = scene.node.spawn(Teller(scribe.clone()));
    let (told_two, has_told) = tokio::sync::oneshot::channel();
    let (go_on, paused) = std::sync::mpsc::channel();
    let lines = 50;
    teller.send(TellAll { lines, told_two, go_on: paused }).try_tell().expect("there is room");
    has_told.await.expect("it tells");
    scene.moves(Location::Elsewhere);
    let departing = tokio::spawn(sealed.depart());
    tokio::time::sleep(Duration::from_millis(20)).await;
    go_on.send(()).expect("it waits");
    timeout(SOON, departing).await.expect("it goes").expect("it does not panic");
    let all = async {
        while scene.sent().len() < lines as usize {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, all).await.expect("nothing is lost");
    assert_eq!(scene.sent(), (1..=lines).map(|line| line.to_string()).collect::<Vec<_>>());
}

/// Somebody on another node waits for the end of an actor that has ended, while a handler here that
/// told it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_elsewhere_hears_that_an_actor_sleeps_though_its_teller_goes_on() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    let teller = scene.node.spawn(Teller(scribe.clone()));
    let (told_two, has_told) = tokio::sync::oneshot::channel();
    let (go_on, paused) = std::sync::mpsc::channel();
    teller.send(TellAll { lines: 2, told_two, go_on: paused }).try_tell().expect("there is room");
    has_told.await.expect("it tells");
    timeout(SOON, scribe.stop()).await.expect("it stops");
    let watch = Control::Watch { node: 7, sleepers_too: true, number: 3 };
    let parcel = Parcel { to: id(), node: None, cargo: Cargo::Control(watch) };
    scene.node.deliver(parcel).expect("it lives here");
    let sent = scene.sent();
    go_on.send(()).expect("it waits");
    assert_eq!(sent, ["Ended { reason: Passivated, number: 3 }"]);
}

#[tokio::test]
async fn who_hears_that_an_actor_sleeps_elsewhere_tells_nobody_who_watched_it_here() {
    let scene = scene(HERE);
    let scribe = scene.scribe();
    scene.arrives("1");
    scene.until_logged(1).await;
    let control = |control| Parcel { to: id(), node: None, cargo: Cargo::Control(control) };
    let watch = Control::Watch { node: 7, sleepers_too: false, number: 4 };
    scene.node.deliver(control(watch)).expect("it lives here");
    scribe.nap().tell().await.expect("there is room");
    scene.until_asleep().await;
    scene.moves(Location::Elsewhere);
    scribe.write("2".into()).tell().await.expect("there is room");
    let before = scene.sent().len();
    let ended = Control::Ended { reason: StopReason::Passivated, number: 0 };
    scene.node.deliver(control(ended)).expect("it is awaited");
    assert_eq!(scene.sent()[before..], [] as [&str; 0], "it heard so from where it slept");
}
