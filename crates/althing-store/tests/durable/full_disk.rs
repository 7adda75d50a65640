//! A disk that is full for a while under durable actors of the embedded store: what was
//! acknowledged is there afterwards, and they go on once there is room.
//!
//! Each test runs once more, in a process of its own that has a small tmpfs to itself.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorId, AskError, Context, Epoch, Node, Start, Timestamp, Wire, actor};
use althing_store::{
    Answer, Courier, Delivery, Embedded, Event, Kept, Mark, PostError, Reminder, Saved, Settled,
    State, Store, Turn, When, Writes,
};
use tokio::sync::watch;

/// Names the disk in the process that has it.
const DISK: &str = "ALTHING_STORE_SMALL_DISK";
const MOUNT: &str =
    "mount -t tmpfs -o size=2m tmpfs \"$1\" && exec \"$2\" \"$3\" --exact --nocapture";
/// More failures than an actor may have before supervision stops it.
const ATTEMPTS: usize = 20;

/// A disk of which a part is taken or given back.
struct Disk(PathBuf);

impl Disk {
    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("ballast")).expect("the disk is there");
        for len in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![1; len]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).expect("it was filled");
    }

    fn open(&self) -> Embedded {
        Embedded::open(self.0.join("data")).expect("it opens")
    }
}

/// Runs `scenario` in a process that has a small disk.
fn on_a_small_disk(test: &str, scenario: impl AsyncFnOnce(Disk)) {
    if let Some(disk) = std::env::var_os(DISK) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(scenario(Disk(disk.into())));
    }
    let mount = tempfile::tempdir().expect("a directory");
    let tests = std::env::current_exe().expect("a test has a path");
    let inside = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"])
        .args([mount.path(), &tests, Path::new(&format!("full_disk::{test}"))])
        .env(DISK, mount.path())
        .output()
        .expect("unshare of util-linux is there");
    let said = String::from_utf8_lossy(&inside.stdout);
    let why = String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success() && said.contains("1 passed"), "{said}\n{why}");
}

/// An embedded store that tells how many commits it has refused.
struct Watched {
    store: Embedded,
    refused: Arc<watch::Sender<usize>>,
}

impl Watched {
    fn on(disk: &Disk) -> (Arc<Self>, watch::Receiver<usize>) {
        let (refused, heard) = watch::channel(0);
        (Arc::new(Self { store: disk.open(), refused: Arc::new(refused) }), heard)
    }
}

impl Store for Watched {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.store.open(id, epoch)
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        let (answer, refused) = (self.store.commit(turn), self.refused.clone());
        Box::pin(async move {
            let answered = answer.await;
            if answered.is_err() {
                refused.send_modify(|refused| *refused += 1);
            }
            answered
        })
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.store.events(id, after, limit)
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        self.store.due(until, after, limit)
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        self.store.left_before(names, limit)
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        self.store.settle(settled)
    }
}

#[derive(Default, Wire)]
struct Balance {
    cents: u64,
}

impl State for Balance {}

struct Account {
    saved: Saved<Balance>,
}

#[actor(name = "test.on-a-small-disk", wire, durable = saved)]
impl Account {
    async fn put(&mut self, cents: u64) -> u64 {
        self.saved.cents += cents;
        self.saved.cents
    }

    async fn balance(&self) -> u64 {
        self.saved.cents
    }

    #[wire(skip)]
    async fn put_later(&mut self, ctx: &mut Context<Self>) -> Result<(), PostError> {
        let (me, when) = (ctx.address(), When::After(Duration::from_millis(50)));
        self.saved.post().remind("later", when, |reminder| me.ring(reminder))
    }

    async fn ring(&mut self, reminder: Reminder) {
        self.saved.once(&reminder.request, |balance| balance.cents += 1);
    }
}

/// Asks once more while supervision stops an actor that has failed too often: the next message
/// starts it.
async fn started(ask: impl AsyncFn() -> Result<u64, AskError>) -> Result<u64, AskError> {
    loop {
        match ask().await {
            Err(AskError::Stopped(_)) => {}
            answered => return answered,
        }
    }
}

