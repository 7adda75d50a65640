//! Nodes with good certificates that claim to be others.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use althing::{Node, actor};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, crypto::ring::default_provider};

use super::verify::{Judge, nodes_of};
use super::{Guard, RefusedFor, Tls, Untrusted};
use crate::certificates::{CertificateAuthority, CertificateError};
use crate::protocol::{
    Answer, GREETING_LEN_MAX, Greeting, No, RECORD_LEN_MAX, Refusal, Request, VERSION, Welcome,
    read, write,
};
use crate::transport::{self, GREETING_TIMEOUT, Stream, Whom};
use crate::{Authority, LEASE_DEFAULT, Member, MemberConfig};

/// Only so that the node has something to share.
#[derive(Default)]
struct Nothing;

#[actor(name = "test.nothing", wire, crate = althing)]
impl Nothing {
    async fn nothing(&mut self) {}
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

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

/// A connection of a node that greets as the one of that incarnation.
async fn greeted(
    certificates: &CertificateAuthority,
    at: SocketAddr,
    from: u64,
    to: u64,
) -> Stream {
    let guard = Guard::open(&tls(certificates, "two"), "test", Some("two")).expect("it is right");
    let address = at.to_string();
    let whom = Whom { address: &address, turn: 0, node: None };
    let dialled = transport::dial(&guard, &whom, GREETING_TIMEOUT).await;
    let mut stream = dialled.expect("it is a node of the cluster");
    let greeting = Greeting { version: VERSION, cluster: "test".to_owned(), from, to };
    write(&mut stream, &greeting).await.expect("it listens");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_speaks_for_no_other_though_its_certificate_is_good() {
    let certificates = certificates("test");
    let directory = tempfile::tempdir().expect("a directory");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let own = tls(&certificates, "one");
    let authority = Authority::start("test", directory.path(), any, LEASE_DEFAULT, own.clone());
    let authority = authority.expect("it starts");
    let config = MemberConfig::new("test", "one", authority.address().to_string(), own);
    let member = Member::bind(config).expect("any port");
    let node = Node::builder("one").cluster(member.way()).actor(async |_| Ok(Nothing)).build();
    member.join().await.expect("it is trusted");
    let one = node.incarnation().0;

    let mut stream = greeted(&certificates, member.address(), one, one).await;
    let answer = read::<Welcome>(&mut stream, GREETING_LEN_MAX).await.expect("an answer");
    assert_eq!(answer, Welcome::Refused { why: No::Certificate.words().to_owned() });

    let of_one = crate::record::Member {
        incarnation: one ^ 1,
        name: "one".to_owned(),
        address: String::new(),
        stage: crate::record::Stage::Active,
        since: 0,
        frame_len_max: 0,
        labels: crate::label::Labels::default(),
    };
    let requests = [
        Request::Goodbye { incarnation: one },
        Request::Leave { incarnation: one },
        Request::Renew { incarnation: one, counter: 9, view: 0, labels: None },
        Request::Released { incarnation: one, buckets: vec![1], epochs: vec![1] },
        Request::Join { member: of_one, known: 0 },
    ];
    for request in requests {
        let mut stream = greeted(&certificates, authority.address(), 0, 0).await;
        write(&mut stream, &request).await.expect("it listens");
        let answer = read::<Answer>(&mut stream, RECORD_LEN_MAX).await.expect("an answer");
        assert_eq!(answer, Answer::Refused { why: Refusal::Certificate }, "{request:?}");
    }
    assert_eq!(member.view().members.len(), 1);
    assert_eq!(member.view().members[0].incarnation, node.incarnation());
    assert_eq!(member.refusals().count(RefusedFor::Node), 1);
    assert!(authority.refusals().count(RefusedFor::Node) >= 4, "the last one may be under way");
}

#[test]
fn a_client_of_another_cluster_is_told_from_one_of_this_though_the_authority_is_the_same() {
    let (test, other) = (certificates("test"), certificates("other"));
    let mut roots = RootCertStore::empty();
    for authority in [&test, &other] {
        roots.add(der(authority.certificate())).expect("an authority");
    }
    let judge = Judge::new("test", roots, default_provider().into()).expect("it has authorities");
    let verify = |authority: &CertificateAuthority| {
        let own = authority.certify("one", in_an_hour()).expect("a name");
        judge.verify_client_cert(&der(&own.certificate), &[], UnixTime::now())
    };
    verify(&test).expect("it is of this cluster");
    let why = Untrusted::from(&verify(&other).expect_err("it is of another"));
    assert_eq!(why.reason, RefusedFor::Cluster);
}

#[test]
fn a_certificate_is_for_the_nodes_that_it_names_and_no_others() {
    let test = certificates("test");
    let own = test.certify("db.one", in_an_hour()).expect("a name");
    let certificate = der(&own.certificate);
    assert_eq!(nodes_of(&certificate, "test"), ["db.one"]);
    assert!(nodes_of(&certificate, "one").is_empty() && nodes_of(&certificate, "t").is_empty());
    for name in ["", "*", "a b", "-a", "a..b", "ä", &"a".repeat(64)] {
        assert!(test.certify(name, in_an_hour()).is_err(), "{name}");
        assert!(CertificateAuthority::new(name, in_an_hour()).is_err(), "{name}");
    }
    assert!(CertificateAuthority::new("a.b", in_an_hour()).is_err(), "it could be two clusters");
}

#[test]
fn every_name_that_gets_a_certificate_can_be_a_nodes_and_dialled() {
    let longest = "n".repeat(63);
    for cluster in ["test", "Test", "a_b", "5", "x--y"] {
        let certificates = certificates(cluster);
        for node in ["one", "One", "n_1", "7", "db.one", &longest] {
            let guard = Guard::open(&tls(&certificates, node), cluster, Some(node));
            let keys = guard.expect("it is right").keys.as_ref().map(super::Keys::check_own);
            assert!(keys.is_some_and(|own| own.is_ok()), "{node} of {cluster}");
        }
    }
}

#[test]
fn a_certificate_that_should_last_longer_than_any_can_is_refused_by_name() {
    let test = certificates("test");
    let day = Duration::from_secs(86_400);
    for days in [u32::MAX, 4_000_000] {
        let until = SystemTime::now() + day * days;
        assert!(matches!(test.certify("one", until), Err(CertificateError::TooLong)));
        assert!(matches!(CertificateAuthority::new("test", until), Err(CertificateError::TooLong)));
    }
    assert!(test.certify("one", SystemTime::now() + day * 365_000).is_ok());
}

/// A certificate that is not made as ours are.
fn strange(
    issuer: (&rcgen::CertificateParams, &rcgen::KeyPair),
    change: impl FnOnce(&mut rcgen::CertificateParams),
) -> (CertificateDer<'static>, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let name = "one.test.althing".to_owned();
    let mut params = rcgen::CertificateParams::new([name]).expect("a name");
    change(&mut params);
    let issuer = rcgen::Issuer::from_params(issuer.0, issuer.1);
    (params.signed_by(&key, &issuer).expect("it is signed").der().clone(), key)
}

#[test]
fn a_certificate_of_another_role_or_time_or_by_a_node_is_refused() {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};
    let mut authority = CertificateParams::new(["test.althing".to_owned()]).expect("a name");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let root = authority.self_signed(&authority_key).expect("it is signed").der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("an authority");
    let judge = Judge::new("test", roots, default_provider().into()).expect("it has authorities");
    let name = super::expected_name("test", Some("one")).expect("a name");
    let by = (&authority, &authority_key);
    let trusts = |chain: &[CertificateDer<'_>]| judge.trusts(chain, &name, UnixTime::now());
    let reason = |chain: &[CertificateDer<'_>]| {
        Untrusted::from(&trusts(chain).expect_err("it is refused")).reason
    };
    trusts(&[strange(by, |_| {}).0]).expect("it is one");
    for role in [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth] {
        let one_sided = strange(by, |params| params.extended_key_usages = vec![role]).0;
        assert_eq!(reason(&[one_sided]), RefusedFor::Other, "nodes are on both sides");
    }
    let later = strange(by, |params| params.not_before = rcgen::date_time_ymd(4_000, 1, 1)).0;
    assert_eq!(reason(&[later]), RefusedFor::Expired);
    // A node that signs for another one, with its own certificate beside.
    let mut node = CertificateParams::new(["one.test.althing".to_owned()]).expect("a name");
    node.distinguished_name.push(rcgen::DnType::CommonName, "a node");
    let node_key = KeyPair::generate().expect("a key");
    let issuer = rcgen::Issuer::from_params(&authority, &authority_key);
    let of_node = node.signed_by(&node_key, &issuer).expect("it is signed").der().clone();
    let signed = strange((&node, &node_key), |_| {}).0;
    assert_ne!(reason(&[signed, of_node]), RefusedFor::Cluster);
    // The authority's own certificate is no node's.
    assert!(trusts(&[root]).is_err());
}

#[test]
fn a_renewal_that_others_would_not_trust_is_not_taken_and_is_looked_at_again() {
    let (test, other) = (certificates("test"), certificates("test"));
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a file");
    };
    let give = |authority: &CertificateAuthority, until: SystemTime| {
        let own = authority.certify("one", until).expect("a name");
        write("one.key", &own.key);
        write("one.pem", &own.certificate);
    };
    write("ca.pem", test.certificate());
    give(&test, in_an_hour());
    let tls = Tls::from_directory(directory.path(), "one");
    let guard = Guard::open(&tls, "test", Some("one")).expect("it is right");
    let keys = guard.keys.as_ref().expect("there are some");
    let shown = || std::sync::Arc::as_ptr(&keys.current().server);
    let first = shown();
    assert!(matches!(keys.look(), Ok(false)), "nothing has changed");
    // Of another authority of the same name; one that has expired; a key without its certificate.
    give(&other, in_an_hour());
    let why = keys.look().expect_err("nobody would trust it").to_string();
    assert!(why.contains("one.pem") && why.contains("not of the cluster's authority"), "{why}");
    assert!(matches!(keys.look(), Ok(false)), "it is said once");
    give(&test, SystemTime::now() - Duration::from_secs(60));
    assert!(
        keys.look().expect_err("it has expired").to_string().contains("not valid at this time")
    );
    write("one.key", &test.certify("one", in_an_hour()).expect("a name").key);
    assert!(keys.look().is_err(), "the key is another one's");
    assert_eq!(shown(), first, "what was in use stays");
    // The authority that was missing comes later: the files of the node are the same.
    give(&other, in_an_hour());
    assert!(keys.look().is_err());
    write("ca.pem", &format!("{}{}", test.certificate(), other.certificate()));
    assert!(matches!(keys.look(), Ok(true)));
    assert_ne!(shown(), first);
}

#[test]
fn an_authority_that_was_kept_signs_as_before() {
    let kept = certificates("test").certified();
    let again = CertificateAuthority::open(&kept.certificate, &kept.key).expect("it is one");
    assert_eq!(again.cluster(), "test");
    let guard = Guard::open(&tls(&again, "one"), "test", Some("one"));
    assert!(guard.expect("it can be used").keys.is_some());
    let other = certificates("test").certified();
    assert!(CertificateAuthority::open(&kept.certificate, &other.key).is_err());
    let node = again.certify("one", in_an_hour()).expect("a name");
    assert!(CertificateAuthority::open(&node.certificate, &node.key).is_err(), "it is a node's");
}
