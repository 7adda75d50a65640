//! Several real processes that may be the authority, on a real PostgreSQL and a real etcd: what
//! becomes of three nodes that ask each other without pause when the leader is killed, stopped, or
//! loses its database.

use std::time::{Duration, Instant};

use crate::support::{Process, assert_one_life_at_a_time};
use althing_cluster::{Authority, AuthorityConfig, RecordStore, Tls};
use althing_testkit::servers::{EtcdServer, PostgresServer};
use rustix::process::Signal;

/// The lease with PostgreSQL, which a busy machine has to be quick for.
const LEASE: Duration = Duration::from_secs(3);

/// etcd's own leases last two seconds at least, so with a shorter one nodes freeze for a moment.
const LEASE_WITH_ETCD: Duration = Duration::from_secs(6);

/// Longer than everything that happens meanwhile.
const ASKS_MS: u32 = 10_000;

enum Store {
    Postgres(PostgresServer),
    /// It encrypts, and the file has its certificate.
    Encrypted(PostgresServer, tempfile::NamedTempFile),
    Etcd(EtcdServer),
}

impl Store {
    fn url(&self) -> String {
        match self {
            Self::Postgres(server) => server.url(),
            Self::Encrypted(server, root) => {
                let root = root.path().display();
                format!("{}?sslmode=verify-full&sslrootcert={root}", server.url())
            }
            Self::Etcd(server) => format!("etcd://{}", server.host()),
        }
    }

    fn lease(&self) -> Duration {
        match self {
            Self::Postgres(_) | Self::Encrypted(..) => LEASE,
            Self::Etcd(_) => LEASE_WITH_ETCD,
        }
    }

    fn restart(&mut self) {
        match self {
            Self::Postgres(server) | Self::Encrypted(server, _) => server.start_again(),
            Self::Etcd(server) => server.start_again(),
        }
    }
}

fn postgres() -> Store {
    Store::Postgres(PostgresServer::start())
}

fn encrypted() -> Store {
    let mut server = PostgresServer::start();
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec![server.address().0.to_owned()]);
    let signed = params.expect("a name").self_signed(&key).expect("a certificate").pem();
    let root = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(root.path(), &signed).expect("it is written");
    server.encrypt(&signed, &key.serialize_pem());
    Store::Encrypted(server, root)
}

fn etcd() -> Store {
    Store::Etcd(EtcdServer::start())
}

/// A store, and candidates of which the first leads.
struct Stage {
    directory: tempfile::TempDir,
    candidates: Vec<Process>,
    addresses: Vec<String>,
    store: Store,
}

