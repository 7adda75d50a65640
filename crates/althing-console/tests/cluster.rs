//! What the page of a cluster promises: real nodes over TLS, the real command, and one node that
//! dies.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use althing::{Node, actor};
use althing_cluster::{
    Authority, Capability, CertificateAuthority, Certified, Member, MemberConfig, Tls,
};
use althing_console::ClusterView;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough that a node that is gone is still a member when the page looks.
const LEASE: Duration = Duration::from_secs(4);

#[derive(Default)]
struct Tally(u64);

#[actor(name = "test.tally", wire)]
impl Tally {
    async fn add(&mut self, n: u64) {
        self.0 += n;
    }
}

/// Ends its process with the test.
struct Console(Child);

impl Drop for Console {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

async fn view(origin: &str) -> ClusterView {
    let url = format!("{origin}/api");
    let answer = tokio::task::spawn_blocking(move || ureq::get(url).call());
    let mut answer = answer.await.expect("no panic").expect("an answer");
    answer.body_mut().read_json().expect("the view as JSON")
}

/// The first view that is so.
async fn until(origin: &str, is_so: impl Fn(&ClusterView) -> bool) -> ClusterView {
    let wait = async {
        loop {
            let view = view(origin).await;
            if is_so(&view) {
                return view;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it comes")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_every_node_of_a_cluster_and_the_one_that_does_not_answer() {
    let until_then = SystemTime::now() + Duration::from_secs(3_600);
    let certificates = CertificateAuthority::new("test", until_then).expect("a name");
    let certify = |name: &str| certificates.certify(name, until_then).expect("a name");
    let tls = |own: Certified| Tls::from_pem(own.certificate, own.key, certificates.certificate());
    let directory = tempfile::tempdir().expect("a directory");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let record = directory.path().join("record");
    let authority = Authority::start("test", &record, listen, LEASE, tls(certify("authority")));
    let authority = authority.expect("it starts");
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let at = authority.address().to_string();
        let member = Member::bind(MemberConfig::new("test", name, at, tls(certify(name))));
        let member = member.expect("the certificate is for it");
        let builder = Node::builder(name).cluster(member.way());
        let node = builder.actor(async |_| Ok(Tally::default())).build();
        member.join().await.expect("it is trusted");
        nodes.push((member, node));
    }
    let name = format!("ada.{}.client", Capability::Look);
    let own = certify(&name);
    let place = |file: &str| directory.path().join(file);
    std::fs::write(place(&format!("{name}.pem")), own.certificate).expect("there is room");
    std::fs::write(place(&format!("{name}.key")), own.key).expect("there is room");
    std::fs::write(place("ca.pem"), certificates.certificate()).expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_althing-console"));
    command.args(["cluster", "--listen", "127.0.0.1:0", "--cluster", "test", "--as", &name]);
    command.arg("--at").arg(nodes[0].0.address().to_string()).arg("--tls").arg(directory.path());
    let mut console = Console(command.stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut lines = BufReader::new(console.0.stdout.take().expect("it is piped")).lines();
    let origin = tokio::task::spawn_blocking(move || lines.next());
    let origin = timeout(PATIENCE, origin).await.expect("it says where it is").expect("no panic");
    let origin = origin.expect("a line").expect("text");
    let settled = until(&origin, |view| {
        let is_settled = |node: &althing_console::NodeLine| {
            node.buckets > 0 && node.arriving + node.departing == 0 && node.state == "serving"
        };
        view.nodes.len() == 2 && view.nodes.iter().all(is_settled)
    });
    let settled = settled.await;
    assert_eq!(settled.nodes.iter().map(|node| node.buckets).sum::<usize>(), 4_096);
    nodes[0].1.get::<Tally>("a").add(1).await.expect("it lives somewhere");
    until(&origin, |view| view.nodes.iter().map(|node| node.actors).sum::<u64>() == 1).await;
    let names: Vec<_> = settled.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    // It dies without a word: first it does not answer, then it is taken out.
    drop(nodes.remove(1));
    let dead = until(&origin, |view| view.nodes.iter().any(|node| node.state == "unreachable"));
    let dead = dead.await.nodes.remove(1);
    assert_eq!(dead.name, "two");
    assert!(dead.trouble.is_some(), "{dead:?}");
    let alone = until(&origin, |view| view.nodes.len() == 1 && view.nodes[0].buckets == 4_096);
    assert!(alone.await.number > settled.number);
}