fn bank(store: Arc<dyn Store>) -> Node {
    let opening = move |start: Start<Account>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
    };
    Node::builder("bank").actor(opening).build()
}

#[test]
fn an_actor_is_read_while_the_disk_is_full_and_goes_on_once_there_is_room() {
    on_a_small_disk(
        "an_actor_is_read_while_the_disk_is_full_and_goes_on_once_there_is_room",
        async |disk| {
            {
                let node = bank(Arc::new(disk.open()));
                let alice = node.get::<Account>("alice");
                assert_eq!(alice.put(5).await, Ok(5));
                disk.fill();
                for _ in 0..ATTEMPTS {
                    let refused = alice.put(1).await;
                    assert!(refused.is_err(), "{refused:?}");
                    let shown = started(async || alice.balance().await).await;
                    assert_eq!(shown, Ok(5), "what was refused is not shown");
                }
                disk.free();
                assert_eq!(started(async || alice.put(1).await).await, Ok(6));
                node.kill();
            }
            let node = bank(Arc::new(disk.open()));
            assert_eq!(node.get::<Account>("alice").balance().await, Ok(6));
        },
    );
}

#[derive(Default, Wire)]
struct Position {
    metres: u64,
}

impl State for Position {
    const WRITES: Writes = Writes::Behind(Duration::from_millis(50));
}

struct Vehicle {
    saved: Saved<Position>,
}

#[actor(name = "test.vehicle-on-a-small-disk", durable = saved)]
impl Vehicle {
    async fn drive(&mut self, metres: u64) -> u64 {
        self.saved.metres += metres;
        self.saved.metres
    }
}

#[test]
fn what_is_written_behind_waits_for_room() {
    on_a_small_disk("what_is_written_behind_waits_for_room", async |disk| {
        let (store, mut refused) = Watched::on(&disk);
        let of_actors: Arc<dyn Store> = store.clone();
        let opening = move |start: Start<Vehicle>| {
            let store = of_actors.clone();
            async move { Ok::<_, ActorError>(Vehicle { saved: Saved::load(store, &start).await? }) }
        };
        let node = Node::builder("fleet").actor(opening).build();
        let vehicle = node.get::<Vehicle>("v");
        assert_eq!(vehicle.drive(1).await, Ok(1));
        disk.fill();
        assert_eq!(vehicle.drive(7).await, Ok(8), "it need not be on the disk yet");
        refused.wait_for(|refused| *refused > 0).await.expect("the store is there");
        disk.free();
        vehicle.stop().await;
        let id = ActorId::named("test.vehicle-on-a-small-disk", "v");
        let kept = store.open(&id, Epoch(0)).await.expect("it opens");
        let kept = kept.snapshot.map(|snapshot| Position::decode(&snapshot.bytes).expect("whole"));
        assert_eq!(kept.map(|position| position.metres), Some(8), "it was acknowledged");
    });
}

#[test]
fn a_reminder_has_its_effect_once_when_the_disk_was_full_as_it_came() {
    on_a_small_disk(
        "a_reminder_has_its_effect_once_when_the_disk_was_full_as_it_came",
        async |disk| {
            let (watched, mut refused) = Watched::on(&disk);
            let courier = Arc::new(Courier::new(watched));
            let node = bank(courier.clone());
            courier.start(&node);
            let alice = node.get::<Account>("alice");
            alice.put_later().await.expect("it is asked").expect("it is set");
            disk.fill();
            refused.wait_for(|refused| *refused > 1).await.expect("the store is there");
            assert_eq!(alice.balance().await, Ok(0));
            disk.free();
            while alice.balance().await != Ok(1) {
                tokio::task::yield_now().await;
            }
            // Nor does another life find it twice.
            alice.stop().await;
            assert_eq!(alice.balance().await, Ok(1));
        },
    );
}
