//! Clients that claim to be nodes, or say what means nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use althing::{Node, actor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{Client, ClientConfig};
use crate::capability::Capability;
use crate::certificates::CertificateAuthority;
use crate::protocol::{
    CLIENT, GREETING_LEN_MAX, Greeting, No, Request, VERSION, Welcome, read, write,
};
use crate::tls::{Guard, Tls};
use crate::transport::{self, GREETING_TIMEOUT, Stream, Whom};
use crate::{Authority, LEASE_DEFAULT, Member, MemberConfig, RefusedFor};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Echo;

#[actor(name = "test.client-echo", wire, crate = althing)]
impl Echo {
    async fn echo(&mut self, n: u64) -> u64 {
        n
    }
}

/// An authority, one node, and who certifies.
struct Scene {
    certificates: CertificateAuthority,
    authority: Authority,
    member: Member,
    node: Node,
    _directory: tempfile::TempDir,
}

fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3_600)
}

async fn scene() -> Scene {
    let certificates = CertificateAuthority::new("test", in_an_hour()).expect("a name");
    let tls = |name: &str| {
        let own = certificates.certify(name, in_an_hour()).expect("a name");
        Tls::from_pem(own.certificate, own.key, certificates.certificate())
    };
    let directory = tempfile::tempdir().expect("a directory");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let authority = Authority::start("test", directory.path(), listen, LEASE_DEFAULT, tls("zero"));
    let authority = authority.expect("it starts");
    let at = authority.address().to_string();
    let member = Member::bind(MemberConfig::new("test", "one", at, tls("one"))).expect("a port");
    let builder = Node::builder("one").cluster(member.way());
    let node = builder.actor(async |_| Ok(Echo)).build();
    member.join().await.expect("it is trusted");
    Scene { certificates, authority, member, node, _directory: directory }
}

impl Scene {
    fn tls(&self) -> Tls {
        let own = self.certificates.certify_client("eve", &Capability::ALL, in_an_hour());
        let own = own.expect("a name");
        Tls::from_pem(own.certificate, own.key, self.certificates.certificate())
    }

    fn guard(&self) -> Arc<Guard> {
        Guard::open(&self.tls(), "test", None).expect("it is right")
    }

    async fn greeted(&self, at: SocketAddr, from: u64, to: u64) -> Stream {
        let address = at.to_string();
        let whom = Whom { address: &address, turn: 0, node: None };
        let dialled = transport::dial(&self.guard(), &whom, GREETING_TIMEOUT).await;
        let mut stream = dialled.expect("it is a node of the cluster");
        let greeting = Greeting { version: VERSION, cluster: "test".to_owned(), from, to };
        // To one that refuses at once this may fail.
        _ = write(&mut stream, &greeting).await;
        stream
    }

    async fn is_answered(&self, client: &Client) {
        let echo = client.get::<Echo>("a").expect("it may talk");
        assert_eq!(echo.echo(7).timeout(PATIENCE).await, Ok(7));
    }
}

/// What comes until the other side ends.
async fn rest(mut stream: Stream) -> Vec<u8> {
    let mut heard = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
    // However it ends.
    _ = end.expect("the connection ends");
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_speaks_for_no_node() {
    let scene = scene().await;
    let me = scene.node.incarnation().0;
    let mut as_node = scene.greeted(scene.member.address(), me, me).await;
    let welcome = read::<Welcome>(&mut as_node, GREETING_LEN_MAX).await.expect("an answer");
    assert_eq!(welcome, Welcome::Refused { why: No::Certificate.words().to_owned() });
    // The authority tells it nothing, and does nothing for it.
    let mut to_authority = scene.greeted(scene.authority.address(), 0, 0).await;
    _ = write(&mut to_authority, &Request::Goodbye { incarnation: me }).await;
    assert_eq!(rest(to_authority).await, b"");
    let counted = async {
        while scene.authority.refusals().count(RefusedFor::Node) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, counted).await.expect("it is counted");
    assert_eq!(scene.member.view().members.len(), 1, "nobody was taken out");
    // Nor is one of another cluster let in as a client.
    let config = ClientConfig::new("tset", [scene.member.address().to_string()], scene.tls());
    assert!(Client::connect(config).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_of_one_client_ends_its_connection_and_harms_no_other() {
    let scene = scene().await;
    let at = scene.member.address();
    let config = ClientConfig::new("test", [at.to_string()], scene.tls());
    let client = Client::connect(config).await.expect("it is trusted");
    scene.is_answered(&client).await;
    let garbage: [&[u8]; 4] = [
        &[0xff; 64],
        &[0, 0, 0, 3, 0xff, 0xff, 0xff],
        // Numbers without a question, and a question that nobody knows.
        &[0, 0, 0, 2, 0x08, 0x01],
        &[0, 0, 0, 7, 0x08, 0x01, 0x12, 0x03, 0xfa, 0x07, 0x00],
    ];
    for bytes in garbage {
        let mut stream = scene.greeted(at, CLIENT, 0).await;
        let welcome = read::<Welcome>(&mut stream, GREETING_LEN_MAX).await.expect("an answer");
        assert!(matches!(welcome, Welcome::Client { .. }), "{welcome:?}");
        stream.write_all(bytes).await.expect("it takes a few bytes");
        rest(stream).await;
        scene.is_answered(&client).await;
    }
}