impl Stage {
    fn new(store: Store, candidates: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut stage = Self { directory, candidates: Vec::new(), addresses: Vec::new(), store };
        for n in 0..candidates {
            let mut candidate = stage.run(&format!("candidate-{n}"), &["--host", "127.0.0.1:0"]);
            let said = candidate.hear("-", "candidate ");
            stage.addresses.push(said["candidate ".len()..].to_owned());
            candidate.hear("-", "follows");
            if n == 0 {
                candidate.hear("-", "leads");
            }
            stage.candidates.push(candidate);
        }
        stage
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Process {
        let (url, lease) = (self.store.url(), self.store.lease().as_millis().to_string());
        let mut all = vec!["--store", &url, "--lease-ms", &lease];
        all.extend(arguments);
        Process::run(name, self.directory.path(), &all)
    }

    fn node(&self, name: &str) -> Process {
        let mut node = Process::start(name, &self.addresses.join(","), self.directory.path());
        node.hear("-", "joined");
        node
    }

    /// Three nodes that share the buckets.
    fn nodes(&self) -> Vec<Process> {
        let mut nodes: Vec<_> = ["one", "two", "three"].map(|name| self.node(name)).into();
        settle(&mut nodes);
        nodes
    }

    /// Where each of the accounts that are asked lives, and in which epoch.
    fn homes(&self, node: &mut Process) -> Vec<String> {
        let home = |n| {
            let answer = node.ask("add", &format!("busy-{n} 0"));
            answer.split_once(' ').map(|(_, home)| home.to_owned()).expect("a node and an epoch")
        };
        (0..8).map(home).collect()
    }

    fn assert_one_life_each(&self) {
        for n in 0..8 {
            let path = self.directory.path().join(format!("busy-{n}"));
            let text = std::fs::read_to_string(path).expect("it was asked");
            let book: Vec<_> = text.lines().map(crate::support::Line::read).collect();
            assert_one_life_at_a_time(&book);
        }
    }
}

/// Waits until each node owns its share, and nothing moves any more.
fn settle(nodes: &mut [Process]) {
    let until = Instant::now() + Duration::from_secs(30);
    let count = nodes.len();
    for node in nodes {
        loop {
            let who = node.ask("who", "");
            let owned =
                |word: &str| word.split_once(':').and_then(|(_, n)| n.parse::<usize>().ok());
            let shares: Vec<usize> = who.split(' ').filter_map(owned).collect();
            if shares.len() == count && shares.iter().all(|share| *share > 3_500 / count) {
                break;
            }
            assert!(Instant::now() < until, "they never share the buckets: {who}");
            std::thread::yield_now();
        }
    }
}

/// Asks under way from each node; their reports are awaited by `reports`.
fn begin_asks(nodes: &mut [Process]) -> Vec<String> {
    nodes.iter_mut().map(|node| node.begin("asks", &format!("busy {ASKS_MS}"))).collect()
}

/// No ask has failed; returns how long the slowest one took.
fn reports(nodes: &mut [Process], asks: &[String]) -> Duration {
    let mut slowest = Duration::ZERO;
    for (node, word) in nodes.iter_mut().zip(asks) {
        let report = node.hear(word, "asked");
        let words: Vec<&str> = report.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        println!("{}: {report} ms", node.name);
        assert!(number(1) > 50, "it hardly asked: {report}");
        assert_eq!(number(3), 0, "{}: {report}", node.name);
        slowest = slowest.max(Duration::from_millis(number(5)));
        assert!(!node.has_said("- Evicted"), "{} was evicted", node.name);
        if node.has_said("- Frozen") {
            println!("{} froze", node.name);
        }
    }
    slowest
}

fn no_ask_is_lost_when_the_leader_is_killed(store: Store) {
    let mut stage = Stage::new(store, 2);
    let mut nodes = stage.nodes();
    let homes = stage.homes(&mut nodes[0]);
    let asks = begin_asks(&mut nodes);
    // They are under way by then.
    nodes.iter_mut().for_each(|node| _ = node.ask("who", ""));
    stage.candidates[0].kill();
    let killed = Instant::now();
    stage.candidates[1].hear("-", "leads");
    let took = killed.elapsed();
    let slowest = reports(&mut nodes, &asks);
    println!("another one led after {} ms, the slowest ask took {slowest:?}", took.as_millis());
    // So long a member serves at least after its last renewal was answered.
    assert!(took < stage.store.lease() * 2 / 3, "it took {took:?}");
    assert!(slowest < stage.store.lease(), "the slowest ask took {slowest:?}");
    assert_eq!(stage.homes(&mut nodes[0]), homes, "the same owners in the same epochs");
    // Whoever comes finds the new leader, though the first address it knows is dead.
    nodes.push(stage.node("four"));
    settle(&mut nodes);
    stage.assert_one_life_each();
}

#[tokio::test]
async fn candidates_share_a_database_by_connections_that_are_encrypted() {
    let stage = Stage::new(encrypted(), 2);
    let Store::Encrypted(server, _) = &stage.store else { unreachable!("just made") };
    let (client, connection) =
        tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.expect("it connects");
    tokio::spawn(connection);
    let sessions = "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                    WHERE a.application_name = 'althing-cluster'";
    let sessions = client.query(sessions, &[]).await.expect("it reads");
    assert!(!sessions.is_empty() && sessions.iter().all(|row| row.get(0)), "{sessions:?}");
}

#[test]
fn no_ask_is_lost_when_the_leader_is_killed_with_postgresql() {
    no_ask_is_lost_when_the_leader_is_killed(postgres());
}

#[test]
fn no_ask_is_lost_when_the_leader_is_killed_with_etcd() {
    no_ask_is_lost_when_the_leader_is_killed(etcd());
}

fn a_leader_that_was_stopped_changes_nothing_when_it_goes_on(store: Store) {
    let mut stage = Stage::new(store, 2);
    let mut nodes = stage.nodes();
    let asks = begin_asks(&mut nodes);
    nodes.iter_mut().for_each(|node| _ = node.ask("who", ""));
    stage.candidates[0].signal(Signal::STOP);
    let stopped = Instant::now();
    stage.candidates[1].hear("-", "leads");
    let took = stopped.elapsed();
    // The record goes on without it.
    nodes.push(stage.node("four"));
    settle(&mut nodes);
    let homes = stage.homes(&mut nodes[0]);
    stage.candidates[0].signal(Signal::CONT);
    stage.candidates[0].hear("-", "follows");
    let slowest = reports(&mut nodes[..3], &asks);
    println!("another one led after {} ms, the slowest ask took {slowest:?}", took.as_millis());
    assert!(took < stage.store.lease(), "it took {took:?}");
    if stage.candidates[1].has_said("- follows") {
        // On a machine that is slow enough a lead runs out, and is taken by the rules.
        println!("the new leader has followed meanwhile");
    }
    assert_eq!(stage.homes(&mut nodes[0]), homes, "nothing has changed");
    // It is a candidate like any other, and knows what was decided without it.
    stage.candidates[1].kill();
    stage.candidates[0].hear("-", "leads");
    assert_eq!(stage.homes(&mut nodes[3]), homes, "the same owners in the same epochs");
    settle(&mut nodes);
    assert!(nodes.iter_mut().all(|node| !node.has_said("- Evicted")));
    stage.assert_one_life_each();
}

#[test]
fn a_leader_that_was_stopped_changes_nothing_when_it_goes_on_with_postgresql() {
    a_leader_that_was_stopped_changes_nothing_when_it_goes_on(postgres());
}

#[test]
fn a_leader_that_was_stopped_changes_nothing_when_it_goes_on_with_etcd() {
    a_leader_that_was_stopped_changes_nothing_when_it_goes_on(etcd());
}

fn no_ask_is_lost_when_the_store_crashes_and_comes_back(store: Store) {
    let mut stage = Stage::new(store, 2);
    let mut nodes = stage.nodes();
    let homes = stage.homes(&mut nodes[0]);
    let asks = begin_asks(&mut nodes);
    for _ in 0..2 {
        nodes.iter_mut().for_each(|node| _ = node.ask("who", ""));
        stage.store.restart();
    }
    let slowest = reports(&mut nodes, &asks);
    println!("the slowest ask took {slowest:?}");
    assert_eq!(stage.homes(&mut nodes[0]), homes, "the same owners in the same epochs");
    // Changes are made again.
    nodes.push(stage.node("four"));
    settle(&mut nodes);
    stage.assert_one_life_each();
}

#[test]
fn no_ask_is_lost_when_postgresql_crashes_and_comes_back() {
    no_ask_is_lost_when_the_store_crashes_and_comes_back(postgres());
}

#[test]
fn no_ask_is_lost_when_etcd_crashes_and_comes_back() {
    no_ask_is_lost_when_the_store_crashes_and_comes_back(etcd());
}

#[test]
fn where_every_node_is_a_candidate_any_of_them_may_be_killed() {
    let stage = Stage::new(postgres(), 0);
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        // Each knows itself only: whoever leads is found through the store.
        let mut node = stage.run(name, &["--host", "127.0.0.1:0", "--name", name]);
        node.hear("-", "joined");
        nodes.push(node);
    }
    settle(&mut nodes);
    assert!(nodes[0].has_said("- leads"), "it was the first");
    let homes = stage.homes(&mut nodes[1]);
    let lost = homes.iter().position(|home| home.starts_with("one ")).expect("one has some");
    let mut one = nodes.remove(0);
    one.kill();
    let killed = Instant::now();
    nodes[0].ask_until("add", &format!("busy-{lost} 1"), " t");
    println!("its actors lived elsewhere after {} ms", killed.elapsed().as_millis());
    settle(&mut nodes);
    assert!(nodes.iter_mut().all(|node| !node.has_said("- Evicted")));
    stage.assert_one_life_each();
}

#[tokio::test]
async fn who_resigns_makes_way_at_once() {
    let store = postgres();
    // A lead of twenty seconds, which nobody waits for.
    let lease = Duration::from_secs(60);
    let serve = || {
        let store = RecordStore::postgres(&store.url()).expect("it is a URL");
        let config = AuthorityConfig::new("example", store, Tls::insecure_plaintext());
        Authority::serve(config.lease(lease)).expect("it starts")
    };
    let first = serve();
    first.is_leading().wait_for(|leads| *leads).await.expect("it runs");
    let second = serve();
    let resigned = Instant::now();
    first.resign().await;
    second.is_leading().wait_for(|leads| *leads).await.expect("it runs");
    println!("another one led after {} ms", resigned.elapsed().as_millis());
    assert!(resigned.elapsed() < lease / 6, "{:?}", resigned.elapsed());
}
