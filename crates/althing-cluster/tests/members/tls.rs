//! Connections between nodes whose certificates are right, wrong, and renewed while they run.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::support::proxy::Proxy;
use crate::support::{LEASE, Process};
use althing::{ActorRef, Node, actor};
use althing_cluster::{
    Authority, CertificateAuthority, Certified, JoinError, Member, MemberConfig, RefusedFor, Tls,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts what it is told.
#[derive(Default)]
struct Tally(u64);

#[actor(name = "test.tally", wire)]
impl Tally {
    async fn add(&mut self, n: u64) {
        self.0 += n;
    }

    async fn sum(&mut self) -> u64 {
        self.0
    }

    async fn echo(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }
}

fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3_600)
}

fn certificates(cluster: &str) -> CertificateAuthority {
    CertificateAuthority::new(cluster, in_an_hour()).expect("a name")
}

fn tls(certificates: &CertificateAuthority, node: &str) -> Tls {
    let own = certificates.certify(node, in_an_hour()).expect("a name");
    Tls::from_pem(own.certificate, own.key, certificates.certificate())
}

/// The authority of a cluster, with a directory for its record and for certificates.
struct Scene {
    certificates: CertificateAuthority,
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Scene {
    fn new() -> Self {
        let certificates = certificates("test");
        Self::with(tls(&certificates, "authority"), certificates)
    }

    fn with(tls: Tls, certificates: CertificateAuthority) -> Self {
        let (directory, authority) = crate::support::authority_with(tls);
        Self { certificates, directory, authority }
    }

    fn config(&self, name: &str, tls: Tls) -> MemberConfig {
        MemberConfig::new("test", name, self.authority.address().to_string(), tls)
    }

    fn tls(&self, name: &str) -> Tls {
        tls(&self.certificates, name)
    }

    async fn node(&self, name: &str) -> (Member, Node) {
        self.join(self.config(name, self.tls(name))).await
    }

    async fn join(&self, config: MemberConfig) -> (Member, Node) {
        let (member, node) = build(config);
        member.join().await.expect("it is trusted");
        (member, node)
    }

    /// What comes of joining.
    async fn refused(&self, config: MemberConfig) -> (String, Member) {
        let (member, _node) = build(config.join_timeout(LEASE));
        match member.join().await {
            Err(JoinError::Untrusted(why)) => (why, member),
            other => panic!("{other:?}"),
        }
    }

    /// Until the authority has refused somebody for that.
    async fn has_refused(&self, reason: RefusedFor) {
        until(|| self.authority.refusals().count(reason) > 0).await;
    }
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it comes");
}

fn build(config: MemberConfig) -> (Member, Node) {
    let name = config.name.clone();
    let member = Member::bind(config).expect("the certificate is for it");
    let node =
        Node::builder(name).cluster(member.way()).actor(async |_| Ok(Tally::default())).build();
    (member, node)
}

/// Waits until that many members own buckets and none moves.
async fn settled(member: &Member, nodes: usize) {
    until(|| {
        let members = member.view().members;
        members.len() == nodes && members.iter().all(|one| one.buckets > 4_096 / (nodes + 1))
    })
    .await;
}

/// A tally that lives on `there`, seen from `here`.
fn tally_on(member: &Member, there: &Node, here: &Node) -> ActorRef<Tally> {
    let mut tallies = (0..100).map(|n| here.get::<Tally>(format!("tally-{n}")));
    let is_there =
        |tally: &ActorRef<Tally>| member.owner_of(&tally.id()) == Some(there.incarnation());
    tallies.find(is_there).expect("one of a hundred is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_tell_and_ask_over_tls() {
    let scene = Scene::new();
    let (one, first) = scene.node("one").await;
    let (_two, second) = scene.node("two").await;
    let (_three, third) = scene.node("three").await;
    settled(&one, 3).await;
    for there in [&second, &third] {
        let tally = tally_on(&one, there, &first);
        for _ in 0..2_000 {
            tally.add(1).tell().await.expect("there is room");
        }
        assert_eq!(tally.sum().await, Ok(2_000));
        // More than a session seals at once, and in both directions.
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        assert_eq!(tally.echo(bytes.clone()).timeout(PATIENCE).await, Ok(bytes));
    }
    assert_eq!(one.refusals().total(), 0);
}

#[test]
fn three_processes_with_files_reach_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let certificates = certificates("example");
    let files = directory.path().join("tls");
    std::fs::create_dir(&files).expect("a directory");
    for node in ["one", "two", "three"] {
        let own = certificates.certify(node, in_an_hour()).expect("a name");
        write(&files, node, &own);
    }
    std::fs::write(files.join("ca.pem"), certificates.certificate()).expect("a file");
    let files = files.to_str().expect("a path");
    let run = |name: &str, more: [&str; 2]| {
        let mut arguments = vec!["--name", name, "--tls", files, "--lease-ms", "1500"];
        arguments.extend(more);
        let mut process = Process::run(name, directory.path(), &arguments);
        let candidate = more[0] == "--host";
        let address = if candidate { process.hear("-", "candidate") } else { String::new() };
        process.hear("-", "joined");
        (process, address.replace("candidate ", ""))
    };
    let (mut one, address) = run("one", ["--host", "127.0.0.1:0"]);
    let (mut two, _) = run("two", ["--authority", &address]);
    let (mut three, _) = run("three", ["--authority", &address]);
    three.ask_until("who", "", "three:1");
    for process in [&mut one, &mut two, &mut three] {
        let word = process.begin("asks", "shared 300");
        assert!(process.hear(&word, "asked").contains("failed 0 "));
    }
}

fn write(directory: &Path, node: &str, own: &Certified) {
    std::fs::write(directory.join(format!("{node}.key")), &own.key).expect("a file");
    std::fs::write(directory.join(format!("{node}.pem")), &own.certificate).expect("a file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_is_refused_on_both_sides() {
    let scene = Scene::new();
    let (one, first) = scene.node("one").await;
    let (_two, second) = scene.node("two").await;
    settled(&one, 2).await;
    let tally = tally_on(&one, &second, &first);
    let other = certificates("test");
    // It does not trust the cluster.
    let (why, member) = scene.refused(scene.config("three", tls(&other, "three"))).await;
    assert!(why.contains("not of the cluster's authority"), "{why}");
    assert!(member.refusals().count(RefusedFor::Authority) > 0);
    scene.has_refused(RefusedFor::ByTheOther).await;
    // It trusts the cluster, which does not trust it.
    let own = other.certify("three", in_an_hour()).expect("a name");
    let half = Tls::from_pem(own.certificate, own.key, scene.certificates.certificate());
    let (why, member) = scene.refused(scene.config("three", half)).await;
    assert!(why.contains("does not trust this side"), "{why}");
    assert!(member.refusals().count(RefusedFor::ByTheOther) > 0);
    scene.has_refused(RefusedFor::Authority).await;
    let text = scene.authority.refusals().prometheus_text();
    assert!(text.contains("althing_cluster_refused_total{reason=\"authority\"} "), "{text}");
    tally.add(1).await.expect("nobody else is harmed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_has_expired_is_refused_on_both_sides() {
    let scene = Scene::new();
    let past = SystemTime::now() - Duration::from_secs(60);
    let own = scene.certificates.certify("one", past).expect("a name");
    let old = Tls::from_pem(own.certificate, own.key, scene.certificates.certificate());
    let (why, member) = scene.refused(scene.config("one", old)).await;
    assert!(why.contains("expired"), "{why}");
    assert!(member.refusals().count(RefusedFor::ByTheOther) > 0);
    scene.has_refused(RefusedFor::Expired).await;
}

#[test]
fn a_node_does_not_start_with_a_certificate_of_another_node_or_cluster() {
    let (test, other) = (certificates("test"), certificates("other"));
    for (tls, found) in [(tls(&test, "two"), "two"), (tls(&other, "one"), "nothing of it")] {
        let config = MemberConfig::new("test", "one", "127.0.0.1:1", tls);
        let why = Member::bind(config).expect_err("it is for another").to_string();
        assert!(why.contains("one.test.althing") && why.ends_with(found), "{why}");
    }
    let broken = Tls::from_pem("nonsense", "nonsense", test.certificate());
    let config = MemberConfig::new("test", "one", "127.0.0.1:1", broken);
    assert!(Member::bind(config).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_another_cluster_is_refused_though_the_authority_is_the_same() {
    let (test, other) = (certificates("test"), certificates("other"));
    let both = format!("{}{}", test.certificate(), other.certificate());
    let own = test.certify("authority", in_an_hour()).expect("a name");
    let scene = Scene::with(Tls::from_pem(own.certificate, own.key, both.clone()), test);
    let own = other.certify("one", in_an_hour()).expect("a name");
    let strange = Tls::from_pem(own.certificate, own.key, both);
    let address = scene.authority.address().to_string();
    let (why, member) = scene.refused(MemberConfig::new("other", "one", address, strange)).await;
    assert!(why.contains("for no node of the cluster `other`"), "{why}");
    assert!(member.refusals().count(RefusedFor::Cluster) > 0);
    scene.has_refused(RefusedFor::ByTheOther).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_at_the_address_of_another_node_is_sent_nothing() {
    let scene = Scene::new();
    let (one, _first) = scene.node("one").await;
    let (three, _third) = scene.node("three").await;
    // Its record leads to `three`, as a wrong name service would.
    let config = scene.config("two", scene.tls("two")).advertised(three.address().to_string());
    let (_two, _second) = scene.join(config).await;
    until(|| one.refusals().count(RefusedFor::Node) > 0).await;
    until(|| three.refusals().count(RefusedFor::ByTheOther) > 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_speaks_plaintext_to_a_port_with_tls_is_refused_and_so_is_the_reverse() {
    let scene = Scene::new();
    let (why, member) = scene.refused(scene.config("one", Tls::insecure_plaintext())).await;
    assert!(why.contains("it speaks TLS, and this side does not"), "{why}");
    assert!(member.refusals().count(RefusedFor::Encrypted) > 0);
    scene.has_refused(RefusedFor::Plaintext).await;

    let scene = Scene::with(Tls::insecure_plaintext(), certificates("test"));
    let (why, member) = scene.refused(scene.config("one", scene.tls("one"))).await;
    assert!(why.contains("broke off the TLS handshake"), "{why}");
    assert!(member.refusals().count(RefusedFor::Unfinished) > 0);
    scene.has_refused(RefusedFor::Encrypted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_to_a_port_with_tls_is_shown_out() {
    let scene = Scene::new();
    let mut silent = TcpStream::connect(scene.authority.address()).await.expect("it listens");
    let end = timeout(PATIENCE, silent.read_u8()).await.expect("an end");
    assert!(end.is_err());
    scene.has_refused(RefusedFor::Unfinished).await;
}

/// Connections that say nothing, of which another one is opened for each that ends.
struct Flood {
    _connections: tokio::task::JoinSet<()>,
    opened: Arc<AtomicUsize>,
}

impl Flood {
    fn new(address: SocketAddr, connections: usize) -> Self {
        let opened = Arc::new(AtomicUsize::new(0));
        let mut flood = tokio::task::JoinSet::new();
        for _ in 0..connections {
            let opened = opened.clone();
            flood.spawn(async move {
                loop {
                    let Ok(mut silent) = TcpStream::connect(address).await else { continue };
                    opened.fetch_add(1, Ordering::Relaxed);
                    _ = silent.read_u8().await;
                }
            });
        }
        Self { _connections: flood, opened }
    }

    /// How many came while one more that says nothing was kept.
    async fn outlived(&self, address: SocketAddr) -> usize {
        let before = self.opened.load(Ordering::Relaxed);
        let mut silent = TcpStream::connect(address).await.expect("it listens");
        _ = timeout(PATIENCE, silent.read_u8()).await.expect("it makes room");
        self.opened.load(Ordering::Relaxed) - before
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_say_nothing_keep_no_node_out_however_many_they_are() {
    const STRANGERS: usize = 1_500;
    // Both ends of each are in this process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("it may be");
    let scene = Scene::new();
    let (one, first) = scene.node("one").await;
    let at_authority = Flood::new(scene.authority.address(), STRANGERS);
    let at_node = Flood::new(one.address(), STRANGERS);
    until(|| scene.authority.refusals().count(RefusedFor::Unfinished) > 0).await;
    until(|| one.refusals().count(RefusedFor::Unfinished) > 0).await;
    // It is not who comes that makes room: there are some 500 beyond those that have a place. On a
    // busy machine many of those after it are counted late.
    for (flood, address) in [(&at_authority, scene.authority.address()), (&at_node, one.address())]
    {
        let outlived = flood.outlived(address).await;
        assert!(outlived > 300, "of 1,024 places, {outlived} were taken after it");
    }
    let (_two, second) = scene.node("two").await;
    settled(&one, 2).await;
    let tally = tally_on(&one, &second, &first);
    tally.add(1).timeout(PATIENCE).await.expect("it is reached");
    assert_eq!(tally.sum().timeout(PATIENCE).await, Ok(1));
}

/// The certificate that is shown to a node of the cluster.
async fn shown(scene: &Scene, address: SocketAddr) -> Vec<u8> {
    let certified = scene.certificates.certify("looker", in_an_hour()).expect("a name");
    let mut roots = RootCertStore::empty();
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    roots.add(der(scene.certificates.certificate())).expect("an authority");
    let key = PrivateKeyDer::from_pem_slice(certified.key.as_bytes()).expect("a key");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("there are some")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![der(&certified.certificate)], key)
        .expect("they belong together");
    let socket = TcpStream::connect(address).await.expect("it listens");
    let name = ServerName::try_from("two.test.althing").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, socket).await.expect("it is trusted");
    let chain = stream.get_ref().1.peer_certificates().expect("it has shown one");
    chain[0].as_ref().to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_while_asks_go_on_and_a_broken_one_changes_nothing() {
    let scene = Scene::new();
    let files = scene.directory.path();
    std::fs::write(files.join("ca.pem"), scene.certificates.certificate()).expect("a file");
    let renew = |node: &str| {
        write(files, node, &scene.certificates.certify(node, in_an_hour()).expect("a name"));
    };
    renew("one");
    renew("two");
    let proxy = Proxy::new().await;
    let (one, first) = scene.join(scene.config("one", Tls::from_directory(files, "one"))).await;
    let config = scene.config("two", Tls::from_directory(files, "two"));
    let (two, second) = build(config.advertised(proxy.address.to_string()));
    proxy.target.set(two.address()).expect("once");
    two.join().await.expect("it is trusted");
    settled(&one, 2).await;
    let tally = tally_on(&one, &second, &first);

    let ends = Arc::new(AtomicBool::new(false));
    let (asked, is_over) = (tally.clone(), ends.clone());
    let asking = tokio::spawn(async move {
        let mut asks = 0;
        while !is_over.load(Ordering::Relaxed) {
            asked.add(1).timeout(PATIENCE).await.expect("no ask fails");
            asks += 1;
        }
        asks
    });
    let before = shown(&scene, two.address()).await;
    renew("one");
    renew("two");
    let renewed = async {
        while shown(&scene, two.address()).await == before {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, renewed).await.expect("the new one is shown");
    proxy.cut();
    tally.echo(vec![1]).timeout(PATIENCE).await.expect("by a new connection");
    // Half of a renewal, and something that is none.
    let now = shown(&scene, two.address()).await;
    std::fs::write(files.join("two.pem"), "nonsense").expect("a file");
    std::fs::write(files.join("one.key"), "nonsense").expect("a file");
    sleep(Duration::from_millis(2_500)).await;
    proxy.cut();
    tally.echo(vec![2]).timeout(PATIENCE).await.expect("by a new connection");
    assert_eq!(shown(&scene, two.address()).await, now, "it stays");
    ends.store(true, Ordering::Relaxed);
    let asks = asking.await.expect("no ask fails");
    assert_eq!(tally.sum().await, Ok(asks));
    assert_eq!(one.refusals().total() + two.refusals().total(), 0);
}
