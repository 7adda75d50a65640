//! The store on three real nodes of Cassandra, each with all rows, of which one after the other is
//! killed. They take a minute to start and two GB, so these tests run by `make test-cassandra3`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::{ActorId, Epoch, Timestamp};
use althing_store::{
    Answer, Cassandra, CassandraOptions, Delivery, Event, Kept, Mark, Settled, Snapshot, Store,
    StoreError, Turn, conformance,
};
use althing_testkit::servers::CassandraServer;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// All of it: three starts and three more, on a machine that does other things, too.
const WITHIN: Duration = Duration::from_secs(480);
/// Calls of the suite before the first node is killed: about the middle of them.
const CALLS_BEFORE: usize = 150;
/// Actors that commit all the time.
const ACTORS: u64 = 8;
/// Commits that have to be acknowledged while a node is away.
const COMMITS_MEANWHILE: u64 = 200;

/// Tells once so many calls have begun.
struct Counted {
    store: Arc<dyn Store>,
    calls: AtomicUsize,
    reached: parking_lot::Mutex<Option<oneshot::Sender<()>>>,
}

impl Counted {
    fn count(&self) -> &dyn Store {
        if self.calls.fetch_add(1, Ordering::Relaxed) + 1 == CALLS_BEFORE
            && let Some(reached) = self.reached.lock().take()
        {
            reached.send(()).expect("somebody waits to kill a node");
        }
        &*self.store
    }
}

impl Store for Counted {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.count().open(id, epoch)
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        self.count().commit(turn)
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.count().events(id, after, limit)
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        self.count().due(until, after, limit)
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        self.count().left_before(names, limit)
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        self.count().settle(settled)
    }
}

async fn connect(hosts: &[String], keyspace: &str) -> Arc<dyn Store> {
    let mut options = CassandraOptions::default();
    options.keyspace = keyspace.to_owned();
    Arc::new(Cassandra::connect_with(hosts, options).await.expect("a majority is there"))
}

fn writer(key: u64) -> ActorId {
    ActorId::named("three", key.to_string())
}

/// Each version is its own state and its own event, so that a hole or a mixture shows.
fn turn(id: &ActorId, version: u64) -> Turn {
    let bytes = version.to_string().into_bytes();
    Turn {
        snapshot: Some(Snapshot { schema: 1, bytes: bytes.clone(), includes: version }),
        events: vec![Event { number: version, schema: 1, bytes }],
        ..Turn::new(id.clone(), Epoch(1), version)
    }
}

/// Actors that commit one turn after the other until they are told to end.
struct Writers {
    end: watch::Sender<bool>,
    acknowledged: Arc<watch::Sender<u64>>,
    /// Each returns the last version that was acknowledged.
    tasks: Vec<JoinHandle<u64>>,
}

impl Writers {
    fn start(store: &Arc<dyn Store>) -> Self {
        let (end, ended) = watch::channel(false);
        let acknowledged = Arc::new(watch::channel(0).0);
        let write =
            |key| tokio::spawn(write_on(store.clone(), key, ended.clone(), acknowledged.clone()));
        Self { end, tasks: (0..ACTORS).map(write).collect(), acknowledged: acknowledged.clone() }
    }

    /// Waits until so many more are acknowledged.
    async fn go_on(&self) {
        let mut heard = self.acknowledged.subscribe();
        let before = *heard.borrow_and_update();
        heard.wait_for(|now| *now >= before + COMMITS_MEANWHILE).await.expect("they go on");
    }

    async fn end(self) -> Vec<u64> {
        self.end.send(true).expect("they listen");
        let mut last = Vec::new();
        for task in self.tasks {
            last.push(task.await.expect("it saw nothing lost"));
        }
        last
    }
}

async fn write_on(
    store: Arc<dyn Store>,
    key: u64,
    mut end: watch::Receiver<bool>,
    total: Arc<watch::Sender<u64>>,
) -> u64 {
    let (id, mut acknowledged) = (writer(key), 0);
    while !*end.borrow_and_update() {
        // After a failure the store is asked what it has.
        let Ok(kept) = store.open(&id, Epoch(1)).await else { continue };
        assert!(kept.version >= acknowledged, "{id}: {acknowledged} was acknowledged, {kept:?}");
        let mut version = kept.version;
        while !*end.borrow_and_update() {
            match store.commit(turn(&id, version + 1)).await {
                Ok(()) => version += 1,
                Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => break,
                Err(error) => panic!("nobody else has it: {error}"),
            }
            acknowledged = version;
            total.send_modify(|total| *total += 1);
        }
    }
    acknowledged
}

/// Whether just the turns up to the version are there, and all that were acknowledged.
async fn is_whole(store: &dyn Store, key: u64, acknowledged: u64) {
    let id = writer(key);
    let kept = store.open(&id, Epoch(1)).await.expect("it opens");
    assert!(kept.version >= acknowledged, "{id}: {} of {acknowledged}", kept.version);
    assert_eq!(kept.snapshot.expect("it committed").bytes, kept.version.to_string().as_bytes());
    let events = store.events(&id, 0, usize::MAX).await.expect("it reads");
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=kept.version).collect::<Vec<_>>(), "no event is missing or doubled");
}

/// Kills a node, and waits until the others know.
async fn kill(mut nodes: [CassandraServer; 3], at: usize) -> [CassandraServer; 3] {
    let killed = spawn_blocking(move || {
        nodes[at].kill();
        nodes[at].wait_until_missed(&nodes);
        nodes
    });
    killed.await.expect("the others miss it")
}

async fn start_again(mut nodes: [CassandraServer; 3], at: usize) -> [CassandraServer; 3] {
    let started = spawn_blocking(move || {
        nodes[at].start_again();
        nodes[at].wait_until_known(&nodes);
        nodes
    });
    started.await.expect("it starts again")
}

async fn keeps_its_promises_while_nodes_are_killed() {
    let mut nodes = spawn_blocking(CassandraServer::start_three).await.expect("they start");
    let hosts: Vec<_> = nodes.iter().map(CassandraServer::host).collect();
    let store = connect(&hosts, "three").await;
    let writers = Writers::start(&store);
    writers.go_on().await;

    let (reached, killing) = oneshot::channel();
    let killed = tokio::spawn(async move {
        killing.await.expect("the suite has more calls than that");
        kill(nodes, 0).await
    });
    let reached = parking_lot::Mutex::new(Some(reached));
    let counted = Arc::new(Counted { store, calls: AtomicUsize::new(0), reached });
    let suite_hosts = hosts.clone();
    conformance::run(counted, async move |_| connect(&suite_hosts, "three").await).await;
    nodes = killed.await.expect("it was killed amid the suite");
    writers.go_on().await;

    // Each of the others in its turn, so that what one alone has missed is asked for, too.
    for at in [1, 2] {
        nodes = start_again(nodes, at - 1).await;
        nodes = kill(nodes, at).await;
        writers.go_on().await;
    }
    let acknowledged = writers.end().await;
    let again = connect(&hosts, "three").await;
    for (key, acknowledged) in (0..).zip(acknowledged) {
        is_whole(&*again, key, acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "three nodes of Cassandra take a minute to start and 2 GB: make test-cassandra3"]
async fn nothing_acknowledged_is_lost_while_one_of_three_nodes_is_killed() {
    let kept = timeout(WITHIN, keeps_its_promises_while_nodes_are_killed()).await;
    kept.expect("it takes no longer than eight minutes");
}
