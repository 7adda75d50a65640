//! Three real nodes of Cassandra, each with all rows, beside which somebody writes all the time: one
//! is killed amid the promises, and after them each of the others in its turn.

use althing_testkit::servers::CassandraServer;
use folkmoot::storage::{CassandraAddress, PageAnchor, Store};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::storage_support::{ANA, ROOM, TestDirectory, message, populate};

/// Messages that have to be acknowledged while a node is away.
const MESSAGES_MEANWHILE: u64 = 50;

/// The nodes, and who writes.
pub(crate) struct Three {
    nodes: Option<[CassandraServer; 3]>,
    hosts: String,
    /// A node is killed while this promise is looked at.
    amid: usize,
    begun: usize,
    killing: Option<JoinHandle<[CassandraServer; 3]>>,
    writer: Writer,
}

impl Three {
    pub(crate) async fn start(promises: usize) -> Self {
        let nodes = spawn_blocking(CassandraServer::start_three).await.expect("they start");
        let hosts = nodes.each_ref().map(CassandraServer::host).join(",");
        let writer = Writer::start(&address(&hosts, "written")).await;
        let (nodes, amid) = (Some(nodes), promises / 2);
        Self { nodes, hosts, amid, begun: 0, killing: None, writer }
    }

    /// A place for the store of the next promise.
    pub(crate) async fn next(&mut self, promise: &str) -> (TestDirectory, CassandraAddress) {
        if self.begun == self.amid {
            let nodes = self.nodes.take().expect("none was killed before");
            self.killing = Some(tokio::spawn(kill(nodes, 0)));
        }
        self.begun += 1;
        let directory = TestDirectory::new(&format!("contract-three-{promise}"));
        (directory, address(&self.hosts, &format!("promise{}", self.begun)))
    }

    /// Kills the other nodes, too, one at a time, and looks whether all that was acknowledged is
    /// there without the index.
    pub(crate) async fn end(self) {
        let mut nodes = self.killing.expect("amid the promises").await.expect("it was killed");
        self.writer.go_on().await;
        for at in [1, 2] {
            nodes = start_again(nodes, at - 1).await;
            nodes = kill(nodes, at).await;
            self.writer.go_on().await;
        }
        self.writer.end(&address(&self.hosts, "written")).await;
    }
}

fn address(hosts: &str, keyspace: &str) -> CassandraAddress {
    let text = format!("cassandra://{hosts}/{keyspace}?replicas=3&snapshot_mib=1");
    text.parse().expect("it is an address")
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

/// Appends one message after the other.
struct Writer {
    directory: TestDirectory,
    /// The last message that was acknowledged.
    acknowledged: watch::Receiver<u64>,
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Writer {
    async fn start(address: &CassandraAddress) -> Self {
        let directory = TestDirectory::new("contract-three-written");
        let store = directory.open_on(address);
        populate(&store).await;
        let ((end, ended), (tell, acknowledged)) = (watch::channel(false), watch::channel(0));
        let task = tokio::spawn(append_on(store, tell, ended));
        Self { directory, acknowledged, end, task }
    }

    async fn go_on(&self) {
        let mut acknowledged = self.acknowledged.clone();
        let until = *acknowledged.borrow_and_update() + MESSAGES_MEANWHILE;
        acknowledged.wait_for(|now| *now >= until).await.expect("none is refused");
    }

    async fn end(self, address: &CassandraAddress) {
        self.end.send(true).expect("it listens");
        self.task.await.expect("none was refused");
        let written = *self.acknowledged.borrow();
        std::fs::remove_file(self.directory.path().join("index.sqlite")).expect("it is there");
        let store = self.directory.open_on(address);
        let mut there = Vec::new();
        let mut anchor = PageAnchor::Latest;
        while there.first() != Some(&1) {
            let page = store.history(ROOM, anchor, 100, ANA).await.expect("it reads");
            let page: Vec<_> = page.messages.iter().map(|it| it.message.seq).collect();
            anchor = PageAnchor::Before(*page.first().expect("the first one is missing"));
            there.splice(0..0, page.iter().map(|seq| seq.as_u64()));
        }
        assert_eq!(there, (1..=written).collect::<Vec<_>>());
        store.close().await;
    }
}

async fn append_on(store: Store, tell: watch::Sender<u64>, end: watch::Receiver<bool>) {
    let mut seq = 0;
    while !*end.borrow() {
        seq += 1;
        let record = message(seq + 1, seq, "what was said");
        store.append(store.write_epoch(), &record).await.expect("a majority is there");
        tell.send_replace(seq);
    }
    store.close().await;
}
